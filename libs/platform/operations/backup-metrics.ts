import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { type Gauge, Registry } from 'prom-client';
import { addGauge, shareReads } from '#platform/kernel/gauges.js';

const READ_INTERVAL_MS = 60_000;
const LAST_BACKUP = 'select extract(epoch from max(taken_at))::float8 as seconds from backups';

/** Exports when the last backup was made. */
@Injectable()
export class BackupMetrics {
  constructor(pool: Pool, registry: Registry) {
    addGauge(
      registry,
      {
        name: 'inkpad_backup_timestamp_seconds',
        help: 'Moment that the last complete backup holds; 0 before the first',
      },
      shareReads(
        new Logger('metrics'),
        'the last backup',
        READ_INTERVAL_MS,
        async (gauge: Gauge) => {
          const { rows } = await pool.query<{ seconds: number | null }>(LAST_BACKUP);
          gauge.set(rows[0]?.seconds ?? 0);
        },
      ),
    );
  }
}
