import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { absorbCard, giveBackStamps, mergeCard, restoreCard } from './card-merging.js';
import { adjust, reverse } from './corrections.js';
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
const over: Template = {
  ...template,
  expiresAt: '2020-01-01T00:00:00.000Z',
  archivedAt: '2020-01-01T00:00:00.000Z',
};

const plain = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: null,
};
const REASON = 'Wrong card';
const corrected = {
  ...plain,
  customerId: 7,
  source: 'adjustment',
  personal: { note: REASON },
  reverses: null,
} as const;

const putBack = { ...corrected, templateVersion: 17 };

const issued: CustomerCardEvent = {
  type: 'CustomerCardIssued',
  data: { id: 1, accountId: 1, customerId: 7, uuid: 'u', code: 'ABCDEFGH', cardId: 9 },
};
const earned = (stamps: number, source: StampSource = 'api'): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...plain, customerId: 7, stamps, source, reverses: null, templateVersion: 17 },
});
const removed = (stamps: number): CustomerCardEvent => ({
  type: 'StampsRemoved',
  data: { ...corrected, stamps },
});
const unlocked = ({ id, name, description, stampsRequired }: typeof cake | typeof coffee) =>
  ({
    type: 'RewardUnlocked',
    data: { customerId: 7, rewardId: id, name, description, stampsRequired },
  }) satisfies CustomerCardEvent;
const redeemed = (reward: typeof coffee, locked: number[]): CustomerCardEvent => ({
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
    adjust(state, on, { customerId, stamps, reason: REASON });

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
  it('adds stamps and unlocks what they reach', () => {
    scenario(customerCard, issued, earned(4))
      .when(adjusting(2))
      .then({ type: 'StampsEarned', data: { ...putBack, stamps: 2 } }, unlocked(coffee));
  });

  it('takes stamps off, down to none, and locks nothing', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee))
      .when(adjusting(-5))
      .then({ type: 'StampsRemoved', data: { ...corrected, stamps: 5 } });
    scenario(customerCard, issued, earned(5), unlocked(coffee))
      .when(adjusting(-5))
      .thenState({ stampsCount: 0, unlocked: [{ rewardId: 1, stampsRequired: 5 }] });
  });

  it('does not announce a reward that is still unlocked', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee), removed(5))
      .when(adjusting(5))
      .then({ type: 'StampsEarned', data: { ...putBack, stamps: 5 } });
  });

  it('never takes off more than there is', () => {
    scenario(customerCard, issued, earned(4))
      .when(adjusting(-5))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
  });

  it('goes on with a card that is expired and archived', () => {
    scenario(customerCard, issued).when(adjusting(1, over)).thenState({ stampsCount: 1 });
  });

  it('counts towards no limit', () => {
    scenario(customerCard, issued, earned(1)).when(adjusting(3)).thenState({ stampsCount: 4 });
    const before = scenario(customerCard, issued, earned(1)).state().stampings;
    scenario(customerCard, issued, earned(1)).when(adjusting(3)).thenState({ stampings: before });
    scenario(customerCard, issued, earned(1)).when(adjusting(-1)).thenState({ stampings: before });
  });

  it('does not find the card of somebody else', () => {
    scenario(customerCard, issued)
      .when(adjusting(1, template, 8))
      .thenThrows(NotFoundError);
    scenario(customerCard).when(adjusting(1)).thenThrows(NotFoundError);
  });
});

describe('reverse', () => {
  it('takes the stamps of a stamping off', () => {
    scenario(customerCard, issued, earned(4), earned(3))
      .when(reversing(earned(3)))
      .then({
        type: 'StampsRemoved',
        data: { ...corrected, stamps: 3, reverses: 'wrong', countedAt: AT },
      });
  });

  it('takes off welcome stamps and adjustments, which no limit counts', () => {
    for (const source of ['welcome_bonus', 'adjustment'] as const) {
      scenario(customerCard, issued, earned(3, source))
        .when(reversing(earned(3, source)))
        .then({ type: 'StampsRemoved', data: { ...corrected, stamps: 3, reverses: 'wrong' } });
    }
  });

  it('gives back what a redemption spent, and unlocks the reward again', () => {
    const spent = redeemed(coffee, [1]);
    scenario(customerCard, issued, earned(5), unlocked(coffee), spent)
      .when(reversing(spent))
      .then(
        { type: 'StampsEarned', data: { ...putBack, stamps: 5, reverses: 'wrong' } },
        unlocked(coffee),
      );
  });

  it('unlocks a reward again for what it took before, whatever its threshold is now', () => {
    const spent = redeemed(coffee, [1]);
    const past = scenario(customerCard, issued, earned(5), unlocked(coffee), spent);
    const locked = [{ rewardId: 1, stampsRequired: 5 }];
    const at = (stampsRequired: number): Template => ({
      ...template,
      rewards: [{ ...coffee, stampsRequired }, cake],
    });
    const back: CustomerCardEvent = {
      type: 'StampsEarned',
      data: { ...putBack, stamps: 5, reverses: 'wrong' },
    };
    past.when(reversing(spent, { on: at(9), locked })).then(back, unlocked(coffee));
    past
      .when(reversing(spent, { on: at(3), locked }))
      .then(back, unlocked({ ...coffee, stampsRequired: 3 }));
    const again = unlocked({ ...coffee, stampsRequired: 9 });
    scenario(customerCard, issued, earned(5), unlocked(coffee), spent, earned(4), again)
      .when(reversing(spent, { on: at(9), locked }))
      .then(back);
  });

  it('unlocks nothing that a redemption left unlocked', () => {
    const spent = redeemed(coffee, []);
    scenario(customerCard, issued, earned(9), unlocked(coffee), spent)
      .when(reversing(spent))
      .then({ type: 'StampsEarned', data: { ...putBack, stamps: 5, reverses: 'wrong' } });
  });

  it('keeps in mind that the reward was redeemed', () => {
    const spent = redeemed(coffee, [1]);
    scenario(customerCard, issued, earned(5), unlocked(coffee), spent)
      .when(reversing(spent))
      .thenState({ stampsCount: 5, redeemedRewardIds: [1] });
  });

  it('gives back what an adjustment took off', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee), removed(5))
      .when(reversing(removed(5)))
      .then({ type: 'StampsEarned', data: { ...putBack, stamps: 5, reverses: 'wrong' } });
  });

  it('is refused when the stamps are spent', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee), redeemed(coffee, [1]), earned(4))
      .when(reversing(earned(5)))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
  });

  it('is refused the second time, whatever is left', () => {
    scenario(customerCard, issued, earned(5))
      .when(reversing(earned(5), { isReversed: true }))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
    scenario(customerCard, issued)
      .when(reversing(earned(5), { isReversed: true }))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('reverses no reversal', () => {
    const back: CustomerCardEvent = {
      type: 'StampsEarned',
      data: { ...putBack, stamps: 5, reverses: 'earlier' },
    };
    scenario(customerCard, issued, back)
      .when(reversing(back))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
    const off: CustomerCardEvent = {
      type: 'StampsRemoved',
      data: { ...corrected, stamps: 5, reverses: 'earlier' },
    };
    scenario(customerCard, issued, off)
      .when(reversing(off))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('reverses no stamps that a merge or unmerge has moved', () => {
    const merging: Template = { ...template, rewards: [] };
    const state = scenario(customerCard, issued, earned(4)).state();
    const moved = [
      ...mergeCard(state, { ...state, id: 2, customerId: 8 }),
      ...absorbCard(state, { id: 2, stamps: 3, unlocked: [] }, merging),
      ...giveBackStamps(state, 2, 3),
      ...restoreCard(state, 7, { stamps: 3, missing: 0 }, merging),
    ].filter(({ type }) => type === 'StampsEarned' || type === 'StampsRemoved');
    expect(moved).toHaveLength(4);
    for (const event of moved) {
      scenario(customerCard, issued, earned(4))
        .when(reversing(event))
        .thenRejected({
          fields: ['base'],
          code: 'validation_failed',
          advice: /merge or unmerge the customers/,
        });
    }
  });

  it('reverses neither the issue of a card nor the unlocking of a reward', () => {
    for (const event of [issued, unlocked(coffee)]) {
      scenario(customerCard, issued, earned(5), unlocked(coffee))
        .when(reversing(event))
        .thenRejected({ fields: ['base'], code: 'validation_failed' });
    }
  });

  it('goes on with a card that is expired and archived', () => {
    scenario(customerCard, issued, earned(1))
      .when(reversing(earned(1), { on: over }))
      .thenState({ stampsCount: 0 });
  });

  it('does not find the card of somebody else', () => {
    scenario(customerCard, issued, earned(1))
      .when(reversing(earned(1), { customerId: 8 }))
      .thenThrows(NotFoundError);
  });
});

describe('the limits after a reversal', () => {
  const MORNING = '2026-03-01T09:00:00.000Z';
  const LATER = '2026-03-01T09:05:00.000Z';
  const LATEST = '2026-03-01T09:10:00.000Z';
  const NOW = new Date('2026-03-01T09:10:30.000Z');
  const off = (stamps: number, countedAt: string): CustomerCardEvent => ({
    type: 'StampsRemoved',
    data: { ...corrected, stamps, reverses: 'wrong', countedAt },
  });
  const at = (time: string, event: CustomerCardEvent) => ({ ...event, at: time });
  const start = at('2026-03-01T08:00:00.000Z', issued);
  const stamping = (stamps: number, limits: Partial<Template>) => (state: State) =>
    stamp(
      state,
      { ...template, rewards: [], ...limits },
      { ...plain, customerId: 7, stamps, source: 'api', occurredAt: undefined },
      NOW,
    );

  it('leave room for the right number on the same day', () => {
    scenario(
      customerCard,
      start,
      at(MORNING, earned(1)),
      at(LATER, earned(9)),
      at(LATEST, off(9, LATER)),
    )
      .when(stamping(9, { maxStampsPerDay: 10 }))
      .thenState({ stampsCount: 10 });
    scenario(
      customerCard,
      start,
      at(MORNING, earned(1)),
      at(LATER, earned(9)),
      at(LATEST, off(9, LATER)),
    )
      .when(stamping(10, { maxStampsPerDay: 10 }))
      .thenRejected({ code: 'stamp_limit_reached' });
  });

  it('do not make the right stamping wait for the wrong one', () => {
    scenario(customerCard, start, at(LATEST, earned(9)), at(LATEST, off(9, LATEST)))
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenState({ stampsCount: 1 });
    scenario(
      customerCard,
      start,
      at(MORNING, earned(1)),
      at(LATEST, earned(9)),
      at(LATEST, off(9, LATEST)),
    )
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenState({ stampsCount: 2 });
  });

  it('still count what was not reversed', () => {
    scenario(
      customerCard,
      start,
      at(MORNING, earned(1)),
      at(LATEST, earned(2)),
      at(LATEST, off(1, MORNING)),
    )
      .when(stamping(1, { minSecondsBetweenStamps: 60 }))
      .thenRejected({ code: 'stamp_limit_reached' });
  });

  it('are left alone by the reversal of a stamping that they have forgotten', () => {
    const state = scenario(
      customerCard,
      start,
      at(LATER, earned(9)),
      at(LATEST, off(9, AT)),
    ).state();
    expect(state.stampings).toHaveLength(1);
  });
});
