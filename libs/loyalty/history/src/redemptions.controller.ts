import { Controller, Get, Query } from '@nestjs/common';
import type { CommandContext } from '#kernel/aggregate.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, Pages } from '#http/page.js';
import {
  listedRedemptionJson,
  ListedRedemptionJson,
  redemptionFilterOf,
  RedemptionListQuery,
} from './redemption.dto.js';
import { redemptionKey } from './redemption-query.js';
import { RedemptionsService } from './redemptions.service.js';

@Controller('/api/v1/accounts/:account_id/redemptions')
export class RedemptionsController {
  constructor(private readonly redemptions: RedemptionsService) {}

  @Get()
  @Endpoint({
    id: 'listRedemptions',
    tag: 'Rewards',
    summary: 'List the redemptions of a store, newest first',
    description:
      'To be compared with receipts: from and to go by redeemed_at, which is also the order. A redemption that was undone stays in the list, with reversed_at.',
    path: ['account_id'],
    status: 200,
    response: [ListedRedemptionJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() query: RedemptionListQuery,
    @Paged() pages: Pages,
  ): Promise<ListedRedemptionJson[]> {
    const filter = redemptionFilterOf(query);
    const find = await this.redemptions.list(accountId, filter, query.external_ref);
    const shown = await pages.getPage(
      query,
      async (range) =>
        (await find(range)).map((told) => ({
          json: listedRedemptionJson(told),
          key: redemptionKey(told.entry),
        })),
      ({ key }) => key,
    );
    return shown.map(({ json }) => json);
  }
}
