import { findMomentOfDay, getLocalDay } from '#platform/kernel/zoned-time.js';

const DAY_MS = 24 * 60 * 60_000;

/** A day on which birthdays are celebrated. @property birthday with the year of the celebration */
export type Celebration = { birthday: string; at: Date };

/**
 * Lists the birthdays of the days that begin after a time, up to another. Those of 29 February are celebrated on the
 * 28th in other years.
 */
export function listCelebrations(from: Date, to: Date, timeZone: string): Celebration[] {
  const celebrations: Celebration[] = [];
  for (let day = getLocalDay(timeZone, from.getTime()); ; day = getNextDay(day)) {
    const at = new Date(findMomentOfDay(day, 'start', timeZone));
    if (at > to) return celebrations;
    if (at > from) {
      celebrations.push(...listBirthdaysOn(day).map((birthday) => ({ birthday, at })));
    }
  }
}

function listBirthdaysOn(day: string): string[] {
  const [year = ''] = day.split('-');
  const isLeapDay = getNextDay(`${year}-02-28`) === `${year}-02-29`;
  return day === `${year}-02-28` && !isLeapDay ? [day, `${year}-02-29`] : [day];
}

function getNextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}
