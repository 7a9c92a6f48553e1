import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { CardMergedError, isHeldBy } from './card-holder.js';
import {
  absorbCard,
  redecideCard,
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
  silent: true,
  personal: null,
  reverses: null,
} as const;

const issued = (id: number, customerId: number): CustomerCardEvent => ({
  type: 'CustomerCardIssued',
  data: { id, accountId: 1, customerId, cardId: 9, uuid: `u${id}`, code: `CODE${id}` },
});
const stamped = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...details, customerId, stamps, source: 'api', templateVersion: 17 },
});
const adjusted = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...details, customerId, stamps, templateVersion: 17 },
});
const removed = (customerId: number, stamps: number): CustomerCardEvent => ({
  type: 'StampsRemoved',
  data: { ...details, customerId, stamps },
});
const unlocked = (customerId: number, stampsRequired = 5): CustomerCardEvent => ({
  type: 'RewardUnlocked',
  data: { customerId, rewardId: 1, name: 'Coffee', description: null, stampsRequired },
});
const merged = (stamps: number, unlocked: UnlockedReward[] = []): CustomerCardEvent => ({
  type: 'CustomerCardMerged',
  data: { customerId: SURVIVOR, fromCustomerId: OTHER, intoId: 1, stamps, unlocked },
});
const absorbed = (stamps: number, unlocked: UnlockedReward[] = []): CustomerCardEvent => ({
  type: 'CustomerCardAbsorbed',
  data: { customerId: SURVIVOR, fromId: 2, stamps, unlocked },
});
const unmerged = (stamps: number, missing: number): CustomerCardEvent => ({
  type: 'CustomerCardUnmerged',
  data: { customerId: SURVIVOR, restoredId: 2, stamps, missing },
});
const restored = (stamps: number, missing: number): CustomerCardEvent => ({
  type: 'CustomerCardRestored',
  data: { customerId: OTHER, fromCustomerId: SURVIVOR, stamps, missing },
});

/** The survivor's card, and the one that is merged into it. */
const givenKept = (...more: CustomerCardEvent[]) =>
  scenario(customerCard, issued(1, SURVIVOR), ...more);
const givenGone = (...more: CustomerCardEvent[]) =>
  scenario(customerCard, issued(2, OTHER), ...more);
const on = (decide: (card: CustomerCard) => CustomerCardEvent[]) => (state?: CustomerCard) => {
  if (!state) throw new Error('there is a card');
  return decide(state);
};

describe('a card that changes hands', () => {
  it('keeps everything, and is found under both customers', () => {
    const moved: CustomerCardEvent = {
      type: 'CustomerCardMoved',
      data: { customerId: SURVIVOR, fromCustomerId: OTHER },
    };
    givenGone(stamped(OTHER, 3))
      .when(on((card) => moveCard(card, SURVIVOR)))
      .then(moved);
    const before = givenGone(stamped(OTHER, 3)).state();
    const after = givenGone(stamped(OTHER, 3), moved).state();
    expect(after).toEqual({ ...before, customerId: SURVIVOR, formerCustomerIds: [OTHER] });
    expect([isHeldBy(after, SURVIVOR), isHeldBy(after, OTHER), isHeldBy(after, 99)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(findClaims(moved, before)).toEqual({
      claims: [{ kind: 'enrolment', value: '7 9' }],
      releases: [{ kind: 'enrolment', value: '8 9' }],
    });
  });

  it('goes back with what it got meanwhile', () => {
    const back = givenGone(
      { type: 'CustomerCardMoved', data: { customerId: SURVIVOR, fromCustomerId: OTHER } },
      stamped(SURVIVOR, 4),
      { type: 'CustomerCardMoved', data: { customerId: OTHER, fromCustomerId: SURVIVOR } },
    ).state();
    expect(back).toMatchObject({
      customerId: OTHER,
      formerCustomerIds: [SURVIVOR],
      stampsCount: 4,
    });
  });
});

describe('two cards of one template', () => {
  it('give all stamps of the one to the other', () => {
    givenGone(stamped(OTHER, 3))
      .when(on((card) => mergeCard(card, givenKept().state())))
      .then(removed(OTHER, 3), merged(3));
    givenKept(stamped(SURVIVOR, 4))
      .when(on((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: [] }, template)))
      .then(absorbed(3), adjusted(SURVIVOR, 3), unlocked(SURVIVOR));
  });

  it('move no stamps when there are none, and unlock nothing twice', () => {
    givenGone()
      .when(on((card) => mergeCard(card, givenKept().state())))
      .then(merged(0));
    givenKept()
      .when(on((card) => absorbCard(card, { id: 2, stamps: 0, unlocked: [] }, template)))
      .then(absorbed(0));
    givenKept(stamped(SURVIVOR, 6), unlocked(SURVIVOR))
      .when(on((card) => absorbCard(card, { id: 2, stamps: 1, unlocked: [] }, template)))
      .then(absorbed(1), adjusted(SURVIVOR, 1));
  });

  it('keep what either has unlocked, for the lower of two thresholds', () => {
    const dearer = { ...template, rewards: [{ ...coffee, stampsRequired: 9 }, cake] };
    const at = (stampsRequired: number) => [{ rewardId: 1, stampsRequired }];
    const from = givenGone(stamped(OTHER, 3), unlocked(OTHER, 3));
    from
      .when(on((card) => mergeCard(card, givenKept().state())))
      .then(removed(OTHER, 3), merged(3, at(3)));
    givenKept(stamped(SURVIVOR, 1))
      .when(on((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(3) }, dearer)))
      .then(absorbed(3, at(3)), adjusted(SURVIVOR, 3), unlocked(SURVIVOR, 3));
    for (const [one, other] of [
      [5, 3],
      [3, 5],
    ] as const) {
      const both = givenKept(stamped(SURVIVOR, 5), unlocked(SURVIVOR, one));
      both
        .when(on((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(other) }, dearer)))
        .then(absorbed(3, at(other)), adjusted(SURVIVOR, 3));
      both
        .when(on((card) => absorbCard(card, { id: 2, stamps: 3, unlocked: at(other) }, dearer)))
        .thenState({ unlocked: at(3) });
    }
    // Too few stamps on both together: nothing to announce, and nothing is lost.
    givenKept()
      .when(on((card) => absorbCard(card, { id: 2, stamps: 1, unlocked: at(3) }, dearer)))
      .thenState({ stampsCount: 1, unlocked: at(3) });
  });

  it('leave a closed card, which names the other one', () => {
    const closed = givenGone(stamped(OTHER, 3), removed(OTHER, 3), merged(3)).state();
    expect(closed).toMatchObject({
      stampsCount: 0,
      customerId: SURVIVOR,
      mergedInto: { customerId: SURVIVOR, id: 1, stamps: 3 },
    });
    expect(() => getHeldCard(closed, 99)).toThrow(NotFoundError);
    for (const customerId of [SURVIVOR, OTHER]) {
      expect(() => getHeldCard(closed, customerId)).toThrow(CardMergedError);
    }
  });

  it.each([
    [7, 3, 0],
    [3, 3, 0],
    [2, 2, 1],
    [0, 0, 3],
  ])('of a balance of %i give back %i and miss %i', (balance, stamps, missing) => {
    givenKept(...(balance > 0 ? [stamped(SURVIVOR, balance)] : []))
      .when(on((card) => giveBackStamps(card, 2, 3)))
      .then(unmerged(stamps, missing), ...(stamps > 0 ? [removed(SURVIVOR, stamps)] : []));
  });

  it('let the closed one go on by itself, with what it gets back', () => {
    const closed = givenGone(stamped(OTHER, 3), removed(OTHER, 3), merged(3));
    closed
      .when(on((card) => restoreCard(card, OTHER, { stamps: 2, missing: 1 }, template)))
      .then(restored(2, 1), adjusted(OTHER, 2));
    const after = givenGone(
      stamped(OTHER, 3),
      removed(OTHER, 3),
      merged(3),
      restored(2, 1),
      adjusted(OTHER, 2),
    ).state();
    expect(after).toMatchObject({ customerId: OTHER, stampsCount: 2 });
    expect(after).not.toHaveProperty('mergedInto');
    expect(getHeldCard(after, OTHER)).toBe(after);
  });
});

describe('what a merge has unlocked', () => {
  const COFFEE = 1;
  const CAKE = 2;
  const at = (...rewards: [id: number, stampsRequired: number][]) =>
    rewards.map(([rewardId, stampsRequired]) => ({ rewardId, stampsRequired }));
  const unlock = (rewardId: number, stampsRequired: number): CustomerCardEvent => ({
    type: 'RewardUnlocked',
    data: { customerId: SURVIVOR, rewardId, name: 'Any', description: null, stampsRequired },
  });
  const redeemed = (stampsSpent: number, locked: number[]): CustomerCardEvent => ({
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
      silent: false,
      personal: null,
    },
  });
  /** The stamps that the merge has added go back. */
  const undone = (stamps: number) => [
    unmerged(stamps, 0),
    ...(stamps > 0 ? [removed(SURVIVOR, stamps)] : []),
  ];
  const brought = (unlocks: UnlockedReward[] = [], stamps = 3) => [
    absorbed(stamps, unlocks),
    ...(stamps > 0 ? [adjusted(SURVIVOR, stamps)] : []),
  ];

  it.each<[string, CustomerCardEvent[], UnlockedReward[]]>([
    ['what only the other card had', brought(at([COFFEE, 3])), []],
    ['also when it was announced', [...brought(at([COFFEE, 3])), unlock(COFFEE, 3)], []],
    ['also without stamps', brought(at([COFFEE, 3]), 0), []],
    [
      'a lower threshold of the other card',
      [stamped(SURVIVOR, 5), unlock(COFFEE, 5), ...brought(at([COFFEE, 3]))],
      at([COFFEE, 5]),
    ],
    [
      'not a lower threshold of the own card',
      [stamped(SURVIVOR, 3), unlock(COFFEE, 3), ...brought(at([COFFEE, 5]))],
      at([COFFEE, 3]),
    ],
    ['what the sum reached', [stamped(SURVIVOR, 4), ...brought(), unlock(COFFEE, 5)], []],
    [
      'not what the own balance covers by now',
      [stamped(SURVIVOR, 4), ...brought(), unlock(COFFEE, 5), stamped(SURVIVOR, 1)],
      at([COFFEE, 5]),
    ],
    [
      'not what was unlocked since',
      [...brought(at([COFFEE, 3])), stamped(SURVIVOR, 7), unlock(CAKE, 10)],
      at([CAKE, 10]),
    ],
    [
      'not what was unlocked since a merge without stamps',
      [...brought([], 0), stamped(SURVIVOR, 5), unlock(COFFEE, 5)],
      at([COFFEE, 5]),
    ],
    [
      'nor brings back what was redeemed since',
      [stamped(SURVIVOR, 5), unlock(COFFEE, 5), ...brought(), redeemed(5, [COFFEE])],
      [],
    ],
    [
      'not what was unlocked anew after a redemption',
      [...brought(at([COFFEE, 3])), redeemed(3, [COFFEE]), stamped(SURVIVOR, 9), unlock(COFFEE, 9)],
      at([COFFEE, 9]),
    ],
  ])('goes back with it: %s', (_, events, left) => {
    const [merge] = events.filter(({ type }) => type === 'CustomerCardAbsorbed');
    const stamps = merge?.type === 'CustomerCardAbsorbed' ? merge.data.stamps : 0;
    const before = givenKept(...events).state();
    const after = givenKept(...events, ...undone(Math.min(stamps, before.stampsCount))).state();
    expect(after.unlocked).toEqual(left);
    expect(after).not.toHaveProperty('absorptions');
  });

  it('goes back merge by merge, the last one first', () => {
    const second = (unlocks: UnlockedReward[]): CustomerCardEvent => ({
      type: 'CustomerCardAbsorbed',
      data: { customerId: SURVIVOR, fromId: 3, stamps: 2, unlocked: unlocks },
    });
    const undoSecond: CustomerCardEvent = {
      type: 'CustomerCardUnmerged',
      data: { customerId: SURVIVOR, restoredId: 3, stamps: 2, missing: 0 },
    };
    const events = [
      stamped(SURVIVOR, 6),
      unlock(COFFEE, 6),
      ...brought(at([COFFEE, 4])),
      second(at([COFFEE, 3])),
      adjusted(SURVIVOR, 2),
      unlock(CAKE, 10),
    ];
    expect(givenKept(...events).state().unlocked).toEqual(at([COFFEE, 3], [CAKE, 10]));
    events.push(undoSecond, removed(SURVIVOR, 2));
    expect(givenKept(...events).state().unlocked).toEqual(at([COFFEE, 4]));
    events.push(stamped(SURVIVOR, 1), unlock(CAKE, 10), ...undone(3));
    expect(givenKept(...events).state().unlocked).toEqual(at([COFFEE, 6], [CAKE, 10]));
  });

  it('stays on a card that gets its stamps back', () => {
    const events = [
      stamped(OTHER, 3),
      unlocked(OTHER, 3),
      removed(OTHER, 3),
      merged(3, at([1, 3])),
    ];
    const back = givenGone(...events, restored(3, 0), adjusted(OTHER, 3)).state();
    expect(back.unlocked).toEqual(at([COFFEE, 3]));
  });
});

describe('decided again on a card that somebody else was faster on', () => {
  const again = (
    plannedEvents: CustomerCardEvent[],
    state: CustomerCard,
    earlierEvents: CustomerCardEvent[] = [],
  ) => redecideCard({ plannedEvents, state, earlierEvents, decisionContext: template });

  it('a card changes hands all the same', () => {
    const planned = moveCard(givenGone().state(), SURVIVOR);
    expect(again(planned, givenGone(stamped(OTHER, 1)).state())).toEqual(planned);
  });

  it('the closed card gives what it holds by now', () => {
    const planned = [removed(OTHER, 3), merged(3)];
    expect(again(planned, givenGone(stamped(OTHER, 5)).state())).toEqual([
      removed(OTHER, 5),
      merged(5),
    ]);
    expect(again([merged(0)], givenGone(stamped(OTHER, 1)).state())).toEqual([
      removed(OTHER, 1),
      merged(1),
    ]);
    expect(again(planned, givenGone().state())).toEqual([merged(0)]);
  });

  it('the other one gets what that had unlocked by then', () => {
    const at = [{ rewardId: 1, stampsRequired: 3 }];
    const planned = [absorbed(2), adjusted(SURVIVOR, 2)];
    expect(again(planned, givenKept().state(), [merged(3, at)])).toEqual([
      absorbed(3, at),
      adjusted(SURVIVOR, 3),
      unlocked(SURVIVOR, 3),
    ]);
    const closing = again([merged(0)], givenGone(stamped(OTHER, 3), unlocked(OTHER, 3)).state());
    expect(closing).toEqual([removed(OTHER, 3), merged(3, at)]);
  });

  it('the other one gets what that has given, and unlocks what it now reaches', () => {
    const planned = [absorbed(3), adjusted(SURVIVOR, 3)];
    expect(again(planned, givenKept(stamped(SURVIVOR, 1)).state(), [merged(4)])).toEqual([
      absorbed(4),
      adjusted(SURVIVOR, 4),
      unlocked(SURVIVOR),
    ]);
  });

  it('an unmerge gives back what is still there', () => {
    const planned = [unmerged(3, 0), removed(SURVIVOR, 3)];
    expect(again(planned, givenKept(stamped(SURVIVOR, 1)).state())).toEqual([
      unmerged(1, 2),
      removed(SURVIVOR, 1),
    ]);
    const closed = givenGone(stamped(OTHER, 3), removed(OTHER, 3), merged(3)).state();
    expect(again([restored(3, 0), adjusted(OTHER, 3)], closed, [unmerged(1, 2)])).toEqual([
      restored(1, 2),
      adjusted(OTHER, 1),
    ]);
  });

  it('nothing else can be', () => {
    expect(() => again([stamped(OTHER, 1)], givenGone().state())).toThrow('decided again');
    expect(() => again([absorbed(3)], givenKept().state())).toThrow('CustomerCardMerged');
  });
});
