import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { addGauge } from '#platform/kernel/gauges.js';
import { query } from './connection.js';
import { addToWait, runWithWait } from './database-waits.js';
import { ProcessLink } from './process-link.js';

/** How long a process goes by what it has read. */
const CURRENT_FOR_MS = 1_000;

/** @property reason shown to callers; null: no reason is shown */
export type MaintenanceRow = { reason: string | null; since: Date };

export const FIND_MAINTENANCE = {
  name: 'maintenance_find',
  text: 'select reason, since from maintenance',
};

/**
 * Tells whether maintenance mode is on, for every process as the database says. Each poll reads the row. A setting would need
 * a restart of every process, and with a read-only database nobody could read: reads write too, such as the last use of a token.
 */
@Injectable()
export class Maintenance {
  private readonly log = new Logger('maintenance');
  private current: MaintenanceRow | undefined;
  private pending: Promise<void> | undefined;
  /** When the last successful read began. */
  private readAt = -Infinity;

  constructor(
    private readonly pool: Pool,
    link: ProcessLink,
    registry: Registry,
  ) {
    link.join<{ maintenance_reason: string | null; maintenance_since: Date | null }>({
      columns: `(select reason from maintenance) as maintenance_reason, (select since from maintenance) as maintenance_since`,
      receive: ({ maintenance_reason: reason, maintenance_since: since }, { sentAt }) =>
        this.receive(since ? { reason, since } : undefined, sentAt),
    });
    addGauge(
      registry,
      {
        name: 'inkpad_maintenance',
        help: 'Whether maintenance mode is on, during which requests that write are refused: 1 or 0',
      },
      (gauge) => gauge.set(this.current ? 1 : 0),
    );
  }

  /**
   * Finds the maintenance that was on at most a second ago, at once unless the polls have stopped.
   * @throws UnavailableError when the database does not say so
   */
  find(): Awaitable<MaintenanceRow | undefined> {
    if (performance.now() - this.readAt < CURRENT_FOR_MS) return this.current;
    return addToWait((this.pending ??= this.readForAll())).then(() => this.current);
  }

  /** Reads as work of no owner: in the queue of one owner, the requests of all others would wait behind it. */
  private readForAll(): Promise<void> {
    const read = runWithWait(undefined, () => this.read());
    return read.finally(() => (this.pending = undefined));
  }

  private async read(): Promise<void> {
    const startedAt = performance.now();
    const [row] = await query<MaintenanceRow>(this.pool, FIND_MAINTENANCE);
    this.receive(row, startedAt);
  }

  private receive(row: MaintenanceRow | undefined, readAt: number): void {
    if (row && !this.current) this.log.warn('maintenance is on: requests that write are refused');
    if (!row && this.current) this.log.log('maintenance is off');
    this.current = row;
    this.readAt = readAt;
  }
}
