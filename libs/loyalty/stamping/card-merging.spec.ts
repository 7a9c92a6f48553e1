import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { CardMergedError, isHeldBy } from './card-holder.js';
import {
  absorbCard,
  decideMergedCard,
  giveBackStamps,
  moveCard,
  mergeCard,
  restoreCard,
} from './card-merging.js';
import { getHeldCard, customerCard, type CustomerCard } from './customer-card.js';
import { findClaims } from './customer-card.entity.js';
import type { CustomerCardEvent, UnlockedReward } from './customer-card.events.js';

const coffee = { id: 1, name: 'Coffee', description: null, stampsRequired: 5, active: true };
const cake = { id: 2, name: 'Cake', description: 'Any', stampsRequired: 10, active: true };
const template = { rewards: [coffee, cake], version: 17 };

const SURVIVOR = 7;
const OTHER = 8;
const details = {
  source: 'adjustment',
  locationId: null,
  staffRef: null,
  externalRef: null,
  receiptUse: 0,
  silent: true,
  personal: null,
  reverses: null,
} as const;

const cardIssued = (id: number, customerId: number): CustomerCardEvent => ({
  type: 'CustomerCardIssued',
  data: { id, accountId: 1, customerId, cardId: 9, uuid: `u${id}`, code: `CODE${id}` },
});
const stampsEarned = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...details, customerId, stamps, source: 'api', templateVersion: 17 },
});
const stampsAdjusted = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...details, customerId, stamps, templateVersion: 17 },
});
const stampsRemoved = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsRemoved',
  data: { ...details, customerId, stamps },
});
const rewardUnlocked = (customerId: number, stampsRequired = 5): CustomerCardEvent => ({
  type: 'RewardUnlocked',
  data: { customerId, rewardId: 1, name: 'Coffee', description: null, stampsRequired },
});
const cardMerged = (stamps: number, unlocked: UnlockedReward[] = []): CustomerCardEvent => ({
  type: 'CustomerCardMerged',
  data: { customerId: SURVIVOR, fromCustomerId: OTHER, intoId: 1, stamps, unlocked },
});
const cardAbsorbed = (stamps: number, unlocked: UnlockedReward[] = []): CustomerCardEvent => ({
  type: 'CustomerCardAbsorbed',
  data: { customerId: SURVIVOR, fromId: 2, stamps, unlocked },
});
const cardUnmerged = (stamps: number, missing: number): CustomerCardEvent => ({
  type: 'CustomerCardUnmerged',
  data: { customerId: SURVIVOR, restoredId: 2, stamps, missing },
});
const cardRestored = (stamps: number, missing: number): CustomerCardEvent => ({
  type: 'CustomerCardRestored',
  data: { customerId: OTHER, fromCustomerId: SURVIVOR, stamps, missing },
});

/** The card of the survivor, and the one that is merged into it. */
const givenSurvivor = (...more: CustomerCardEvent[]) =>
  scenario(customerCard, cardIssued(1, SURVIVOR), ...more);
const givenOther = (...more: CustomerCardEvent[]) =>
  scenario(customerCard, cardIssued(2, OTHER), ...more);
const withCard =
  (decide: (card: CustomerCard) => CustomerCardEvent[]) => (state?: CustomerCard) => {
    if (!state) throw new Error('there is a card');
    return decide(state);
  };

describe('moveCard', () => {
  it('moves a card with its stamps, and lets both customers find it', () => {
    const cardMoved: CustomerCardEvent = {
      type: 'CustomerCardMoved',
      data: { customerId: SURVIVOR, fromCustomerId: OTHER },
    };
    givenOther(stampsEarned(OTHER, 3))
      .when(withCard((card) => moveCard(card, SURVIVOR)))
      .then(cardMoved);
    const before = givenOther(stampsEarned(OTHER, 3)).state();
    const after = givenOther(stampsEarned(OTHER, 3), cardMoved).state();
    expect(after).toEqual({ ...before, customerId: SURVIVOR, formerCustomerIds: [OTHER] });
    expect([isHeldBy(after, SURVIVOR), isHeldBy(after, OTHER), isHeldBy(after, 99)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(findClaims(cardMoved, before)).toEqual({
      claims: [{ kind: 'enrolment', value: '7 9' }],
      releases: [{ kind: 'enrolment', value: '8 9' }],
    });
  });

  it('moves a card back with the stamps that it got meanwhile', () => {
    const back = givenOther(
      { type: 'CustomerCardMoved', data: { customerId: SURVIVOR, fromCustomerId: OTHER } },
      stampsEarned(SURVIVOR, 4),
      { type: 'CustomerCardMoved', data: { customerId: OTHER, fromCustomerId: SURVIVOR } },
    ).state();
    expect(back).toMatchObject({
      customerId: OTHER,
      formerCustomerIds: [SURVIVOR],
      stampsCount: 4,
    });
  });
});

describe('merging two cards of one template', () => {
  it('moves all stamps of one card to the other', () => {
    givenOther(stampsEarned(OTHER, 3))
      .when(withCard((card) => mergeCard(card, givenSurvivor().state())))
      .then(stampsRemoved(OTHER, 3), cardMerged(3));
    givenSurvivor(stampsEarned(SURVIVOR, 4))
      .when(withCard((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: [] }, template)))
      .then(cardAbsorbed(3), stampsAdjusted(SURVIVOR, 3), rewardUnlocked(SURVIVOR));
  });

  it('moves no stamps when there are none, and unlocks no reward twice', () => {
    givenOther()
      .when(withCard((card) => mergeCard(card, givenSurvivor().state())))
      .then(cardMerged(0));
    givenSurvivor()
      .when(withCard((card) => absorbCard(card, { id: 2, stamps: 0, unlocked: [] }, template)))
      .then(cardAbsorbed(0));
    givenSurvivor(stampsEarned(SURVIVOR, 6), rewardUnlocked(SURVIVOR))
      .when(withCard((card) => absorbCard(card, { id: 2, stamps: 1, unlocked: [] }, template)))
      .then(cardAbsorbed(1), stampsAdjusted(SURVIVOR, 1));
  });

  it('keeps the rewards that either card has unlocked, at the lower of two thresholds', () => {
    const dearer = { ...template, rewards: [{ ...coffee, stampsRequired: 9 }, cake] };
    const at = (stampsRequired: number) => [{ rewardId: 1, stampsRequired }];
    const from = givenOther(stampsEarned(OTHER, 3), rewardUnlocked(OTHER, 3));
    from
      .when(withCard((card) => mergeCard(card, givenSurvivor().state())))
      .then(stampsRemoved(OTHER, 3), cardMerged(3, at(3)));
    givenSurvivor(stampsEarned(SURVIVOR, 1))
      .when(withCard((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(3) }, dearer)))
      .then(cardAbsorbed(3, at(3)), stampsAdjusted(SURVIVOR, 3), rewardUnlocked(SURVIVOR, 3));
    for (const [one, other] of [
      [5, 3],
      [3, 5],
    ] as const) {
      const both = givenSurvivor(stampsEarned(SURVIVOR, 5), rewardUnlocked(SURVIVOR, one));
      both
        .when(
          withCard((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(other) }, dearer)),
        )
        .then(cardAbsorbed(3, at(other)), stampsAdjusted(SURVIVOR, 3));
      both
        .when(
          withCard((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(other) }, dearer)),
        )
        .thenState({ unlocked: at(3) });
    }
    // With too few stamps on both cards together there is no event, but the reward stays unlocked.
    givenSurvivor()
      .when(withCard((card) => absorbCard(card, { id: 2, stamps: 1, unlocked: at(3) }, dearer)))
      .thenState({ stampsCount: 1, unlocked: at(3) });
  });

  it('closes one card, which names the other', () => {
    const closedCard = givenOther(
      stampsEarned(OTHER, 3),
      stampsRemoved(OTHER, 3),
      cardMerged(3),
    ).state();
    expect(closedCard).toMatchObject({
      stampsCount: 0,
      customerId: SURVIVOR,
      mergedInto: { customerId: SURVIVOR, id: 1, stamps: 3 },
    });
    expect(() => getHeldCard(closedCard, 99)).toThrow(NotFoundError);
    for (const customerId of [SURVIVOR, OTHER]) {
      expect(() => getHeldCard(closedCard, customerId)).toThrow(CardMergedError);
    }
  });
});

describe('giveBackStamps', () => {
  it.each([
    [7, 3, 0],
    [3, 3, 0],
    [2, 2, 1],
    [0, 0, 3],
  ])('with a balance of %i gives back %i stamps and misses %i', (balance, stamps, missing) => {
    givenSurvivor(...(balance > 0 ? [stampsEarned(SURVIVOR, balance)] : []))
      .when(withCard((card) => giveBackStamps(card, 2, 3)))
      .then(
        cardUnmerged(stamps, missing),
        ...(stamps > 0 ? [stampsRemoved(SURVIVOR, stamps)] : []),
      );
  });
});

describe('restoreCard', () => {
  it('reopens the closed card with the stamps that it gets back', () => {
    const closedCard = givenOther(stampsEarned(OTHER, 3), stampsRemoved(OTHER, 3), cardMerged(3));
    closedCard
      .when(withCard((card) => restoreCard(card, OTHER, { stamps: 2, missing: 1 }, template)))
      .then(cardRestored(2, 1), stampsAdjusted(OTHER, 2));
    const after = givenOther(
      stampsEarned(OTHER, 3),
      stampsRemoved(OTHER, 3),
      cardMerged(3),
      cardRestored(2, 1),
      stampsAdjusted(OTHER, 2),
    ).state();
    expect(after).toMatchObject({ customerId: OTHER, stampsCount: 2 });
    expect(after).not.toHaveProperty('mergedInto');
    expect(getHeldCard(after, OTHER)).toBe(after);
  });
});

describe('undoing a merge', () => {
  const COFFEE = 1;
  const CAKE = 2;
  const at = (...rewards: [id: number, stampsRequired: number][]) =>
    rewards.map(([rewardId, stampsRequired]) => ({ rewardId, stampsRequired }));
  const anyUnlocked = (rewardId: number, stampsRequired: number): CustomerCardEvent => ({
    type: 'RewardUnlocked',
    data: { customerId: SURVIVOR, rewardId, name: 'Any', description: null, stampsRequired },
  });
  const rewardRedeemed = (stampsSpent: number, locked: number[]): CustomerCardEvent => ({
    type: 'RewardRedeemed',
    data: {
      customerId: SURVIVOR,
      redemptionId: 1,
      rewardId: COFFEE,
      rewardName: 'Coffee',
      stampsSpent,
      locked,
      templateVersion: 17,
      locationId: null,
      staffRef: null,
      externalRef: null,
      receiptUse: 0,
      silent: false,
      personal: null,
    },
  });
  /** Returns the events that take back the stamps of the merge. */
  const createUnmergeEvents = (stamps: number) => [
    cardUnmerged(stamps, 0),
    ...(stamps > 0 ? [stampsRemoved(SURVIVOR, stamps)] : []),
  ];
  const createMergeEvents = (unlocks: UnlockedReward[] = [], stamps = 3) => [
    cardAbsorbed(stamps, unlocks),
    ...(stamps > 0 ? [stampsAdjusted(SURVIVOR, stamps)] : []),
  ];

  it.each<[string, CustomerCardEvent[], UnlockedReward[]]>([
    [
      'locks a reward that only the other card had unlocked',
      createMergeEvents(at([COFFEE, 3])),
      [],
    ],
    [
      'locks a reward of the other card even when this card unlocked it since',
      [...createMergeEvents(at([COFFEE, 3])), anyUnlocked(COFFEE, 3)],
      [],
    ],
    [
      'locks a reward of the other card even when no stamps were moved',
      createMergeEvents(at([COFFEE, 3]), 0),
      [],
    ],
    [
      'restores the own threshold where that of the other card was lower',
      [stampsEarned(SURVIVOR, 5), anyUnlocked(COFFEE, 5), ...createMergeEvents(at([COFFEE, 3]))],
      at([COFFEE, 5]),
    ],
    [
      'keeps the own threshold where it was the lower one',
      [stampsEarned(SURVIVOR, 3), anyUnlocked(COFFEE, 3), ...createMergeEvents(at([COFFEE, 5]))],
      at([COFFEE, 3]),
    ],
    [
      'locks a reward that only the sum of stamps reached',
      [stampsEarned(SURVIVOR, 4), ...createMergeEvents(), anyUnlocked(COFFEE, 5)],
      [],
    ],
    [
      'keeps a reward that the own balance reaches by now',
      [
        stampsEarned(SURVIVOR, 4),
        ...createMergeEvents(),
        anyUnlocked(COFFEE, 5),
        stampsEarned(SURVIVOR, 1),
      ],
      at([COFFEE, 5]),
    ],
    [
      'keeps a reward that was unlocked after the merge',
      [...createMergeEvents(at([COFFEE, 3])), stampsEarned(SURVIVOR, 7), anyUnlocked(CAKE, 10)],
      at([CAKE, 10]),
    ],
    [
      'keeps a reward that was unlocked after a merge without stamps',
      [...createMergeEvents([], 0), stampsEarned(SURVIVOR, 5), anyUnlocked(COFFEE, 5)],
      at([COFFEE, 5]),
    ],
    [
      'does not restore a reward that was redeemed after the merge',
      [
        stampsEarned(SURVIVOR, 5),
        anyUnlocked(COFFEE, 5),
        ...createMergeEvents(),
        rewardRedeemed(5, [COFFEE]),
      ],
      [],
    ],
    [
      'keeps a reward that was unlocked again after a redemption',
      [
        ...createMergeEvents(at([COFFEE, 3])),
        rewardRedeemed(3, [COFFEE]),
        stampsEarned(SURVIVOR, 9),
        anyUnlocked(COFFEE, 9),
      ],
      at([COFFEE, 9]),
    ],
  ])('%s', (_, events, left) => {
    const [merge] = events.filter(({ type }) => type === 'CustomerCardAbsorbed');
    const stamps = merge?.type === 'CustomerCardAbsorbed' ? merge.data.stamps : 0;
    const before = givenSurvivor(...events).state();
    const after = givenSurvivor(
      ...events,
      ...createUnmergeEvents(Math.min(stamps, before.stampsCount)),
    ).state();
    expect(after.unlocked).toEqual(left);
    expect(after).not.toHaveProperty('absorptions');
  });

  it('restores the thresholds merge by merge, the last one first', () => {
    const second = (unlocks: UnlockedReward[]): CustomerCardEvent => ({
      type: 'CustomerCardAbsorbed',
      data: { customerId: SURVIVOR, fromId: 3, stamps: 2, unlocked: unlocks },
    });
    const undoSecond: CustomerCardEvent = {
      type: 'CustomerCardUnmerged',
      data: { customerId: SURVIVOR, restoredId: 3, stamps: 2, missing: 0 },
    };
    const events = [
      stampsEarned(SURVIVOR, 6),
      anyUnlocked(COFFEE, 6),
      ...createMergeEvents(at([COFFEE, 4])),
      second(at([COFFEE, 3])),
      stampsAdjusted(SURVIVOR, 2),
      anyUnlocked(CAKE, 10),
    ];
    expect(givenSurvivor(...events).state().unlocked).toEqual(at([COFFEE, 3], [CAKE, 10]));
    events.push(undoSecond, stampsRemoved(SURVIVOR, 2));
    expect(givenSurvivor(...events).state().unlocked).toEqual(at([COFFEE, 4]));
    events.push(stampsEarned(SURVIVOR, 1), anyUnlocked(CAKE, 10), ...createUnmergeEvents(3));
    expect(givenSurvivor(...events).state().unlocked).toEqual(at([COFFEE, 6], [CAKE, 10]));
  });

  it('leaves the restored card the rewards that it had unlocked', () => {
    const events = [
      stampsEarned(OTHER, 3),
      rewardUnlocked(OTHER, 3),
      stampsRemoved(OTHER, 3),
      cardMerged(3, at([1, 3])),
    ];
    const back = givenOther(...events, cardRestored(3, 0), stampsAdjusted(OTHER, 3)).state();
    expect(back.unlocked).toEqual(at([COFFEE, 3]));
  });
});

describe('decideMergedCard', () => {
  const decide = (
    plannedEvents: CustomerCardEvent[],
    state: CustomerCard,
    earlierEvents: CustomerCardEvent[] = [],
  ) => decideMergedCard({ plannedEvents, state, earlierEvents, inputs: template });

  it('keeps the planned move of a card', () => {
    const plannedEvents = moveCard(givenOther().state(), SURVIVOR);
    expect(decide(plannedEvents, givenOther(stampsEarned(OTHER, 1)).state())).toEqual(
      plannedEvents,
    );
  });

  it('gives away the stamps that the closed card has by now', () => {
    const plannedEvents = [stampsRemoved(OTHER, 3), cardMerged(3)];
    expect(decide(plannedEvents, givenOther(stampsEarned(OTHER, 5)).state())).toEqual([
      stampsRemoved(OTHER, 5),
      cardMerged(5),
    ]);
    expect(decide([cardMerged(0)], givenOther(stampsEarned(OTHER, 1)).state())).toEqual([
      stampsRemoved(OTHER, 1),
      cardMerged(1),
    ]);
    expect(decide(plannedEvents, givenOther().state())).toEqual([cardMerged(0)]);
  });

  it('passes on the rewards that the closed card has unlocked by now', () => {
    const at = [{ rewardId: 1, stampsRequired: 3 }];
    const plannedEvents = [cardAbsorbed(2), stampsAdjusted(SURVIVOR, 2)];
    expect(decide(plannedEvents, givenSurvivor().state(), [cardMerged(3, at)])).toEqual([
      cardAbsorbed(3, at),
      stampsAdjusted(SURVIVOR, 3),
      rewardUnlocked(SURVIVOR, 3),
    ]);
    const closing = decide(
      [cardMerged(0)],
      givenOther(stampsEarned(OTHER, 3), rewardUnlocked(OTHER, 3)).state(),
    );
    expect(closing).toEqual([stampsRemoved(OTHER, 3), cardMerged(3, at)]);
  });

  it('adds the stamps that the closed card gave, and unlocks the rewards that they reach', () => {
    const plannedEvents = [cardAbsorbed(3), stampsAdjusted(SURVIVOR, 3)];
    expect(
      decide(plannedEvents, givenSurvivor(stampsEarned(SURVIVOR, 1)).state(), [cardMerged(4)]),
    ).toEqual([cardAbsorbed(4), stampsAdjusted(SURVIVOR, 4), rewardUnlocked(SURVIVOR)]);
  });

  it('gives back only the stamps that are left', () => {
    const plannedEvents = [cardUnmerged(3, 0), stampsRemoved(SURVIVOR, 3)];
    expect(decide(plannedEvents, givenSurvivor(stampsEarned(SURVIVOR, 1)).state())).toEqual([
      cardUnmerged(1, 2),
      stampsRemoved(SURVIVOR, 1),
    ]);
    const closedCard = givenOther(
      stampsEarned(OTHER, 3),
      stampsRemoved(OTHER, 3),
      cardMerged(3),
    ).state();
    expect(
      decide([cardRestored(3, 0), stampsAdjusted(OTHER, 3)], closedCard, [cardUnmerged(1, 2)]),
    ).toEqual([cardRestored(1, 2), stampsAdjusted(OTHER, 1)]);
  });

  it('throws for any other event, and without the event of the closed card', () => {
    expect(() => decide([stampsEarned(OTHER, 1)], givenOther().state())).toThrow('decided again');
    expect(() => decide([cardAbsorbed(3)], givenSurvivor().state())).toThrow('CustomerCardMerged');
  });
});
