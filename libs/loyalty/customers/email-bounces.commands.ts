import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { customerReadModel } from './customer.entity.js';
import { recordBounce, retryEmail, type ReturnedEmail } from './email-bounces.js';

/** Stops e-mails to an address because one came back. Recording the same again changes nothing. */
export class RecordBounce extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly customerId: number,
    readonly email: ReturnedEmail,
  ) {
    super();
  }
}

@CommandHandler(RecordBounce)
export class RecordBounceHandler implements ICommandHandler<RecordBounce> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, customerId, email }: RecordBounce): Promise<void> {
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id: customerId,
      context,
      load: () => Promise.resolve(undefined),
      decide: (state, _, now) => recordBounce(state, email, now),
      respond: () => undefined,
    });
  }
}

/** Allows e-mails to an address that bounced, because somebody knows that they arrive again. */
export class RetryEmail extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly customerId: number,
  ) {
    super();
  }
}

@CommandHandler(RetryEmail)
export class RetryEmailHandler implements ICommandHandler<RetryEmail> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, customerId }: RetryEmail): Promise<void> {
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id: customerId,
      context,
      load: () => Promise.resolve(undefined),
      decide: (state) => retryEmail(state),
      respond: () => undefined,
    });
  }
}
