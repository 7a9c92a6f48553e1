import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { createReward, deleteReward, updateReward, type NewReward } from './reward.js';
import { toRewardJson, type RewardJson } from './reward.dto.js';
import { rewardCap, rewardReadModel } from './reward.entity.js';
import type { RewardAttributes } from './reward.events.js';
import { RewardsService } from './rewards.service.js';

/** Every page and pass of the card, and every stamp on it, reads all of its rewards. */
const MAX_REWARDS_PER_CARD = 50;

export class CreateReward extends Command<RewardJson> {
  constructor(
    readonly context: CommandContext,
    readonly cardId: number,
    readonly attributes: NewReward,
  ) {
    super();
  }
}

@CommandHandler(CreateReward)
export class CreateRewardHandler implements ICommandHandler<CreateReward> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly rewards: RewardsService,
    private readonly pool: Pool,
  ) {}

  async execute({ context, cardId, attributes }: CreateReward): Promise<RewardJson> {
    return withNewId(this.pool, rewardReadModel.table, (id) =>
      this.pipeline.handleCommand({
        readModel: rewardReadModel,
        id,
        isNew: true,
        context,
        load: () => this.rewards.getNextPosition(context.accountId, cardId),
        decide: (_state, next) => ({
          events: createReward(id, context.accountId, cardId, {
            ...attributes,
            position: attributes.position ?? next,
          }),
          cap: { kind: rewardCap, owner: cardId, id, max: MAX_REWARDS_PER_CARD },
        }),
        respond: ({ state }) => toRewardJson(state),
      }),
    );
  }
}

export class UpdateReward extends Command<RewardJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: Partial<RewardAttributes>,
  ) {
    super();
  }
}

@CommandHandler(UpdateReward)
export class UpdateRewardHandler implements ICommandHandler<UpdateReward> {
  constructor(private readonly pipeline: CommandPipeline) {}

  async execute({ context, id, changes }: UpdateReward): Promise<RewardJson> {
    return this.pipeline.handleCommand({
      readModel: rewardReadModel,
      id,
      context,
      decide: (current) => updateReward(current, changes),
      respond: ({ state }) => toRewardJson(state),
    });
  }
}

export class DeleteReward extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(DeleteReward)
export class DeleteRewardHandler implements ICommandHandler<DeleteReward> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly rewards: RewardsService,
  ) {}

  async execute({ context, id }: DeleteReward): Promise<void> {
    await this.pipeline.handleCommand({
      readModel: rewardReadModel,
      id,
      context,
      load: () => this.rewards.wasRedeemed(id),
      decide: deleteReward,
      respond: () => undefined,
    });
  }
}

export const rewardHandlers = [CreateRewardHandler, UpdateRewardHandler, DeleteRewardHandler];
