import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import { BEGINNING, type EventStore, type Position } from '../port/event-store.js';
import { whenAvailable } from '../log/retry-policy.js';
import { ShadowComparison, type Difference } from './staging-diff.js';
import type { ShadowFiller, Wanted } from './staging-builder.js';
import {
  CLAIMS,
  createShadows,
  exchange,
  finishShadows,
  SHADOW,
  type LiveTable,
} from './staging-tables.js';
import type { AnyTable } from './stream-progress.js';
import { STREAMS_OF_EVENTS } from './orphaned-streams.js';
import { NAMED_IN_INTENTS, type Verification } from './verification.js';

const ONLY_REBUILD = 727010;
const PAGE = 5_000;
const SETTLE = { tries: 10, everyMs: 500 };
/**
 * How long the switch waits for a lock: commands wait as long. PostgreSQL stops a vacuum that is in the way only after
 * a second, so one try in five is longer.
 */
const LOCK_MS = [200, 200, 200, 200, 2_000];
const SWITCH = { tries: 100, everyMs: 1_000 };

const LAST_REVISIONS = `
  select n.stream_id, (select max(e.revision) from es.events e where e.stream_id = n.stream_id) as last
  from (${STREAMS_OF_EVENTS}) n`;
/** Claims that do not follow from the log: of persons who were erased, and of commits that are not finished. */
const NOT_FROM_LOG = `
  select stream_id from ${SHADOW}.erased union all ${NAMED_IN_INTENTS}`;

/** A table that is filled from the log as a whole, and so may be behind it. */
export type FromLog = {
  readonly table: LiveTable;
  /** About how many events there are to read, from how far the live table is. */
  expectedEvents: () => Promise<number>;
  /**
   * Brings the shadow to the end of the log.
   * @param patient waits for an event store that is unavailable: not while anything is locked
   */
  catchUp: (patient: boolean) => Promise<void>;
  /**
   * Compares the shadow with the live table, up to where both are.
   * @param after rows that were compared already are left out: neither table changes but at its end
   */
  compare: (after: number) => Promise<{ upTo: number; differences: Difference[] }>;
  /** In the transaction of the exchange, with the live table locked: whoever fills it goes on behind the shadow. */
  take: () => Promise<void>;
};

export type Plan = {
  /** The tables that are rebuilt. */
  tables: AnyTable[];
  /** Whether the claims are rebuilt. */
  claims: boolean;
  /** Null: the history is not rebuilt. */
  history: FromLog | null;
};

export type Rebuilt = { differences: Difference[]; older: number; rows: Map<string, number> };

/**
 * Rebuilds row tables, claims and the table of the history beside the live ones, which go on changing, and exchanges
 * them. The live tables are as before until the one transaction that exchanges them has been committed.
 */
export class Rebuild {
  private readonly comparison: ShadowComparison;
  /** Row tables that have shadows: claims depend on the state of the streams that claim something. */
  readonly filled: AnyTable[];
  private position: Position = BEGINNING;
  private touched = new Set<string>();
  /** The last row of the history that was compared. */
  private compared = -1;
  /** Why the rebuilt history does not take the place of the live one. */
  private keeping: Difference | undefined;

  /** @param client of the tables' owner, with the shadows in its search path */
  constructor(
    private readonly client: pg.ClientBase,
    private readonly store: EventStore,
    private readonly verification: Verification,
    private readonly plan: Plan,
    all: AnyTable[],
  ) {
    this.comparison = new ShadowComparison(client, store.rowsMayLag);
    this.filled = plan.claims
      ? all.filter((rows) => rows.claimsOf || plan.tables.includes(rows))
      : plan.tables;
  }

  /** @throws ConfigError while another rebuild runs */
  async begin(): Promise<void> {
    const { rows } = await this.client.query<{ ours: boolean }>(
      'select pg_try_advisory_lock($1) as ours',
      [ONLY_REBUILD],
    );
    if (!rows[0]?.ours) throw new ConfigError('Another rebuild is running.');
    await createShadows(this.client, this.shadows());
    await this.client.query(`create table ${SHADOW}.erased (stream_id text primary key)`);
    this.position = await this.store.settled();
  }

  /** About how many events there are to read, those of rows and those of the history, from how far the tables are. */
  async expectedEvents(): Promise<number> {
    const { history } = this.plan;
    let events = history ? await history.expectedEvents() : 0;
    for (const { table } of this.filled) {
      const { rows } = await this.client.query<{ n: number }>(
        `select coalesce(sum(revision + 1), 0)::bigint as n from public.${table}`,
      );
      events += rows[0]?.n ?? 0;
    }
    return events;
  }

  /** The streams to fold, in pages. What is appended from now on comes with the catch-up. */
  async *streams(): AsyncGenerator<Wanted[]> {
    const names = new Set(this.filled.map(({ aggregate }) => aggregate.name));
    const ours = ({ stream }: Wanted) => names.has(stream.slice(0, stream.lastIndexOf('-')));
    if (this.store.rowsMayLag) {
      for (let after = BEGINNING; ;) {
        const from = after;
        const page = await whenAvailable(() => this.store.readAll(from, PAGE));
        const last = page.at(-1);
        if (!last) return;
        yield page
          .filter(({ revision }) => revision === 0)
          .map(({ stream }) => ({ stream, to: Number.MAX_SAFE_INTEGER }))
          .filter(ours);
        after = last.position;
      }
    }
    for (let after = ''; ;) {
      const { rows } = await this.client.query<{ stream_id: string; last: number }>(
        LAST_REVISIONS,
        [after],
      );
      const last = rows.at(-1);
      if (!last) return;
      yield rows.map(({ stream_id, last: to }) => ({ stream: stream_id, to })).filter(ours);
      after = last.stream_id;
    }
  }

  /**
   * The rebuilt history is compared, but does not take the place of the live one.
   * @param why told as a difference
   */
  keepHistory(why: string): void {
    const table = this.plan.history?.table.name ?? '';
    this.keeping = { table, stream: 'the table is kept', what: why, moving: false };
  }

  get changesAnything(): boolean {
    return this.exchanged().length > 0;
  }

  /** After all streams were folded: indexes, and what happened meanwhile. */
  async finish(filler: ShadowFiller): Promise<void> {
    await finishShadows(this.client, this.shadows());
    await this.catchUp(filler);
  }

  /** Compares the shadows with the live tables, and waits for what was only just being written. */
  async compare(filler: ShadowFiller): Promise<Rebuilt> {
    this.touched = new Set();
    const rebuilt: Rebuilt = { differences: [], older: 0, rows: new Map() };
    for (const rows of this.plan.tables) {
      const compared = await this.comparison.all(rows);
      rebuilt.rows.set(rows.table, compared.rows);
      rebuilt.differences = rebuilt.differences.concat(compared.differences);
      rebuilt.older += compared.older;
    }
    if (this.plan.claims) {
      rebuilt.differences = rebuilt.differences.concat(await this.comparison.allClaims());
    }
    if (this.plan.history) {
      this.compared = -1;
      if (this.keeping) rebuilt.differences.push(this.keeping);
      rebuilt.differences = rebuilt.differences.concat(await this.newInHistory());
      rebuilt.rows.set(this.plan.history.table.name, this.compared + 1);
    }
    for (let tries = 1; rebuilt.differences.some(({ moving }) => moving); tries++) {
      if (tries > SETTLE.tries) break;
      if (tries > 1) await wait(SETTLE.everyMs);
      await this.catchUp(filler);
      rebuilt.differences = await this.again(rebuilt.differences, new Set());
    }
    return rebuilt;
  }

  /**
   * A row that changes all the time is never caught at the end of its stream, so it is compared with its stream up
   * to its own revision.
   */
  async settle({ differences }: Rebuilt): Promise<Difference[]> {
    const settled: Difference[] = [];
    for (const difference of differences) {
      const rows = this.plan.tables.find(({ table }) => table === difference.table);
      if (rows && difference.moving) {
        const id = idIn(difference.stream);
        const slice = { table: rows.table, from: id, to: id };
        const { streams, faults } = await this.verification.slice(slice, false);
        if (streams > 0 && faults.length === 0) continue;
      }
      settled.push(difference);
    }
    return settled;
  }

  /**
   * Exchanges the tables while nothing is written: appends wait, not longer than LOCK_MS for us to get the locks and as
   * long as it takes to fold what was appended since the last catch-up.
   * @returns how the live tables differed at the moment of the switch, and for how long appends waited, in ms
   * @throws ConfigError when the tables were in use all the time
   */
  async switchOver(
    filler: ShadowFiller,
    seen: Difference[],
  ): Promise<{ differences: Difference[]; heldMs: number }> {
    for (let tries = 0; ; tries++) {
      await this.catchUp(filler);
      const { position, touched, compared } = this;
      const before = { position, touched: new Set(touched), compared };
      try {
        await this.client.query('begin');
        const start = performance.now();
        const differences = await this.switchWithin(filler, seen, LOCK_MS[tries % LOCK_MS.length]);
        await this.client.query('commit');
        return { differences, heldMs: performance.now() - start };
      } catch (error) {
        if (!isRolledBackForRetry(error)) throw error;
        await this.client.query('rollback');
        Object.assign(this, before);
        if (tries === SWITCH.tries) throw await this.inUse();
        await wait(SWITCH.everyMs);
      }
    }
  }

  private async switchWithin(
    filler: ShadowFiller,
    seen: Difference[],
    lockMs = 0,
  ): Promise<Difference[]> {
    const tables = this.exchanged();
    const names = tables.map(({ schema, name }) => `${schema}.${name}`).join(', ');
    await this.client.query(`set local lock_timeout = ${lockMs}`);
    // An append writes its stream's head first: it waits there, holding nothing that the next locks need.
    await this.client.query(`lock table es.streams, ${names} in share row exclusive mode`);
    const head = await this.store.head();
    this.position = await filler.catchUp(this.position, this.touched, head);
    await this.plan.history?.catchUp(false);
    const differences = await this.again(seen, this.touched);
    if (this.plan.claims) {
      await this.client.query(`delete from ${SHADOW}.claims where stream_id in (${NOT_FROM_LOG})`);
      await this.client.query(
        `insert into ${SHADOW}.claims select * from es.claims where stream_id in (${NOT_FROM_LOG})
         on conflict (account_id, kind, value) do update
           set stream_id = excluded.stream_id, revision = excluded.revision`,
      );
    }
    if (this.takesHistory) await this.plan.history?.take();
    await this.client.query(`lock table ${names} in access exclusive mode`);
    await exchange(this.client, tables);
    return differences;
  }

  /** Compares what differed before once more, and what was touched since. */
  private async again(before: Difference[], touched: Set<string>): Promise<Difference[]> {
    const known = new Set(before.map(({ table, stream }) => `${table} ${stream}`));
    let found: Difference[] = [];
    for (const rows of this.plan.tables) {
      const prefix = `${rows.aggregate.name}-`;
      const streams = [
        ...before.filter(({ table }) => table === rows.table).map(({ stream }) => stream),
        ...[...touched].filter((stream) => stream.startsWith(prefix)),
      ];
      const { differences } = await this.comparison.some(rows, [...new Set(streams)].map(idIn));
      found = found.concat(differences);
    }
    if (this.plan.claims) {
      const again = await this.comparison.claimsAgain(before);
      const touchedSince = await this.comparison.claimsOf([...touched]);
      const values = new Set(again.map(({ claim }) => JSON.stringify(claim)));
      const others = touchedSince.filter(({ claim }) => !values.has(JSON.stringify(claim)));
      found = found.concat(again, others);
    }
    found = found.concat(before.filter(({ table }) => table === this.plan.history?.table.name));
    found = found.concat(await this.newInHistory());
    // Where rows may lag, one that has only just been touched may be about to be written.
    return found.filter(
      ({ table, stream, moving }) =>
        !this.store.rowsMayLag || !moving || known.has(`${table} ${stream}`),
    );
  }

  /** What has come since the last comparison. */
  private async newInHistory(): Promise<Difference[]> {
    const { history } = this.plan;
    if (!history) return [];
    const { upTo, differences } = await history.compare(this.compared);
    this.compared = upTo;
    return differences;
  }

  private async catchUp(filler: ShadowFiller): Promise<void> {
    this.position = await filler.catchUp(this.position, this.touched);
    await this.plan.history?.catchUp(true);
  }

  private get takesHistory(): boolean {
    return this.plan.history !== null && !this.keeping;
  }

  private shadows(): LiveTable[] {
    const { claims, history } = this.plan;
    return [
      ...this.filled.map(liveTable),
      ...(claims ? [CLAIMS] : []),
      ...(history ? [history.table] : []),
    ];
  }

  private exchanged(): LiveTable[] {
    const { tables, claims, history } = this.plan;
    return [
      ...tables.map(liveTable),
      ...(claims ? [CLAIMS] : []),
      ...(history && this.takesHistory ? [history.table] : []),
    ];
  }

  private async inUse(): Promise<ConfigError> {
    const { rows } = await this.client.query<{ application_name: string; seconds: number }>(
      `select application_name, extract(epoch from now() - xact_start)::int as seconds
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
       order by xact_start limit 1`,
    );
    const [oldest] = rows;
    const who = oldest
      ? ` The oldest transaction is ${oldest.seconds} s old (${oldest.application_name || 'without a name'}).`
      : '';
    return new ConfigError(`The tables were in use all the time, so nothing was switched.${who}`);
  }
}

function liveTable({ table }: AnyTable): LiveTable {
  return { schema: 'public', name: table };
}

function idIn(stream: string): number {
  return Number(stream.slice(stream.lastIndexOf('-') + 1));
}
