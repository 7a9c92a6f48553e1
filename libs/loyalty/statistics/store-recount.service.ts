import type { Pool } from 'pg';
import { inTransaction, isDatabaseUnavailable } from '#platform/database/connection.js';
import type { CustomerVisits } from './customer-visits.service.js';
import {
  renderAddition,
  renderDigests,
  renderHours,
  toHourParameters,
  toHourRows,
  type HourDigest,
} from './hour-rows.js';
import { IMPORT_CHANNEL } from '#loyalty/stamping/customer-card.js';
import { LocalClock } from './local-clock.js';
import { addJoined, HourCounts, VisitCounter } from './visits.js';

const CUSTOMERS_BATCH_SIZE = 200;
/** Limits the customers and cards that are read at a time to count who joined. */
const JOINED_BATCH_SIZE = 5_000;
/** Limits the hours in memory, of some 400 bytes each. */
const MAX_HOURS = 50_000;
/** Limits the rows that a statement writes or removes. */
const WRITE_SIZE = 10_000;
/** How often at least the counts are said to be in use, and for how long. */
const RENEW_MS = 60_000;
const UNUSED_AFTER_SECONDS = 600;

/** The entries by which a customer joins the store, or a card. */
export const JOINED_NAMES = ['customer.created', 'customer_card.created'];

const JOINED = {
  name: 'statistics_joined',
  text: `
    select h.seq, h.name, h.card_id, h.occurred_at, h.channel from history h
    where h.account_id = $1 and h.name = $2 and h.seq > $3 and h.seq <= $4
    order by h.seq limit ${JOINED_BATCH_SIZE}`,
};

const CUSTOMERS = {
  name: 'statistics_customers',
  text: `select id from customers where account_id = $1 and id > $2 order by id limit ${CUSTOMERS_BATCH_SIZE}`,
};

const IN_USE = `now() + interval '${UNUSED_AFTER_SECONDS} seconds'`;

const CREATE_GENERATION = `
  insert into statistics_unused (account_id, generation, remove_at)
  values ($1, nextval('statistics_generation'), ${IN_USE}) returning generation`;

/** Adds hours to a generation of counts, unless it is being removed. Returns a row if not. */
const SPILL = {
  name: 'statistics_spill',
  text: `
    with renewed as (
      update statistics_unused set remove_at = ${IN_USE}
      where account_id = $1 and generation = $2 and remove_at > now() returning 1
    ), added as (${renderAddition(3, '$2', 'exists (select from renewed)')})
    select from renewed`,
};

/** Puts the progress back, never forward: entries of other stores may have to be counted yet. */
const PUT_BACK_PROGRESS = `
  insert into statistics_progress as p (seq) values (-1)
  on conflict (singleton) do update set seq = least(p.seq, $1)`;

/** Its own statement: one that also replaces the generation could not lock the row. */
const REMOVE_FORMER = `
  insert into statistics_unused (account_id, generation, remove_at)
  select account_id, generation, now() from statistics_stores where account_id = $1 for update`;

const PUBLISH = `
  insert into statistics_stores as s (account_id, generation, time_zone, seq) values ($1, $2, $3, $4)
  on conflict (account_id) do update set generation = excluded.generation, time_zone = excluded.time_zone,
    seq = excluded.seq, recount_at = null, recount_failures = 0`;

export type JoinedRow = {
  seq: number;
  name: string;
  card_id: number | null;
  occurred_at: Date;
  channel: string;
};

/** @property upTo the number of the last entry of the history that is counted */
export type RecountTarget = { accountId: number; timeZone: string; upTo: number };

/**
 * Counts everything of a store anew, beside what is shown of it, a page at a time and in bounded memory: what does not fit is
 * written under a generation of its own (README.md). Whoever reads the history and knows the time zone gets the same counts.
 */
export class StoreRecount {
  private readonly counts = new HourCounts();
  private readonly pages: Pages;
  private readonly clock: LocalClock;
  private generation: number | undefined;
  private renewedAt = 0;
  private isWriting = false;

  constructor(
    private readonly pool: Pool,
    private readonly visits: CustomerVisits,
    readonly target: RecountTarget,
    private readonly maxHours = MAX_HOURS,
  ) {
    this.clock = new LocalClock(target.timeZone);
    this.pages = this.countPages();
  }

  /** False after a write whose outcome is unknown: a part of the counts may be there, and the rest is in memory no more. */
  get canGoOn(): boolean {
    return !this.isWriting;
  }

  /** Counts the next page, or the same once more after an outage. @returns whether there is another one */
  async countNext(): Promise<boolean> {
    const { done, value: outage } = await this.pages.next();
    if (outage) throw outage;
    const isRenewalDue =
      this.generation !== undefined && performance.now() - this.renewedAt > RENEW_MS;
    if (this.counts.size >= this.maxHours || isRenewalDue) await this.spill();
    return done !== true;
  }

  /**
   * Shows these counts instead of the former ones. Entries behind the last one that was counted here are counted once more,
   * but only for this store.
   */
  async publish(): Promise<void> {
    await this.spill();
    const { accountId, timeZone, upTo } = this.target;
    await inTransaction(this.pool, async (client) => {
      await client.query(PUT_BACK_PROGRESS, [upTo]);
      const { rowCount } = await client.query(
        'delete from statistics_unused where account_id = $1 and generation = $2 and remove_at > now()',
        [accountId, this.generation],
      );
      if (rowCount !== 1) throw new RemovedCountsError();
      await client.query(REMOVE_FORMER, [accountId]);
      await client.query(PUBLISH, [accountId, this.generation, timeZone, upTo]);
    });
  }

  /** Lets the counts be removed. */
  async discard(): Promise<void> {
    if (this.generation === undefined) return;
    await this.pool.query(
      'update statistics_unused set remove_at = now() where account_id = $1 and generation = $2',
      [this.target.accountId, this.generation],
    );
  }

  /** Reads a digest of the counts of each hour. */
  async readDigests(): Promise<HourDigest[]> {
    const { accountId } = this.target;
    if (this.generation !== undefined) {
      await this.spill();
      const relation = 'statistics_hours x where x.account_id = $1 and x.generation = $2';
      const { rows } = await this.pool.query<HourDigest>(renderDigests(relation), [
        accountId,
        this.generation,
      ]);
      return rows;
    }
    const { rows } = await this.pool.query<HourDigest>(
      renderDigests(`${renderHours(1)} where true`),
      toHourParameters(toHourRows(accountId, this.counts)),
    );
    return rows;
  }

  private async *countPages(): Pages {
    for (const name of JOINED_NAMES) yield* this.countJoined(name);
    yield* this.countVisits();
  }

  private async *countJoined(name: string): Pages {
    const { accountId, upTo } = this.target;
    for (let after: number | undefined = -1; after !== undefined;) {
      const values: unknown[] = [accountId, name, after, upTo];
      const { rows }: { rows: JoinedRow[] } = yield* readPage(() =>
        this.pool.query<JoinedRow>({ ...JOINED, values }),
      );
      for (const row of rows) addJoined(this.counts, toJoined(row), this.clock);
      after = rows.length === JOINED_BATCH_SIZE ? rows.at(-1)?.seq : undefined;
      yield;
    }
  }

  private async *countVisits(): Pages {
    const { accountId, upTo } = this.target;
    for (let after = 0; ;) {
      const values = [accountId, after];
      const page = yield* readPage(async () => {
        const { rows } = await this.pool.query<{ id: number }>({ ...CUSTOMERS, values });
        const counts = new HourCounts();
        const createCounter = () => new VisitCounter(counts, this.clock, { after: -1, upTo });
        await this.visits.addAll(new Map(rows.map(({ id }) => [id, createCounter()])), upTo);
        return { last: rows.at(-1), counts };
      });
      if (!page.last) return;
      after = page.last.id;
      this.counts.addAll(page.counts);
      yield;
    }
  }

  /** Writes what is in memory. @throws RemovedCountsError */
  private async spill(): Promise<void> {
    const { accountId } = this.target;
    this.isWriting = true;
    if (this.generation === undefined) {
      const { rows } = await this.pool.query<{ generation: number }>(CREATE_GENERATION, [
        accountId,
      ]);
      this.generation = rows[0]?.generation;
    }
    const rows = toHourRows(accountId, this.counts);
    this.counts.clear();
    for (let from = 0; from === 0 || from < rows.length; from += WRITE_SIZE) {
      const parameters = toHourParameters(rows.slice(from, from + WRITE_SIZE));
      const { rowCount } = await this.pool.query({
        ...SPILL,
        values: [accountId, this.generation, ...parameters],
      });
      if (rowCount !== 1) throw new RemovedCountsError();
    }
    this.renewedAt = performance.now();
    this.isWriting = false;
  }
}

/** Ends at each page, with the error if an outage has kept it from being read. */
type Pages = AsyncGenerator<Error | undefined, undefined>;

/** Reads a page, once more each time that it is asked for after an outage: what was counted before stays. */
async function* readPage<R>(read: () => Promise<R>): AsyncGenerator<Error | undefined, R> {
  for (;;) {
    let outage: Error;
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof Error && isDatabaseUnavailable(error))) throw error;
      outage = error;
    }
    yield outage;
  }
}

/** Reports that counts were removed before they were complete: whoever made them was away for too long. */
class RemovedCountsError extends Error {
  constructor() {
    super('the counts were removed meanwhile');
  }
}

/**
 * Removes some hours of counts that are no longer shown, or were never completed.
 * @returns whether there may be more
 */
export async function removeUnusedHours(pool: Pool): Promise<boolean> {
  // From now on nobody can complete them.
  const { rows } = await pool.query<{ account_id: number; generation: number }>(`
    update statistics_unused u set remove_at = '-infinity'
    from (select account_id, generation from statistics_unused where remove_at <= now() order by remove_at
          limit 1 for update skip locked) x
    where u.account_id = x.account_id and u.generation = x.generation
    returning u.account_id, u.generation`);
  const [unused] = rows;
  if (!unused) return false;
  const key = [unused.account_id, unused.generation];
  const { rowCount } = await pool.query(
    `delete from statistics_hours where ctid = any (array(
       select ctid from statistics_hours where account_id = $1 and generation = $2 limit ${WRITE_SIZE}))`,
    key,
  );
  if (rowCount !== null && rowCount < WRITE_SIZE) {
    await pool.query(
      'delete from statistics_unused where account_id = $1 and generation = $2',
      key,
    );
  }
  return true;
}

/** A customer joins the store at first, and a card by being enrolled. */
export function toJoined({ name, card_id, occurred_at, channel }: Omit<JoinedRow, 'seq'>): {
  cardId: number;
  at: number;
  isImported: boolean;
} {
  return {
    cardId: name === 'customer.created' ? 0 : (card_id ?? 0),
    at: occurred_at.getTime(),
    isImported: channel === IMPORT_CHANNEL,
  };
}
