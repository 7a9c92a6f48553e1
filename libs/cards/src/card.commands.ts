import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { DataSource } from 'typeorm';
import type { CommandContext } from '#kernel/aggregate.js';
import { nextId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/handle-command.js';
import { archiveCard, createCard, unarchiveCard, updateCard, type Card } from './card.js';
import { cardRows } from './card.entity.js';
import type { CardAttributes, CardEvent } from './card.events.js';

export class CreateCard extends Command<Card> {
  constructor(
    readonly context: CommandContext,
    readonly attributes: CardAttributes,
  ) {
    super();
  }
}

@CommandHandler(CreateCard)
export class CreateCardHandler implements ICommandHandler<CreateCard> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly source: DataSource,
  ) {}

  async execute({ context, attributes }: CreateCard): Promise<Card> {
    const id = await nextId(this.source, 'cards_id');
    const { state } = await this.pipeline.handleCommand({
      rows: cardRows,
      id,
      context,
      given: async () => undefined,
      decide: () => createCard(id, context.accountId, attributes),
    });
    return state;
  }
}

export class UpdateCard extends Command<Card> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: Partial<CardAttributes>,
  ) {
    super();
  }
}

@CommandHandler(UpdateCard)
export class UpdateCardHandler implements ICommandHandler<UpdateCard> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, id, changes }: UpdateCard): Promise<Card> {
    return change(this.pipeline, context, id, (state) => updateCard(state, changes));
  }
}

export class ArchiveCard extends Command<Card> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(ArchiveCard)
export class ArchiveCardHandler implements ICommandHandler<ArchiveCard> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, id }: ArchiveCard): Promise<Card> {
    return change(this.pipeline, context, id, archiveCard);
  }
}

export class UnarchiveCard extends Command<Card> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(UnarchiveCard)
export class UnarchiveCardHandler implements ICommandHandler<UnarchiveCard> {
  constructor(private readonly pipeline: CommandPipeline) {}

  execute({ context, id }: UnarchiveCard): Promise<Card> {
    return change(this.pipeline, context, id, unarchiveCard);
  }
}

export const cardHandlers = [
  CreateCardHandler,
  UpdateCardHandler,
  ArchiveCardHandler,
  UnarchiveCardHandler,
];

async function change(
  pipeline: CommandPipeline,
  context: CommandContext,
  id: number,
  decide: (state: Card | undefined) => CardEvent[],
): Promise<Card> {
  const { state } = await pipeline.handleCommand({
    rows: cardRows,
    id,
    context,
    given: async () => undefined,
    decide,
  });
  return state;
}
