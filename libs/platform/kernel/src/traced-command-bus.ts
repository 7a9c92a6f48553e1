import { CommandBus, type Command, type ICommand } from '@nestjs/cqrs';
import { runInSpan } from './tracing.js';

/** Creates a span for each command: the bus has no interceptors. */
export class TracedCommandBus extends CommandBus {
  override execute<R>(command: Command<R>): Promise<R>;
  override execute<T extends ICommand, R = unknown>(command: T): Promise<R>;
  override execute<R>(command: object): Promise<R> {
    return runInSpan(command.constructor.name, {}, () => super.execute<ICommand, R>(command));
  }
}
