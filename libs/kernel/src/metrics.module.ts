import { Global, Module } from '@nestjs/common';
import { Registry } from 'prom-client';

/** One registry for a process, not the library's global one: tests run several services in one. */
@Global()
@Module({
  providers: [{ provide: Registry, useFactory: () => new Registry() }],
  exports: [Registry],
})
export class MetricsModule {}
