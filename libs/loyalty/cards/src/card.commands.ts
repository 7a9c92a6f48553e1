import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import {
  archiveCard,
  createCard,
  setStripImage,
  unarchiveCard,
  updateCard,
  type Card,
} from './card.js';
import { toCardJson, type CardJson } from './card.dto.js';
import { cardCap, cardReadModel } from './card.entity.js';
import type { CardAttributes, CardEvent } from './card.events.js';
import { CardsService } from './cards.service.js';

export class CreateCard extends Command<CardJson> {
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
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async execute({ context, attributes }: CreateCard): Promise<CardJson> {
    return withNewId(this.pool, cardReadModel.table, (id) =>
      this.pipeline.handleCommand({
        readModel: cardReadModel,
        id,
        isNew: true,
        context,
        decide: () => ({
          events: createCard(id, context.accountId, attributes),
          cap: { kind: cardCap, owner: context.accountId, id, max: this.config.quotas.cards },
        }),
        respond: ({ state }) => toCardJson(state, { rewards: 0, customerCards: 0 }),
      }),
    );
  }
}

export class UpdateCard extends Command<CardJson> {
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
  constructor(
    readonly pipeline: CommandPipeline,
    readonly cards: CardsService,
  ) {}

  execute({ context, id, changes }: UpdateCard): Promise<CardJson> {
    return change(this, context, id, (state) => updateCard(state, changes));
  }
}

export class ArchiveCard extends Command<CardJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(ArchiveCard)
export class ArchiveCardHandler implements ICommandHandler<ArchiveCard> {
  constructor(
    readonly pipeline: CommandPipeline,
    readonly cards: CardsService,
  ) {}

  execute({ context, id }: ArchiveCard): Promise<CardJson> {
    return change(this, context, id, archiveCard);
  }
}

export class UnarchiveCard extends Command<CardJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(UnarchiveCard)
export class UnarchiveCardHandler implements ICommandHandler<UnarchiveCard> {
  constructor(
    readonly pipeline: CommandPipeline,
    readonly cards: CardsService,
  ) {}

  execute({ context, id }: UnarchiveCard): Promise<CardJson> {
    return change(this, context, id, unarchiveCard);
  }
}

export class SetStripImage extends Command<CardJson> {
  /** @param picture SHA-256 of what `StripPictures` has stored */
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly picture: string,
  ) {
    super();
  }
}

@CommandHandler(SetStripImage)
export class SetStripImageHandler implements ICommandHandler<SetStripImage> {
  constructor(
    readonly pipeline: CommandPipeline,
    readonly cards: CardsService,
  ) {}

  execute({ context, id, picture }: SetStripImage): Promise<CardJson> {
    return change(this, context, id, (state) => setStripImage(state, picture));
  }
}

export const cardHandlers = [
  CreateCardHandler,
  UpdateCardHandler,
  ArchiveCardHandler,
  UnarchiveCardHandler,
  SetStripImageHandler,
];

function change(
  { pipeline, cards }: { pipeline: CommandPipeline; cards: CardsService },
  context: CommandContext,
  id: number,
  decide: (state: Card | undefined) => CardEvent[],
): Promise<CardJson> {
  return pipeline.handleCommand({
    readModel: cardReadModel,
    id,
    context,
    load: () => cards.findCounts(id),
    decide,
    respond: ({ state, inputs }) => toCardJson(state, inputs),
  });
}
