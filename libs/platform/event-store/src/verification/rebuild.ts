import { parseStreamName } from '#kernel/aggregate.js';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { LOCKS } from '#database/locks.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import { BEGINNING, type EventStore, type Position } from '../port/event-store.js';
import { StagingDiff, type Difference } from './staging-diff.js';
import type { StagingBuilder } from './staging-builder.js';
import {
  CLAIMS,
  createStagingTables,
  swapTables,
  indexStagingTables,
  STAGING,
  type LiveTable,
} from './staging-tables.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import { StreamRanges } from './stream-ranges.js';
import { NAMED_IN_INTENTS, type Verification } from './verification.js';

const SETTLE = { tries: 10, everyMs: 500 };
/**
 * How long the swap waits for a lock. Commands wait as long. PostgreSQL stops a vacuum that is in the way only after a
 * second, so one try in five is longer.
 */
const LOCK_MS = [200, 200, 200, 200, 2_000];
const SWITCH = { tries: 100, everyMs: 1_000 };

/** Claims that do not follow from the log: of people who were erased, and of commits that are not finished. */
const NOT_FROM_LOG = `
  select stream_id from ${STAGING}.erased union all ${NAMED_IN_INTENTS}`;

/** A table that is filled from the whole log, and so may be behind it. */
export type LogTable = {
  readonly table: LiveTable;
  /** Estimates how many events there are to read, from the position of the live table. */
  countExpectedEvents: () => Promise<number>;
  /**
   * Brings the staging table to the end of the log.
   * @param shouldWait whether to wait for an event store that is unavailable: not while anything is locked
   */
  catchUp: (shouldWait: boolean) => Promise<void>;
  /**
   * Compares the staging table with the live table, up to where both are.
   * @param after leaves out rows that were compared already: both tables change at their end only
   */
  compare: (after: number) => Promise<{ comparedTo: number; differences: Difference[] }>;
  /**
   * Takes over in the transaction of the swap, with the live table locked: its writer continues after the staging
   * table's end.
   */
  takeOver: () => Promise<void>;
};

export type RebuildPlan = {
  /** The tables that are rebuilt. */
  readModels: AnyReadModel[];
  /** Whether the claims are rebuilt. */
  claims: boolean;
  /** The history; null if it is not rebuilt. */
  history: LogTable | null;
};

export type RebuildResult = {
  differences: Difference[];
  outdated: number;
  rowCounts: Map<string, number>;
};

/**
 * Rebuilds read models, claims and the table of the history in staging tables, while the live ones go on changing, and
 * swaps them in. The live tables stay as they were until the one transaction of the swap has been committed.
 */
export class Rebuild {
  private readonly diff: StagingDiff;
  /** Read models that have staging tables: claims depend on the state of the streams that claim something. */
  readonly stagedReadModels: AnyReadModel[];
  /** The streams to project, if all are in PostgreSQL. The catch-up brings what is appended after they are listed. */
  readonly streamRanges: StreamRanges;
  private position: Position = BEGINNING;
  private touchedStreams = new Set<string>();
  /** The last row of the history that was compared. */
  private comparedTo = -1;
  /** Why the rebuilt history does not replace the live one. */
  private historyProblem: Difference | undefined;

  /** @param client of the tables' owner, with the staging tables in its search path */
  constructor(
    private readonly client: pg.ClientBase,
    private readonly eventStore: EventStore,
    private readonly verification: Verification,
    private readonly plan: RebuildPlan,
    allReadModels: AnyReadModel[],
  ) {
    this.diff = new StagingDiff(client, !eventStore.isInDatabase);
    this.stagedReadModels = plan.claims
      ? allReadModels.filter(
          (readModel) => readModel.getClaimChanges || plan.readModels.includes(readModel),
        )
      : plan.readModels;
    this.streamRanges = new StreamRanges(client, this.stagedReadModels);
  }

  /**
   * Creates the staging tables.
   * @throws ConfigError while another rebuild runs
   */
  async begin(): Promise<void> {
    const { rows } = await this.client.query<{ ours: boolean }>(
      'select pg_try_advisory_lock($1) as ours',
      [LOCKS.rebuild],
    );
    if (!rows[0]?.ours) throw new ConfigError('Another rebuild is running.');
    await createStagingTables(this.client, this.getStagedTables());
    await this.client.query(`create table ${STAGING}.erased (stream_id text primary key)`);
    this.position = await this.eventStore.findSettledPosition();
  }

  /**
   * Estimates how many events there are to read, for read models and for the history, from the positions of the tables.
   */
  async countExpectedEvents(): Promise<number> {
    const { history } = this.plan;
    let events = history ? await history.countExpectedEvents() : 0;
    for (const { table } of this.stagedReadModels) {
      const { rows } = await this.client.query<{ n: number }>(
        `select coalesce(sum(revision + 1), 0)::bigint as n from public.${table}`,
      );
      events += rows[0]?.n ?? 0;
    }
    return events;
  }

  /**
   * Keeps the live history: the rebuilt one is compared, but does not replace it.
   * @param reason reported as a difference
   */
  keepHistory(reason: string): void {
    const table = this.plan.history?.table.name ?? '';
    this.historyProblem = { table, stream: 'the table is kept', problem: reason, isMoving: false };
  }

  get changesAnything(): boolean {
    return this.getSwappedTables().length > 0;
  }

  /** Builds the indexes, and projects what happened meanwhile. Called once all streams are projected. */
  async finish(builder: StagingBuilder): Promise<void> {
    await indexStagingTables(this.client, this.getStagedTables());
    await this.catchUp(builder);
  }

  /** Compares the staging tables with the live tables, and waits for what was being written just now. */
  async compare(builder: StagingBuilder): Promise<RebuildResult> {
    this.touchedStreams = new Set();
    const result: RebuildResult = { differences: [], outdated: 0, rowCounts: new Map() };
    for (const readModel of this.plan.readModels) {
      const diff = await this.diff.compareAll(readModel);
      result.rowCounts.set(readModel.table, diff.rowCount);
      result.differences = result.differences.concat(diff.differences);
      result.outdated += diff.outdated;
    }
    if (this.plan.claims) {
      result.differences = result.differences.concat(await this.diff.compareAllClaims());
    }
    if (this.plan.history) {
      this.comparedTo = -1;
      if (this.historyProblem) result.differences.push(this.historyProblem);
      result.differences = result.differences.concat(await this.compareNewHistory());
      result.rowCounts.set(this.plan.history.table.name, this.comparedTo + 1);
    }
    for (let tries = 1; result.differences.some(({ isMoving }) => isMoving); tries++) {
      if (tries > SETTLE.tries) break;
      if (tries > 1) await wait(SETTLE.everyMs);
      await this.catchUp(builder);
      result.differences = await this.compareAgain(result.differences, new Set());
    }
    return result;
  }

  /**
   * Confirms differences by comparing read models with their streams up to their own revisions. One that changes all
   * the time is never found at the end of its stream.
   */
  async confirm({ differences }: RebuildResult): Promise<Difference[]> {
    const confirmed: Difference[] = [];
    for (const difference of differences) {
      const readModel = this.plan.readModels.find(({ table }) => table === difference.table);
      if (readModel && difference.isMoving) {
        const { id } = parseStreamName(difference.stream);
        const slice = { table: readModel.table, ids: [id] };
        const { streams, differences: remaining } = await this.verification.verifySlice(
          slice,
          false,
        );
        if (streams > 0 && remaining.length === 0) continue;
      }
      confirmed.push(difference);
    }
    return confirmed;
  }

  /**
   * Swaps the tables while nothing is written. Appends wait no longer than LOCK_MS for the locks, and as long as it
   * takes to project what was appended since the last catch-up.
   * @returns how the live tables differed at the moment of the swap, and for how long appends waited, in ms
   * @throws ConfigError when the tables were in use all the time
   */
  async swap(
    builder: StagingBuilder,
    knownDifferences: Difference[],
  ): Promise<{ differences: Difference[]; blockedMs: number }> {
    for (let tries = 0; ; tries++) {
      await this.catchUp(builder);
      const { position, touchedStreams, comparedTo } = this;
      const before = { position, touchedStreams: new Set(touchedStreams), comparedTo };
      try {
        await this.client.query('begin');
        const start = performance.now();
        const differences = await this.swapWithin(
          builder,
          knownDifferences,
          LOCK_MS[tries % LOCK_MS.length],
        );
        await this.client.query('commit');
        return { differences, blockedMs: performance.now() - start };
      } catch (error) {
        if (!isRolledBackForRetry(error)) throw error;
        await this.client.query('rollback');
        Object.assign(this, before);
        if (tries === SWITCH.tries) throw await this.createInUseError();
        await wait(SWITCH.everyMs);
      }
    }
  }

  private async swapWithin(
    builder: StagingBuilder,
    knownDifferences: Difference[],
    lockMs = 0,
  ): Promise<Difference[]> {
    const tables = this.getSwappedTables();
    const names = tables.map(({ schema, name }) => `${schema}.${name}`).join(', ');
    await this.client.query(`set local lock_timeout = ${lockMs}`);
    // A commit writes its events first, so it waits there and holds nothing that the next locks need.
    await this.client.query(`lock table es.events, ${names} in share row exclusive mode`);
    const head = await this.eventStore.head();
    this.position = await builder.catchUp(this.position, this.touchedStreams, head);
    await this.plan.history?.catchUp(false);
    const differences = await this.compareAgain(knownDifferences, this.touchedStreams);
    if (this.plan.claims) {
      await this.client.query(`delete from ${STAGING}.claims where stream_id in (${NOT_FROM_LOG})`);
      await this.client.query(
        `insert into ${STAGING}.claims select * from es.claims where stream_id in (${NOT_FROM_LOG})
         on conflict (account_id, kind, value) do update
           set stream_id = excluded.stream_id, revision = excluded.revision`,
      );
    }
    if (this.replacesHistory) await this.plan.history?.takeOver();
    await this.client.query(`lock table ${names} in access exclusive mode`);
    await swapTables(this.client, tables);
    return differences;
  }

  /** Compares once more what differed before, and what was touched since. */
  private async compareAgain(
    knownDifferences: Difference[],
    touchedStreams: Set<string>,
  ): Promise<Difference[]> {
    const knownKeys = new Set(knownDifferences.map(({ table, stream }) => `${table} ${stream}`));
    let differences: Difference[] = [];
    for (const readModel of this.plan.readModels) {
      const prefix = `${readModel.aggregate.name}-`;
      const streams = [
        ...knownDifferences
          .filter(({ table }) => table === readModel.table)
          .map(({ stream }) => stream),
        ...[...touchedStreams].filter((stream) => stream.startsWith(prefix)),
      ];
      const diff = await this.diff.compareSome(
        readModel,
        [...new Set(streams)].map((stream) => parseStreamName(stream).id),
      );
      differences = differences.concat(diff.differences);
    }
    if (this.plan.claims) {
      const repeatedClaims = await this.diff.compareClaimsAgain(knownDifferences);
      const touchedClaims = await this.diff.compareClaimsOf([...touchedStreams]);
      const values = new Set(repeatedClaims.map(({ claim }) => JSON.stringify(claim)));
      const others = touchedClaims.filter(({ claim }) => !values.has(JSON.stringify(claim)));
      differences = differences.concat(repeatedClaims, others);
    }
    differences = differences.concat(
      knownDifferences.filter(({ table }) => table === this.plan.history?.table.name),
    );
    differences = differences.concat(await this.compareNewHistory());
    // Where a read model is written after its events, one that was touched just now may be about to be.
    return differences.filter(
      ({ table, stream, isMoving }) =>
        this.eventStore.isInDatabase || !isMoving || knownKeys.has(`${table} ${stream}`),
    );
  }

  /** Compares what the history has got since the last comparison. */
  private async compareNewHistory(): Promise<Difference[]> {
    const { history } = this.plan;
    if (!history) return [];
    const { comparedTo, differences } = await history.compare(this.comparedTo);
    this.comparedTo = comparedTo;
    return differences;
  }

  private async catchUp(builder: StagingBuilder): Promise<void> {
    this.position = await builder.catchUp(this.position, this.touchedStreams);
    await this.plan.history?.catchUp(true);
  }

  private get replacesHistory(): boolean {
    return this.plan.history !== null && !this.historyProblem;
  }

  private getStagedTables(): LiveTable[] {
    const { claims, history } = this.plan;
    return [
      ...this.stagedReadModels.map(toLiveTable),
      ...(claims ? [CLAIMS] : []),
      ...(history ? [history.table] : []),
    ];
  }

  private getSwappedTables(): LiveTable[] {
    const { readModels, claims, history } = this.plan;
    return [
      ...readModels.map(toLiveTable),
      ...(claims ? [CLAIMS] : []),
      ...(history && this.replacesHistory ? [history.table] : []),
    ];
  }

  private async createInUseError(): Promise<ConfigError> {
    const { rows } = await this.client.query<{ application_name: string; seconds: number }>(
      `select application_name, extract(epoch from now() - xact_start)::int as seconds
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
       order by xact_start limit 1`,
    );
    const [oldest] = rows;
    const detail = oldest
      ? ` The oldest transaction is ${oldest.seconds} s old (${oldest.application_name || 'without a name'}).`
      : '';
    return new ConfigError(
      `The tables were in use all the time, so nothing was switched.${detail}`,
    );
  }
}

function toLiveTable({ table }: AnyReadModel): LiveTable {
  return { schema: 'public', name: table };
}
