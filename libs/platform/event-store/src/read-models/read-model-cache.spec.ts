import { describe, expect, it } from '@jest/globals';
import { ReadModelCache, type Loaded } from './read-model-cache.js';

const orders = { table: 'orders', flagSql: (id: string) => `is_paid(${id})` };

type Order = { accountId: number; note: string };

function createRow(accountId: number, note = ''): Loaded<Order> {
  return {
    state: { accountId, note },
    head: { revision: 3, hash: 'abc' },
    accountVersion: 5,
    flag: true,
    subjectId: null,
    isErased: false,
  };
}

function createCache(...ids: number[]) {
  const cache = new ReadModelCache<Order>();
  for (const id of ids) cache.set(orders, id, createRow(7), new Map());
  return cache;
}

describe('ReadModelCache', () => {
  it('finds a read model with the precondition of a commit, until it is marked stale', () => {
    const cache = createCache(1);
    expect(cache.find(orders, 1)).toEqual({
      row: createRow(7),
      keys: new Map(),
      precondition: { ...orders, id: 1, accountVersion: 5, flag: true },
    });
    expect(cache.find(orders, 2)).toBeUndefined();
    cache.markStale(orders, 1);
    expect(cache.find(orders, 1)).toBeUndefined();
  });

  it('updates a read model only if it is cached', () => {
    const cache = createCache(1);
    for (const id of [1, 2]) cache.update(orders, id, createRow(7, 'new'));
    expect(cache.find(orders, 1)?.row.state.note).toBe('new');
    expect(cache.find(orders, 2)).toBeUndefined();
  });

  it('drops a read model when a key of its people is missing', () => {
    const cache = createCache(1);
    cache.set(orders, 1, createRow(7), undefined);
    expect(cache.find(orders, 1)).toBeUndefined();
  });

  it('skips an account for 16 lookups after one of its read models was stale', () => {
    const cache = createCache(1, 2);
    cache.markStale(orders, 1);
    for (let i = 0; i < 16; i++) expect(cache.find(orders, 2)).toBeUndefined();
    expect(cache.find(orders, 2)).toBeDefined();
  });

  it('skips an account for 256 lookups at most, however often its read models were stale', () => {
    const cache = createCache(2);
    for (let i = 0; i < 1_000; i++) {
      cache.set(orders, 1, createRow(7), new Map());
      cache.markStale(orders, 1);
    }
    for (let i = 0; i < 256; i++) expect(cache.find(orders, 2)).toBeUndefined();
    expect(cache.find(orders, 2)).toBeDefined();
  });

  it('finds read models of other accounts while it skips one account', () => {
    const cache = createCache(1);
    cache.set(orders, 3, createRow(8), new Map());
    cache.markStale(orders, 1);
    expect(cache.find(orders, 3)?.row).toEqual(createRow(8));
  });

  it('drops the oldest read models when it is full', () => {
    const cache = createCache();
    const large = createRow(7, 'x'.repeat(1024 * 1024));
    for (let i = 0; i < 20; i++) cache.set(orders, i, large, new Map());
    expect(cache.find(orders, 19)?.row).toBe(large);
    expect(cache.find(orders, 0)).toBeUndefined();
  });
});
