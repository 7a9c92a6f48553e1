import { Controller, Get, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import {
  toListedRedemptionJson,
  ListedRedemptionJson,
  toRedemptionFilter,
  RedemptionListQuery,
} from './redemption.dto.js';
import { toRedemptionKey } from './redemption-query.js';
import { RedemptionsService } from './redemptions.service.js';

@Controller('/api/v1/accounts/:account_id/redemptions')
export class RedemptionsController {
  constructor(private readonly redemptions: RedemptionsService) {}

  @Get()
  @Endpoint({
    id: 'listRedemptions',
    readsMuch: true,
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
    @Paged() pages: PageReader,
  ): Promise<ListedRedemptionJson[]> {
    const filter = toRedemptionFilter(query);
    const find = await this.redemptions.list(accountId, filter, query.external_ref);
    const entries = await pages.getPage(
      query,
      async (range) =>
        (await find(range)).map((entry) => ({
          json: toListedRedemptionJson(entry),
          key: toRedemptionKey(entry.entry),
        })),
      ({ key }) => key,
    );
    return entries.map(({ json }) => json);
  }
}
