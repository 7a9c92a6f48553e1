import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import {
  customerCard,
  findLocked,
  issue,
  redeem,
  assertOpenForEnrolment,
  stamp,
  getCardStatus,
  type Redeem,
  type Stamp,
  type Template,
} from './customer-card.js';
import type { CustomerCardEvent, StampSource } from './customer-card.events.js';
import { findAvailableRewards, calculateProgress, type Milestone } from './unlocked-rewards.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');

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

const silent = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: null,
};

const ids = { id: 1, accountId: 1, customerId: 7, uuid: 'u', code: 'ABCDEFGH' };
const issued: CustomerCardEvent = { type: 'CustomerCardIssued', data: { ...ids, cardId: 9 } };

const earned = (stamps: number, source: StampSource = 'api'): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...silent, customerId: 7, stamps, source, reverses: null, templateVersion: 17 },
});
const unlocked = ({ id, name, description, stampsRequired }: typeof cake | typeof coffee) =>
  ({
    type: 'RewardUnlocked',
    data: { customerId: 7, rewardId: id, name, description, stampsRequired },
  }) satisfies CustomerCardEvent;
const redeemed = (
  reward: typeof cake | typeof coffee,
  locked: number[] = [],
): CustomerCardEvent => ({
  type: 'RewardRedeemed',
  data: {
    ...silent,
    customerId: 7,
    redemptionId: 3,
    rewardId: reward.id,
    rewardName: reward.name,
    stampsSpent: reward.stampsRequired,
    locked,
    templateVersion: 17,
  },
});

const stamping = (stamps: number, more: Partial<Stamp> = {}, on: Template = template) => {
  const command: Stamp = {
    ...silent,
    customerId: 7,
    stamps,
    source: 'api',
    occurredAt: undefined,
    ...more,
  };
  return (state: Parameters<typeof stamp>[0]) => stamp(state, on, command, NOW);
};
const redeeming = (rewardId: number, on: Template = template, more: Partial<Redeem> = {}) => {
  const command: Redeem = {
    ...silent,
    customerId: 7,
    redemptionId: 3,
    rewardId,
    occurredAt: undefined,
    ...more,
  };
  return (state: Parameters<typeof redeem>[0]) => redeem(state, on, command, NOW);
};

const LATER = '2026-03-02T10:00:00.000Z';

describe('a customer card', () => {
  it('is found in existing histories, with the times of its events', () => {
    expect(customerCard.name).toBe('customer_card');
    expect(scenario(customerCard, issued).state()).toMatchObject({ issuedAt: AT, updatedAt: AT });
    for (const event of [earned(1), unlocked(coffee), redeemed(coffee)]) {
      const { issuedAt, updatedAt } = scenario(customerCard, issued, earned(9), {
        ...event,
        at: LATER,
      }).state();
      expect([issuedAt, updatedAt]).toEqual([AT, LATER]);
    }
  });
});

describe('issue', () => {
  it('hands out an empty card', () => {
    scenario(customerCard)
      .when(() => issue(ids, template))
      .then(issued);
  });

  it('adds the welcome stamps and unlocks what they pay for', () => {
    scenario(customerCard)
      .when(() => issue(ids, { ...template, initialStamps: 6 }))
      .then(
        issued,
        {
          type: 'StampsEarned',
          data: {
            ...silent,
            silent: true,
            customerId: 7,
            stamps: 6,
            source: 'welcome_bonus',
            reverses: null,
            templateVersion: 17,
          },
        },
        unlocked(coffee),
      );
  });
});

describe('stamp', () => {
  it('adds stamps', () => {
    scenario(customerCard, issued).when(stamping(2)).then(earned(2));
    scenario(customerCard, issued, earned(2)).when(stamping(1)).thenState({ stampsCount: 3 });
  });

  it('unlocks each reward that comes within reach, cheapest first', () => {
    scenario(customerCard, issued, earned(4))
      .when(stamping(6))
      .then(earned(6), unlocked(coffee), unlocked(cake));
  });

  it('announces a reward once, however many stamps follow', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee)).when(stamping(1)).then(earned(1));
  });

  it('announces it again after a redemption took the balance below it', () => {
    scenario(customerCard, issued, earned(5), unlocked(coffee), redeemed(coffee, [coffee.id]))
      .when(stamping(5))
      .then(earned(5), unlocked(coffee));
  });

  it('keeps it unlocked when the redemption leaves enough', () => {
    scenario(
      customerCard,
      issued,
      earned(10),
      unlocked(coffee),
      unlocked(cake),
      redeemed(coffee, [cake.id]),
    )
      .when(stamping(1))
      .then(earned(1));
  });

  it('keeps it unlocked when its threshold is raised, and announces one that is lowered below the balance', () => {
    const raised = { ...template, rewards: [{ ...coffee, stampsRequired: 8 }] };
    scenario(customerCard, issued, earned(5), unlocked(coffee))
      .when(stamping(4, {}, raised))
      .then(earned(4));
    const cheap = { ...cake, stampsRequired: 3 };
    scenario(customerCard, issued, earned(4))
      .when(stamping(1, {}, { ...template, rewards: [cheap] }))
      .then(earned(1), unlocked(cheap));
  });

  it('unlocks nothing inactive', () => {
    const inactive = { ...template, rewards: [{ ...coffee, active: false }] };
    scenario(customerCard, issued)
      .when(stamping(8, {}, inactive))
      .then(earned(8));
  });

  it('unlocks a reward that was added below the balance with the next stamp', () => {
    scenario(customerCard, issued, earned(6)).when(stamping(1)).then(earned(1), unlocked(coffee));
  });

  it('does not cap the balance', () => {
    scenario(customerCard, issued, earned(99)).when(stamping(100)).thenState({ stampsCount: 199 });
  });

  it('refuses an expired card and serves an archived one', () => {
    scenario(customerCard, issued)
      .when(stamping(1, {}, { ...template, expiresAt: NOW.toISOString() }))
      .thenRejected({ fields: ['base'], code: 'card_expired' });
    scenario(customerCard, issued)
      .when(stamping(1, {}, { ...template, archivedAt: AT }))
      .then(earned(1));
  });

  it('does not find the card of another customer', () => {
    scenario(customerCard, issued)
      .when(stamping(1, { customerId: 8 }))
      .thenThrows(NotFoundError);
    scenario(customerCard).when(stamping(1)).thenThrows(NotFoundError);
  });

  describe('occurred_at', () => {
    const at = (iso: string) => ({ occurredAt: new Date(iso) });

    it('may be up to five minutes ahead, as clocks differ', () => {
      scenario(customerCard, issued)
        .when(stamping(1, at('2026-03-01T12:05:00Z')))
        .then(earned(1));
      scenario(customerCard, issued)
        .when(stamping(1, at('2026-03-01T12:05:01Z')))
        .thenRejected({ fields: ['occurred_at'] });
    });

    it('is not before the card was issued', () => {
      scenario(customerCard, issued)
        .when(stamping(1, at(AT)))
        .then(earned(1));
      scenario(customerCard, issued)
        .when(stamping(1, at('2026-03-01T09:59:59Z')))
        .thenRejected({ fields: ['occurred_at'] });
    });
  });

  describe('limits', () => {
    const reached = { fields: ['base'], code: 'stamp_limit_reached' as const };
    const stampedAt = (iso: string, stamps = 1, source: StampSource = 'api') => ({
      ...earned(stamps, source),
      at: iso,
    });

    it('caps the stamps of one request', () => {
      const capped = { ...template, maxStampsPerRequest: 2 };
      scenario(customerCard, issued)
        .when(stamping(2, {}, capped))
        .then(earned(2));
      scenario(customerCard, issued)
        .when(stamping(3, {}, capped))
        .thenRejected(reached);
    });

    it('caps the stamps of a day, which begins at midnight of the store', () => {
      const capped = { ...template, maxStampsPerDay: 3 };
      const lateEvening = stampedAt('2026-02-28T23:30:00.000Z', 3);
      scenario(customerCard, issued, lateEvening)
        .when(stamping(1, {}, capped))
        .then(earned(1));
      scenario(customerCard, issued, lateEvening)
        .when(stamping(1, {}, { ...capped, timeZone: 'Europe/Berlin' }))
        .thenRejected(reached);
      scenario(customerCard, issued, stampedAt(AT, 2))
        .when(stamping(2, {}, capped))
        .thenRejected(reached);
    });

    it('counts a late report by when it happened', () => {
      const capped = { ...template, maxStampsPerDay: 1 };
      const old = { ...issued, at: '2026-01-01T00:00:00.000Z' };
      scenario(customerCard, old, stampedAt('2026-02-28T10:00:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-02-28T11:00:00Z') }, capped))
        .thenRejected(reached);
      scenario(customerCard, old, stampedAt('2026-02-28T10:00:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-02-27T11:00:00Z') }, capped))
        .then(earned(1));
    });

    it('keeps stampings apart, on both sides', () => {
      const spaced = { ...template, minSecondsBetweenStamps: 60 };
      scenario(customerCard, issued, stampedAt('2026-03-01T11:59:01.000Z'))
        .when(stamping(1, {}, spaced))
        .thenRejected(reached);
      scenario(customerCard, issued, stampedAt('2026-03-01T11:59:00.000Z'))
        .when(stamping(1, {}, spaced))
        .then(earned(1));
      scenario(customerCard, issued, stampedAt('2026-03-01T11:30:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-03-01T11:29:30Z') }, spaced))
        .thenRejected(reached);
    });

    it('counts neither welcome stamps nor corrections', () => {
      const capped = { ...template, maxStampsPerDay: 1, minSecondsBetweenStamps: 3600 };
      scenario(
        customerCard,
        issued,
        stampedAt('2026-03-01T11:59:59.000Z', 5, 'welcome_bonus'),
        stampedAt('2026-03-01T11:59:59.000Z', 5, 'adjustment'),
      )
        .when((state) => stamping(1, {}, capped)(state).slice(0, 1))
        .then(earned(1));
    });

    it.each<StampSource>(['api', 'pos', 'app_scan'])('count stampings from %s', (source) => {
      const capped = { ...template, maxStampsPerDay: 1 };
      scenario(customerCard, issued, stampedAt(AT, 1, source))
        .when(stamping(1, {}, capped))
        .thenRejected(reached);
    });

    it('let a late report in exactly so long before a stamping', () => {
      const spaced = { ...template, minSecondsBetweenStamps: 60 };
      scenario(customerCard, issued, stampedAt('2026-03-01T11:30:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-03-01T11:29:00Z') }, spaced))
        .then(earned(1));
    });

    it('remembers stampings by the quarter of an hour, in the order in which they happened', () => {
      const { stampings } = scenario(
        customerCard,
        issued,
        stampedAt('2026-03-01T10:05:00.000Z', 2),
        stampedAt('2026-03-01T10:15:00.000Z', 1),
        stampedAt('2026-03-01T10:14:59.999Z', 3),
        stampedAt('2026-03-01T10:00:00.000Z', 4),
        stampedAt('2026-02-27T09:59:00.000Z', 5),
      ).state();
      const quarter = (first: string, last: string, stamps: number) => ({
        first: Date.parse(first),
        last: Date.parse(last),
        stamps,
      });
      expect(stampings).toEqual([
        quarter('2026-02-27T09:59:00.000Z', '2026-02-27T09:59:00.000Z', 5),
        quarter('2026-03-01T10:00:00.000Z', '2026-03-01T10:14:59.999Z', 9),
        quarter('2026-03-01T10:15:00.000Z', '2026-03-01T10:15:00.000Z', 1),
      ]);
    });

    it('remembers a bounded number of stampings, the newest', () => {
      const many = Array.from({ length: 5_000 }, (_, i) =>
        stampedAt(new Date(Date.parse(AT) + i * 60_000 * 7).toISOString()),
      );
      const { stampings, stampsCount } = scenario(customerCard, issued, ...many).state();
      expect(stampsCount).toBe(5_000);
      expect(stampings).toHaveLength(100);
      expect(stampings.at(-1)?.last).toBe(Date.parse(AT) + 4_999 * 60_000 * 7);
    });
  });
});

describe('redeem', () => {
  it('takes the stamps off and keeps the surplus', () => {
    scenario(customerCard, issued, earned(7)).when(redeeming(coffee.id)).then(redeemed(coffee));
    scenario(customerCard, issued, earned(7))
      .when(redeeming(coffee.id))
      .thenState({ stampsCount: 2, redeemedRewardIds: [coffee.id] });
  });

  it('records which rewards are out of reach again, by what they take on the card now', () => {
    const both = [issued, earned(10), unlocked(coffee), unlocked(cake)];
    scenario(customerCard, ...both)
      .when(redeeming(cake.id))
      .then(redeemed(cake, [coffee.id, cake.id]));
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id))
      .then(redeemed(coffee, [cake.id]));
    const cheaper = { ...template, rewards: [coffee, { ...cake, stampsRequired: 5 }] };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, cheaper))
      .then(redeemed(coffee));
    const dearer = { ...template, rewards: [{ ...coffee, stampsRequired: 6 }, cake] };
    scenario(customerCard, ...both, earned(1))
      .when(redeeming(coffee.id, dearer))
      .then(redeemed(coffee, [cake.id]));
    const deleted = { ...template, rewards: [coffee] };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, deleted))
      .then(redeemed(coffee, [cake.id]));
    const inactive = {
      ...template,
      rewards: [coffee, { ...cake, stampsRequired: 5, active: false }],
    };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, inactive))
      .then(redeemed(coffee));
  });

  it('locks what its event says, whatever the thresholds were', () => {
    const card = scenario(customerCard, issued, earned(5), unlocked(coffee), redeemed(coffee, []));
    expect(card.state().unlocked).toEqual([{ rewardId: coffee.id, stampsRequired: 5 }]);
  });

  it('is remembered once for each reward', () => {
    const twice = scenario(customerCard, issued, earned(20), redeemed(coffee), redeemed(coffee));
    expect(twice.state().redeemedRewardIds).toEqual([coffee.id]);
  });

  it('never goes below zero', () => {
    scenario(customerCard, issued, earned(4))
      .when(redeeming(coffee.id))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
    scenario(customerCard, issued, earned(5), redeemed(coffee))
      .when(redeeming(coffee.id))
      .thenRejected({ code: 'insufficient_stamps' });
  });

  it('says that a reward is inactive before it counts stamps', () => {
    const inactive = { ...template, rewards: [{ ...coffee, active: false }] };
    scenario(customerCard, issued)
      .when(redeeming(coffee.id, inactive))
      .thenRejected({ fields: ['base'], code: 'reward_inactive' });
  });

  it('does not find the reward of another card', () => {
    scenario(customerCard, issued, earned(50)).when(redeeming(99)).thenThrows(NotFoundError);
  });

  it('refuses an expired card', () => {
    scenario(customerCard, issued, earned(50))
      .when(redeeming(coffee.id, { ...template, expiresAt: AT }))
      .thenRejected({ code: 'card_expired' });
  });

  it('checks when it happened', () => {
    scenario(customerCard, issued, earned(50))
      .when(redeeming(coffee.id, template, { occurredAt: new Date('2020-01-01T00:00:00Z') }))
      .thenRejected({ fields: ['occurred_at'] });
  });
});

describe('an unlocked reward', () => {
  const priced = (...rewards: Milestone[]): Template => ({ ...template, rewards });
  const coffeeAt = (stampsRequired: number) => ({ ...coffee, stampsRequired });
  const five = scenario(customerCard, issued, earned(5), unlocked(coffee));
  const listPrices = (state: ReturnType<typeof five.state>, on: Template) =>
    findAvailableRewards(state, on).map(({ id, stampsRequired }) => [id, stampsRequired]);

  it.each([
    ['raised', 9, 5],
    ['lowered', 3, 3],
    ['the same', 5, 5],
    ['raised beyond the card', 99, 5],
  ])('whose threshold is %s is shown and redeemed for the lower number', (_, now, takes) => {
    expect(listPrices(five.state(), priced(coffeeAt(now), cake))).toEqual([[coffee.id, takes]]);
    five
      .when(redeeming(coffee.id, priced(coffeeAt(now), cake)))
      .then(redeemed(coffeeAt(takes), [coffee.id]));
  });

  it('has its threshold of now where it was not unlocked', () => {
    const state = scenario(customerCard, issued, earned(5)).state();
    expect(listPrices(state, priced(coffeeAt(9), cake))).toEqual([]);
    scenario(customerCard, issued, earned(5))
      .when(redeeming(coffee.id, priced(coffeeAt(6), cake)))
      .thenRejected({ code: 'insufficient_stamps' });
  });

  it('stands among the others by what it takes', () => {
    const both = scenario(customerCard, issued, earned(10), unlocked(coffee), unlocked(cake));
    const on = priced({ ...cake, stampsRequired: 7 }, coffeeAt(8));
    expect(listPrices(both.state(), on)).toEqual([
      [coffee.id, 5],
      [cake.id, 7],
    ]);
  });

  it('is out of reach while the card holds fewer, and in reach again with as many', () => {
    const removed: CustomerCardEvent = {
      type: 'StampsRemoved',
      data: { ...silent, customerId: 7, stamps: 1, source: 'adjustment', reverses: null },
    };
    const on = priced(coffeeAt(9), cake);
    const less = scenario(customerCard, issued, earned(5), unlocked(coffee), removed);
    expect(listPrices(less.state(), on)).toEqual([]);
    less.when(redeeming(coffee.id, on)).thenRejected({ code: 'insufficient_stamps' });
    less.when(stamping(1, {}, on)).then(earned(1));
    const again = scenario(customerCard, issued, earned(5), unlocked(coffee), removed, earned(1));
    expect(listPrices(again.state(), on)).toEqual([[coffee.id, 5]]);
  });

  it('is not offered while it is inactive, and takes the same afterwards', () => {
    expect(listPrices(five.state(), priced({ ...coffeeAt(9), active: false }, cake))).toEqual([]);
    five
      .when(redeeming(coffee.id, priced({ ...coffeeAt(9), active: false })))
      .thenRejected({ code: 'reward_inactive' });
    expect(listPrices(five.state(), priced(coffeeAt(9)))).toEqual([[coffee.id, 5]]);
  });

  it('stays unlocked while a redemption leaves what it takes, and is locked below that', () => {
    const tea = { ...coffee, id: 3, name: 'Tea', stampsRequired: 1 };
    const on = priced(tea, coffeeAt(9), cake);
    const six = scenario(customerCard, issued, earned(6), unlocked(tea), unlocked(coffee));
    six.when(redeeming(tea.id, on)).then(redeemed(tea));
    six.when(redeeming(tea.id, on)).thenState({ stampsCount: 5, unlocked: six.state().unlocked });
    five.when(redeeming(coffee.id, on)).thenState({ stampsCount: 0, unlocked: [] });
    const afterwards = scenario(
      customerCard,
      issued,
      earned(5),
      unlocked(coffee),
      redeemed(coffee, [coffee.id]),
      earned(5),
    );
    expect(listPrices(afterwards.state(), on)).toEqual([[tea.id, 1]]);
    afterwards.when(stamping(4, {}, on)).then(earned(4), unlocked(tea), unlocked(coffeeAt(9)));
  });

  it('keeps the lower of the thresholds that its card and a merged one had', () => {
    const absorbed = (stampsRequired: number): CustomerCardEvent => ({
      type: 'CustomerCardAbsorbed',
      data: {
        customerId: 7,
        fromId: 2,
        stamps: 0,
        unlocked: [{ rewardId: coffee.id, stampsRequired }],
      },
    });
    const on = priced(coffeeAt(9));
    for (const other of [3, 8]) {
      const merged = scenario(customerCard, issued, earned(5), unlocked(coffee), absorbed(other));
      expect(listPrices(merged.state(), on)).toEqual([[coffee.id, Math.min(5, other)]]);
    }
  });

  it('is what progress is not measured towards', () => {
    expect(calculateProgress(five.state(), priced(coffeeAt(9), cake))).toBe(50);
    const four = { ...five.state(), stampsCount: 4 };
    expect(calculateProgress(four, priced(coffeeAt(9), cake))).toBe(80);
  });

  it('is found by the redemption that locked it', () => {
    const both = scenario(
      customerCard,
      issued,
      earned(10),
      unlocked(coffee),
      unlocked(cake),
    ).state();
    const findLockedBy = (event: CustomerCardEvent) =>
      event.type === 'RewardRedeemed' ? findLocked(both, event.data) : undefined;
    const [coffeeAtFive, cakeAtTen] = both.unlocked;
    expect(findLockedBy(redeemed(coffee, [cake.id]))).toEqual([cakeAtTen]);
    expect(findLockedBy(redeemed(cake, [coffee.id, cake.id]))).toEqual([coffeeAtFive, cakeAtTen]);
    expect(findLockedBy(redeemed(coffee, []))).toEqual([]);
  });
});

describe('what a card shows', () => {
  const holding = (stampsCount: number) => ({ stampsCount, unlocked: [] });

  it('is active, completed or expired, and expired wins', () => {
    expect(getCardStatus(9, template, NOW)).toBe('active');
    expect(getCardStatus(10, template, NOW)).toBe('completed');
    expect(getCardStatus(10, { ...template, expiresAt: AT }, NOW)).toBe('expired');
  });

  it.each([
    [0, 0],
    [2, 40],
    [7, 70],
    [4, 80],
    [5, 50],
    [9, 90],
    [10, 100],
    [25, 100],
  ])('with %i stamps is %i %% on its way', (stamps, percentage) => {
    expect(calculateProgress(holding(stamps), template)).toBe(percentage);
  });

  it('rounds its way down, so that only a full card is at 100 %', () => {
    expect(calculateProgress(holding(2), { stampsRequired: 3, rewards: [] })).toBe(66);
    expect(calculateProgress(holding(299), { stampsRequired: 300, rewards: [] })).toBe(99);
  });

  it('offers what is active and paid for, cheapest first', () => {
    const exactly = scenario(customerCard, issued, earned(5)).state();
    expect(findAvailableRewards(exactly, template).map((reward) => reward.id)).toEqual([1]);
    const state = scenario(customerCard, issued, earned(12)).state();
    expect(findAvailableRewards(state, template).map((reward) => reward.id)).toEqual([1, 2]);
    const inactive = { ...template, rewards: [{ ...coffee, active: false }, cake] };
    expect(findAvailableRewards(state, inactive).map((reward) => reward.id)).toEqual([2]);
  });
});

describe('enrolment', () => {
  it('is refused on a card that is archived or over', () => {
    expect(() => assertOpenForEnrolment(template, NOW)).not.toThrow();
    expect(() => assertOpenForEnrolment({ ...template, archivedAt: AT }, NOW)).toThrow(
      'card_id is archived',
    );
    expect(() => assertOpenForEnrolment({ ...template, expiresAt: AT }, NOW)).toThrow(
      'card_id has expired',
    );
  });
});
