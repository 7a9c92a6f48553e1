import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
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
import { getOccurredAt } from './occurred-at.js';
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

const details = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  receiptUse: 0,
  silent: false,
  personal: null,
};

const ids = { id: 1, accountId: 1, customerId: 7, uuid: 'u', code: 'ABCDEFGH' };
const cardIssued: CustomerCardEvent = { type: 'CustomerCardIssued', data: { ...ids, cardId: 9 } };

const stampsEarned = (stamps: number, source: StampSource = 'api'): CustomerCardEvent => ({
  type: 'StampsEarned',
  data: { ...details, customerId: 7, stamps, source, reverses: null, templateVersion: 17 },
});
const rewardUnlocked = ({ id, name, description, stampsRequired }: typeof cake | typeof coffee) =>
  ({
    type: 'RewardUnlocked',
    data: { customerId: 7, rewardId: id, name, description, stampsRequired },
  }) satisfies CustomerCardEvent;
const rewardRedeemed = (
  reward: typeof cake | typeof coffee,
  locked: number[] = [],
): CustomerCardEvent => ({
  type: 'RewardRedeemed',
  data: {
    ...details,
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
    ...details,
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
    ...details,
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
  it('has the name of existing streams, and the times of its events', () => {
    expect(customerCard.name).toBe('customer_card');
    expect(scenario(customerCard, cardIssued).state()).toMatchObject({
      issuedAt: AT,
      updatedAt: AT,
    });
    for (const event of [stampsEarned(1), rewardUnlocked(coffee), rewardRedeemed(coffee)]) {
      const { issuedAt, updatedAt } = scenario(customerCard, cardIssued, stampsEarned(9), {
        ...event,
        at: LATER,
      }).state();
      expect([issuedAt, updatedAt]).toEqual([AT, LATER]);
    }
  });
});

describe('issue', () => {
  it('issues an empty card', () => {
    scenario(customerCard)
      .when(() => issue(ids, template))
      .then(cardIssued);
  });

  it('adds the welcome stamps and unlocks the rewards that they reach', () => {
    scenario(customerCard)
      .when(() => issue(ids, { ...template, initialStamps: 6 }))
      .then(
        cardIssued,
        {
          type: 'StampsEarned',
          data: {
            ...details,
            silent: true,
            customerId: 7,
            stamps: 6,
            source: 'welcome_bonus',
            reverses: null,
            templateVersion: 17,
          },
        },
        rewardUnlocked(coffee),
      );
  });
});

describe('stamp', () => {
  it('adds stamps', () => {
    scenario(customerCard, cardIssued).when(stamping(2)).then(stampsEarned(2));
    scenario(customerCard, cardIssued, stampsEarned(2))
      .when(stamping(1))
      .thenState({ stampsCount: 3 });
  });

  it('unlocks each reward that comes within reach, cheapest first', () => {
    scenario(customerCard, cardIssued, stampsEarned(4))
      .when(stamping(6))
      .then(stampsEarned(6), rewardUnlocked(coffee), rewardUnlocked(cake));
  });

  it('unlocks a reward once, however many stamps follow', () => {
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee))
      .when(stamping(1))
      .then(stampsEarned(1));
  });

  it('unlocks a reward again after a redemption took the balance below its threshold', () => {
    scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      rewardRedeemed(coffee, [coffee.id]),
    )
      .when(stamping(5))
      .then(stampsEarned(5), rewardUnlocked(coffee));
  });

  it('does not unlock a reward again when the redemption left enough stamps', () => {
    scenario(
      customerCard,
      cardIssued,
      stampsEarned(10),
      rewardUnlocked(coffee),
      rewardUnlocked(cake),
      rewardRedeemed(coffee, [cake.id]),
    )
      .when(stamping(1))
      .then(stampsEarned(1));
  });

  it('keeps a reward unlocked when its threshold rises, and unlocks one whose threshold fell below the balance', () => {
    const raisedTemplate = { ...template, rewards: [{ ...coffee, stampsRequired: 8 }] };
    scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee))
      .when(stamping(4, {}, raisedTemplate))
      .then(stampsEarned(4));
    const cheap = { ...cake, stampsRequired: 3 };
    scenario(customerCard, cardIssued, stampsEarned(4))
      .when(stamping(1, {}, { ...template, rewards: [cheap] }))
      .then(stampsEarned(1), rewardUnlocked(cheap));
  });

  it('does not unlock an inactive reward', () => {
    const withInactiveReward = { ...template, rewards: [{ ...coffee, active: false }] };
    scenario(customerCard, cardIssued)
      .when(stamping(8, {}, withInactiveReward))
      .then(stampsEarned(8));
  });

  it('unlocks a reward that was added below the balance with the next stamp', () => {
    scenario(customerCard, cardIssued, stampsEarned(6))
      .when(stamping(1))
      .then(stampsEarned(1), rewardUnlocked(coffee));
  });

  it('does not cap the balance', () => {
    scenario(customerCard, cardIssued, stampsEarned(99))
      .when(stamping(100))
      .thenState({ stampsCount: 199 });
  });

  it('refuses an expired card and stamps an archived one', () => {
    scenario(customerCard, cardIssued)
      .when(stamping(1, {}, { ...template, expiresAt: NOW.toISOString() }))
      .thenRejected({ fields: ['base'], code: 'card_expired' });
    scenario(customerCard, cardIssued)
      .when(stamping(1, {}, { ...template, archivedAt: AT }))
      .then(stampsEarned(1));
  });

  it('throws NotFoundError for a card of another customer and when there is no card', () => {
    scenario(customerCard, cardIssued)
      .when(stamping(1, { customerId: 8 }))
      .thenThrows(NotFoundError);
    scenario(customerCard).when(stamping(1)).thenThrows(NotFoundError);
  });

  describe('occurred_at', () => {
    const at = (iso: string) => ({ occurredAt: new Date(iso) });

    it('may be up to five minutes ahead, as clocks differ', () => {
      scenario(customerCard, cardIssued)
        .when(stamping(1, at('2026-03-01T12:05:00Z')))
        .then(stampsEarned(1));
      scenario(customerCard, cardIssued)
        .when(stamping(1, at('2026-03-01T12:05:01Z')))
        .thenRejected({ fields: ['occurred_at'] });
    });

    it('may be up to five minutes before the card was issued, as clocks differ', () => {
      for (const time of [AT, '2026-03-01T09:55:00Z']) {
        scenario(customerCard, cardIssued)
          .when(stamping(1, at(time)))
          .then(stampsEarned(1));
      }
      scenario(customerCard, cardIssued)
        .when(stamping(1, at('2026-03-01T09:54:59Z')))
        .thenRejected({ fields: ['occurred_at'] });
    });

    it('counts as the time when the card was issued if it is before', () => {
      const issuedAt = new Date(AT);
      const early = new Date('2026-03-01T09:59:00Z');
      const late = new Date('2026-03-01T10:00:01Z');
      const times = [early, issuedAt, late, undefined].map((time) =>
        getOccurredAt({ issuedAt: AT }, time),
      );
      expect(times).toEqual([issuedAt, issuedAt, late, undefined]);
      expect(getOccurredAt(undefined, early)).toBe(early);
    });

    it('before the card was issued counts for the limits on the day of issuing', () => {
      const midnight = '2026-03-01T00:01:00.000Z';
      const limited = { ...template, maxStampsPerDay: 1 };
      scenario(customerCard, { ...cardIssued, at: midnight }, { ...stampsEarned(1), at: midnight })
        .when(stamping(1, at('2026-02-28T23:59:00Z'), limited))
        .thenRejected({ fields: ['base'], code: 'stamp_limit_reached' });
    });
  });

  describe('limits', () => {
    const limitReached = { fields: ['base'], code: 'stamp_limit_reached' as const };
    const stampedAt = (iso: string, stamps = 1, source: StampSource = 'api') => ({
      ...stampsEarned(stamps, source),
      at: iso,
    });

    it('cap the stamps of one request', () => {
      const cappedTemplate = { ...template, maxStampsPerRequest: 2 };
      scenario(customerCard, cardIssued)
        .when(stamping(2, {}, cappedTemplate))
        .then(stampsEarned(2));
      scenario(customerCard, cardIssued)
        .when(stamping(3, {}, cappedTemplate))
        .thenRejected(limitReached);
    });

    it('cap the stamps of a day, which begins at midnight in the time zone of the store', () => {
      const cappedTemplate = { ...template, maxStampsPerDay: 3 };
      const lateEvening = stampedAt('2026-02-28T23:30:00.000Z', 3);
      scenario(customerCard, cardIssued, lateEvening)
        .when(stamping(1, {}, cappedTemplate))
        .then(stampsEarned(1));
      scenario(customerCard, cardIssued, lateEvening)
        .when(stamping(1, {}, { ...cappedTemplate, timeZone: 'Europe/Berlin' }))
        .thenRejected(limitReached);
      scenario(customerCard, cardIssued, stampedAt(AT, 2))
        .when(stamping(2, {}, cappedTemplate))
        .thenRejected(limitReached);
    });

    it('count a late report on the day on which it happened', () => {
      const cappedTemplate = { ...template, maxStampsPerDay: 1 };
      const old = { ...cardIssued, at: '2026-01-01T00:00:00.000Z' };
      scenario(customerCard, old, stampedAt('2026-02-28T10:00:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-02-28T11:00:00Z') }, cappedTemplate))
        .thenRejected(limitReached);
      scenario(customerCard, old, stampedAt('2026-02-28T10:00:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-02-27T11:00:00Z') }, cappedTemplate))
        .then(stampsEarned(1));
    });

    it('keep stampings apart, both before and after each other', () => {
      const spacedTemplate = { ...template, minSecondsBetweenStamps: 60 };
      scenario(customerCard, cardIssued, stampedAt('2026-03-01T11:59:01.000Z'))
        .when(stamping(1, {}, spacedTemplate))
        .thenRejected(limitReached);
      scenario(customerCard, cardIssued, stampedAt('2026-03-01T11:59:00.000Z'))
        .when(stamping(1, {}, spacedTemplate))
        .then(stampsEarned(1));
      scenario(customerCard, cardIssued, stampedAt('2026-03-01T11:30:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-03-01T11:29:30Z') }, spacedTemplate))
        .thenRejected(limitReached);
    });

    it('count neither welcome stamps nor corrections', () => {
      const cappedTemplate = { ...template, maxStampsPerDay: 1, minSecondsBetweenStamps: 3600 };
      scenario(
        customerCard,
        cardIssued,
        stampedAt('2026-03-01T11:59:59.000Z', 5, 'welcome_bonus'),
        stampedAt('2026-03-01T11:59:59.000Z', 5, 'adjustment'),
      )
        .when((state) => stamping(1, {}, cappedTemplate)(state).slice(0, 1))
        .then(stampsEarned(1));
    });

    it.each<StampSource>(['api', 'pos', 'app_scan'])('count stampings from %s', (source) => {
      const cappedTemplate = { ...template, maxStampsPerDay: 1 };
      scenario(customerCard, cardIssued, stampedAt(AT, 1, source))
        .when(stamping(1, {}, cappedTemplate))
        .thenRejected(limitReached);
    });

    it('accept a late report exactly the minimum time before a stamping', () => {
      const spacedTemplate = { ...template, minSecondsBetweenStamps: 60 };
      scenario(customerCard, cardIssued, stampedAt('2026-03-01T11:30:00.000Z'))
        .when(stamping(1, { occurredAt: new Date('2026-03-01T11:29:00Z') }, spacedTemplate))
        .then(stampsEarned(1));
    });

    it('keep each stamping with its own time', () => {
      const spacedTemplate = { ...template, minSecondsBetweenStamps: 60 };
      scenario(
        customerCard,
        cardIssued,
        stampedAt('2026-03-01T10:00:00.000Z'),
        stampedAt('2026-03-01T10:14:00.000Z'),
      )
        .when(stamping(1, { occurredAt: new Date('2026-03-01T10:07:00Z') }, spacedTemplate))
        .then(stampsEarned(1));
    });
  });
});

describe('redeem', () => {
  it('spends the stamps of the reward and keeps the surplus', () => {
    scenario(customerCard, cardIssued, stampsEarned(7))
      .when(redeeming(coffee.id))
      .then(rewardRedeemed(coffee));
    scenario(customerCard, cardIssued, stampsEarned(7))
      .when(redeeming(coffee.id))
      .thenState({ stampsCount: 2, redeemedRewardIds: [coffee.id] });
  });

  it('records which rewards it locks, by the thresholds that apply to the card now', () => {
    const both = [cardIssued, stampsEarned(10), rewardUnlocked(coffee), rewardUnlocked(cake)];
    scenario(customerCard, ...both)
      .when(redeeming(cake.id))
      .then(rewardRedeemed(cake, [coffee.id, cake.id]));
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id))
      .then(rewardRedeemed(coffee, [cake.id]));
    const cheaper = { ...template, rewards: [coffee, { ...cake, stampsRequired: 5 }] };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, cheaper))
      .then(rewardRedeemed(coffee));
    const dearer = { ...template, rewards: [{ ...coffee, stampsRequired: 6 }, cake] };
    scenario(customerCard, ...both, stampsEarned(1))
      .when(redeeming(coffee.id, dearer))
      .then(rewardRedeemed(coffee, [cake.id]));
    const withoutCake = { ...template, rewards: [coffee] };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, withoutCake))
      .then(rewardRedeemed(coffee, [cake.id]));
    const withInactiveReward = {
      ...template,
      rewards: [coffee, { ...cake, stampsRequired: 5, active: false }],
    };
    scenario(customerCard, ...both)
      .when(redeeming(coffee.id, withInactiveReward))
      .then(rewardRedeemed(coffee));
  });

  it('locks only the rewards that its event names', () => {
    const card = scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      rewardRedeemed(coffee, []),
    );
    expect(card.state().unlocked).toEqual([{ rewardId: coffee.id, stampsRequired: 5 }]);
  });

  it('lists a redeemed reward once, however often it is redeemed', () => {
    const twice = scenario(
      customerCard,
      cardIssued,
      stampsEarned(20),
      rewardRedeemed(coffee),
      rewardRedeemed(coffee),
    );
    expect(twice.state().redeemedRewardIds).toEqual([coffee.id]);
  });

  it('refuses a reward that needs more stamps than the balance', () => {
    scenario(customerCard, cardIssued, stampsEarned(4))
      .when(redeeming(coffee.id))
      .thenRejected({ fields: ['base'], code: 'insufficient_stamps' });
    scenario(customerCard, cardIssued, stampsEarned(5), rewardRedeemed(coffee))
      .when(redeeming(coffee.id))
      .thenRejected({ code: 'insufficient_stamps' });
  });

  it('refuses an inactive reward before it checks the balance', () => {
    const withInactiveReward = { ...template, rewards: [{ ...coffee, active: false }] };
    scenario(customerCard, cardIssued)
      .when(redeeming(coffee.id, withInactiveReward))
      .thenRejected({ fields: ['base'], code: 'reward_inactive' });
  });

  it('throws NotFoundError for a reward of another card', () => {
    scenario(customerCard, cardIssued, stampsEarned(50))
      .when(redeeming(99))
      .thenThrows(NotFoundError);
  });

  it('refuses an expired card', () => {
    scenario(customerCard, cardIssued, stampsEarned(50))
      .when(redeeming(coffee.id, { ...template, expiresAt: AT }))
      .thenRejected({ code: 'card_expired' });
  });

  it('refuses an occurred_at more than five minutes before the card was issued', () => {
    scenario(customerCard, cardIssued, stampsEarned(coffee.stampsRequired))
      .when(redeeming(coffee.id, template, { occurredAt: new Date('2026-03-01T09:55:00Z') }))
      .then(rewardRedeemed(coffee));
    scenario(customerCard, cardIssued, stampsEarned(50))
      .when(redeeming(coffee.id, template, { occurredAt: new Date('2020-01-01T00:00:00Z') }))
      .thenRejected({ fields: ['occurred_at'] });
  });
});

describe('an unlocked reward', () => {
  const withRewards = (...rewards: Milestone[]): Template => ({ ...template, rewards });
  const coffeeAt = (stampsRequired: number) => ({ ...coffee, stampsRequired });
  const five = scenario(customerCard, cardIssued, stampsEarned(5), rewardUnlocked(coffee));
  const listPrices = (state: ReturnType<typeof five.state>, on: Template) =>
    findAvailableRewards(state, on).map(({ id, stampsRequired }) => [id, stampsRequired]);

  it.each([
    ['raised', 9, 5],
    ['lowered', 3, 3],
    ['the same', 5, 5],
    ['raised beyond the card', 99, 5],
  ])('whose threshold is %s is shown and redeemed at the lower threshold', (_, now, takes) => {
    expect(listPrices(five.state(), withRewards(coffeeAt(now), cake))).toEqual([
      [coffee.id, takes],
    ]);
    five
      .when(redeeming(coffee.id, withRewards(coffeeAt(now), cake)))
      .then(rewardRedeemed(coffeeAt(takes), [coffee.id]));
  });

  it('keeps its threshold, unlike a reward that was not unlocked', () => {
    const state = scenario(customerCard, cardIssued, stampsEarned(5)).state();
    expect(listPrices(state, withRewards(coffeeAt(9), cake))).toEqual([]);
    scenario(customerCard, cardIssued, stampsEarned(5))
      .when(redeeming(coffee.id, withRewards(coffeeAt(6), cake)))
      .thenRejected({ code: 'insufficient_stamps' });
  });

  it('is sorted by the stamps that it takes', () => {
    const both = scenario(
      customerCard,
      cardIssued,
      stampsEarned(10),
      rewardUnlocked(coffee),
      rewardUnlocked(cake),
    );
    const on = withRewards({ ...cake, stampsRequired: 7 }, coffeeAt(8));
    expect(listPrices(both.state(), on)).toEqual([
      [coffee.id, 5],
      [cake.id, 7],
    ]);
  });

  it('is unavailable while the balance is below its threshold, and available again after', () => {
    const stampRemoved: CustomerCardEvent = {
      type: 'StampsRemoved',
      data: { ...details, customerId: 7, stamps: 1, source: 'adjustment', reverses: null },
    };
    const on = withRewards(coffeeAt(9), cake);
    const less = scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      stampRemoved,
    );
    expect(listPrices(less.state(), on)).toEqual([]);
    less.when(redeeming(coffee.id, on)).thenRejected({ code: 'insufficient_stamps' });
    less.when(stamping(1, {}, on)).then(stampsEarned(1));
    const afterStamp = scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      stampRemoved,
      stampsEarned(1),
    );
    expect(listPrices(afterStamp.state(), on)).toEqual([[coffee.id, 5]]);
  });

  it('is unavailable while it is inactive, and takes the same stamps afterwards', () => {
    expect(listPrices(five.state(), withRewards({ ...coffeeAt(9), active: false }, cake))).toEqual(
      [],
    );
    five
      .when(redeeming(coffee.id, withRewards({ ...coffeeAt(9), active: false })))
      .thenRejected({ code: 'reward_inactive' });
    expect(listPrices(five.state(), withRewards(coffeeAt(9)))).toEqual([[coffee.id, 5]]);
  });

  it('stays unlocked while a redemption leaves the stamps that it takes, and is locked below', () => {
    const tea = { ...coffee, id: 3, name: 'Tea', stampsRequired: 1 };
    const on = withRewards(tea, coffeeAt(9), cake);
    const six = scenario(
      customerCard,
      cardIssued,
      stampsEarned(6),
      rewardUnlocked(tea),
      rewardUnlocked(coffee),
    );
    six.when(redeeming(tea.id, on)).then(rewardRedeemed(tea));
    six.when(redeeming(tea.id, on)).thenState({ stampsCount: 5, unlocked: six.state().unlocked });
    five.when(redeeming(coffee.id, on)).thenState({ stampsCount: 0, unlocked: [] });
    const afterwards = scenario(
      customerCard,
      cardIssued,
      stampsEarned(5),
      rewardUnlocked(coffee),
      rewardRedeemed(coffee, [coffee.id]),
      stampsEarned(5),
    );
    expect(listPrices(afterwards.state(), on)).toEqual([[tea.id, 1]]);
    afterwards
      .when(stamping(4, {}, on))
      .then(stampsEarned(4), rewardUnlocked(tea), rewardUnlocked(coffeeAt(9)));
  });

  it('has the lower of the thresholds of its card and a merged one', () => {
    const cardAbsorbed = (stampsRequired: number): CustomerCardEvent => ({
      type: 'CustomerCardAbsorbed',
      data: {
        customerId: 7,
        fromId: 2,
        stamps: 0,
        unlocked: [{ rewardId: coffee.id, stampsRequired }],
      },
    });
    const on = withRewards(coffeeAt(9));
    for (const otherStamps of [3, 8]) {
      const mergedCard = scenario(
        customerCard,
        cardIssued,
        stampsEarned(5),
        rewardUnlocked(coffee),
        cardAbsorbed(otherStamps),
      );
      expect(listPrices(mergedCard.state(), on)).toEqual([[coffee.id, Math.min(5, otherStamps)]]);
    }
  });

  it('is not what progress is measured towards', () => {
    expect(calculateProgress(five.state(), withRewards(coffeeAt(9), cake))).toBe(50);
    const four = { ...five.state(), stampsCount: 4 };
    expect(calculateProgress(four, withRewards(coffeeAt(9), cake))).toBe(80);
  });

  it('is found again by the redemption that locked it', () => {
    const both = scenario(
      customerCard,
      cardIssued,
      stampsEarned(10),
      rewardUnlocked(coffee),
      rewardUnlocked(cake),
    ).state();
    const findLockedBy = (event: CustomerCardEvent) =>
      event.type === 'RewardRedeemed' ? findLocked(both, event.data) : undefined;
    const [coffeeAtFive, cakeAtTen] = both.unlocked;
    expect(findLockedBy(rewardRedeemed(coffee, [cake.id]))).toEqual([cakeAtTen]);
    expect(findLockedBy(rewardRedeemed(cake, [coffee.id, cake.id]))).toEqual([
      coffeeAtFive,
      cakeAtTen,
    ]);
    expect(findLockedBy(rewardRedeemed(coffee, []))).toEqual([]);
  });
});

describe('getCardStatus', () => {
  it('returns active, completed or expired, and expired before completed', () => {
    expect(getCardStatus(9, template, NOW)).toBe('active');
    expect(getCardStatus(10, template, NOW)).toBe('completed');
    expect(getCardStatus(10, { ...template, expiresAt: AT }, NOW)).toBe('expired');
  });
});

describe('calculateProgress', () => {
  const createState = (stampsCount: number) => ({ stampsCount, unlocked: [] });

  it.each([
    [0, 0],
    [2, 40],
    [7, 70],
    [4, 80],
    [5, 50],
    [9, 90],
    [10, 100],
    [25, 100],
  ])('with %i stamps returns %i %%', (stamps, percentage) => {
    expect(calculateProgress(createState(stamps), template)).toBe(percentage);
  });

  it('rounds down, so that only a full card is at 100 %', () => {
    expect(calculateProgress(createState(2), { stampsRequired: 3, rewards: [] })).toBe(66);
    expect(calculateProgress(createState(299), { stampsRequired: 300, rewards: [] })).toBe(99);
  });
});

describe('findAvailableRewards', () => {
  it('returns the active rewards that the balance reaches, cheapest first', () => {
    const exactly = scenario(customerCard, cardIssued, stampsEarned(5)).state();
    expect(findAvailableRewards(exactly, template).map((reward) => reward.id)).toEqual([1]);
    const state = scenario(customerCard, cardIssued, stampsEarned(12)).state();
    expect(findAvailableRewards(state, template).map((reward) => reward.id)).toEqual([1, 2]);
    const withInactiveReward = { ...template, rewards: [{ ...coffee, active: false }, cake] };
    expect(findAvailableRewards(state, withInactiveReward).map((reward) => reward.id)).toEqual([2]);
  });
});

describe('assertOpenForEnrolment', () => {
  it('refuses a card that is archived or expired', () => {
    expect(() => assertOpenForEnrolment(template, NOW)).not.toThrow();
    expect(() => assertOpenForEnrolment({ ...template, archivedAt: AT }, NOW)).toThrow(
      'card_id is archived',
    );
    expect(() => assertOpenForEnrolment({ ...template, expiresAt: AT }, NOW)).toThrow(
      'card_id has expired',
    );
  });
});
