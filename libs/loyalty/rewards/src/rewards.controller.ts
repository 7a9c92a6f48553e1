import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, Pages } from '#http/page.js';
import { CreateReward, DeleteReward, UpdateReward } from './reward.commands.js';
import {
  createRewardDto,
  rewardAnswer,
  rewardChanges,
  rewardListQuery,
  updateRewardDto,
  type RewardJson,
} from './reward.dto.js';
import { RewardsService } from './rewards.service.js';

@Controller('/api/v1/accounts/:account_id/rewards')
export class RewardsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly rewards: RewardsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listRewards',
    tag: 'Rewards',
    summary: "A store's rewards, by card and position",
    path: ['account_id'],
    query: rewardListQuery,
    status: 200,
    answer: z.array(rewardAnswer),
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<RewardJson[]> {
    const { card_id: cardId, active, ...page } = readQuery(rewardListQuery, given);
    return pages.answer(
      page,
      (range) => this.rewards.list(accountId, { cardId, active }, range),
      ({ id, card_id, position, stamps_required }) => [card_id, position, stamps_required, id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getReward',
    tag: 'Rewards',
    summary: 'One reward',
    path: ['account_id', 'id'],
    status: 200,
    answer: rewardAnswer,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<RewardJson> {
    return this.rewards.find(accountId, pathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createReward',
    tag: 'Rewards',
    summary: 'Put a reward on a card',
    path: ['account_id'],
    body: createRewardDto,
    wrapper: 'reward',
    status: 201,
    answer: rewardAnswer,
    errors: [404, 422],
  })
  async create(@Context() context: CommandContext, @Body() body: unknown): Promise<RewardJson> {
    const input = await readBody(createRewardDto, body, {
      wrapper: 'reward',
      bare: Object.keys(createRewardDto.shape),
    });
    const { card_id, name, description, stamps_required, position, active } = input;
    return this.commands.execute(
      new CreateReward(context, card_id, {
        name,
        description,
        stampsRequired: stamps_required,
        position,
        active,
      }),
    );
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateReward',
    tag: 'Rewards',
    summary: 'Change what is named',
    path: ['account_id', 'id'],
    body: updateRewardDto,
    wrapper: 'reward',
    status: 200,
    answer: rewardAnswer,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<RewardJson> {
    const id = pathId(path);
    const input = await readBody(updateRewardDto, body, {
      wrapper: 'reward',
      bare: Object.keys(createRewardDto.shape),
      record: () => this.rewards.find(context.accountId, id),
    });
    return this.commands.execute(new UpdateReward(context, id, rewardChanges(input)));
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteReward',
    tag: 'Rewards',
    summary: 'Remove a reward that nobody has redeemed yet',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404, 422],
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteReward(context, pathId(id)));
  }
}
