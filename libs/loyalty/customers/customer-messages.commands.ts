import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { recordMessage, type SentMessage } from './customer-messages.js';
import { customerReadModel } from './customer.entity.js';

/** Records that the store wrote to a customer. Recording the same message again changes nothing. */
export class RecordMessage extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly customerId: number,
    readonly message: SentMessage,
  ) {
    super();
  }
}

@CommandHandler(RecordMessage)
export class RecordMessageHandler implements ICommandHandler<RecordMessage> {
  constructor(private readonly pipeline: CommandPipeline) {}

  /** @throws NotFoundError, RejectedError when the customer was erased or merged into another */
  execute({ context, customerId, message }: RecordMessage): Promise<void> {
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id: customerId,
      context,
      load: () => Promise.resolve(undefined),
      decide: (state) => recordMessage(state, message),
      respond: () => undefined,
    });
  }
}
