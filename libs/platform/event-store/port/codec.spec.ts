import { describe, expect, it } from '@jest/globals';
import { NewerEventError, toRecorded, getCurrentVersion } from './codec.js';
import type { StoredEvent } from './event-store.js';

const AT = '2026-03-01T10:00:00.000Z';

const aggregate = {
  events: {
    Priced: {
      upcasts: [
        ({ price }: { price: number }) => ({ cents: price * 100 }),
        (data: { cents: number }) => ({ ...data, currency: 'EUR' }),
      ],
    },
    Named: {},
  },
};

const createStored = (type: string, version: number, data: StoredEvent['data']) => ({
  id: 'e',
  stream: 'thing-1',
  revision: 0,
  type,
  version,
  data,
  meta: {
    accountId: 1,
    actor: { type: 'system', id: 0 } as const,
    channel: 'system' as const,
    requestId: 'r',
    occurredAt: AT,
    recordedAt: AT,
  },
  hash: '',
});

describe('toRecorded', () => {
  it('upcasts older data to the current version, one step for each version', () => {
    const current = { cents: 300, currency: 'EUR' };
    expect(toRecorded(aggregate, createStored('Priced', 1, { price: 3 })).data).toEqual(current);
    expect(toRecorded(aggregate, createStored('Priced', 2, { cents: 300 })).data).toEqual(current);
    expect(toRecorded(aggregate, createStored('Priced', 3, current)).data).toEqual(current);
  });

  it('leaves the data of a type without upcasts unchanged', () => {
    for (const type of ['Named', 'constructor']) {
      expect(getCurrentVersion(aggregate, type)).toBe(1);
      expect(toRecorded(aggregate, createStored(type, 1, { a: 1 })).data).toEqual({ a: 1 });
    }
    expect(getCurrentVersion(aggregate, 'Priced')).toBe(3);
  });

  it('refuses an event of a newer version than the program knows', () => {
    const read = () => toRecorded(aggregate, createStored('Priced', 4, {}));
    expect(read).toThrow(NewerEventError);
    expect(read).toThrow(
      'thing-1: event e is a Priced of version 4, and this program knows only version 3: upgrade it',
    );
  });
});
