import { describe, expect, it } from '@jest/globals';
import { ReadModelCache } from './read-model-cache.js';

const createEntry = (accountId: number) => ({
  row: { state: { accountId, note: '' }, head: { revision: 3, hash: 'ab' } },
});

function createCache(...streams: string[]) {
  const cache = new ReadModelCache<ReturnType<typeof createEntry>>();
  for (const stream of streams) cache.set(stream, createEntry(7));
  return cache;
}

describe('ReadModelCache', () => {
  it('finds a read model until it is marked stale', () => {
    const cache = createCache('order-1');
    expect(cache.find('order-1')).toEqual(createEntry(7));
    expect(cache.find('order-2')).toBeUndefined();
    cache.markStale('order-1');
    expect(cache.find('order-1')).toBeUndefined();
  });

  it('skips an account for 16 lookups after one of its read models was stale', () => {
    const cache = createCache('order-1', 'order-2');
    cache.markStale('order-1');
    for (let i = 0; i < 16; i++) expect(cache.find('order-2')).toBeUndefined();
    expect(cache.find('order-2')).toEqual(createEntry(7));
  });

  it('skips an account for 256 lookups at most, however often its read models were stale', () => {
    const cache = createCache('order-2');
    for (let i = 0; i < 1_000; i++) {
      cache.set('order-1', createEntry(7));
      cache.markStale('order-1');
    }
    for (let i = 0; i < 256; i++) expect(cache.find('order-2')).toBeUndefined();
    expect(cache.find('order-2')).toEqual(createEntry(7));
  });

  it('finds read models of other accounts while it skips one account', () => {
    const cache = createCache('order-1');
    cache.set('order-3', createEntry(8));
    cache.markStale('order-1');
    expect(cache.find('order-3')).toEqual(createEntry(8));
  });

  it('drops the oldest read models when it is full', () => {
    const cache = createCache();
    for (let i = 0; i <= 5_000; i++) cache.set(`order-${i}`, createEntry(7));
    expect(cache.find('order-1')).toEqual(createEntry(7));
    expect(cache.find('order-5000')).toEqual(createEntry(7));
    expect(cache.find('order-0')).toBeUndefined();
  });

  it('takes over the state after a commit, and never an older one', () => {
    const cache = createCache('order-1');
    const update = (revision: number, note: string) =>
      cache.update('order-1', { accountId: 7, note }, { revision, hash: note });
    update(5, 'second');
    update(4, 'first');
    const row = { state: { accountId: 7, note: 'second' }, head: { revision: 5, hash: 'second' } };
    expect(cache.find('order-1')).toEqual({ row });
    cache.update('order-2', row.state, row.head);
    expect(cache.find('order-2')).toBeUndefined();
  });
});
