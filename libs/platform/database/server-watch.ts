import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { clock, type ClockSample } from '#platform/kernel/clock.js';
import { addGauge } from '#platform/kernel/gauges.js';
import { withConnection } from './connection.js';
import { StandbyError } from './database-client.js';
import { DatabasePool } from './database-pool.js';
import { ProcessLink } from './process-link.js';

/** Readings at the start. The one with the shortest round trip counts. */
const FIRST_READINGS = 5;
const MAX_OFFSET_MS = 2_000;
/** Smaller corrections are not logged. */
const LOGGED_JUMP_MS = 1_000;

const DATABASE_MS = 'extract(epoch from clock_timestamp())::float8 * 1000';
const READ = `select ${DATABASE_MS} as database_ms, pg_is_in_recovery() as is_standby`;

/** Measures the database's clock, so that `getNow()` returns its time from now on. */
export async function synchronizeClock(pool: Pool): Promise<void> {
  for (let i = 0; i < FIRST_READINGS; i++) clock.addSample(await readClock(pool));
}

/** @throws StandbyError which makes the pool leave the server */
function readClock(pool: Pool): Promise<ClockSample> {
  return withConnection(pool, async (client) => {
    const sentAt = performance.now();
    const { rows } = await client.query<{ database_ms: number; is_standby: boolean }>(READ);
    const receivedAt = performance.now();
    const [row] = rows;
    if (!row) throw new Error('the reading of a clock is one row');
    if (row.is_standby) throw new StandbyError();
    return { databaseMs: row.database_ms, sentAt, receivedAt };
  });
}

/**
 * Takes the time of the database from each poll (ADR-0098), and makes the pool leave a server that has become a standby
 * (ADR-0099).
 */
@Injectable()
export class ServerWatch implements OnModuleInit {
  private readonly log = new Logger('clock');
  private isClockOff = false;

  constructor(
    pool: Pool,
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
    link.onLost((cause) => {
      if (cause instanceof StandbyError && pool instanceof DatabasePool) pool.leaveStandby(cause);
    });
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
