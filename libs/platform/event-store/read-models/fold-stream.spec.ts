import { describe, expect, it } from '@jest/globals';
import { defineAggregate } from '#platform/kernel/aggregate.js';
import { EventStore, type NewEvent, type StoredEvent } from '../port/event-store.js';
import { foldStream, type FoldRange } from './fold-stream.js';

type Sum = { accountId: number; total: number };
type Added = { type: 'Added'; data: { amount: number } };

const AT = '2026-03-01T10:00:00.000Z';
const PAGE = 200;

const sum = defineAggregate<Sum, Added>({
  name: 'sum',
  table: 'sums',
  events: {
    Added: {
      name: 'sum.added',
      publishedAs: null,
      upcasts: [({ value }: { value: number }) => ({ amount: value })],
    },
  },
  evolve: (state, { data }) => ({ accountId: 1, total: (state?.total ?? 0) + data.amount }),
});

const createEvent = (revision: number): StoredEvent => ({
  id: `e${revision}`,
  stream: 'sum-1',
  revision,
  type: 'Added',
  version: 2,
  data: { amount: 1 },
  meta: {
    accountId: 1,
    actor: { type: 'system', id: 0 },
    channel: 'system',
    requestId: 'r',
    occurredAt: AT,
    recordedAt: AT,
  },
  hash: `h${revision}`,
  position: { commit: BigInt(revision), prepare: 0n },
});

const createEvents = (count: number) => Array.from({ length: count }, (_, i) => createEvent(i));

async function fold(events: StoredEvent[], range?: FoldRange<Sum>) {
  const pageSizes: number[] = [];
  const store = Object.assign(Object.create(EventStore.prototype) as EventStore, {
    async *readStream(_: string, { from = 0, to = Infinity }: { from?: number; to?: number } = {}) {
      yield* events.filter(({ revision }) => revision >= from && revision <= to);
    },
  });
  const keys = {
    openEvents: <E extends NewEvent>(page: E[]): Promise<E[]> => {
      pageSizes.push(page.length);
      const isLocked = page.some(({ data }) => 'locked' in data);
      return isLocked ? Promise.reject(new Error('no key')) : Promise.resolve(page);
    },
  };
  const projected = await foldStream(store, keys, sum, 'sum-1', range);
  return { total: projected?.state.total, head: projected?.head, pageSizes };
}

describe('foldStream', () => {
  it.each([1, PAGE, PAGE + 1, 2 * PAGE])(
    'applies the %d events of a stream, which it opens in pages',
    async (count) => {
      const { total, head, pageSizes } = await fold(createEvents(count));
      expect(total).toBe(count);
      expect(head).toEqual({ revision: count - 1, hash: `h${count - 1}` });
      expect(pageSizes).toHaveLength(Math.ceil(count / PAGE));
    },
  );

  it('stops after the last revision, and at the end of a shorter stream', async () => {
    expect(await fold(createEvents(5), { to: 2 })).toMatchObject({
      total: 3,
      head: { revision: 2 },
    });
    expect(await fold(createEvents(5), { to: 9 })).toMatchObject({
      total: 5,
      head: { revision: 4 },
    });
  });

  it('goes on from an earlier state', async () => {
    const from = { state: { accountId: 1, total: 10 }, revision: 2 };
    expect(await fold(createEvents(5), { from })).toMatchObject({
      total: 12,
      head: { revision: 4 },
    });
  });

  it('finds nothing in a stream without an event in the range', async () => {
    const from = { state: { accountId: 1, total: 10 }, revision: 4 };
    for (const projected of [await fold([]), await fold(createEvents(5), { from })])
      expect(projected).toEqual({ total: undefined, head: undefined, pageSizes: [] });
  });

  it('has a projection version that an upcast and a changed evolve raise', () => {
    expect(sum.projectionVersion).toBe(2);
    expect(defineAggregate({ ...sum, evolveVersion: 3 }).projectionVersion).toBe(4);
  });

  it('upcasts events of a former version', async () => {
    const former = { ...createEvent(1), version: 1, data: { value: 5 } };
    expect(await fold([createEvent(0), former])).toMatchObject({ total: 6 });
  });

  it('fails when a page cannot be opened', async () => {
    const locked = { ...createEvent(PAGE), data: { amount: 1, locked: true } };
    await expect(fold([...createEvents(PAGE), locked])).rejects.toThrow('no key');
  });
});
