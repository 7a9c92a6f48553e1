import { LRUCache } from 'lru-cache';

/** More than the number of time zone names, in their usual spelling. */
const MAX_FORMATS = 1_000;
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: MAX_FORMATS });

/**
 * Returns the calendar day at a time in a time zone, as YYYY-MM-DD.
 * @param timeZone IANA name
 * @param at ms since 1970
 */
export function getLocalDay(timeZone: string, at: number): string {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' });
    formats.set(timeZone, format);
  }
  return format.format(at);
}
