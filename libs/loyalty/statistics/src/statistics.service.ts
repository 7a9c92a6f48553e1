import { Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { query } from '#database/connection.js';
import { ReportDatabase } from '#database/report-database.service.js';
import { LocalClock, type Interval } from './local-clock.js';
import { resolveRange, subtractDays } from './statistics-range.js';
import type { StatisticsIntervalJson, StatisticsJson } from './statistics.dto.js';

const TIME_ZONE = {
  name: 'statistics_time_zone',
  text: 'select time_zone from accounts where id = $1',
};

const RANGE = 'account_id = $1 and card_id = $2 and location_id = $3 and day >= $4 and day < $5';

const SERIES = {
  name: 'statistics_series',
  text: `
    select to_char(date_trunc($6, day::timestamp), 'YYYY-MM-DD') as start, sum(stamps)::bigint as stamps,
      sum(redemptions)::bigint as redemptions,
      sum(case when $3 = 0 then joined else first_of_all end)::bigint as new_customers,
      sum(case $6 when 'day' then first_of_day when 'week' then first_of_week else first_of_month end)::bigint as active,
      sum(first_of_all)::bigint as first
    from statistics_hours where ${RANGE} group by 1`,
};

const BY_HOUR = {
  name: 'statistics_by_hour',
  text: `
    select extract(isodow from day)::int as weekday, hour, sum(visits)::bigint as visits
    from statistics_hours where ${RANGE} group by 1, 2`,
};

const renderTotals = (condition: string): string => `
  select coalesce(sum(balance), 0)::bigint as outstanding_stamps,
    coalesce(sum(unlocked_count), 0)::bigint as unlocked_rewards
  from customer_cards where ${condition} and merged_into is null`;

const TOTALS = { name: 'statistics_totals', text: renderTotals('account_id = $1') };
const CARD_TOTALS = {
  name: 'statistics_card_totals',
  text: renderTotals('card_id = $2 and account_id is not distinct from $1'),
};

type StatisticsFilter = {
  from: Date | null;
  to: Date | null;
  interval: Interval;
  cardId: number | null;
  locationId: number | null;
};

type SeriesRow = {
  start: string;
  stamps: number;
  redemptions: number;
  new_customers: number;
  active: number;
  first: number;
};

@Injectable()
export class StatisticsService {
  constructor(private readonly reports: ReportDatabase) {}

  /** @throws InvalidFieldsError when the range is too long */
  get(accountId: number, filter: StatisticsFilter, now: Date): Promise<StatisticsJson> {
    return this.reports.read((pool) => readStatistics(pool, accountId, filter, now));
  }
}

async function readStatistics(
  pool: Pool,
  accountId: number,
  filter: StatisticsFilter,
  now: Date,
): Promise<StatisticsJson> {
  const { cardId, locationId, interval } = filter;
  const [store] = await query<{ time_zone: string }>(pool, {
    ...TIME_ZONE,
    values: [accountId],
  });
  if (!store) throw new NotFoundError('Store');
  const range = resolveRange(filter, new LocalClock(store.time_zone), now);
  const values = [accountId, cardId ?? 0, locationId ?? 0, range.start, range.end];
  const [series, hours, totals] = await Promise.all([
    query<SeriesRow>(pool, { ...SERIES, values: [...values, interval] }),
    query<{ weekday: number; hour: number; visits: number }>(pool, { ...BY_HOUR, values }),
    query<StatisticsJson['totals']>(
      pool,
      cardId === null
        ? { ...TOTALS, values: [accountId] }
        : { ...CARD_TOTALS, values: [accountId, cardId] },
    ),
  ]);
  const rows = new Map(series.map((row) => [row.start, row]));
  const visits = new Map(hours.map((row) => [`${row.weekday} ${row.hour}`, row.visits]));
  const [
    { outstanding_stamps, unlocked_rewards } = { outstanding_stamps: 0, unlocked_rewards: 0 },
  ] = totals;
  return {
    from: range.start,
    to: subtractDays(range.end, 1),
    interval,
    time_zone: store.time_zone,
    series: range.starts.map((start) => toIntervalJson(start, rows.get(start))),
    totals: { outstanding_stamps, unlocked_rewards },
    by_hour: Array.from({ length: 7 }, (_, weekday) =>
      Array.from({ length: 24 }, (__, hour) => visits.get(`${weekday + 1} ${hour}`) ?? 0),
    ),
  };
}

function toIntervalJson(start: string, row: SeriesRow | undefined): StatisticsIntervalJson {
  return {
    start,
    stamps: row?.stamps ?? 0,
    redemptions: row?.redemptions ?? 0,
    new_customers: row?.new_customers ?? 0,
    active_customers: row?.active ?? 0,
    returning_customers: row ? row.active - row.first : 0,
  };
}
