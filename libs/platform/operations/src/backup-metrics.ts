import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#kernel/errors.js';

const READ_INTERVAL_MS = 60_000;
const LAST_BACKUP = 'select extract(epoch from max(taken_at))::float8 as seconds from backups';

/** Exports when the last backup was made. */
@Injectable()
export class BackupMetrics {
  private readonly log = new Logger('metrics');
  private readAt = -Infinity;

  constructor(
    private readonly pool: Pool,
    registry: Registry,
  ) {
    const gauge = new Gauge({
      name: 'inkpad_backup_timestamp_seconds',
      help: 'Moment that the last complete backup holds; 0 before the first',
      registers: [],
    });
    registry.registerMetric(Object.assign(gauge, { collect: () => this.update(gauge) }));
  }

  /** Updates the gauge. When the query fails, its value stays. */
  private async update(gauge: Gauge): Promise<void> {
    if (performance.now() - this.readAt < READ_INTERVAL_MS) return;
    this.readAt = performance.now();
    try {
      const { rows } = await this.pool.query<{ seconds: number | null }>(LAST_BACKUP);
      gauge.set(rows[0]?.seconds ?? 0);
    } catch (error) {
      this.log.warn(`the last backup could not be found: ${getErrorMessage(error)}`);
    }
  }
}
