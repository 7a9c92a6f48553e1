import { Inject, type Type } from '@nestjs/common';
import { Command, CommandHandler, type CommandResult } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext, DomainEvent } from '#platform/kernel/aggregate.js';
import { withNewId } from '#platform/database/ids.js';
import type { ReadModel } from '../read-models/read-models.js';
import type { CommandPlan } from './command-plan.js';
import { CommandPipeline } from './handle-command.js';

/** Tells to create a record with these attributes. */
export class CreateCommand<Attributes, R> extends Command<R> {
  constructor(
    readonly context: CommandContext,
    readonly attributes: Attributes,
  ) {
    super();
  }
}

/** Tells what to do with a record, such as to delete it, and nothing else. */
export class RecordCommand<R> extends Command<R> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

/** Tells which attributes of a record to change. */
export class UpdateCommand<Changes, R> extends RecordCommand<R> {
  constructor(
    context: CommandContext,
    id: number,
    readonly changes: Changes,
  ) {
    super(context, id);
  }
}

/** Plans a command whose record and caller are known. */
export type RecordPlan<S extends { accountId: number }, E extends DomainEvent, I, R> = Omit<
  CommandPlan<S, E, I, R>,
  'readModel' | 'id' | 'isNew' | 'context'
>;

/** Lists the classes of dependencies. */
type Tokens<D> = { [K in keyof D]: Type<D[K]> };

/**
 * Creates the handler of a command that creates a record.
 * @param plan gets the command, the new id and the dependencies; again with another id if the first is taken
 */
export function handleCreation<
  C extends CreateCommand<unknown, unknown>,
  S extends { accountId: number },
  E extends DomainEvent,
  I,
  const D extends readonly unknown[],
>(
  type: Type<C>,
  readModel: ReadModel<S, E>,
  dependencies: Tokens<D>,
  plan: (command: C, id: number, ...dependencies: D) => RecordPlan<S, E, I, CommandResult<C>>,
): Type {
  return defineHandler(type, dependencies, (command, { pipeline, pool }, ...rest: D) =>
    withNewId(pool, readModel.table, (id) => {
      const origin = { readModel, id, isNew: true, context: command.context };
      return pipeline.handleCommand({ ...plan(command, id, ...rest), ...origin });
    }),
  );
}

/** Creates the handler of a command on one record. @param plan gets the command and the dependencies */
export function handleChange<
  C extends RecordCommand<unknown>,
  S extends { accountId: number },
  E extends DomainEvent,
  I,
  const D extends readonly unknown[],
>(
  type: Type<C>,
  readModel: ReadModel<S, E>,
  dependencies: Tokens<D>,
  plan: (command: C, ...dependencies: D) => RecordPlan<S, E, I, CommandResult<C>>,
): Type {
  return defineHandler(type, dependencies, (command, { pipeline }, ...rest: D) => {
    const { context, id } = command;
    return pipeline.handleCommand({ ...plan(command, ...rest), readModel, id, context });
  });
}

/** Defines the class that Nest creates, with these dependencies, and registers for the command. */
export function defineHandler<C, D extends readonly unknown[]>(
  type: Type<C>,
  dependencies: Tokens<D>,
  handle: (
    command: C,
    parts: { pipeline: CommandPipeline; pool: Pool },
    ...dependencies: D
  ) => Promise<unknown>,
): Type {
  @CommandHandler(type as never)
  class Handler {
    private readonly injected: readonly unknown[];

    constructor(...injected: unknown[]) {
      this.injected = injected;
    }

    execute(command: C): Promise<unknown> {
      const [pipeline, pool, ...rest] = this.injected as [CommandPipeline, Pool, ...D];
      return handle(command, { pipeline, pool }, ...rest);
    }
  }
  // For Nest's messages and in stack traces.
  Object.defineProperty(Handler, 'name', { value: `${type.name}Handler` });
  // In place of the types that TypeScript would emit for the parameters of a constructor.
  const tokens = [CommandPipeline, Pool, ...(dependencies as unknown as Type[])];
  for (const [i, token] of tokens.entries()) Inject(token)(Handler, undefined, i);
  return Handler;
}
