import { describe, expect, it } from '@jest/globals';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { card } from '#loyalty/cards/card.js';
import { customer } from '#loyalty/customers/customer.js';
import { location } from '#loyalty/locations/location.js';
import { reward } from '#loyalty/rewards/reward.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';
import { createEntries, NO_ENTRIES, type InheritedFields } from './entry.js';

const TYPES = new EventTypes([card, reward, customer, customerCard, location]);
const NOTHING = new Map<string, InheritedFields>();

let serial = 0;

function event(
  stream: string,
  revision: number,
  type: string,
  data: object,
  recordedAt = '2026-03-01T12:00:00.000Z',
): StoredEvent {
  serial++;
  return {
    id: `00000000-0000-4000-8000-${String(serial).padStart(12, '0')}`,
    stream,
    revision,
    type,
    version: 1,
    data: data as StoredEvent['data'],
    meta: {
      accountId: 7,
      actor: { type: 'token', id: 5 },
      channel: 'pos',
      requestId: 'r',
      occurredAt: '2026-03-01T11:00:00.000Z',
      recordedAt,
    },
    hash: 'aa',
    position: { commit: 9n, prepare: BigInt(serial) },
  };
}

const DETAILS = { staffRef: 'till', externalRef: 'R-1', silent: false, personal: 'sealed' };

describe('createEntries', () => {
  it('carries customer, card and balance from one event of a customer card to the next', () => {
    const entries = createEntries(
      [
        event('customer_card-12', 0, 'CustomerCardIssued', {
          id: 12,
          accountId: 7,
          customerId: 31,
          cardId: 3,
          uuid: 'u',
          code: 'ABCD2345',
        }),
        event('customer_card-12', 1, 'StampsEarned', {
          customerId: 31,
          stamps: 6,
          source: 'api',
          locationId: 4,
          ...DETAILS,
        }),
        event('customer_card-12', 2, 'RewardUnlocked', { customerId: 31, rewardId: 8 }),
        event('customer_card-12', 3, 'RewardRedeemed', {
          customerId: 31,
          rewardId: 8,
          stampsSpent: 5,
          locationId: null,
          ...DETAILS,
        }),
      ],
      TYPES,
      { seq: 40, latestRecordedAt: '2026-03-01T11:59:59.000Z' },
      NOTHING,
    );
    const ids = { customerId: 31, customerCardId: 12, cardId: 3, accountId: 7 };
    expect(entries).toMatchObject([
      { ...ids, seq: 41, name: 'customer_card.created', stamps: null, balance: 0, rewardId: null },
      { ...ids, seq: 42, name: 'stamp.earned', stamps: 6, balance: 6, locationId: 4 },
      { ...ids, seq: 43, name: 'reward.unlocked', stamps: null, balance: 6, rewardId: 8 },
      { ...ids, seq: 44, name: 'reward.redeemed', stamps: -5, balance: 1, rewardId: 8 },
    ]);
    expect(entries[1]).toMatchObject({ channel: 'pos', actor: 'token:5', reverses: null });
    expect(JSON.stringify({ ...entries[1], position: null })).not.toMatch(/till|R-1|sealed/);
  });

  it('continues from the last entry of a stream, and throws without it', () => {
    const inherited = new Map([['customer_card-12', { customerId: 31, cardId: 3, balance: 9 }]]);
    const stampsEarned = event('customer_card-12', 7, 'StampsEarned', {
      customerId: 31,
      stamps: 2,
      reverses: '00000000-0000-4000-8000-000000000001',
    });
    const stamp = { ...stampsEarned, version: 2 };
    expect(createEntries([stamp], TYPES, NO_ENTRIES, inherited)).toMatchObject([
      { seq: 0, cardId: 3, balance: 11, reverses: '00000000-0000-4000-8000-000000000001' },
    ]);
    expect(() => createEntries([stamp], TYPES, NO_ENTRIES, NOTHING)).toThrow('not complete');
  });

  it('does not know the balance after events that are lost', () => {
    const lost = new Map([['customer_card-12', { customerId: 31, cardId: 3, balance: null }]]);
    const data = { customerId: 31, stamps: 2, reverses: null };
    const stamps = [7, 8].map((revision) => ({
      ...event('customer_card-12', revision, 'StampsEarned', data),
      version: 2,
    }));
    const ofCard = { customerId: 31, cardId: 3, stamps: 2, balance: null };
    expect(createEntries(stamps, TYPES, NO_ENTRIES, lost)).toMatchObject([ofCard, ofCard]);
  });

  it('fills in the id of the record itself, and the card of a reward', () => {
    const entries = createEntries(
      [
        event('card-3', 0, 'CardCreated', { id: 3, name: 'Coffee' }),
        event('reward-8', 0, 'RewardCreated', { id: 8, accountId: 7, cardId: 3 }),
        event('reward-8', 1, 'RewardUpdated', { name: 'Cake' }),
        event('location-4', 0, 'LocationCreated', { id: 4 }),
        event('customer-31', 0, 'CustomerCreated', { customerId: 31, personal: 'sealed' }),
      ],
      TYPES,
      NO_ENTRIES,
      NOTHING,
    );
    expect(entries).toMatchObject([
      { name: 'card.created', cardId: 3, balance: null },
      { name: 'reward.created', rewardId: 8, cardId: 3, balance: null },
      { name: 'reward.updated', rewardId: 8, cardId: 3, balance: null },
      { name: 'location.created', locationId: 4, cardId: null },
      { name: 'customer.created', customerId: 31, customerCardId: null, balance: null },
    ]);
  });

  it('records the latest time so far, even when clocks disagree', () => {
    const times = ['12:00:05.000', '12:00:01.000', '12:00:07.000'];
    const events = times.map((time, i) =>
      event(`card-${i}`, 0, 'CardCreated', {}, `2026-03-01T${time}Z`),
    );
    const latest = createEntries(events, TYPES, NO_ENTRIES, NOTHING).map((e) => e.latestRecordedAt);
    expect(latest.map((time) => time.slice(11, 19))).toEqual(['12:00:05', '12:00:05', '12:00:07']);
  });

  it('throws for an event of an unknown type', () => {
    const cardPainted = event('card-3', 0, 'CardPainted', {});
    expect(() => createEntries([cardPainted], TYPES, NO_ENTRIES, NOTHING)).toThrow(
      `CardPainted of event ${cardPainted.id}; the history stands still`,
    );
  });
});
