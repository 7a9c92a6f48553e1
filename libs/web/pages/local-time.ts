import { findLocalTime, isCalendarDay, renderZonedTime } from '#platform/kernel/zoned-time.js';
import { toDateLocale } from '#translations/translations.js';

const LOCAL_TIME = /^(\d{4}-\d{2}-\d{2})T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$/;

/** Formats times for people. */
export type TimeFormats = { day: (time: Date) => string; minute: (time: Date) => string };

/**
 * Creates time formats.
 * @param locale BCP 47 tag
 * @param timeZone IANA name
 */
export function createTimeFormats(locale: string, timeZone: string): TimeFormats {
  const tag = toDateLocale(locale);
  const day = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone });
  const minute = new Intl.DateTimeFormat(tag, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone,
  });
  return { day: (time) => day.format(time), minute: (time) => minute.format(time) };
}

/** Tells whether a text is a day of the calendar that PostgreSQL knows too: it has no year 0. */
export function isDay(text: string): boolean {
  return isCalendarDay(text) && !text.startsWith('0000');
}

/**
 * Parses the value of an input of the type `datetime-local`.
 * @returns undefined if it is none
 */
export function parseLocalTime(text: string, timeZone: string): Date | undefined {
  const [, day = ''] = LOCAL_TIME.exec(text) ?? [];
  return isDay(day) ? new Date(findLocalTime(Date.parse(`${text}Z`), timeZone)) : undefined;
}

/** Renders a time as the value of an input of the type `datetime-local`. */
export function renderLocalTime(time: Date, timeZone: string): string {
  return renderZonedTime(time.toISOString(), timeZone).slice(0, 16);
}

/** Renders the day of a time as the value of an input of the type `date`. @param time ISO 8601 */
export function renderLocalDay(time: string, timeZone: string): string {
  return renderLocalTime(new Date(time), timeZone).slice(0, 10);
}
