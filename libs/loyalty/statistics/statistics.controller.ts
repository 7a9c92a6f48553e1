import { Controller, Get, Query } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { StatisticsJson, StatisticsQuery } from './statistics.dto.js';
import { StatisticsService } from './statistics.service.js';

const TAG = 'Statistics';

@DeclaresTag({ name: TAG, order: 76, description: 'Stamps, redemptions and customers over time.' })
@Controller('/api/v1/accounts/:account_id/statistics')
export class StatisticsController {
  constructor(private readonly statistics: StatisticsService) {}

  @Get()
  @Endpoint({
    id: 'getStatistics',
    readsMuch: true,
    tag: TAG,
    summary: 'Show how a store is doing',
    description:
      'Stamps, redemptions and customers by day, week or month, in the time zone of the store. Changes are counted within seconds. What was undone is not counted: it is taken off the day on which it happened. Weeks begin on Monday. A range is extended to whole intervals: at most 366 days, 262 weeks or 120 months.',
    path: ['account_id'],
    status: 200,
    response: StatisticsJson,
    errors: [404, 422],
  })
  show(
    @Context() { accountId }: CommandContext,
    @Query()
    { card_id: cardId, location_id: locationId, user_id: userId, ...range }: StatisticsQuery,
  ): Promise<StatisticsJson> {
    return this.statistics.get(accountId, { ...range, cardId, locationId, userId }, getNow());
  }
}
