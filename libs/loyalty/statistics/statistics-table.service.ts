import { Injectable, Optional } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { inTransaction, isDatabaseUnavailable } from '#platform/database/connection.js';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { IS_VISIT } from '#loyalty/history/redemption-query.js';
import { CustomerVisits, findUserId } from './customer-visits.service.js';
import { renderAddition, toHourParameters, toHourRows } from './hour-rows.js';
import { LocalClock } from './local-clock.js';
import { JOINED_NAMES, toJoined, type JoinedRow } from './store-recount.service.js';
import { StoreRecounts } from './store-recounts.service.js';
import { addJoined, HourCounts, VisitCounter, type ChangedVisit, type Step } from './visits.js';

/** Limits the entries that are read at a time. */
const BATCH_SIZE = 2_000;

const IS_JOINED = `h.name in (${JOINED_NAMES.map((name) => `'${name}'`).join(', ')})`;

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
    select e.seq, e.account_id, e.name, e.card_id, e.occurred_at, e.channel, e.is_joined,
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

/**
 * The stores of a batch, with the time zone that they are counted by and the one that they have now. Where the row of a
 * store is behind the log, it comes later, and the store is then counted anew. The entries of one that waits for that are
 * not counted.
 */
const STORES = {
  name: 'statistics_stores',
  text: `
    select x.id, coalesce(a.time_zone, 'UTC') as time_zone, s.time_zone as counted_time_zone,
      coalesce(s.seq, -1) as seq, s.recount_at is not null as is_waiting
    from unnest($1::bigint[]) as x (id)
    left join accounts a on a.id = x.id
    left join statistics_stores s on s.account_id = x.id`,
};

/** Whoever changes counts changes this row first, and so waits here until nobody else does. */
const MOVE_PROGRESS = {
  name: 'statistics_move_progress',
  text: `
    insert into statistics_progress as p (seq) values ($2)
    on conflict (singleton) do update set seq = excluded.seq where p.seq = $1`,
};

/** Finds a store whose counts are no longer those that a step has begun with. */
const RECOUNTED_STORE = {
  name: 'statistics_recounted_store',
  text: `
    select from unnest($1::bigint[], $2::text[], $3::bigint[], $4::boolean[]) as x (account_id, time_zone, seq, is_waiting)
    join statistics_stores s on s.account_id = x.account_id
    where (s.recount_at is not null) <> x.is_waiting
      or not x.is_waiting and (s.seq <> x.seq or s.time_zone <> x.time_zone)
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
    ${renderAddition(4, 'coalesce((select s.generation from statistics_stores s where s.account_id = x.account_id), 0)')}`,
};

type EntryRow = JoinedRow & { account_id: number; is_joined: boolean } & (
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

/** @property isWaiting to be counted anew */
type Store = { id: number; timeZone: string; seq: number; isWaiting: boolean };

type BatchCounts = { counts: Map<number, HourCounts>; stores: Store[] };

/**
 * Counts what the history says, by the hours of each store's days. The counts up to an entry depend on nothing but the
 * history up to there and the time zone, so whoever reads both can compute them anew.
 */
@Injectable()
export class StatisticsTable {
  private readonly recounts: StoreRecounts;

  /** @param visits how visits are read: tests read them in small pages, or fail to */
  constructor(
    private readonly pool: Pool,
    @Optional() private readonly visits: CustomerVisits = new CustomerVisits(pool),
  ) {
    this.recounts = new StoreRecounts(pool, visits);
  }

  /**
   * Counts the next entries of the history, and a page of a store that is counted anew.
   * @returns whether there may be more
   * @throws OvertakenError when another process has counted them, or one of their stores anew: then nothing is written
   */
  async addNext(): Promise<boolean> {
    const hasMoreEntries = await this.addEntries();
    return (await this.recounts.advance()) || hasMoreEntries;
  }

  private async addEntries(): Promise<boolean> {
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
    const movedIds = [...stores.values()]
      .filter((store) => store.hasMoved && !store.isWaiting)
      .map(({ id }) => id);
    if (movedIds.length > 0) {
      await this.recounts.request(movedIds);
      return true;
    }
    const left = relevant.filter(({ account_id, seq }) => {
      const store = stores.get(account_id);
      return store !== undefined && !store.isWaiting && seq > store.seq;
    });
    const step = { after: from, upTo: last.seq };
    const batch = await this.countOrPostpone(left, stores, step);
    const waiting = [...stores.values()].filter(({ isWaiting }) => isWaiting);
    await this.write(step, batch, waiting);
    return entries.length === BATCH_SIZE;
  }

  /** Counts each store by itself if they cannot be counted together, so that one that fails delays no other. */
  private async countOrPostpone(
    entries: EntryRow[],
    stores: Map<number, Store>,
    step: Step,
  ): Promise<BatchCounts> {
    try {
      return await this.count(entries, stores, step);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
    }
    const batch: BatchCounts = { counts: new Map(), stores: [] };
    for (const store of stores.values()) {
      const own = entries.filter(({ account_id }) => account_id === store.id);
      if (own.length === 0) continue;
      try {
        const { counts } = await this.count(own, stores, step);
        for (const [accountId, hours] of counts) batch.counts.set(accountId, hours);
        batch.stores.push(store);
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        store.isWaiting = true;
        const upTo = Math.max(step.after, store.seq);
        await this.recounts.postpone(
          { accountId: store.id, timeZone: store.timeZone, upTo },
          error,
        );
      }
    }
    return batch;
  }

  private async count(
    entries: EntryRow[],
    stores: Map<number, Store>,
    { after, upTo }: Step,
  ): Promise<BatchCounts> {
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
      const step = { after: Math.max(after, stores.get(accountId)?.seq ?? after), upTo };
      const counter = new VisitCounter(own, clock, step, visits);
      return [{ customerId, counter, visits }];
    });
    await this.visits.addChanged(customers, upTo);
    return { counts, stores: [...stores.values()].filter(({ id }) => counts.has(id)) };
  }

  /** @param waiting the stores whose entries are left out */
  private async write(
    { after, upTo }: Step,
    { counts, stores }: BatchCounts,
    waiting: Store[],
  ): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      const { rowCount } = await client.query({ ...MOVE_PROGRESS, values: [after, upTo] });
      if (rowCount !== 1 || (await isAnyRecounted(client, [...stores, ...waiting])))
        throw new OvertakenError();
      await client.query({
        ...ADD,
        values: [
          upTo,
          stores.map(({ id }) => id),
          stores.map(({ timeZone }) => timeZone),
          ...toHourParameters([...counts].flatMap(([id, own]) => toHourRows(id, own))),
        ],
      });
    });
  }

  private async findStores(ids: number[]): Promise<Map<number, Store & { hasMoved: boolean }>> {
    if (ids.length === 0) return new Map();
    const { rows } = await this.pool.query<{
      id: number;
      time_zone: string;
      counted_time_zone: string | null;
      seq: number;
      is_waiting: boolean;
    }>({ ...STORES, values: [[...new Set(ids)]] });
    return new Map(
      rows.map(({ id, time_zone, counted_time_zone, seq, is_waiting }) => {
        const hasMoved = counted_time_zone !== null && counted_time_zone !== time_zone;
        return [id, { id, timeZone: time_zone, seq, isWaiting: is_waiting, hasMoved }];
      }),
    );
  }
}

/**
 * Tells whether a store was counted anew since a step read it. Asked in a statement of its own, behind the wait for the
 * progress: the statement that waits does not see what was committed meanwhile.
 */
async function isAnyRecounted(client: PoolClient, stores: Store[]): Promise<boolean> {
  const { rowCount } = await client.query({
    ...RECOUNTED_STORE,
    values: [
      stores.map(({ id }) => id),
      stores.map(({ timeZone }) => timeZone),
      stores.map(({ seq }) => seq),
      stores.map(({ isWaiting }) => isWaiting),
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
