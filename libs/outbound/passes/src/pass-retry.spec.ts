import { expect, it } from '@jest/globals';
import { getRetryDelayMs } from './pass-retry.js';

it('getRetryDelayMs doubles the delay with each attempt, up to ten minutes', () => {
  const latest = [1, 2, 3, 10, 11, 1_000_000].map((attempts) => getRetryDelayMs(attempts, 1));
  expect(latest).toEqual([1_000, 2_000, 4_000, 512_000, 600_000, 600_000]);
});

it('getRetryDelayMs spreads retries over the second half of the delay', () => {
  expect([0, 0.5, 1].map((fraction) => getRetryDelayMs(3, fraction))).toEqual([
    2_000, 3_000, 4_000,
  ]);
});

it('getRetryDelayMs waits at least as long as requested, but at most an hour', () => {
  expect(getRetryDelayMs(1, 0, 90_000)).toBe(90_000);
  expect(getRetryDelayMs(11, 1, 90_000)).toBe(600_000);
  expect(getRetryDelayMs(1, 0, 1e15)).toBe(3_600_000);
});
