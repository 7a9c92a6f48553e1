import { Injectable } from '@nestjs/common';
import { readLocalClock } from '#platform/kernel/zoned-time.js';
import {
  StatisticsService,
  type StatisticsFilter,
} from '#loyalty/statistics/statistics.service.js';
import { capitalize } from '#web/pages/capitalize.js';
import { sumHours, type NumbersFormat, type Tile } from './numbers-page.js';

const WEEK_MS = 7 * 24 * 60 * 60_000;

type Scope = Pick<StatisticsFilter, 'cardId' | 'locationId' | 'userId'>;

/** @property totals what there is now, of the whole store or of a card */
export type Today = {
  tiles: Tile[];
  totals: { outstanding_stamps: number; unlocked_rewards: number };
  timeZone: string;
};

export const EVERYTHING: Scope = { cardId: null, locationId: null, userId: null };

/** Compares the numbers of today with those of the same weekday a week ago. */
@Injectable()
export class TodaysNumbers {
  constructor(private readonly statistics: StatisticsService) {}

  async get(accountId: number, scope: Scope, now: Date, format: NumbersFormat): Promise<Today> {
    const weekAgo = new Date(now.getTime() - WEEK_MS);
    // The end is exclusive.
    const afterwards = new Date(weekAgo.getTime() + 1);
    const filter = { ...scope, interval: 'day' as const, breakdown: null };
    const [week, dayBefore] = await Promise.all([
      this.statistics.get(accountId, { ...filter, from: weekAgo, to: null }, now),
      this.statistics.getOfRange(accountId, { ...filter, from: weekAgo, to: afterwards }, now),
    ]);
    const [before, today] = [week.series.at(0), week.series.at(-1)];
    if (!before || !today) throw new Error('a week has days');
    const { time_zone: timeZone, totals } = week;
    const { hour } = readLocalClock(timeZone, now.getTime());
    const weekday = (new Date(`${today.start}T00:00:00Z`).getUTCDay() + 6) % 7;
    // Both days have the same weekday, so the hours of today are what the day a week ago leaves of them.
    const hoursBefore = dayBefore.by_hour[weekday] ?? [];
    const hoursOfBoth = week.by_hour[weekday] ?? [];
    const { t } = format;
    const name = format.weekday(today.start);
    const visits = sumHours(hoursOfBoth) - sumHours(hoursBefore);
    const compare = (label: string, value: number, former: number): Tile => ({
      label,
      value: format.count(value),
      note: capitalize(t.lastWeek({ weekday: name, count: former }), format.locale),
    });
    const compareByNow = (byNow: number, all: number) =>
      capitalize(
        byNow === all
          ? t.lastWeek({ weekday: name, count: all })
          : t.lastWeekByNow({ weekday: name, byNow, count: all }),
        format.locale,
      );
    return {
      timeZone,
      totals,
      tiles: [
        {
          label: t.visits,
          value: format.count(visits),
          note: compareByNow(sumHours(hoursBefore, hour), sumHours(hoursBefore)),
        },
        compare(format.words.stamps, today.stamps, before.stamps),
        compare(t.redemptions, today.redemptions, before.redemptions),
        compare(t.newCustomers, today.new_customers, before.new_customers),
      ],
    };
  }
}
