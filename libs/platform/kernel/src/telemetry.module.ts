import { Global, Module, type OnApplicationShutdown } from '@nestjs/common';
import { Registry } from 'prom-client';
import { stopTracing } from './tracing.js';

/** One registry for a process, not the library's global one: tests run several services in one. */
@Global()
@Module({
  providers: [{ provide: Registry, useFactory: () => new Registry() }],
  exports: [Registry],
})
export class TelemetryModule implements OnApplicationShutdown {
  async onApplicationShutdown(): Promise<void> {
    await stopTracing();
  }
}
