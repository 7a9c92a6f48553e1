import { Global, Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { Config } from '#kernel/config.js';
import { KernelModule } from '#kernel/kernel.module.js';
import { AuditEntryRow } from './audit-log.entity.js';
import { dataSourceOptions, poolOf } from './data-source.js';
import { LeaderLock } from './leader-lock.js';
import { MasterKeys } from './master-keys.js';
import { PoolMetrics } from './pool-metrics.js';

/** TypeORM's data source, which is closed after HTTP is, and the pool beneath it. */
@Global()
@Module({})
export class DatabaseModule {
  static forRoot(config: Config, application: string): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        KernelModule.forRoot(config),
        TypeOrmModule.forRootAsync({
          useFactory: () => ({
            ...dataSourceOptions(config, application),
            autoLoadEntities: true,
            // Without a database the process says so and exits; its supervisor restarts it.
            retryAttempts: 0,
          }),
        }),
        TypeOrmModule.forFeature([AuditEntryRow]),
      ],
      providers: [
        { provide: pg.Pool, inject: [DataSource], useFactory: poolOf },
        {
          provide: MasterKeys,
          inject: [pg.Pool, Config],
          useFactory: (pool: pg.Pool, settings: Config) => new MasterKeys(pool, settings),
        },
        LeaderLock,
        PoolMetrics,
      ],
      exports: [pg.Pool, MasterKeys, LeaderLock],
    };
  }
}
