import { readLocalClock } from '#platform/kernel/zoned-time.js';

/** No time zone changes its clock within one. */
const QUARTER_MS = 15 * 60_000;
const MAX_CACHED = 100_000;
const DAY_MS = 24 * 60 * 60_000;

/** A time on the clock of a store: the day, the days on which its week and month begin, and the hour. */
export type LocalTime = { day: string; week: string; month: string; hour: number };

/** Reads times in one time zone. */
export class LocalClock {
  private readonly cache = new Map<number, LocalTime>();

  constructor(readonly timeZone: string) {}

  /** @param at ms since 1970 */
  read(at: number): LocalTime {
    const quarter = Math.floor(at / QUARTER_MS);
    const cached = this.cache.get(quarter);
    if (cached) return cached;
    if (this.cache.size >= MAX_CACHED) this.cache.clear();
    const { day, hour } = readLocalClock(this.timeZone, quarter * QUARTER_MS);
    const time = { day, hour, week: findStart(day, 'week'), month: findStart(day, 'month') };
    this.cache.set(quarter, time);
    return time;
  }
}

export const INTERVALS = ['day', 'week', 'month'] as const;

export type Interval = (typeof INTERVALS)[number];

/** Finds the first day of an interval; weeks begin on Monday. @param day YYYY-MM-DD */
export function findStart(day: string, interval: Interval): string {
  if (interval === 'day') return day;
  if (interval === 'month') return `${day.slice(0, 8)}01`;
  const midnight = Date.parse(`${day}T00:00:00Z`);
  const sinceMonday = (new Date(midnight).getUTCDay() + 6) % 7;
  return toDay(midnight - sinceMonday * DAY_MS);
}

/** Finds the first day of the next interval. @param start of an interval */
export function findNextStart(start: string, interval: Interval): string {
  const date = new Date(`${start}T00:00:00Z`);
  if (interval === 'month') date.setUTCMonth(date.getUTCMonth() + 1);
  else date.setUTCDate(date.getUTCDate() + (interval === 'week' ? 7 : 1));
  return toDay(date.getTime());
}

function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
