import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { findNextStart, findStart, type Interval, type LocalClock } from './local-clock.js';
import { ISSUES } from '#translations/issues.js';

const DAY_MS = 24 * 60 * 60_000;
const DEFAULT_DAYS: Record<Interval, number> = { day: 30, week: 12 * 7, month: 365 };
const MAX_INTERVALS: Record<Interval, number> = { day: 366, week: 262, month: 120 };

/** Whole intervals. @property end the first day that is not in the range */
export type StatisticsRange = { start: string; end: string; starts: string[] };

type RangeInput = { from: Date | null; to: Date | null; interval: Interval };

/**
 * Resolves the range of a request to whole intervals of the store's days.
 * @throws InvalidFieldsError when it ends before it begins, or has too many intervals
 */
export function resolveRange(
  { from, to, interval }: RangeInput,
  clock: LocalClock,
  now: Date,
): StatisticsRange {
  // The end is exclusive: a date means the beginning of the next day.
  const lastAt = to === null ? now.getTime() : to.getTime() - 1;
  if (from && lastAt < from.getTime())
    throw new InvalidFieldsError({ to: [ISSUES.end_before_start] });
  const lastDay = clock.read(lastAt).day;
  const firstDay = from
    ? clock.read(from.getTime()).day
    : subtractDays(lastDay, DEFAULT_DAYS[interval]);
  const start = findStart(firstDay, interval);
  const last = findStart(lastDay, interval);
  const starts: string[] = [];
  const max = MAX_INTERVALS[interval];
  let day = start;
  for (; day <= last; day = findNextStart(day, interval)) {
    if (starts.length === max) {
      throw new InvalidFieldsError({
        from: [ISSUES.range_too_long({ max, interval })],
      });
    }
    starts.push(day);
  }
  return { start, end: day, starts };
}

/** @param day YYYY-MM-DD */
export function subtractDays(day: string, count: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) - count * DAY_MS).toISOString().slice(0, 10);
}
