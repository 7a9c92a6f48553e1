import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomInt } from 'node:crypto';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#event-store/read-models/read-models.js';
import { createPoster, deletePoster, poster, updatePoster, type NewPoster } from './poster.js';
import type { PosterJson } from './poster.dto.js';
import { posterCap, posterReadModel } from './poster.entity.js';
import type { PosterAttributes } from './poster.events.js';
import { PostersService } from './posters.service.js';

const SLUG_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 131 bits: slugs cannot be guessed. */
const SLUG_LENGTH = 22;

export class CreatePoster extends Command<PosterJson> {
  constructor(
    readonly context: CommandContext,
    readonly cardId: number,
    readonly attributes: NewPoster,
  ) {
    super();
  }
}

@CommandHandler(CreatePoster)
export class CreatePosterHandler implements ICommandHandler<CreatePoster> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly posters: PostersService,
    private readonly keys: PersonalKeys,
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async execute({ context, cardId, attributes }: CreatePoster): Promise<PosterJson> {
    const { accountId } = context;
    const slug = createSlug();
    return withNewId(this.pool, posterReadModel.table, (id) =>
      this.pipeline.handleCommand({
        readModel: posterReadModel,
        id,
        isNew: true,
        context,
        load: () => this.posters.getCardDesign(accountId, cardId),
        decide: (_state, card) => ({
          events: createPoster({ id, accountId, slug }, card, attributes),
          claims: [this.keys.createClaim(accountId, 'poster_slug', slug, toStreamName(poster, id))],
          cap: { kind: posterCap, owner: accountId, id, max: this.config.quotas.posters },
        }),
        respond: ({ state }) => this.posters.toJson(state),
      }),
    );
  }
}

export class UpdatePoster extends Command<PosterJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: Partial<PosterAttributes>,
  ) {
    super();
  }
}

@CommandHandler(UpdatePoster)
export class UpdatePosterHandler implements ICommandHandler<UpdatePoster> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly posters: PostersService,
  ) {}

  async execute({ context, id, changes }: UpdatePoster): Promise<PosterJson> {
    return this.pipeline.handleCommand({
      readModel: posterReadModel,
      id,
      context,
      decide: (current) => updatePoster(current, changes),
      respond: ({ state }) => this.posters.toJson(state),
    });
  }
}

export class DeletePoster extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(DeletePoster)
export class DeletePosterHandler implements ICommandHandler<DeletePoster> {
  constructor(private readonly pipeline: CommandPipeline) {}

  async execute({ context, id }: DeletePoster): Promise<void> {
    await this.pipeline.handleCommand({
      readModel: posterReadModel,
      id,
      context,
      decide: deletePoster,
      respond: () => undefined,
    });
  }
}

export const posterHandlers = [CreatePosterHandler, UpdatePosterHandler, DeletePosterHandler];

function createSlug(): string {
  return Array.from({ length: SLUG_LENGTH }, () =>
    SLUG_ALPHABET.charAt(randomInt(SLUG_ALPHABET.length)),
  ).join('');
}
