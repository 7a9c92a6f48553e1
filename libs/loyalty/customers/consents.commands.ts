import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { confirmConsent } from './consents.js';
import { customerReadModel } from './customer.entity.js';
import type { ConsentKind } from './customer.events.js';

/** Confirms a consent, by the link that went to the address. Confirming it again changes nothing. */
export class ConfirmConsent extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly customerId: number,
    readonly consent: { kind: ConsentKind; address: string },
  ) {
    super();
  }
}

@CommandHandler(ConfirmConsent)
export class ConfirmConsentHandler implements ICommandHandler<ConfirmConsent> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, customerId, consent }: ConfirmConsent): Promise<void> {
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id: customerId,
      context,
      load: () => Promise.resolve(undefined),
      decide: (state) => confirmConsent(state, consent),
      respond: () => undefined,
    });
  }
}
