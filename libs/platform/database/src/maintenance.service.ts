import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#kernel/errors.js';
import { query } from './connection.js';
import { addToWait, runWithWait } from './database-waits.js';

/** How long a process goes by what it has read. */
const CURRENT_FOR_MS = 1_000;

/** @property reason shown to callers; null: none was given */
export type MaintenanceRow = { reason: string | null; since: Date };

export const FIND_MAINTENANCE = {
  name: 'maintenance_find',
  text: 'select reason, since from maintenance',
};

/**
 * Tells whether maintenance mode is on, for every process as the database says (ADR-0102). Nothing polls: a request that
 * writes reads the row when the last read is a second old, which costs a process one short query a second.
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
    registry: Registry,
  ) {
    const refresh = () => void this.find().catch((error: unknown) => this.reportFailure(error));
    const isOn = () => this.current !== undefined;
    registry.registerMetric(
      new Gauge({
        name: 'inkpad_maintenance',
        help: 'Whether maintenance mode is on, during which requests that write are refused: 1 or 0',
        registers: [],
        collect() {
          this.set(isOn() ? 1 : 0);
          // Not awaited: metrics must not wait for the database.
          refresh();
        },
      }),
    );
  }

  /**
   * Finds the maintenance that was on at most a second ago.
   * @throws UnavailableError when the database does not say so
   */
  async find(): Promise<MaintenanceRow | undefined> {
    if (performance.now() - this.readAt >= CURRENT_FOR_MS) {
      await addToWait((this.pending ??= this.readForAll()));
    }
    return this.current;
  }

  /** Reads as work of no owner: in the queue of one, the requests of all others would wait behind that one. */
  private readForAll(): Promise<void> {
    const read = runWithWait(undefined, () => this.read());
    return read.finally(() => (this.pending = undefined));
  }

  private async read(): Promise<void> {
    const startedAt = performance.now();
    const [row] = await query<MaintenanceRow>(this.pool, FIND_MAINTENANCE);
    if (row && !this.current) this.log.warn('maintenance is on: requests that write are refused');
    if (!row && this.current) this.log.log('maintenance is off');
    this.current = row;
    this.readAt = startedAt;
  }

  private reportFailure(error: unknown): void {
    this.log.debug(`maintenance mode could not be read: ${getErrorMessage(error)}`);
  }
}
