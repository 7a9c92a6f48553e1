import { describe, expect, it } from '@jest/globals';
import { ForbiddenError, NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { absorbCard, giveBackStamps, mergeCard, restoreCard } from './card-merging.js';
import { adjust, assertStaffMayReverse, reverse } from './corrections.js';
import { customerCard, stamp, type CustomerCard, type Template } from './customer-card.js';
import type { CustomerCardEvent, StampSource, UnlockedReward } from './customer-card.events.js';

const coffee = { id: 1, name: 'Coffee', description: null, stampsRequired: 5, active: true };
const cake = { id: 2, name: 'Cake', description: 'Any', stampsRequired: 10, active: true };

const template: Template = {
  cardId: 9,
  version: 17,
  name: 'Card',
  stampsRequired: 10,
  initialStamps: 0,
  expiresAt: null,
  archivedAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
  rewards: [coffee, cake],
};
const closedTemplate: Template = {
  ...template,
  expiresAt: '2020-01-01T00:00:00.000Z',
  archivedAt: '2020-01-01T00:00:00.000Z',
};

const plain = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  receiptUse: 0,
  silent: false,
  personal: null,
};
const REASON = 'Wrong card';
const removal = {
  ...plain,
  customerId: 7,
  source: 'adjustment',
  personal: { note: REASON },
  reverses: null,
} as const;

const addition = { ...removal, templateVersion: 17 };

const cardIssued: CustomerCardEvent = {
  type: 'CustomerCardIssued',
  data: { id: 1, accountId: 1, customerId: 7, uuid: 'u', code: 'ABCDEFGH', cardId: 9 },
};
const stampsEarned = (stamps: number, source: StampSource = 'api'): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...plain, customerId: 7, stamps, source, reverses: null, templateVersion: 17 },
});
const stampsRemoved = (stamps: number): CustomerCardEvent => ({
  type: 'StampsRemoved',
  data: { ...removal, stamps },
});
const rewardUnlocked = ({ id, name, description, stampsRequired }: typeof cake | typeof coffee) =>
  ({
    type: 'RewardUnlocked',
    data: { customerId: 7, rewardId: id, name, description, stampsRequired },
  }) satisfies CustomerCardEvent;
const rewardRedeemed = (reward: typeof coffee, locked: number[]): CustomerCardEvent => ({
  type: 'RewardRedeemed',
  data: {
    ...plain,
    customerId: 7,
    redemptionId: 3,
    rewardId: reward.id,
    rewardName: reward.name,
    stampsSpent: reward.stampsRequired,
    locked,
    templateVersion: 17,
  },
});

type State = CustomerCard | undefined;

const adjusting =
  (stamps: number, on: Template = template, customerId = 7) =>
  (state: State) =>
    adjust(state, on, { customerId, stamps, reason: REASON, externalRef: null, receiptUse: 0 });

const meta = {
  accountId: 1,
  actor: { type: 'token', id: 1 },
  channel: 'api',
  requestId: 'spec',
  occurredAt: AT,
  recordedAt: AT,
} as const;

const reversing =
  (
    event: CustomerCardEvent,
    {
      isReversed = false,
      on = template,
      customerId = 7,
      locked = [],
    }: { isReversed?: boolean; on?: Template; customerId?: number; locked?: UnlockedReward[] } = {},
  ) =>
  (state: State) =>
    reverse(state, on, {
      customerId,
      reason: REASON,
      event: { ...event, id: 'wrong', meta },
      locked,
      isReversed,
    });

describe('adjust', () => {
  it('adds stamps and unlocks the rewards that they reach', () => {
    scenario(customerCard, cardIssued, stampsEarned(4))
      .when(adjusting(2))
      .then({ type: 'StampsEarned', data: { ...addition, stamps: 2 } }, rewardUnlocked(coffee));
  });

  it('removes stamps down to zero, and locks no reward', () => {
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee))
      .when(adjusting(-5))
      .then({ type: 'StampsRemoved', data: { ...removal, stamps: 5 } });
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee))
      .when(adjusting(-5))
      .thenState({ stampsCount: 0, unlocked: [{ rewardId: 1, stampsRequired: 5 }] });
  });

  it('does not unlock again a reward that is still unlocked', () => {
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee), stampsRemoved(5))
      .when(adjusting(5))
      .then({ type: 'StampsEarned', data: { ...addition, stamps: 5 } });
  });

  it('refuses to remove more stamps than the card has', () => {
    scenario(customerCard, cardIssued, stampsEarned(4))
      .when(adjusting(-5))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
  });

  it('corrects a card that is expired and archived', () => {
    scenario(customerCard, cardIssued)
      .when(adjusting(1, closedTemplate))
      .thenState({ stampsCount: 1 });
  });

  it('does not count towards limits', () => {
    scenario(customerCard, cardIssued, stampsEarned(1))
      .when(adjusting(3))
      .thenState({ stampsCount: 4 });
    const stampings = scenario(customerCard, cardIssued, stampsEarned(1)).state().stampings;
    scenario(customerCard, cardIssued, stampsEarned(1)).when(adjusting(3)).thenState({ stampings });
    scenario(customerCard, cardIssued, stampsEarned(1))
      .when(adjusting(-1))
      .thenState({ stampings });
  });

  it('throws NotFoundError for a card of another customer and when there is no card', () => {
    scenario(customerCard, cardIssued)
      .when(adjusting(1, template, 8))
      .thenThrows(NotFoundError);
    scenario(customerCard).when(adjusting(1)).thenThrows(NotFoundError);
  });
});

describe('reverse', () => {
  it('removes the stamps of a stamping', () => {
    scenario(customerCard, cardIssued, stampsEarned(4), stampsEarned(3))
      .when(reversing(stampsEarned(3)))
      .then({
        type: 'StampsRemoved',
        data: { ...removal, stamps: 3, reverses: 'wrong', countedAt: AT },
      });
  });

  it('removes welcome stamps and adjustments, without a time at which they counted', () => {
    for (const source of ['welcome_bonus', 'adjustment'] as const) {
      scenario(customerCard, cardIssued, stampsEarned(3, source))
        .when(reversing(stampsEarned(3, source)))
        .then({ type: 'StampsRemoved', data: { ...removal, stamps: 3, reverses: 'wrong' } });
    }
  });

  it('gives back the stamps of a redemption, and unlocks the reward again', () => {
    const redemption = rewardRedeemed(coffee, [1]);
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee), redemption)
      .when(reversing(redemption))
      .then(
        { type: 'StampsEarned', data: { ...addition, stamps: 5, reverses: 'wrong' } },
        rewardUnlocked(coffee),
      );
  });

  it('unlocks a reward again at its former threshold, or at a lower current one', () => {
    const redemption = rewardRedeemed(coffee, [1]);
    const past = scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      redemption,
    );
    const locked = [{ rewardId: 1, stampsRequired: 5 }];
    const at = (stampsRequired: number): Template => ({
      ...template,
      rewards: [{ ...coffee, stampsRequired }, cake],
    });
    const back: CustomerCardEvent = {
      type: 'StampsEarned',
      data: { ...addition, stamps: 5, reverses: 'wrong' },
    };
    past.when(reversing(redemption, { on: at(9), locked })).then(back, rewardUnlocked(coffee));
    past
      .when(reversing(redemption, { on: at(3), locked }))
      .then(back, rewardUnlocked({ ...coffee, stampsRequired: 3 }));
    const unlockedAgain = rewardUnlocked({ ...coffee, stampsRequired: 9 });
    scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      redemption,
      stampsEarned(4),
      unlockedAgain,
    )
      .when(reversing(redemption, { on: at(9), locked }))
      .then(back);
  });

  it('does not unlock again a reward that the redemption left unlocked', () => {
    const redemption = rewardRedeemed(coffee, []);
    scenario(customerCard, cardIssued, stampsEarned(9), rewardUnlocked(coffee), redemption)
      .when(reversing(redemption))
      .then({ type: 'StampsEarned', data: { ...addition, stamps: 5, reverses: 'wrong' } });
  });

  it('keeps the reward listed as redeemed', () => {
    const redemption = rewardRedeemed(coffee, [1]);
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee), redemption)
      .when(reversing(redemption))
      .thenState({ stampsCount: 5, redeemedRewardIds: [1] });
  });

  it('gives back the stamps that an adjustment removed', () => {
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee), stampsRemoved(5))
      .when(reversing(stampsRemoved(5)))
      .then({ type: 'StampsEarned', data: { ...addition, stamps: 5, reverses: 'wrong' } });
  });

  it('refuses a stamping whose stamps are spent', () => {
    scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      rewardRedeemed(coffee, [1]),
      stampsEarned(4),
    )
      .when(reversing(stampsEarned(5)))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
  });

  it('refuses a second reversal, whatever the balance is', () => {
    scenario(customerCard, cardIssued, stampsEarned(5))
      .when(reversing(stampsEarned(5), { isReversed: true }))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
    scenario(customerCard, cardIssued)
      .when(reversing(stampsEarned(5), { isReversed: true }))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('refuses to reverse a reversal', () => {
    const back: CustomerCardEvent = {
      type: 'StampsEarned',
      data: { ...addition, stamps: 5, reverses: 'earlier' },
    };
    scenario(customerCard, cardIssued, back)
      .when(reversing(back))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
    const off: CustomerCardEvent = {
      type: 'StampsRemoved',
      data: { ...removal, stamps: 5, reverses: 'earlier' },
    };
    scenario(customerCard, cardIssued, off)
      .when(reversing(off))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('refuses to reverse stamps that a merge or unmerge has moved', () => {
    const withoutRewards: Template = { ...template, rewards: [] };
    const state = scenario(customerCard, cardIssued, stampsEarned(4)).state();
    const movements = [
      ...mergeCard(state, { ...state, id: 2, customerId: 8 }),
      ...absorbCard(state, { id: 2, stamps: 3, unlocked: [] }, withoutRewards),
      ...giveBackStamps(state, 2, 3),
      ...restoreCard(state, 7, { stamps: 3, missing: 0 }, withoutRewards),
    ].filter(({ type }) => type === 'StampsEarned' || type === 'StampsRemoved');
    expect(movements).toHaveLength(4);
    for (const event of movements) {
      scenario(customerCard, cardIssued, stampsEarned(4))
        .when(reversing(event))
        .thenRejected({
          fields: ['base'],
          code: 'validation_failed',
          advice: /merge or unmerge the customers/,
        });
    }
  });

  it('refuses to reverse the issue of a card or the unlocking of a reward', () => {
    for (const event of [cardIssued, rewardUnlocked(coffee)]) {
      scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee))
        .when(reversing(event))
        .thenRejected({ fields: ['base'], code: 'validation_failed' });
    }
  });

  it('corrects a card that is expired and archived', () => {
    scenario(customerCard, cardIssued, stampsEarned(1))
      .when(reversing(stampsEarned(1), { on: closedTemplate }))
      .thenState({ stampsCount: 0 });
  });

  it('throws NotFoundError for a card of another customer', () => {
    scenario(customerCard, cardIssued, stampsEarned(1))
      .when(reversing(stampsEarned(1), { customerId: 8 }))
      .thenThrows(NotFoundError);
  });
});

describe('assertStaffMayReverse', () => {
  const recordedAt = Date.parse(AT);
  const afterMs =
    (ms: number, isOwn = true) =>
    () =>
      assertStaffMayReverse({ meta: { recordedAt: AT } }, isOwn, new Date(recordedAt + ms));

  it('allows what the user did themselves for ten minutes, to the millisecond', () => {
    expect(afterMs(0)).not.toThrow();
    expect(afterMs(600_000)).not.toThrow();
    expect(afterMs(600_001)).toThrow(ForbiddenError);
  });

  it('allows it when another process, whose clock is ahead, recorded it', () => {
    expect(afterMs(-500)).not.toThrow();
  });

  it('refuses what somebody else did', () => {
    expect(afterMs(0, false)).toThrow(ForbiddenError);
  });
});

describe('the limits after a reversal', () => {
  const MORNING = '2026-03-01T09:00:00.000Z';
  const LATER = '2026-03-01T09:05:00.000Z';
  const LATEST = '2026-03-01T09:10:00.000Z';
  const NOW = new Date('2026-03-01T09:10:30.000Z');
  const off = (stamps: number, countedAt: string): CustomerCardEvent => ({
    type: 'StampsRemoved',
    data: { ...removal, stamps, reverses: 'wrong', countedAt },
  });
  const at = (time: string, event: CustomerCardEvent) => ({ ...event, at: time });
  const start = at('2026-03-01T08:00:00.000Z', cardIssued);
  const stamping = (stamps: number, limits: Partial<Template>) => (state: State) =>
    stamp(
      state,
      { ...template, rewards: [], ...limits },
      { ...plain, customerId: 7, stamps, source: 'api', occurredAt: undefined },
      NOW,
    );

  it('leave room for the correct number of stamps on the same day', () => {
    scenario(
      customerCard,
      start,
      at(MORNING, stampsEarned(1)),
      at(LATER, stampsEarned(9)),
      at(LATEST, off(9, LATER)),
    )
      .when(stamping(9, { maxStampsPerDay: 10 }))
      .thenState({ stampsCount: 10 });
    scenario(
      customerCard,
      start,
      at(MORNING, stampsEarned(1)),
      at(LATER, stampsEarned(9)),
      at(LATEST, off(9, LATER)),
    )
      .when(stamping(10, { maxStampsPerDay: 10 }))
      .thenRejected({ code: 'stamp_limit_reached' });
  });

  it('do not delay a stamping because of a reversed one', () => {
    scenario(customerCard, start, at(LATEST, stampsEarned(9)), at(LATEST, off(9, LATEST)))
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenState({ stampsCount: 1 });
    scenario(
      customerCard,
      start,
      at(MORNING, stampsEarned(1)),
      at(LATEST, stampsEarned(9)),
      at(LATEST, off(9, LATEST)),
    )
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenState({ stampsCount: 2 });
  });

  it('still count stampings that were not reversed', () => {
    scenario(
      customerCard,
      start,
      at(MORNING, stampsEarned(1)),
      at(LATEST, stampsEarned(2)),
      at(LATEST, off(1, MORNING)),
    )
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenRejected({ code: 'stamp_limit_reached' });
  });

  it('are unchanged by the reversal of a stamping that they no longer count', () => {
    const state = scenario(
      customerCard,
      start,
      at(LATER, stampsEarned(9)),
      at(LATEST, off(9, AT)),
    ).state();
    expect(state.stampings).toEqual({
      recent: `${Date.parse(LATER).toString(36)}:9 `,
      older: [],
    });
  });
});
