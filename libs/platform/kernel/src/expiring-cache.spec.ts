import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mock } from 'node:test';
import { ExpiringCache } from './expiring-cache.js';

beforeEach(() => {
  mock.timers.enable({ apis: ['setInterval'] });
});

afterEach(() => {
  mock.timers.reset();
});

function cacheOf(ttl?: number) {
  const now = { at: 1 };
  const cache = new ExpiringCache<string, string>({
    maxSize: 100,
    sizeCalculation: ({ length }) => length,
    ...(ttl !== undefined && { ttl }),
    perf: { now: () => now.at },
    ttlResolution: 0,
  });
  const pass = (ms: number) => {
    now.at += ms;
    mock.timers.tick(ms);
  };
  return { cache, pass };
}

describe('ExpiringCache', () => {
  it('releases expired entries that nobody reads', () => {
    const { cache, pass } = cacheOf(3_000);
    cache.set('a', 'twelve bytes');
    pass(2_500);
    cache.set('b', 'more');
    pass(2_500);
    expect([cache.size, cache.calculatedSize]).toEqual([1, 4]);
    pass(5_000);
    expect([cache.size, cache.calculatedSize]).toEqual([0, 0]);
  });

  it('works again after it was empty', () => {
    const { cache, pass } = cacheOf(1_000);
    cache.set('a', 'x');
    pass(5_000);
    expect(cache.size).toBe(0);
    cache.set('b', 'y');
    expect(cache.size).toBe(1);
    pass(5_000);
    expect(cache.size).toBe(0);
  });

  it('keeps entries without a time, next to those with their own', () => {
    const { cache, pass } = cacheOf();
    cache.set('for good', 'x');
    cache.set('for a while', 'y', { ttl: 1_000 });
    pass(60_000);
    expect([...cache.keys()]).toEqual(['for good']);
  });
});
