import { describe, expect, it, jest } from '@jest/globals';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { clock } from '#platform/kernel/clock.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  getAddressKey,
  getNetworkKey,
  RateLimits,
  renderLimitHeaders,
  type Usage,
} from './rate-limit.js';
import { LocalCounts } from './throttler-storage.js';

describe('getAddressKey', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['192.0.2.7:1001', '192.0.2.7'],
    ['192.0.2.7:', '192.0.2.7'],
    [' 192.0.2.7:65535 ', '192.0.2.7'],
    ['"192.0.2.7:1001"', '192.0.2.7'],
    ['[::ffff:192.0.2.7]:1001', '192.0.2.7'],
    ['::ffff:192.0.2.7%eth0', '192.0.2.7'],
    ['[2001:db8:1:2::1]:443', '2001:db8:1:2::/64'],
    ['"[2001:db8:1:2::2]:444"', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
    ['[fe80::1%eth0]:443', 'fe80:0:0:0::/64'],
    ['fe80::1%eth1', 'fe80:0:0:0::/64'],
    ['unknown', 'unknown'],
    ['UNKNOWN', 'unknown'],
    ['unknown:1001', 'unknown'],
    ['_hidden', 'unknown'],
    ['_SEVKISEK:1001', 'unknown'],
    ['orders.example:443', 'unknown'],
    ['for=192.0.2.7', 'unknown'],
    ['256.1.1.1', 'unknown'],
    ['192.0.2', 'unknown'],
    ['010.0.0.1', 'unknown'],
    ['0x7f.1', 'unknown'],
    ['12345', 'unknown'],
    ['[192.0.2.7', 'unknown'],
    ['[]:1', 'unknown'],
    ['192.0.2.7:1001:1002', 'unknown'],
    ['-', 'unknown'],
    ['', 'unknown'],
    ['x'.repeat(1000), 'unknown'],
    [`192.0.2.7:${'1'.repeat(3000)}`, '192.0.2.7'],
    [undefined, 'gone'],
  ])('maps %j to %s', (ip, key) => expect(getAddressKey(ip)).toBe(key));
});

describe('getNetworkKey', () => {
  it.each([
    ['192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.255', '192.0.2.0/24'],
    ['192.0.3.7', '192.0.3.0/24'],
    ['::ffff:192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.7:1001', '192.0.2.0/24'],
    ['2001:db8:1:2::1', '2001:db8:1::/48'],
    ['2001:db8:1:ffff:ffff::1', '2001:db8:1::/48'],
    ['2001:db8:2:2::1', '2001:db8:2::/48'],
    ['[2001:db8:1:2::1]:443', '2001:db8:1::/48'],
    ['unknown', 'unknown'],
    [undefined, 'gone'],
  ])('maps %j to %s', (ip, key) => expect(getNetworkKey(ip)).toBe(key));
});

describe('RateLimits', () => {
  it('reports the remaining requests, and when a limit is exceeded', async () => {
    const config = {
      rateLimitPerMinute: 2,
      accountRateLimitPerMinute: 3000,
      pageRateLimitPerMinute: 300,
    } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const count = async (usage: Awaitable<Usage>) => {
      const { isExceeded } = await usage;
      return [renderLimitHeaders(await usage)['ratelimit-remaining'], isExceeded];
    };
    const counts = [];
    for (let i = 0; i < 3; i++) counts.push(await count(limits.countAddress('192.0.2.1')));
    expect(counts).toEqual([
      [1, false],
      [0, false],
      [0, true],
    ]);
    expect(await count(limits.countAddress('192.0.2.2'))).toEqual([1, false]);
    expect(await count(limits.countToken({ tokenId: 1, perMinute: 7 }))).toEqual([6, false]);
  });

  it('limits the tokens of an account together, and each token by itself', async () => {
    const config = {
      rateLimitPerMinute: 3,
      accountRateLimitPerMinute: 4,
      pageRateLimitPerMinute: 300,
    } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const countToken = async (tokenId: number, accountId: number) => {
      const caller = { tokenId, perMinute: null };
      const { window, hits, isExceeded } = await limits.countToken(caller, { accountId });
      return [window.scope, window.limit, window.limit - hits, isExceeded];
    };
    expect(await countToken(1, 7)).toEqual(['token', 3, 2, false]);
    await countToken(1, 7);
    await countToken(1, 7);
    // Requests that the token's own limit refuses take nothing from the account.
    for (let i = 0; i < 9; i++) expect(await countToken(1, 7)).toEqual(['token', 3, 0, true]);
    expect(await countToken(2, 7)).toEqual(['token', 3, 2, false]);
    expect(await countToken(2, 7)).toEqual(['account', 4, 0, true]);
    // Another account has its own limit, even for a token that can access both.
    expect(await countToken(2, 8)).toEqual(['token', 3, 1, false]);
    expect(await countToken(3, 8)).toEqual(['token', 3, 2, false]);
  });

  it('limits the accounts of an owner together to what two of them may have', async () => {
    const config = { rateLimitPerMinute: 99, accountRateLimitPerMinute: 4 } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const count = async (accountId: number, owner: number) => {
      const caller = { tokenId: accountId, perMinute: null };
      const { window, isExceeded } = await limits.countToken(caller, { accountId, owner });
      return [window.scope, window.limit, isExceeded];
    };
    for (const accountId of [1, 2, 3, 4]) {
      await count(accountId, 1);
      await count(accountId, 1);
    }
    expect(await count(5, 1)).toEqual(['owner', 8, true]);
    expect((await limits.countAccount(5, 1)).isExceeded).toBe(true);
    expect(await count(6, 6)).toEqual(['token', 99, false]);
  });

  it('reports what is left of the token or the account, whichever is less, and zero before a request is refused', async () => {
    const count = async (tokenLimit: number, accountLimit: number, works: number[]) => {
      const config = { rateLimitPerMinute: tokenLimit, accountRateLimitPerMinute: accountLimit };
      const limits = new RateLimits(new LocalCounts(), config as PlatformConfig);
      const caller = { tokenId: 1, perMinute: null };
      const remaining: unknown[] = [];
      for (const work of works) {
        const usage = await limits.countToken(caller, { accountId: 7, work });
        remaining.push(usage.isExceeded ? 429 : renderLimitHeaders(usage)['ratelimit-remaining']);
      }
      return remaining;
    };
    expect(await count(3, 9, [1, 1, 1, 1])).toEqual([2, 1, 0, 429]);
    expect(await count(9, 3, [1, 1, 1, 1])).toEqual([2, 1, 0, 429]);
    expect(await count(3, 3, [1, 1, 1, 1])).toEqual([2, 1, 0, 429]);
    expect(await count(20, 9, [1, 6, 1, 1, 1, 1])).toEqual([8, 3, 2, 1, 0, 429]);
    // Another token of the account sees what both have left of it.
    const config = { rateLimitPerMinute: 9, accountRateLimitPerMinute: 3 } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const usages = [];
    for (const tokenId of [1, 2, 3, 4]) {
      const usage = await limits.countToken({ tokenId, perMinute: null }, { accountId: 7 });
      usages.push([
        renderLimitHeaders(usage)['ratelimit-limit'],
        usage.remaining,
        usage.isExceeded,
      ]);
    }
    expect(usages).toEqual([
      [9, 2, false],
      [9, 1, false],
      [9, 0, false],
      [3, 0, true],
    ]);
  });

  it('counts each request of a token for the account of that request, whichever was before', async () => {
    const config = { rateLimitPerMinute: 9, accountRateLimitPerMinute: 2 } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const caller = { tokenId: 1, perMinute: null };
    const count = async (accountId?: number) => {
      const { window, hits, isExceeded } = await limits.countToken(caller, { accountId });
      return [window.scope, window.limit - hits, isExceeded];
    };
    const usage = [];
    for (const accountId of [7, 8, undefined, 7, 8, undefined]) usage.push(await count(accountId));
    expect(usage).toEqual([8, 7, 6, 5, 4, 3].map((remaining) => ['token', remaining, false]));
    expect(await count(7)).toEqual(['account', 0, true]);
    expect(await count(8)).toEqual(['account', 0, true]);
    expect(await count(9)).toEqual(['token', 2, false]);
    expect(await count()).toEqual(['token', 1, false]);
    expect(await count(7)).toEqual(['account', 0, true]);
  });

  it('counts the work of a request beyond that of one in every window, or in none', async () => {
    const config = { rateLimitPerMinute: 20, accountRateLimitPerMinute: 30 } as PlatformConfig;
    const limits = new RateLimits(new LocalCounts(), config);
    const count = async (tokenId: number, work: number, perMinute: number | null = null) => {
      const caller = { tokenId, perMinute };
      await limits.countToken(caller, { accountId: 7 });
      const { window, hits, isExceeded } = await limits.countToken(caller, { accountId: 7, work });
      return [window.scope, window.limit - hits, isExceeded];
    };
    expect(await count(1, 2)).toEqual(['token', 18, false]);
    expect(await count(1, 10)).toEqual(['token', 8, false]);
    expect(await count(1, 10)).toEqual(['token', 7, true]);
    expect(await count(1, 7)).toEqual(['token', 0, false]);
    expect(await count(2, 11)).toEqual(['account', 9, true]);
    expect(await count(2, 9)).toEqual(['token', 10, false]);
    // A limit below the work of one request takes a whole window for it.
    expect(
      await new RateLimits(new LocalCounts(), config).countToken(
        { tokenId: 3, perMinute: 4 },
        { work: 10 },
      ),
    ).toMatchObject({ hits: 3, isExceeded: false });
  });
});

describe('LocalCounts', () => {
  it('counts a route with its own limit separately', async () => {
    const counts = new LocalCounts();
    for (let i = 0; i < 3; i++) await counts.increment('sign-in', 900_000, 2);
    const count = await counts.increment('sign-in', 900_000, 2);
    expect(count).toEqual({
      totalHits: 2,
      timeToExpire: 900,
      isBlocked: true,
      timeToBlockExpire: 900,
    });
    expect(await counts.increment('other', 60_000, 2)).toMatchObject({ timeToExpire: 60 });
  });

  it('restarts a count with each window, and when the clock is set back', async () => {
    const counts = new LocalCounts();
    const hitsAt = async (now: number) => {
      const time = jest.spyOn(clock, 'getMs').mockReturnValue(now);
      try {
        const { hits, secondsLeft } = counts.count([{ key: 'a', ttl: 60_000, limit: 9 }]);
        return [hits, secondsLeft];
      } finally {
        time.mockRestore();
      }
    };
    const noon = Date.parse('2026-01-31T12:00:00Z');
    expect(await hitsAt(noon)).toEqual([1, 60]);
    expect(await hitsAt(noon + 59_999)).toEqual([2, 1]);
    expect(await hitsAt(noon + 60_000)).toEqual([1, 60]);
    expect(await hitsAt(noon + 59_000)).toEqual([1, 60]);
    expect(await hitsAt(noon)).toEqual([1, 60]);
  });

  it('keeps a limited number of callers and drops the one silent for longest', async () => {
    const counts = new LocalCounts(2);
    for (const key of ['a', 'b', 'a', 'c']) await counts.increment(key, 60_000, 9);
    expect((await counts.increment('a', 60_000, 9)).totalHits).toBe(3);
    expect((await counts.increment('b', 60_000, 9)).totalHits).toBe(1);
  });
});
