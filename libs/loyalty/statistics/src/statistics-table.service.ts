import { Injectable, Optional } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { inTransaction } from '#database/connection.js';
import { OvertakenError } from '#event-store/port/checkpoint.js';
import { LocalClock } from './local-clock.js';
import { CustomerVisits, findUserId, IS_VISIT } from './customer-visits.service.js';
import { addJoined, COUNTS, HourCounts, VisitCounter, type ChangedVisit } from './visits.js';

/** Limits the entries and the customers that are read at a time. */
const BATCH_SIZE = 2_000;
const CUSTOMERS_BATCH_SIZE = 200;

const IS_JOINED = `h.name in ('customer.created', 'customer_card.created')`;

const PROGRESS = {
  name: 'statistics_progress',
  text: 'select coalesce((select seq from statistics_progress), -1) as seq',
};

/**
 * Reads the next entries with the visit that each adds or undoes, if it does. By `limit 1` each is looked up alone: a
 * plan for any number of entries would read the whole table.
 */
export const STATISTICS_ENTRIES = {
  name: 'statistics_entries',
  text: `
    select e.seq, e.account_id, e.name, e.card_id, e.occurred_at, e.is_joined,
      v.seq as visit_seq, v.customer_id, v.card_id as visit_card_id, v.location_id, v.actor,
      v.occurred_at as visited_at
    from (
      select h.*, ${IS_JOINED} as is_joined from history h where h.seq > $1 order by h.seq limit ${BATCH_SIZE}
    ) e
    left join lateral (
      select * from history h
      where h.seq = coalesce((select r.seq from history r where r.event_id = e.reverses), e.seq)
        and h.customer_id is not null and ${IS_VISIT}
      limit 1
    ) v on true
    order by e.seq`,
};

const JOINED = {
  name: 'statistics_joined',
  text: `
    select h.name, h.card_id, h.occurred_at from history h
    where h.account_id = $1 and ${IS_JOINED} and h.seq <= $2`,
};

/**
 * The stores of a batch, with the time zone that they are counted by and the one that they have now. Where the row of a
 * store is behind the log, it comes later, and the store is then counted anew.
 */
const STORES = {
  name: 'statistics_stores',
  text: `
    select x.id, coalesce(a.time_zone, 'UTC') as time_zone, s.time_zone as counted_time_zone,
      coalesce(s.seq, -1) as seq
    from unnest($1::bigint[]) as x (id)
    left join accounts a on a.id = x.id
    left join statistics_stores s on s.account_id = x.id`,
};

const HOUR_COLUMNS = ['account_id', 'card_id', 'location_id', 'user_id', 'day', 'hour', ...COUNTS];
const HOUR_TYPES = [
  'bigint',
  'bigint',
  'bigint',
  'bigint',
  'date',
  'smallint',
  ...COUNTS.map(() => 'bigint'),
];

const renderHours = (first: number): string =>
  `select x.* from unnest(${HOUR_TYPES.map((type, i) => `$${first + i}::${type}[]`).join(', ')}) as x`;

/** Whoever changes counts changes this row first, and so waits here until nobody else does. */
const MOVE_PROGRESS = {
  name: 'statistics_move_progress',
  text: `
    insert into statistics_progress as p (seq) values ($2)
    on conflict (singleton) do update set seq = excluded.seq where p.seq = $1`,
};

/** Puts the progress back, never forward: entries of other stores may have to be counted yet. */
const PUT_BACK_PROGRESS = `
  insert into statistics_progress as p (seq) values (-1)
  on conflict (singleton) do update set seq = least(p.seq, $1)`;

/** Finds a store whose counts are no longer those that a step has begun with. */
const RECOUNTED_STORE = {
  name: 'statistics_recounted_store',
  text: `
    select from unnest($1::bigint[], $2::text[], $3::bigint[]) as x (account_id, time_zone, seq)
    join statistics_stores s on s.account_id = x.account_id
    where s.seq <> x.seq or s.time_zone <> x.time_zone
    limit 1`,
};

const ADD = {
  name: 'statistics_add',
  text: `
    with stores as (
      insert into statistics_stores as s (account_id, time_zone, seq)
      select x.account_id, x.time_zone, $1 from unnest($2::bigint[], $3::text[]) as x (account_id, time_zone)
      on conflict (account_id) do update set seq = excluded.seq
    )
    insert into statistics_hours as h (${HOUR_COLUMNS.join(', ')}) ${renderHours(4)}
    on conflict (account_id, card_id, location_id, user_id, day, hour) do update
      set ${COUNTS.map((name) => `${name} = h.${name} + excluded.${name}`).join(', ')}`,
};

const REPLACE_HOURS = `insert into statistics_hours (${HOUR_COLUMNS.join(', ')}) ${renderHours(1)}`;

type JoinedRow = { name: string; card_id: number | null; occurred_at: Date };

type EntryRow = JoinedRow & { seq: number; account_id: number; is_joined: boolean } & (
    | { visit_seq: null }
    | {
        visit_seq: number;
        customer_id: number;
        visit_card_id: number;
        location_id: number | null;
        actor: string;
        visited_at: Date;
      }
  );

export type CountedStore = { id: number; timeZone: string; seq: number };

/**
 * Counts what the history says, by the hours of each store's days. The counts up to an entry depend on nothing but the
 * history up to there and the time zone, so whoever reads both can compute them anew.
 */
@Injectable()
export class StatisticsTable {
  /** @param visits how visits are read: tests read them in small pages */
  constructor(
    private readonly pool: Pool,
    @Optional() private readonly visits: CustomerVisits = new CustomerVisits(pool),
  ) {}

  /**
   * Counts the next entries of the history.
   * @returns whether there may be more
   * @throws OvertakenError when another process has counted them, or one of their stores anew: then nothing is written
   */
  async addNext(): Promise<boolean> {
    const [progress] = (await this.pool.query<{ seq: number }>(PROGRESS)).rows;
    const from = progress?.seq ?? -1;
    const { rows: entries } = await this.pool.query<EntryRow>({
      ...STATISTICS_ENTRIES,
      values: [from],
    });
    const last = entries.at(-1);
    if (!last) return false;
    const isZoneChange = ({ name }: EntryRow) => name.startsWith('account.');
    const relevant = entries.filter(
      (entry) => entry.visit_seq !== null || entry.is_joined || isZoneChange(entry),
    );
    const stores = await this.findStores(relevant.map(({ account_id }) => account_id));
    const movedStores = [...stores.values()].filter(
      ({ countedTimeZone, timeZone }) => countedTimeZone !== null && countedTimeZone !== timeZone,
    );
    for (const { id } of movedStores) await this.replace(id);
    if (movedStores.length > 0) return true;
    const left = relevant.filter(
      ({ account_id, seq }) => seq > (stores.get(account_id)?.seq ?? seq),
    );
    await this.write({ from, to: last.seq }, await this.count(left, stores, from, last.seq));
    return entries.length === BATCH_SIZE;
  }

  /** Counts everything of a store anew, up to an entry. */
  async countAll(accountId: number, timeZone: string, upTo: number): Promise<HourCounts> {
    const counts = new HourCounts();
    const clock = new LocalClock(timeZone);
    const { rows: joined } = await this.pool.query<JoinedRow>({
      ...JOINED,
      values: [accountId, upTo],
    });
    for (const row of joined) addJoined(counts, toJoined(row), clock);
    for (let after = 0; ;) {
      const { rows } = await this.pool.query<{ id: number }>({
        name: 'statistics_customers',
        text: `select id from customers where account_id = $1 and id > $2 order by id limit ${CUSTOMERS_BATCH_SIZE}`,
        values: [accountId, after],
      });
      const end = rows.at(-1);
      if (!end) return counts;
      after = end.id;
      const step = { after: -1, upTo };
      await this.visits.addAll(
        new Map(rows.map(({ id }) => [id, new VisitCounter(counts, clock, step)])),
        upTo,
      );
    }
  }

  /**
   * Counts everything of a store anew, by the time zone that it has now, and replaces what was counted. The subscription
   * goes on behind the last entry that was counted here.
   */
  async replace(accountId: number): Promise<void> {
    const { rows } = await this.pool.query<{ seq: number }>(
      'select coalesce(max(seq), -1) as seq from history',
    );
    const seq = rows[0]?.seq ?? -1;
    // After the last entry, so that the subscription finds the entry of any later move to another time zone.
    const timeZone = (await this.findStores([accountId])).get(accountId)?.timeZone ?? 'UTC';
    const counts = await this.countAll(accountId, timeZone, seq);
    await inTransaction(this.pool, async (client) => {
      await client.query(PUT_BACK_PROGRESS, [seq]);
      await client.query('delete from statistics_hours where account_id = $1', [accountId]);
      await client.query(REPLACE_HOURS, toHourParameters(new Map([[accountId, counts]])));
      await client.query(
        `insert into statistics_stores as s (account_id, time_zone, seq) values ($1, $2, $3)
         on conflict (account_id) do update set time_zone = excluded.time_zone, seq = excluded.seq`,
        [accountId, timeZone, seq],
      );
    });
  }

  private async count(
    entries: EntryRow[],
    stores: Map<number, CountedStore>,
    from: number,
    to: number,
  ): Promise<{ counts: Map<number, HourCounts>; stores: CountedStore[] }> {
    const counts = new Map<number, HourCounts>();
    const clocks = new Map<number, LocalClock>();
    for (const { account_id: id } of entries) {
      const store = stores.get(id);
      if (!store) continue;
      counts.set(id, new HourCounts());
      clocks.set(id, new LocalClock(store.timeZone));
    }
    const changesByCustomer = new Map<number, { accountId: number; visits: ChangedVisit[] }>();
    for (const entry of entries) {
      const { account_id: accountId } = entry;
      const [own, clock] = [counts.get(accountId), clocks.get(accountId)];
      if (!own || !clock) continue;
      if (entry.is_joined) addJoined(own, toJoined(entry), clock);
      if (entry.visit_seq === null) continue;
      const changes = changesByCustomer.get(entry.customer_id);
      if (changes) changes.visits.push(toChangedVisit(entry));
      else changesByCustomer.set(entry.customer_id, { accountId, visits: [toChangedVisit(entry)] });
    }
    const customers = [...changesByCustomer].flatMap(([customerId, { accountId, visits }]) => {
      const [own, clock] = [counts.get(accountId), clocks.get(accountId)];
      if (!own || !clock) return [];
      const after = Math.max(from, stores.get(accountId)?.seq ?? from);
      const counter = new VisitCounter(own, clock, { after, upTo: to }, visits);
      return [{ customerId, counter, visits }];
    });
    await this.visits.addChanged(customers, to);
    return { counts, stores: [...stores.values()].filter(({ id }) => counts.has(id)) };
  }

  private async write(
    { from, to }: { from: number; to: number },
    { counts, stores }: Awaited<ReturnType<StatisticsTable['count']>>,
  ): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      const { rowCount } = await client.query({ ...MOVE_PROGRESS, values: [from, to] });
      if (rowCount !== 1 || (await isAnyRecounted(client, stores))) throw new OvertakenError();
      await client.query({
        ...ADD,
        values: [
          to,
          stores.map(({ id }) => id),
          stores.map(({ timeZone }) => timeZone),
          ...toHourParameters(counts),
        ],
      });
    });
  }

  private async findStores(
    ids: number[],
  ): Promise<Map<number, CountedStore & { countedTimeZone: string | null }>> {
    if (ids.length === 0) return new Map();
    const { rows } = await this.pool.query<{
      id: number;
      time_zone: string;
      counted_time_zone: string | null;
      seq: number;
    }>({ ...STORES, values: [[...new Set(ids)]] });
    return new Map(
      rows.map(({ id, time_zone: timeZone, counted_time_zone: countedTimeZone, seq }) => [
        id,
        { id, timeZone, countedTimeZone, seq },
      ]),
    );
  }
}

/**
 * Tells whether a store was counted anew since a step read it. Asked in a statement of its own, behind the wait for the
 * progress: the statement that waits does not see what was committed meanwhile.
 */
async function isAnyRecounted(client: PoolClient, stores: CountedStore[]): Promise<boolean> {
  const { rowCount } = await client.query({
    ...RECOUNTED_STORE,
    values: [
      stores.map(({ id }) => id),
      stores.map(({ timeZone }) => timeZone),
      stores.map(({ seq }) => seq),
    ],
  });
  return rowCount !== 0;
}

function toChangedVisit(row: Exclude<EntryRow, { visit_seq: null }>): ChangedVisit {
  return {
    cardId: row.visit_card_id,
    locationId: row.location_id,
    userId: findUserId(row.actor),
    at: row.visited_at.getTime(),
    seq: row.visit_seq,
  };
}

/** A customer joins the store at first, and a card by being enrolled. */
function toJoined({ name, card_id, occurred_at }: JoinedRow): { cardId: number; at: number } {
  return { cardId: name === 'customer.created' ? 0 : (card_id ?? 0), at: occurred_at.getTime() };
}

function toHourParameters(counts: Map<number, HourCounts>): unknown[] {
  const hours = [...counts].flatMap(([accountId, own]) =>
    own
      .list()
      .map(({ hour: { cardId, locationId, userId, day, hour }, counts: numbers }) => [
        accountId,
        cardId,
        locationId,
        userId,
        day,
        hour,
        ...numbers,
      ]),
  );
  return HOUR_COLUMNS.map((_, i) => hours.map((hour) => hour[i]));
}
