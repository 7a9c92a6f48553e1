import { renderZonedTime } from '#platform/kernel/zoned-time.js';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** More than any clock skips at once, but for days that a place left out. */
const MAX_SKIPPED_MINUTES = 120;

/** The times of day between which nothing is sent, as in 21:00. They may span midnight. */
export type QuietHours = { from: string; to: string };

/** Parses a time of day. @returns its minute of the day; undefined for anything else */
export function parseTimeOfDay(text: string): number | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hours === undefined ? undefined : Number(hours) * 60 + Number(minutes);
}

/**
 * Finds the first moment at or after a time that is outside the quiet hours.
 * @param at ms since 1970
 * @param timeZone IANA name
 */
export function findAudibleTime(at: number, quiet: QuietHours | null, timeZone: string): number {
  if (quiet === null) return at;
  const [from = 0, to = 0] = [parseTimeOfDay(quiet.from), parseTimeOfDay(quiet.to)];
  const isQuiet = (minute: number) =>
    from <= to ? minute >= from && minute < to : minute >= from || minute < to;
  const minute = readMinuteOfDay(at, timeZone);
  if (!isQuiet(minute)) return at;
  const start = at - (at % MINUTE_MS);
  let end = start + wrap(to - minute) * MINUTE_MS;
  // The clocks may change in between: then the end is an hour off.
  const shiftMinutes =
    wrap(readMinuteOfDay(end, timeZone) - to + DAY_MINUTES / 2) - DAY_MINUTES / 2;
  end -= shiftMinutes * MINUTE_MS;
  // There is no such time of day in the hour that the clocks skip: then it ends with that hour.
  for (let i = 0; i < MAX_SKIPPED_MINUTES && isQuiet(readMinuteOfDay(end, timeZone)); i++) {
    end += MINUTE_MS;
  }
  return Math.max(at, end);
}

function readMinuteOfDay(at: number, timeZone: string): number {
  const clock = renderZonedTime(new Date(at).toISOString(), timeZone).slice(11, 16);
  return parseTimeOfDay(clock) ?? 0;
}

function wrap(minutes: number): number {
  return (minutes + DAY_MINUTES) % DAY_MINUTES;
}
