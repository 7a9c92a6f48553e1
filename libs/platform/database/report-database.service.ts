import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { Counter, Registry } from 'prom-client';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { getErrorMessage, OverloadError } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { isTransient, query } from './connection.js';
import { CONNECTION } from './database-client.js';
import { DatabasePool } from './database-pool.js';
import { createApplicationName, REQUEST_LIMITS } from './data-source.js';
import { findDatabaseError, SQLSTATE } from './sqlstate.js';

/** Reports are few, and each has a second pool to fall back to. */
const POOL_SIZE = 4;
const POLL_INTERVAL_MS = 50;
/** A healthy replica is milliseconds behind. Whoever waits for a report would rather have it from the primary. */
const MAX_LAG_MS = 2_000;
/** After a failure, reports do not wait for the replica for so long. */
const AVOIDED_FOR_MS = 10_000;

/**
 * Finds the end of the primary's log. A commit that did not wait for the disk is in the log, but perhaps not written
 * yet: with KurrentDB, those of read models never wait.
 */
const PRIMARY_POSITION = {
  name: 'report_primary_position',
  text: `select (case when $1 or current_setting('synchronous_commit') = 'off'
           then pg_current_wal_insert_lsn() else pg_current_wal_lsn() end)::text as lsn`,
};

/** Returns null when the server is no standby, and may be a former one with a history of its own. */
const HAS_REPLAYED = {
  name: 'report_has_replayed',
  text: `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() >= $1::pg_lsn end as has_replayed`,
};

/**
 * Runs the queries of reports on a read replica (ADR-0099), so that other requests do not wait for them.
 * A report is never older than its request: it waits until the replica has what the primary had then. A replica
 * that needs too long, or cannot be reached, is left alone for a while, and the primary is read.
 */
@Injectable()
export class ReportDatabase implements OnModuleDestroy {
  private readonly log = new Logger('read replica');
  private readonly replica: Pool | undefined;
  private readonly reads: Counter<'server'>;
  private avoidUntil = -Infinity;
  private readonly failures = new FailureLog(this.log);

  constructor(
    private readonly primary: Pool,
    private readonly config: PlatformConfig,
    registry: Registry,
  ) {
    this.reads = new Counter({
      name: 'inkpad_report_reads_total',
      help: 'Reads of statistics and exports, by the server that was read: replica or primary',
      labelNames: ['server'],
      registers: [registry],
    });
    if (config.databaseReadUrl === null) return;
    this.replica = new DatabasePool({
      connectionString: config.databaseReadUrl,
      application_name: createApplicationName(config, 'reports'),
      max: POOL_SIZE,
      allowExitOnIdle: true,
      idleTimeoutMillis: 60_000,
      acceptsStandby: true,
      ...CONNECTION,
      ...REQUEST_LIMITS,
    });
    // An idle connection that breaks is replaced by the next read.
    this.replica.on('error', (error) => this.log.debug(getErrorMessage(error)));
  }

  async onModuleDestroy(): Promise<void> {
    await this.replica?.end();
  }

  /**
   * Runs work that only reads.
   * @param work runs again on the primary when the replica fails
   */
  async read<R>(work: (pool: Pool) => Promise<R>): Promise<R> {
    if (!this.replica || performance.now() < this.avoidUntil) return this.readPrimary(work);
    const position = await this.findPosition();
    try {
      const failure = await this.findLag(this.replica, position);
      if (failure !== undefined) {
        this.avoid(failure);
        return await this.readPrimary(work);
      }
      const result = await work(this.replica);
      this.reads.inc({ server: 'replica' });
      this.failures.succeed('reports are read from the replica again');
      return result;
    } catch (error) {
      // The replica is not to blame for a queue of this process, and the primary must not get what waits there.
      if (error instanceof OverloadError) throw error;
      const code = findDatabaseError(error)?.code;
      // It would take as long on the primary, which the replica is there to spare.
      if (code === SQLSTATE.queryCanceled) throw error;
      // Among others, a standby ends queries that hold up its replay.
      if (!isTransient(error) && code === undefined) throw error;
      this.avoid(getErrorMessage(error));
      return this.readPrimary(work);
    }
  }

  /** Finds the position of the primary in its log. */
  private async findPosition(): Promise<string> {
    const [position] = await query<{ lsn: string }>(this.primary, {
      ...PRIMARY_POSITION,
      values: [this.config.eventStoreUrl !== null],
    });
    if (!position) throw new Error('the primary did not return its position');
    return position.lsn;
  }

  /** Waits until the replica has reached a position. @returns why it has not; undefined when it has */
  private async findLag(replica: Pool, position: string): Promise<string | undefined> {
    const deadline = performance.now() + MAX_LAG_MS;
    for (;;) {
      const [row] = await query<{ has_replayed: boolean | null }>(replica, {
        ...HAS_REPLAYED,
        values: [position],
      });
      if (row?.has_replayed === true) return undefined;
      if (row?.has_replayed !== false) return 'the server of DATABASE_READ_URL is no standby';
      if (performance.now() >= deadline) return `it is more than ${MAX_LAG_MS} ms behind`;
      await wait(POLL_INTERVAL_MS);
    }
  }

  private async readPrimary<R>(work: (pool: Pool) => Promise<R>): Promise<R> {
    const result = await work(this.primary);
    this.reads.inc({ server: 'primary' });
    return result;
  }

  private avoid(reason: string): void {
    this.avoidUntil = performance.now() + AVOIDED_FOR_MS;
    this.failures.fail(`reports are read from the primary: ${reason}`);
  }
}
