import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Config } from '#kernel/config.js';
import { TelemetryModule } from '#kernel/telemetry.module.js';
import { dataSource } from './data-source.js';
import { PoolMetrics } from './pool-metrics.js';

/** Injection token of the settings, which are read once in `main.ts`. */
export const CONFIG = Symbol('config');

@Global()
@Module({})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(private readonly source: DataSource) {}

  static forRoot(config: Config, application: string): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [TelemetryModule],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: DataSource, useFactory: () => dataSource(config, application).initialize() },
        PoolMetrics,
      ],
      exports: [CONFIG, DataSource],
    };
  }

  /** After HTTP has closed: until then requests in flight still need the pool. */
  async onApplicationShutdown(): Promise<void> {
    await this.source.destroy();
  }
}
