import { Global, Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { KernelModule } from '#platform/kernel/kernel.module.js';
import { AuditEntryRow } from './audit-log.entity.js';
import { connectFirst } from './first-connection.js';
import { createDataSourceOptions, getPool, type QUEUE_LIMITS } from './data-source.js';
import { WindowCounts } from './window-counts.js';
import { LeaderLock } from './leader-lock.js';
import { Maintenance } from './maintenance.service.js';
import { MasterKeys } from './master-keys.js';
import type { Migration } from './migrate.js';
import { ProcessLink } from './process-link.js';
import { ProcessSession } from './process-session.js';
import { PoolMetrics } from './pool-metrics.js';
import { QueueMetrics } from './queue-metrics.js';
import { ReportDatabase } from './report-database.service.js';
import { ServerWatch, synchronizeClock } from './server-watch.js';
import { VendorRateLimiter } from './vendor-rate-limiter.js';

const SERVICES = [
  WindowCounts,
  LeaderLock,
  Maintenance,
  MasterKeys,
  PoolMetrics,
  ProcessSession,
  QueueMetrics,
  ReportDatabase,
  ServerWatch,
  VendorRateLimiter,
];

/** TypeORM's data source, which is closed after HTTP is, and the pool beneath it. */
@Global()
@Module({})
export class DatabaseModule {
  /** @param migrations without which the process is not ready; none for a script */
  static forRoot(
    config: PlatformConfig,
    application: string,
    limits?: typeof QUEUE_LIMITS,
    migrations: readonly Migration[] = [],
  ): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        KernelModule.forRoot(config),
        TypeOrmModule.forRootAsync({
          useFactory: () => ({
            ...createDataSourceOptions(config, application, limits),
            migrations: [...migrations],
            autoLoadEntities: true,
            // Without a database the process says so and exits; its supervisor restarts it.
            retryAttempts: 0,
            // Else the framework logs the error, with its stack, as well.
            toRetry: () => false,
          }),
          dataSourceFactory: async (options) => {
            const source = new DataSource(options as DataSourceOptions);
            return connectFirst(config.databaseUrl, () => source.initialize());
          },
        }),
        TypeOrmModule.forFeature([AuditEntryRow]),
      ],
      providers: [
        {
          provide: pg.Pool,
          inject: [DataSource],
          // Nothing uses the pool before the time is known.
          useFactory: async (source: DataSource) => {
            const pool = getPool(source);
            await synchronizeClock(pool);
            return pool;
          },
        },
        { provide: ProcessLink, useFactory: () => new ProcessLink(config, application) },
        ...SERVICES,
      ],
      exports: [pg.Pool, ProcessLink, ...SERVICES],
    };
  }
}
