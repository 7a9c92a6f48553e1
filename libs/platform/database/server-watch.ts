import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { clock, type ClockSample } from '#platform/kernel/clock.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { addGauge } from '#platform/kernel/gauges.js';
import { withConnection } from './connection.js';
import { DatabasePool } from './database-pool.js';
import { ProcessLink } from './process-link.js';

/** Readings at the start. The one with the shortest round trip counts. */
const FIRST_READINGS = 5;
const MAX_OFFSET_MS = 2_000;
/** Smaller corrections are not logged. */
const LOGGED_JUMP_MS = 1_000;

const DATABASE_MS = 'extract(epoch from clock_timestamp())::float8 * 1000';
/** For how long a commit waits at most for a synchronous standby that is there. */
const STANDBY_WAIT_SECONDS = 2;
/** One reading could be of a statement that took long before it waited. */
const STANDBY_AWAY_AFTER_MS = 400;
/** How long the longest of the commits that wait for a synchronous standby has taken. Reads nothing unless there is to be one. */
const STANDBY_WAIT = `
  current_setting('synchronous_standby_names') as standby_names,
  case when current_setting('synchronous_standby_names') = '' then 0 else (
    select coalesce(max(extract(epoch from clock_timestamp() - query_start)), 0)::float8 from pg_stat_activity
    where wait_event = 'SyncRep' and datname = current_database()) end as standby_wait_seconds`;

const READ = `select ${DATABASE_MS} as database_ms`;

type StandbyRow = { standby_names: string; standby_wait_seconds: number };

/** Measures the database's clock, so that `getNow()` returns its time from now on. */
export async function synchronizeClock(pool: Pool): Promise<void> {
  for (let i = 0; i < FIRST_READINGS; i++) clock.addSample(await readClock(pool));
}

function readClock(pool: Pool): Promise<ClockSample> {
  return withConnection(pool, async (client) => {
    const sentAt = performance.now();
    const { rows } = await client.query<{ database_ms: number }>(READ);
    const receivedAt = performance.now();
    const [row] = rows;
    if (!row) throw new Error('the reading of a clock is one row');
    return { databaseMs: row.database_ms, sentAt, receivedAt };
  });
}

/**
 * Takes the time of the database from each poll (ADR-0098), and notices when commits wait for a synchronous standby that is
 * away (ADR-0099).
 */
@Injectable()
export class ServerWatch implements OnModuleInit {
  private readonly log = new Logger('clock');
  private readonly standbyFailures = new FailureLog(new Logger('database'));
  private isClockOff = false;
  private standbyAwaySince = Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly link: ProcessLink,
    registry: Registry,
  ) {
    link.join<{ database_ms: number }>({
      columns: `${DATABASE_MS} as database_ms`,
      receive: ({ database_ms: databaseMs }, times) => {
        this.reportJump(clock.addSample({ databaseMs, ...times }));
        this.reportMachineClock();
      },
    });
    link.join<StandbyRow>({
      columns: STANDBY_WAIT,
      receive: (row, { sentAt }) => this.watchStandby(row, sentAt),
    });
    link.onLost(() => this.setStandbyAway(false));
    addGauge(
      registry,
      {
        name: 'inkpad_clock_offset_seconds',
        help: 'By how much the clock of this machine is ahead of that of the database; negative if it is behind',
      },
      (gauge) => gauge.set(clock.getMachineOffsetMs() / 1_000),
    );
  }

  async onModuleInit(): Promise<void> {
    this.reportMachineClock();
    await this.link.poll();
  }

  private watchStandby(row: StandbyRow, sentAt: number): void {
    const isWaitedFor = row.standby_wait_seconds >= STANDBY_WAIT_SECONDS;
    this.standbyAwaySince = isWaitedFor ? Math.min(this.standbyAwaySince, sentAt) : Infinity;
    const isAway = sentAt - this.standbyAwaySince >= STANDBY_AWAY_AFTER_MS;
    this.setStandbyAway(isAway);
    if (isAway)
      this.standbyFailures.fail(
        `commits wait for a synchronous standby that is away, of synchronous_standby_names = ${row.standby_names}: changes get 503 until it is back or no longer listed (docs/operating/incidents.md, StandbyIsAway)`,
      );
    else this.standbyFailures.succeed('no commit waits for a synchronous standby any more');
  }

  private setStandbyAway(isAway: boolean): void {
    if (!(this.pool instanceof DatabasePool)) return;
    const { outages } = this.pool;
    if (isAway && !outages.isStandbyAway)
      outages.counts.synchronous_standby = (outages.counts.synchronous_standby ?? 0) + 1;
    outages.isStandbyAway = isAway;
  }

  private reportJump(jumpMs: number): void {
    if (Math.abs(jumpMs) < LOGGED_JUMP_MS) return;
    const jump = describeDifference(jumpMs);
    this.log.warn(
      jumpMs > 0
        ? `the clock of the database has jumped ${jump} ahead, or this machine was suspended; all times follow`
        : `the clock of the database has jumped ${jump} back: all times follow, at half speed where it is less than a minute (docs/operating/incidents.md, ClockIsOff)`,
    );
  }

  /** Logs one line when the clock of this machine goes wrong, and one when it is right again. */
  private reportMachineClock(): void {
    const offsetMs = clock.getMachineOffsetMs();
    const isOff = Math.abs(offsetMs) > MAX_OFFSET_MS;
    if (isOff === this.isClockOff) return;
    this.isClockOff = isOff;
    if (!isOff) return this.log.log('the clocks of this machine and the database agree again');
    const direction = offsetMs > 0 ? 'ahead of' : 'behind';
    this.log.warn(
      `the clock of this machine is ${describeDifference(offsetMs)} ${direction} that of the database, whose time counts: set the wrong one (docs/operating/incidents.md, ClockIsOff)`,
    );
  }
}

function describeDifference(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(1)} s`;
}
