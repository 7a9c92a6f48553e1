import { describe, expect, it } from '@jest/globals';
import { addressKey, LocalCounts, RateLimit } from './rate-limit.js';

describe('addresses that are counted together', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['unknown', 'unknown'],
    ['x'.repeat(1000), 'x'.repeat(64)],
  ])('%s', (ip, key) => expect(addressKey(ip)).toBe(key));
});

describe('counting in this process', () => {
  it('says what is left, and when it is too much', async () => {
    const limits = new RateLimit(new LocalCounts());
    const usage = [];
    for (let i = 0; i < 3; i++) usage.push(await limits.count('a', 2));
    expect(usage.map(({ remaining, exceeded }) => [remaining, exceeded])).toEqual([
      [1, false],
      [0, false],
      [0, true],
    ]);
    expect((await limits.count('b', 2)).remaining).toBe(1);
  });

  it('knows no more callers than it may, and forgets the one silent for longest', async () => {
    const counts = new LocalCounts(2);
    for (const key of ['a', 'b', 'a', 'c']) await counts.add(key);
    expect((await counts.add('a')).consumedPoints).toBe(3);
    expect((await counts.add('b')).consumedPoints).toBe(1);
  });
});
