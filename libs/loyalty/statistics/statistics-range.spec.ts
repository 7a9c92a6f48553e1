import { describe, expect, it } from '@jest/globals';
import { LocalClock, type Interval } from './local-clock.js';
import { resolveRange, subtractDays } from './statistics-range.js';

const NOW = new Date('2026-03-31T22:30:00Z');
const BERLIN = new LocalClock('Europe/Berlin');

const resolve = (interval: Interval, from: string | null, to: string | null) =>
  resolveRange(
    {
      interval,
      from: from === null ? null : new Date(from),
      to: to === null ? null : new Date(to),
    },
    BERLIN,
    NOW,
  );

describe('the range of statistics', () => {
  it('ends today by the clock of the store, and begins 30 days before', () => {
    const { start, end, starts } = resolve('day', null, null);
    expect([start, end, starts.length]).toEqual(['2026-03-02', '2026-04-02', 31]);
  });

  it('is extended to whole weeks, which begin on Monday', () => {
    // Exclusive, as a date is read: the beginning of the day after.
    const { starts, end } = resolve('week', '2026-03-04T00:00:00Z', '2026-03-16T23:00:00Z');
    expect([starts, end]).toEqual([['2026-03-02', '2026-03-09', '2026-03-16'], '2026-03-23']);
  });

  it('is extended to whole months', () => {
    const { starts, end } = resolve('month', '2025-12-31T12:00:00Z', '2026-02-01T12:00:00Z');
    expect([starts, end]).toEqual([['2025-12-01', '2026-01-01', '2026-02-01'], '2026-03-01']);
  });

  it('has every day once when the clock changes', () => {
    const { starts } = resolve('day', '2026-03-27T23:00:00Z', '2026-03-30T22:00:00Z');
    expect(starts).toEqual(['2026-03-28', '2026-03-29', '2026-03-30']);
  });

  it.each([
    ['day', '2025-01-01T00:00:00Z', '2026-01-02T23:00:00Z', 'at most 366 days'],
    ['week', '2020-01-01T00:00:00Z', '2026-01-01T23:00:00Z', 'at most 262 weeks'],
    ['month', '0001-01-02T00:00:00Z', '9999-12-01T00:00:00Z', 'at most 120 months'],
  ] as const)('of a %s has a limit', (interval, from, to, sentence) => {
    expect(() => resolve(interval, from, to)).toThrow(
      expect.objectContaining({ errors: { from: [expect.stringContaining(sentence)] } }),
    );
  });

  it('does not end before it begins', () => {
    expect(() => resolve('day', '2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z')).toThrow(
      expect.objectContaining({ errors: { to: ['must be after from'] } }),
    );
  });

  it('shows the day before its end', () => {
    expect(subtractDays('2026-03-01', 1)).toBe('2026-02-28');
  });
});
