import { Controller, Get, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { ExplanationJson } from './explanation.dto.js';
import { ExplanationService } from './explanation.service.js';
import {
  CardEventsQuery,
  DEFAULT_PAGE_SIZE,
  toHistoryFilter,
  HistoryEntryJson,
  toHistoryEntryJson,
  HistoryQuery,
} from './history-entry.dto.js';
import { toCursorKey } from './history-query.js';
import { HistoryService } from './history.service.js';

const TAG = 'History';

type CardPath = { customer_id: string; id: string };

const CUSTOMER_CARD = createRecordLookup(CustomerCardsService, (cards, accountId, path) =>
  cards.get(accountId, parseCardIds(path as CardPath)),
);

@DeclaresTag({
  name: TAG,
  order: 75,
  description: 'Events, with their actor and channel, and how each balance came about.',
})
@Controller('/api/v1/accounts/:account_id')
export class HistoryController {
  constructor(
    private readonly history: HistoryService,
    private readonly explanations: ExplanationService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  @Get('history')
  @Endpoint({
    id: 'listHistory',
    readsMuch: true,
    tag: TAG,
    summary: 'List what happened in a store, newest first',
    description: 'Every change, with who made it and through which channel.',
    path: ['account_id'],
    status: 200,
    response: [HistoryEntryJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() query: HistoryQuery,
    @Paged() pages: PageReader,
  ): Promise<HistoryEntryJson[]> {
    return this.listPage(accountId, query, toHistoryFilter(query), pages);
  }

  @Get('customers/:customer_id/customer_cards/:id/events')
  @Endpoint({
    id: 'listCustomerCardEvents',
    readsMuch: true,
    tag: TAG,
    summary: 'List what happened on a customer card, newest first',
    description: 'Each entry has the balance after it, and who did it through which channel.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: [HistoryEntryJson],
    errors: [404, 422],
    record: CUSTOMER_CARD,
  })
  async events(
    @Context() { accountId }: CommandContext,
    @Param() path: CardPath,
    @Query() query: CardEventsQuery,
    @Paged() pages: PageReader,
  ): Promise<HistoryEntryJson[]> {
    const ids = parseCardIds(path);
    await this.customerCards.get(accountId, ids);
    return this.listPage(
      accountId,
      query,
      { ...toHistoryFilter(query), customerCardId: ids.id },
      pages,
    );
  }

  @Get('customers/:customer_id/customer_cards/:id/explain')
  @Endpoint({
    id: 'explainCustomerCard',
    readsMuch: true,
    tag: TAG,
    summary: 'Explain a balance',
    description:
      'How the balance and the rewards of a customer card came about, step by step, in the language of the store.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: ExplanationJson,
    errors: [404],
    record: CUSTOMER_CARD,
  })
  async explain(
    @Context() { accountId }: CommandContext,
    @Param() path: CardPath,
  ): Promise<ExplanationJson> {
    const ids = parseCardIds(path);
    await this.customerCards.get(accountId, ids);
    return this.explanations.explain(accountId, ids.id);
  }

  private async listPage(
    accountId: number,
    { limit, cursor, external_ref: externalRef }: CardEventsQuery,
    filter: ReturnType<typeof toHistoryFilter>,
    pages: PageReader,
  ): Promise<HistoryEntryJson[]> {
    const find = await this.history.list(accountId, filter, externalRef);
    const entries = await pages.getPage(
      { limit: limit ?? DEFAULT_PAGE_SIZE, cursor },
      async (range) =>
        (await find(range)).map((entry) => ({
          json: toHistoryEntryJson(entry),
          key: toCursorKey(entry.entry),
        })),
      ({ key }) => key,
    );
    return entries.map(({ json }) => json);
  }
}

function parseCardIds({ customer_id, id }: CardPath): { customerId: number; id: number } {
  return { customerId: parsePathId(customer_id), id: parsePathId(id) };
}
