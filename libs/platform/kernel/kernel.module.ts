import {
  Global,
  Module,
  type DynamicModule,
  type Type,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { CommandBus, CqrsModule, type Command, type ICommand } from '@nestjs/cqrs';
import { Registry } from 'prom-client';
import { PlatformConfig } from './platform-config.js';
import { runInSpan, stopTracing } from './tracing.js';

/** Creates a span for each command: the bus has no interceptors. */
class TracedCommandBus extends CommandBus {
  override execute<R>(command: Command<R>): Promise<R>;
  override execute<T extends ICommand, R = unknown>(command: T): Promise<R>;
  override execute<R>(command: object): Promise<R> {
    return runInSpan(command.constructor.name, {}, () => super.execute<ICommand, R>(command));
  }
}

/** Provides the settings, the command bus and the metrics registry to every module. */
@Global()
@Module({})
export class KernelModule implements OnApplicationShutdown {
  static forRoot(config: PlatformConfig): DynamicModule {
    return {
      module: KernelModule,
      imports: [createCommandBus(config)],
      providers: [
        { provide: PlatformConfig, useValue: config },
        // Contexts ask for the class that has the product's settings too.
        { provide: config.constructor as Type, useValue: config },
        // One registry for a process, not the library's global one: tests run several services in one.
        { provide: Registry, useFactory: () => new Registry() },
      ],
      exports: [PlatformConfig, config.constructor as Type, Registry],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await stopTracing();
  }
}

/**
 * Creates the one command bus, which creates spans where they are exported. Modules must not import CqrsModule themselves:
 * each would get another bus.
 */
function createCommandBus({ otlpEndpoint }: PlatformConfig): DynamicModule {
  const { providers = [], ...cqrs } = CqrsModule.forRoot();
  if (otlpEndpoint !== null) providers.push({ provide: CommandBus, useClass: TracedCommandBus });
  return { ...cqrs, providers };
}
