import { getLocalDay } from '#platform/kernel/zoned-time.js';
import { toDateLocale } from '#translations/translations.js';
import { capitalize } from '#web/pages/capitalize.js';

const DAY_MS = 24 * 3_600_000;

/**
 * Formats when something was done, as briefly as staff would say it: the time of today, yesterday, or the day.
 * @param locale of the reader, a BCP 47 tag
 * @param timeZone of the store, an IANA name
 */
export function formatWhen(
  at: Date,
  now: Date,
  { locale, timeZone }: { locale: string; timeZone: string },
): string {
  const tag = toDateLocale(locale);
  const time = new Intl.DateTimeFormat(tag, { timeStyle: 'short', timeZone }).format(at);
  const day = getLocalDay(timeZone, at.getTime());
  const today = getLocalDay(timeZone, now.getTime());
  if (day === today) return time;
  const yesterday = new Date(Date.parse(today) - DAY_MS).toISOString().slice(0, 10);
  if (day === yesterday) {
    const relative = new Intl.RelativeTimeFormat(tag, { numeric: 'auto' }).format(-1, 'day');
    return `${capitalize(relative, locale)}, ${time}`;
  }
  const year = day.slice(0, 4) === today.slice(0, 4) ? undefined : 'numeric';
  return new Intl.DateTimeFormat(tag, {
    day: 'numeric',
    month: 'short',
    year,
    hour: 'numeric',
    minute: '2-digit',
    timeZone,
  }).format(at);
}

/** Formats how long ago something was done: in seconds within the last minute, and otherwise in minutes. */
export function formatAgo(secondsAgo: number, locale: string): string {
  const format = new Intl.RelativeTimeFormat(locale);
  const seconds = Math.max(1, Math.round(secondsAgo));
  return seconds < 60
    ? format.format(-seconds, 'second')
    : format.format(-Math.round(seconds / 60), 'minute');
}
