import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Config } from './config.js';
import { stopTracing } from './tracing.js';

/** What every part of a process may ask for: its settings, and where its metrics are registered. */
@Global()
@Module({})
export class KernelModule implements OnApplicationShutdown {
  static forRoot(config: Config): DynamicModule {
    return {
      module: KernelModule,
      providers: [
        { provide: Config, useValue: config },
        // One registry for a process, not the library's global one: tests run several services in one.
        { provide: Registry, useFactory: () => new Registry() },
      ],
      exports: [Config, Registry],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await stopTracing();
  }
}
