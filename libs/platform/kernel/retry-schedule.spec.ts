import { describe, expect, it } from '@jest/globals';
import { getRetryDelayMs, type RetrySchedule } from './retry-schedule.js';

const SCHEDULE: RetrySchedule = {
  delaysMs: [1_000, 2_000, 4_000],
  lastRepeats: false,
  maxRequestedMs: 60_000,
  isSpread: false,
};

describe('getRetryDelayMs', () => {
  it('returns the delay after each attempt, and undefined after the last one', () => {
    const delays = [1, 2, 3, 4].map((attempts) => getRetryDelayMs(SCHEDULE, attempts));
    expect(delays).toEqual([1_000, 2_000, 4_000, undefined]);
  });

  it('repeats the last delay of a schedule without end', () => {
    expect(getRetryDelayMs({ ...SCHEDULE, lastRepeats: true }, 1_000_000)).toBe(4_000);
  });

  it('waits at least as long as requested, up to the limit', () => {
    expect(getRetryDelayMs(SCHEDULE, 1, { requestedMs: 30_000 })).toBe(30_000);
    expect(getRetryDelayMs(SCHEDULE, 3, { requestedMs: 3_000 })).toBe(4_000);
    expect(getRetryDelayMs(SCHEDULE, 1, { requestedMs: 1e15 })).toBe(60_000);
  });

  it('spreads retries over the second half of the delay', () => {
    const spread = { ...SCHEDULE, isSpread: true };
    const delays = [0, 0.5, 1].map((fraction) => getRetryDelayMs(spread, 3, { fraction }));
    expect(delays).toEqual([2_000, 3_000, 4_000]);
  });

  it('returns undefined when the next attempt would come after the work is given up', () => {
    expect(getRetryDelayMs(SCHEDULE, 2, { remainingMs: 2_000 })).toBe(2_000);
    expect(getRetryDelayMs(SCHEDULE, 2, { remainingMs: 1_999 })).toBeUndefined();
  });
});
