import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { AsOfQuery } from '#platform/http/as-of.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CreateReward, DeleteReward, UpdateReward } from './reward.commands.js';
import {
  CreateRewardDto,
  RewardJson,
  RewardListQuery,
  UpdateRewardDto,
  toRewardAttributes,
} from './reward.dto.js';
import { RewardsService } from './rewards.service.js';

const REWARD = createRecordLookup(RewardsService, (rewards, accountId, { id = '' }) =>
  rewards.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Rewards',
  order: 40,
  description: 'Milestones of a card: a customer gets a reward for a number of stamps.',
})
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
    summary: 'List rewards',
    description: 'The rewards of a store, by card and position.',
    path: ['account_id'],
    status: 200,
    response: [RewardJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() { card_id: cardId, active, updated_since, as_of: time, ...page }: RewardListQuery,
    @Paged() pages: PageReader,
  ): Promise<RewardJson[]> {
    const filter = { cardId, active, updatedSince: updated_since };
    const key = (row: RewardJson) => [row.card_id, row.position, row.stamps_required, row.id];
    return time === null
      ? pages.getPage(page, (range) => this.rewards.list(accountId, filter, range), key)
      : pages.getPageFrom(page, await this.rewards.listPast(accountId, filter, time), key);
  }

  @Get(':id')
  @Endpoint({
    id: 'getReward',
    tag: 'Rewards',
    summary: 'Show a reward',
    description: 'One reward, active or not.',
    path: ['account_id', 'id'],
    status: 200,
    response: RewardJson,
    errors: [404, 422],
    record: REWARD,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { as_of: time }: AsOfQuery,
  ): Promise<RewardJson> {
    const id = parsePathId(path);
    return time === null
      ? this.rewards.get(accountId, id)
      : this.rewards.getPast(accountId, id, time);
  }

  @Post()
  @Endpoint({
    id: 'createReward',
    tag: 'Rewards',
    summary: 'Create a reward',
    description: 'It belongs to one card for good. Sends reward.created.',
    path: ['account_id'],
    status: 201,
    response: RewardJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: CreateRewardDto,
  ): Promise<RewardJson> {
    return this.commands.execute(new CreateReward(context, toRewardAttributes(body)));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateReward',
    tag: 'Rewards',
    summary: 'Update a reward',
    description: 'Only the given fields change. Sends reward.updated if one does.',
    path: ['account_id', 'id'],
    status: 200,
    response: RewardJson,
    errors: [404, 422],
    record: REWARD,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateRewardDto,
  ): Promise<RewardJson> {
    return this.commands.execute(
      new UpdateReward(context, parsePathId(path), toRewardAttributes(body)),
    );
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteReward',
    tag: 'Rewards',
    summary: 'Delete a reward',
    description:
      'Only one that nobody has redeemed yet; set active to false otherwise. Sends reward.deleted.',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404, 422],
    record: REWARD,
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteReward(context, parsePathId(id)));
  }
}
