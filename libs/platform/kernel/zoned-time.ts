import { LRUCache } from 'lru-cache';

/** More than there are names of time zones, in their usual spelling. */
const MAX_FORMATS = 1_000;
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * The moments that are written with a year of four digits, 1 to 9999, in every zone. In the year 1 none is further
 * behind UTC than Manila (-15:56:08, rounded to -15:57 by `renderZonedTime`), in 9999 none further ahead than Kiritimati.
 */
export const EARLIEST_TIME = Date.parse('0001-01-01T15:57:00Z');
export const LATEST_TIME = Date.parse('9999-12-31T09:59:59.999Z');

/** The time of day that a date without a time means. */
export type MomentOfDay = 'start' | 'end' | 'next';

const getDayFormat = cacheFormats('en-CA', { dateStyle: 'short' });
const getClockFormat = cacheFormats('en-US-u-ca-gregory-nu-latn', {
  hourCycle: 'h23',
  era: 'narrow',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
});

/** Returns the calendar day at a time in a time zone, as YYYY-MM-DD. Takes a seventh of `readLocalClock`. */
export function getLocalDay(timeZone: string, at: number): string {
  return getDayFormat(timeZone).format(at);
}

/**
 * Renders a time as ISO 8601 with the offset that the time zone has then, so that the day that is shown is the one that
 * was meant. An offset has no seconds (RFC 3339, section 5.6), while local mean times did: it is rounded down, so that
 * the last moment of a day stays in it.
 * @param time ISO 8601
 * @param timeZone IANA name
 */
export function renderZonedTime(time: string, timeZone: string): string {
  const at = Date.parse(time);
  const offset = Math.floor(getOffsetMs(timeZone, at) / MINUTE_MS);
  const clock = new Date(at + offset * MINUTE_MS).toISOString();
  const minutes = Math.abs(offset);
  const sign = offset < 0 ? '-' : '+';
  return clock.replace(
    /\.\d{3}Z$/,
    `${sign}${padTwoDigits(Math.floor(minutes / 60))}:${padTwoDigits(minutes % 60)}`,
  );
}

/** Tells whether a text is a day of the calendar, as YYYY-MM-DD. JavaScript would turn 31 February into March. */
export function isCalendarDay(text: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Reads the clock of a time zone.
 * @param at ms since 1970
 */
export function readLocalClock(timeZone: string, at: number): { day: string; hour: number } {
  const clock = new Date(getClockMs(timeZone, at)).toISOString();
  return { day: clock.slice(0, 10), hour: Number(clock.slice(11, 13)) };
}

/**
 * Finds the moment at which the clock of a time zone shows a time. One that comes twice is the first. One that the clocks
 * skip is read with the offset before, so it is later on the clock (RFC 5545, section 3.3.5).
 * @param clock what the clock shows, read as UTC, in ms since 1970
 */
export function findLocalTime(clock: number, timeZone: string): number {
  const [before, after] = listOffsets(timeZone, clock);
  const matches = [clock - before, clock - after].filter(
    (at) => getClockMs(timeZone, at) === clock,
  );
  return matches.length > 0 ? Math.min(...matches) : clock - before;
}

/**
 * Finds the moment that a date means in a time zone: the first of its day, the last millisecond of it, or the first of
 * the day after. A day that the zone skipped begins and ends where the next one begins.
 * @param day YYYY-MM-DD, which exists in the calendar
 */
export function findMomentOfDay(day: string, moment: MomentOfDay, timeZone: string): number {
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (moment === 'start') return findDayBoundary(timeZone, midnight).first;
  const next = findDayBoundary(timeZone, midnight + DAY_MS);
  return moment === 'next' ? next.first : next.last - 1;
}

/**
 * Finds when a day begins. Midnight may be skipped (São Paulo 2018-11-04), and so may the day (Apia 2011-12-30): then it
 * begins with the jump. It may also come twice, with a minute of the day between (St. John's until 2011).
 * @param midnight what the clock would show, read as UTC
 */
function findDayBoundary(timeZone: string, midnight: number): { first: number; last: number } {
  const offsets = listOffsets(timeZone, midnight);
  const begins = offsets
    .map((offset) => midnight - offset)
    .filter(
      (at) => getClockMs(timeZone, at) === midnight && getClockMs(timeZone, at - 1) < midnight,
    );
  if (begins.length > 0) return { first: Math.min(...begins), last: Math.max(...begins) };
  let [before, after] = [midnight - Math.max(...offsets), midnight - Math.min(...offsets)];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (getClockMs(timeZone, middle) < midnight) before = middle;
    else after = middle;
  }
  return { first: after, last: after };
}

/** Lists the offsets that a time of the clock may have: that before a change of the clocks nearby, and that after it. */
function listOffsets(timeZone: string, clock: number): [before: number, after: number] {
  return [getOffsetMs(timeZone, clock - DAY_MS), getOffsetMs(timeZone, clock + DAY_MS)];
}

/** Returns the local time, read as UTC. */
function getClockMs(timeZone: string, at: number): number {
  return at + getOffsetMs(timeZone, at);
}

/**
 * Returns how far local time is ahead of UTC. Computed from the parts, because a named offset leaves out its seconds.
 */
function getOffsetMs(timeZone: string, at: number): number {
  const parts = new Map(
    getClockFormat(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const number = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name));
  const year = parts.get('era') === 'B' ? 1 - number('year') : number('year');
  const clock = new Date(0);
  clock.setUTCFullYear(year, number('month') - 1, number('day'));
  clock.setUTCHours(number('hour'), number('minute'), number('second'));
  return clock.getTime() - Math.floor(at / SECOND_MS) * SECOND_MS;
}

function cacheFormats(locale: string, options: Intl.DateTimeFormatOptions) {
  const formats = new LRUCache<string, Intl.DateTimeFormat>({
    max: MAX_FORMATS,
    memoMethod: (timeZone) => new Intl.DateTimeFormat(locale, { ...options, timeZone }),
  });
  return (timeZone: string) => formats.memo(timeZone);
}

function padTwoDigits(count: number): string {
  return String(count).padStart(2, '0');
}
