import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import type { CardPath } from '#loyalty/stamping/card-holder.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { requestCardLinks } from './card-links.js';
import { customerReadModel } from './customer.entity.js';

/**
 * Sends the wallet links of a card to its customer once more, at the address on file. Asked for too often it does
 * nothing. Tells whether they are sent, which a stranger must not learn.
 */
export class RequestCardLinks extends Command<boolean> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
  ) {
    super();
  }
}

@CommandHandler(RequestCardLinks)
export class RequestCardLinksHandler implements ICommandHandler<RequestCardLinks> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly customerCards: CustomerCardsService,
  ) {}

  execute({ context, path }: RequestCardLinks): Promise<boolean> {
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id: path.customerId,
      context,
      load: () => this.customerCards.listIds([path.customerId]),
      decide: (state, cards, now) =>
        requestCardLinks(
          state,
          { customerCardId: path.id, cardIds: cards.map(({ id }) => id) },
          now,
        ),
      respond: ({ events }) => events.length > 0,
    });
  }
}
