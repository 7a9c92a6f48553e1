import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parsePublicEventId, toPublicEventId } from '#platform/kernel/public-id.js';
import { createId } from '#platform/kernel/randomness.js';
import { createTestEventId, readTestEventId } from './test-event-id.js';

const AT = new Date('2026-03-01T12:00:00.123Z');

describe('the id of a test event', () => {
  it('tells when it was sent, and after which event, to its store alone', () => {
    const store = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
    const position = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    const time = fc.date({ min: new Date(0), max: new Date('2200-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(store, position, time, (accountId, after, sentAt) => {
        const uuid = createTestEventId({ accountId, position: after, sentAt });
        expect(readTestEventId(uuid, accountId)).toEqual({ position: after, sentAt });
        expect(parsePublicEventId(toPublicEventId(uuid))).toBe(uuid);
        expect(uuid).toMatch(
          /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
        );
      }),
      { numRuns: 200 },
    );
  });

  it('is another one each time, and sorts by its time', () => {
    const create = (sentAt: Date) => createTestEventId({ accountId: 1, position: 7, sentAt });
    const ids = Array.from({ length: 20 }, () => create(AT));
    expect(new Set(ids).size).toBeGreaterThan(1);
    expect(create(new Date(AT.getTime() + 1)) > create(AT)).toBe(true);
  });

  it('is no id of an event, and no id of a test of another store', () => {
    expect(readTestEventId(createId(), 1)).toBeUndefined();
    const stores = Array.from({ length: 50 }, (_, i) => i + 2);
    const uuid = createTestEventId({ accountId: 1, position: 7, sentAt: AT });
    expect(stores.filter((id) => readTestEventId(uuid, id) !== undefined)).toEqual([]);
  });
});
