import { Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { ReportDatabase } from '#platform/database/report-database.service.js';
import { UNLOCKED_STAMPS } from '#loyalty/stamping/unlocked-rewards.js';
import { LocalClock, type Interval } from './local-clock.js';
import { resolveRange, subtractDays, type StatisticsRange } from './statistics-range.js';
import type {
  Breakdown,
  StatisticsGroupJson,
  StatisticsIntervalJson,
  StatisticsJson,
} from './statistics.dto.js';

const TIME_ZONE = {
  name: 'statistics_time_zone',
  text: 'select time_zone from accounts where id = $1',
};

/** Tells which filters are not set. With a literal alone PostgreSQL infers `integer`, which an id may exceed. */
const IS_ANY = {
  card_id: '$2::bigint = 0',
  location_id: '$3::bigint = 0',
  user_id: '$4::bigint = 0',
};
const IS_ANYWHERE = `${IS_ANY.location_id} and ${IS_ANY.user_id}`;

/** Beside the counts that are shown there may be others, of a store that is counted anew. */
const IS_SHOWN =
  'generation = coalesce((select s.generation from statistics_stores s where s.account_id = $1), 0)';
const DAYS = `account_id = $1 and ${IS_SHOWN} and day >= $5 and day < $6`;
const RANGE = `${DAYS} and card_id = $2 and location_id = $3 and user_id = $4`;

const NEW_CUSTOMERS = `case when ${IS_ANYWHERE} then joined else first_of_all end`;
const IMPORTED = `case when ${IS_ANYWHERE} then imported else 0 end`;

const SERIES = {
  name: 'statistics_series',
  text: `
    select to_char(date_trunc($7, day::timestamp), 'YYYY-MM-DD') as start, sum(stamps)::bigint as stamps,
      sum(redemptions)::bigint as redemptions,
      sum(${NEW_CUSTOMERS})::bigint as new_customers,
      sum(case $7 when 'day' then first_of_day when 'week' then first_of_week else first_of_month end)::bigint as active,
      sum(first_of_all)::bigint as first
    from statistics_hours where ${RANGE} group by 1`,
};

const BY_HOUR = {
  name: 'statistics_by_hour',
  text: `
    select extract(isodow from day)::int as weekday, hour, sum(visits)::bigint as visits
    from statistics_hours where ${RANGE} group by 1, 2`,
};

/** What is counted of a day, with its expression over an hour. */
const DAY_COUNTS = {
  visits: 'visits',
  stamps: 'stamps',
  redemptions: 'redemptions',
  new_customers: NEW_CUSTOMERS,
  imported_customers: IMPORTED,
};

/** Sums each of the days `$5` and `$7`, all of it and before the hour `$8`. */
const TWO_DAYS = {
  name: 'statistics_two_days',
  text: `
    select day = $7 as is_latter, x.is_until_hour, ${Object.entries(DAY_COUNTS)
      .map(([name, count]) => `coalesce(sum(${count}), 0)::bigint as ${name}`)
      .join(', ')}
    from statistics_hours
    cross join (values (false), (true)) as x (is_until_hour)
    where ${RANGE} and day in ($5, $7) and (hour < $8 or not x.is_until_hour) group by 1, 2`,
};

const IMPORTED_OF_RANGE = {
  name: 'statistics_imported',
  text: `select coalesce(sum(${IMPORTED}), 0)::bigint as count from statistics_hours where ${RANGE}`,
};

/** The columns that another one can be broken down by, with their parameters. */
const GROUP_COLUMNS = [
  ['card_id', '$2'],
  ['location_id', '$3'],
  ['user_id', '$4'],
] as const;

/** At most. A store has a hundred locations, and may have had more people. */
const MAX_GROUPS = 200;

const renderGroups = (column: keyof typeof IS_ANY): string => {
  const filters = GROUP_COLUMNS.map(([name, parameter]) =>
    name === column
      ? `${name} <> 0 and (${IS_ANY[name]} or ${name} = ${parameter})`
      : `${name} = ${parameter}`,
  );
  const joined = column === 'card_id' ? IS_ANYWHERE : 'false';
  return `
    select ${column} as id, sum(visits)::bigint as visits, sum(stamps)::bigint as stamps,
      sum(redemptions)::bigint as redemptions,
      sum(case when ${joined} then joined else first_of_all end)::bigint as new_customers
    from statistics_hours where ${DAYS} and ${filters.join(' and ')}
    group by 1 order by stamps desc, visits desc, id limit ${MAX_GROUPS}`;
};

const GROUPS: Record<Breakdown, { name: string; text: string }> = {
  card: { name: 'statistics_by_card', text: renderGroups('card_id') },
  location: { name: 'statistics_by_location', text: renderGroups('location_id') },
  user: { name: 'statistics_by_user', text: renderGroups('user_id') },
};

const IS_OF_STORE = 'k.account_id = $1';
const IS_OF_CARD = 'k.card_id = $2 and k.account_id is not distinct from $1';

const renderTotals = (condition: string): string => `
  select coalesce(sum(k.balance), 0)::bigint as outstanding_stamps,
    coalesce(sum(k.unlocked_count), 0)::bigint as unlocked_rewards
  from customer_cards k where ${condition} and k.merged_into is null`;

const TOTALS = { name: 'statistics_totals', text: renderTotals(IS_OF_STORE) };
const CARD_TOTALS = { name: 'statistics_card_totals', text: renderTotals(IS_OF_CARD) };

/**
 * Reads all cards once. What can be redeemed follows from the rewards of each card and balance, of which there are few; a
 * reward that was edited may take less on a card, what it took when it was unlocked. Nobody redeems for the erased.
 */
const renderRedeemable = (condition: string, rewards: string): string => `
  with offers as (
    select w.id, w.card_id, w.stamps_required, w.revision from rewards w join cards c on c.id = w.card_id
    where ${rewards} and w.deleted_at is null and w.active
      and coalesce((c.state ->> 'expiresAt')::timestamptz > now(), true)
  ), balances as (
    select k.card_id, k.balance, count(*) as count, count(*) filter (where e.subject_id is null) as held_count,
      case when k.unlocked_count > 0 and k.card_id = any (array(select w.card_id from offers w where w.revision > 0))
        then jsonb_build_object('unlocked', k.state -> 'unlocked') end as state
    from customer_cards k
    left join es.erasures e on e.subject_id = k.customer_id and e.account_id = $1
    where ${condition} and k.merged_into is null group by k.card_id, k.balance, 5
  )
  select
    (select coalesce(sum(k.balance * k.count), 0)::bigint from balances k) as outstanding_stamps,
    (select coalesce(sum(k.held_count), 0)::bigint from balances k join offers w on w.card_id = k.card_id
      where least(w.stamps_required, ${UNLOCKED_STAMPS}) <= k.balance) as redeemable_rewards`;

const REDEEMABLE = {
  name: 'statistics_redeemable',
  text: renderRedeemable(IS_OF_STORE, 'w.account_id = $1'),
};
const CARD_REDEEMABLE = {
  name: 'statistics_card_redeemable',
  text: renderRedeemable(IS_OF_CARD, 'w.card_id = $2'),
};

export type StatisticsFilter = {
  from: Date | null;
  to: Date | null;
  interval: Interval;
  cardId: number | null;
  locationId: number | null;
  userId: number | null;
  breakdown: Breakdown | null;
};

type SeriesRow = {
  start: string;
  stamps: number;
  redemptions: number;
  new_customers: number;
  active: number;
  first: number;
};

export type StatisticsScope = Pick<StatisticsFilter, 'cardId' | 'locationId' | 'userId'>;

export type DayCounts = Record<keyof typeof DAY_COUNTS, number>;

const NO_COUNTS: DayCounts = {
  visits: 0,
  stamps: 0,
  redemptions: 0,
  new_customers: 0,
  imported_customers: 0,
};

/**
 * What has happened on the day of a store so far, beside the day a week before.
 * @property hour the latest of the day, which has begun
 */
export type StatisticsOfToday = {
  day: string;
  hour: number;
  time_zone: string;
  today: DayCounts;
  before: ComparedDay;
};

/** @property untilHour up to the beginning of the hour */
export type ComparedDay = { untilHour: DayCounts; all: DayCounts };

/** @property redeemable_rewards the rewards that cards have enough stamps for */
type RedeemableTotals = { outstanding_stamps: number; redeemable_rewards: number };

/** The statistics without what there is now, for which all cards of a store are read. */
export type StatisticsOfRange = Omit<StatisticsJson, 'totals'>;

@Injectable()
export class StatisticsService {
  constructor(private readonly reports: ReportDatabase) {}

  /** @throws InvalidFieldsError when the range is too long */
  get(accountId: number, filter: StatisticsFilter, now: Date): Promise<StatisticsJson> {
    return this.reports.read(async (pool) => {
      const [{ by_hour, breakdown, ...others }, totals] = await Promise.all([
        readRange(pool, accountId, filter, now),
        readTotals(pool, accountId, filter.cardId),
      ]);
      return { ...others, totals, by_hour, breakdown };
    });
  }

  /** Compares today with the same weekday a week ago, up to the last full hour: visits are counted by the hour. */
  getToday(accountId: number, scope: StatisticsScope, now: Date): Promise<StatisticsOfToday> {
    return this.reports.read(async (pool) => {
      const timeZone = await getTimeZone(pool, accountId);
      const { day, hour } = new LocalClock(timeZone).read(now.getTime());
      const range = { start: subtractDays(day, 7), end: subtractDays(day, -1), starts: [] };
      const rows = await query<DayCounts & { is_latter: boolean; is_until_hour: boolean }>(pool, {
        ...TWO_DAYS,
        values: [...createParameters(accountId, scope, range), day, hour],
      });
      const find = (isLatter: boolean, isUntilHour: boolean): DayCounts =>
        rows.find((row) => row.is_latter === isLatter && row.is_until_hour === isUntilHour) ??
        NO_COUNTS;
      return {
        day,
        hour,
        time_zone: timeZone,
        today: find(true, false),
        before: { untilHour: find(false, true), all: find(false, false) },
      };
    });
  }

  /** Sums what the cards of a store, or of one template, hold now. Only the console asks: it reads rewards too. */
  getRedeemable(accountId: number, cardId: number | null): Promise<RedeemableTotals> {
    return this.reports.read(async (pool) => {
      const statement = cardId === null ? REDEEMABLE : CARD_REDEEMABLE;
      const values = cardId === null ? [accountId] : [accountId, cardId];
      const [totals] = await query<RedeemableTotals>(pool, { ...statement, values });
      return totals ?? { outstanding_stamps: 0, redeemable_rewards: 0 };
    });
  }

  /** Counts those whom imports added, who are not among the new customers. @throws InvalidFieldsError when the range is too long */
  async countImported(accountId: number, filter: StatisticsFilter, now: Date): Promise<number> {
    return this.reports.read(async (pool) => {
      const range = resolveRange(filter, new LocalClock(await getTimeZone(pool, accountId)), now);
      const [row] = await query<{ count: number }>(pool, {
        ...IMPORTED_OF_RANGE,
        values: createParameters(accountId, filter, range),
      });
      return row?.count ?? 0;
    });
  }

  /** Gets the same without the totals. @throws InvalidFieldsError when the range is too long */
  getOfRange(accountId: number, filter: StatisticsFilter, now: Date): Promise<StatisticsOfRange> {
    return this.reports.read((pool) => readRange(pool, accountId, filter, now));
  }

  /** Gets a breakdown alone. @throws InvalidFieldsError when the range is too long */
  async getBreakdown(
    accountId: number,
    filter: StatisticsFilter & { breakdown: Breakdown },
    now: Date,
  ): Promise<StatisticsGroupJson[]> {
    return this.reports.read(async (pool) => {
      const range = resolveRange(filter, new LocalClock(await getTimeZone(pool, accountId)), now);
      return readGroups(pool, filter.breakdown, createParameters(accountId, filter, range));
    });
  }
}

async function readTotals(
  pool: Pool,
  accountId: number,
  cardId: number | null,
): Promise<StatisticsJson['totals']> {
  const [totals] = await query<StatisticsJson['totals']>(
    pool,
    cardId === null
      ? { ...TOTALS, values: [accountId] }
      : { ...CARD_TOTALS, values: [accountId, cardId] },
  );
  const { outstanding_stamps = 0, unlocked_rewards = 0 } = totals ?? {};
  return { outstanding_stamps, unlocked_rewards };
}

async function readRange(
  pool: Pool,
  accountId: number,
  filter: StatisticsFilter,
  now: Date,
): Promise<StatisticsOfRange> {
  const { interval, breakdown } = filter;
  const timeZone = await getTimeZone(pool, accountId);
  const range = resolveRange(filter, new LocalClock(timeZone), now);
  const values = createParameters(accountId, filter, range);
  const [series, hours, groups] = await Promise.all([
    query<SeriesRow>(pool, { ...SERIES, values: [...values, interval] }),
    query<{ weekday: number; hour: number; visits: number }>(pool, { ...BY_HOUR, values }),
    breakdown === null ? null : readGroups(pool, breakdown, values),
  ]);
  const rows = new Map(series.map((row) => [row.start, row]));
  const visits = new Map(hours.map((row) => [`${row.weekday} ${row.hour}`, row.visits]));
  return {
    from: range.start,
    to: subtractDays(range.end, 1),
    interval,
    time_zone: timeZone,
    series: range.starts.map((start) => toIntervalJson(start, rows.get(start))),
    by_hour: Array.from({ length: 7 }, (_, weekday) =>
      Array.from({ length: 24 }, (__, hour) => visits.get(`${weekday + 1} ${hour}`) ?? 0),
    ),
    breakdown: groups,
  };
}

/** @throws NotFoundError */
async function getTimeZone(pool: Pool, accountId: number): Promise<string> {
  const [store] = await query<{ time_zone: string }>(pool, { ...TIME_ZONE, values: [accountId] });
  if (!store) throw new NotFoundError('Store');
  return store.time_zone;
}

/** Creates the parameters that all statements share. */
function createParameters(
  accountId: number,
  { cardId, locationId, userId }: StatisticsScope,
  { start, end }: StatisticsRange,
): unknown[] {
  return [accountId, cardId ?? 0, locationId ?? 0, userId ?? 0, start, end];
}

async function readGroups(
  pool: Pool,
  breakdown: Breakdown,
  values: unknown[],
): Promise<StatisticsGroupJson[]> {
  const rows = await query<StatisticsGroupJson>(pool, { ...GROUPS[breakdown], values });
  return rows.map(toGroupJson);
}

function toGroupJson({
  id,
  visits,
  stamps,
  redemptions,
  new_customers,
}: StatisticsGroupJson): StatisticsGroupJson {
  return { id, visits, stamps, redemptions, new_customers };
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
