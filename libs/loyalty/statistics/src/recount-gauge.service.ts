import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#kernel/errors.js';

const FAILING = {
  name: 'statistics_recounts_failing',
  text: `select count(*) as count from statistics_stores where recount_at is not null and recount_failures > 0`,
};

/** Measures how many stores could not be counted. */
@Injectable()
export class RecountGauge {
  private readonly log = new Logger('statistics');

  constructor(
    private readonly pool: Pool,
    registry: Registry,
  ) {
    const gauge = new Gauge({
      name: 'inkpad_statistics_failing_stores',
      help: 'Stores whose statistics could not be counted and stay as they are until they are counted anew',
      registers: [],
    });
    registry.registerMetric(Object.assign(gauge, { collect: () => this.measure(gauge) }));
  }

  /** Updates the gauge. If the query fails, its value remains. */
  private async measure(gauge: Gauge): Promise<void> {
    try {
      const { rows } = await this.pool.query<{ count: number }>(FAILING);
      gauge.set(rows[0]?.count ?? 0);
    } catch (error) {
      this.log.warn(`the stores could not be counted: ${getErrorMessage(error)}`);
    }
  }
}
