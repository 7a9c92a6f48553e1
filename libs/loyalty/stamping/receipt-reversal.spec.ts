import { describe, expect, it } from '@jest/globals';
import type { RecordedEvent } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { NO_DETAILS, type CustomerCard, type Template } from './customer-card.js';
import type { CustomerCardEvent, RewardRedeemed, StampsEarned } from './customer-card.events.js';
import { reverseReceipt } from './receipt-reversal.js';
import { NO_STAMPINGS } from './stamp-limits.js';

const AT = '2026-03-01T10:00:00.000Z';
const coffee = { id: 1, name: 'Coffee', description: null, stampsRequired: 5, active: true };

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
  rewards: [coffee],
};

const createCard = (stampsCount: number): CustomerCard => ({
  id: 1,
  accountId: 1,
  customerId: 7,
  cardId: 9,
  uuid: 'u',
  code: 'ABCDEFGH',
  stampsCount,
  unlocked: [],
  redeemedRewardIds: [],
  importedStamps: 0,
  stampings: NO_STAMPINGS,
  issuedAt: AT,
  updatedAt: AT,
});

const record = <E extends CustomerCardEvent>(event: E, id: string): RecordedEvent<E> => ({
  ...event,
  id,
  meta: {
    accountId: 1,
    actor: { type: 'token', id: 1 },
    channel: 'api',
    requestId: 'spec',
    occurredAt: AT,
    recordedAt: AT,
  },
});

const stampsEarned = (stamps: number) =>
  record<StampsEarned>(
    {
      type: 'StampsEarned',
      data: {
        ...NO_DETAILS,
        customerId: 7,
        stamps,
        source: 'api',
        externalRef: 'R-1',
        silent: false,
        reverses: null,
        templateVersion: 17,
      },
    },
    'stamping',
  );
const rewardRedeemed = (stampsSpent: number) =>
  record<RewardRedeemed>(
    {
      type: 'RewardRedeemed',
      data: {
        ...NO_DETAILS,
        customerId: 7,
        redemptionId: 3,
        rewardId: 1,
        rewardName: 'Coffee',
        stampsSpent,
        locked: [],
        externalRef: 'R-1',
        silent: false,
        templateVersion: 17,
      },
    },
    'redemption',
  );

const reversing = (card: CustomerCard, ...events: RecordedEvent<CustomerCardEvent>[]) =>
  reverseReceipt(card, template, {
    actions: events.map((event) => ({ event, locked: [] })),
    reason: 'Wrong card',
  });

const summarize = (events: CustomerCardEvent[]) =>
  events.map(({ type, data }) =>
    'stamps' in data && 'reverses' in data ? [type, data.stamps, data.reverses] : [type],
  );

describe('reverseReceipt', () => {
  it('takes the stamps off first where the balance covers them, and unlocks nothing', () => {
    const events = reversing(createCard(4), stampsEarned(3), rewardRedeemed(3));
    expect(summarize(events)).toEqual([
      ['StampsRemoved', 3, 'stamping'],
      ['StampsEarned', 3, 'redemption'],
    ]);
  });

  it('gives back what was spent first where the balance does not cover the stamps', () => {
    const events = reversing(createCard(2), stampsEarned(5), rewardRedeemed(3));
    expect(summarize(events)).toEqual([
      ['StampsEarned', 3, 'redemption'],
      ['RewardUnlocked'],
      ['StampsRemoved', 5, 'stamping'],
    ]);
  });

  it('refuses stamps that were spent elsewhere', () => {
    expect(() => reversing(createCard(1), stampsEarned(5), rewardRedeemed(3))).toThrow(
      RejectedError,
    );
    expect(() => reversing(createCard(4), stampsEarned(5))).toThrow(RejectedError);
  });

  it('refuses a card that was merged, and names the one that goes on', () => {
    const card = { ...createCard(5), mergedInto: { customerId: 8, id: 2, stamps: 5 } };
    expect(() => reversing(card, stampsEarned(5))).toThrow(
      expect.objectContaining({ code: 'customer_merged' }),
    );
  });
});
