import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { type Gauge, Registry } from 'prom-client';
import { addGauge, shareReads } from '#platform/kernel/gauges.js';

const FAILING = {
  name: 'statistics_recounts_failing',
  text: `select count(*) as count from statistics_stores where recount_at is not null and recount_failures > 0`,
};

/** Measures how many stores could not be counted. */
@Injectable()
export class RecountGauge {
  constructor(pool: Pool, registry: Registry) {
    addGauge(
      registry,
      {
        name: 'inkpad_statistics_failing_stores',
        help: 'Stores whose statistics could not be counted and stay as they are until they are counted anew',
      },
      shareReads(
        new Logger('statistics'),
        'the stores that could not be counted',
        0,
        async (gauge: Gauge) => {
          const { rows } = await pool.query<{ count: number }>(FAILING);
          gauge.set(rows[0]?.count ?? 0);
        },
      ),
    );
  }
}
