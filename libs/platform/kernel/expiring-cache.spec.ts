import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mock } from 'node:test';
import { ExpiringCache } from './expiring-cache.js';

beforeEach(() => {
  mock.timers.enable({ apis: ['setInterval'] });
});

afterEach(() => {
  mock.timers.reset();
});

function createCache(ttl?: number) {
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
    const { cache, pass } = createCache(3_000);
    cache.set('a', 'twelve bytes');
    pass(2_500);
    cache.set('b', 'more');
    pass(2_500);
    expect([cache.size, cache.calculatedSize]).toEqual([1, 4]);
    pass(5_000);
    expect([cache.size, cache.calculatedSize]).toEqual([0, 0]);
  });

  it('releases expired entries again after it was empty', () => {
    const { cache, pass } = createCache(1_000);
    cache.set('a', 'x');
    pass(5_000);
    expect(cache.size).toBe(0);
    cache.set('b', 'y');
    expect(cache.size).toBe(1);
    pass(5_000);
    expect(cache.size).toBe(0);
  });

  it('keeps entries without a TTL, and releases those whose own TTL has passed', () => {
    const { cache, pass } = createCache();
    cache.set('for good', 'x');
    cache.set('for a while', 'y', { ttl: 1_000 });
    pass(60_000);
    expect([...cache.keys()]).toEqual(['for good']);
  });
});
