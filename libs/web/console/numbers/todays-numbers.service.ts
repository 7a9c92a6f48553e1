import { Injectable } from '@nestjs/common';
import {
  StatisticsService,
  type DayCounts,
  type StatisticsOfToday,
  type StatisticsScope,
} from '#loyalty/statistics/statistics.service.js';
import { capitalize } from '#web/pages/capitalize.js';
import type { NumbersFormat, Tile } from './numbers-page.js';

export const EVERYTHING: StatisticsScope = { cardId: null, locationId: null, userId: null };

/** Compares the numbers of today with those of the same weekday a week ago, up to the last full hour. */
@Injectable()
export class TodaysNumbers {
  constructor(private readonly statistics: StatisticsService) {}

  async get(
    accountId: number,
    scope: StatisticsScope,
    now: Date,
    format: NumbersFormat,
  ): Promise<Tile[]> {
    return buildTodaysTiles(await this.statistics.getToday(accountId, scope, now), format);
  }
}

/** Builds the tiles of a day. An import is no reason to say that customers came. */
export function buildTodaysTiles(
  { day, hour, today, before }: StatisticsOfToday,
  format: NumbersFormat,
): Tile[] {
  const { t, words, locale } = format;
  const weekday = format.weekday(day);
  const compare = (label: string, name: keyof DayCounts): Tile => {
    const [untilHour, count] = [before.untilHour[name], before.all[name]];
    const note =
      hour === 0 || untilHour === count
        ? t.lastWeek({ weekday, count })
        : t.lastWeekUntilHour({ hour: format.hour(hour), weekday, untilHour, count });
    return { label, value: format.count(today[name]), note: capitalize(note, locale) };
  };
  const newCustomers = compare(t.newCustomers, 'new_customers');
  const { imported_customers: imported } = today;
  return [
    compare(t.visits, 'visits'),
    compare(words.stamps, 'stamps'),
    compare(t.redemptions, 'redemptions'),
    imported === 0
      ? newCustomers
      : { ...newCustomers, note: `${t.imported({ count: imported })}. ${newCustomers.note}` },
  ];
}
