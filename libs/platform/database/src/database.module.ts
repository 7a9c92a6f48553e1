import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { DataSource } from 'typeorm';
import type { Config } from '#kernel/config.js';
import { KernelModule } from '#kernel/kernel.module.js';
import { dataSource, poolOf } from './data-source.js';
import { PoolMetrics } from './pool-metrics.js';

@Global()
@Module({})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(private readonly source: DataSource) {}

  static forRoot(config: Config, application: string): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [KernelModule.forRoot(config)],
      providers: [
        { provide: DataSource, useFactory: () => dataSource(config, application).initialize() },
        { provide: pg.Pool, inject: [DataSource], useFactory: poolOf },
        PoolMetrics,
      ],
      exports: [DataSource, pg.Pool],
    };
  }

  /** After HTTP has closed: until then requests in flight still need the pool. */
  async onApplicationShutdown(): Promise<void> {
    await this.source.destroy();
  }
}
