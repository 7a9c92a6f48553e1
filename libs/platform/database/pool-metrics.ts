import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { addGauge } from '#platform/kernel/gauges.js';
import { getPool } from './data-source.js';
import { MISSING_RESOURCES } from './sqlstate.js';

/** Measures the pool: callers waiting for a connection are the first sign of overload. */
@Injectable()
export class PoolMetrics {
  constructor(source: DataSource, registry: Registry) {
    const pool = getPool(source);
    addGauge(
      registry,
      {
        name: 'inkpad_database_connections_max',
        help: 'Maximum size of the connection pool (DATABASE_POOL)',
      },
      (gauge) => gauge.set(pool.options.max),
    );
    addGauge(
      registry,
      {
        name: 'inkpad_database_connections',
        help: 'Connections to PostgreSQL in the pool of this process',
        labelNames: ['state'],
      },
      (gauge) => {
        gauge.set({ state: 'idle' }, pool.unusedCount);
        gauge.set({ state: 'busy' }, pool.totalCount - pool.unusedCount);
      },
    );
    addGauge(
      registry,
      { name: 'inkpad_database_waiting', help: 'Callers waiting for a connection from the pool' },
      (gauge) => gauge.set(pool.queuedCount),
    );
    registry.registerMetric(
      new Counter({
        name: 'inkpad_database_resource_errors_total',
        help: 'Statements and connections that the server refused, by the missing resource',
        labelNames: ['resource'],
        registers: [],
        collect() {
          this.reset();
          const { counts } = pool.outages;
          for (const resource of MISSING_RESOURCES) this.inc({ resource }, counts[resource] ?? 0);
        },
      }),
    );
  }
}
