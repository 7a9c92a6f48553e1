import { Controller, Get, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { AuditEntryJson, AuditQuery } from './audit-entry.dto.js';
import { AuditService } from './audit.service.js';
import { DEFAULT_PAGE_SIZE } from './history-entry.dto.js';

@Controller('/api/v1/accounts/:account_id/audit')
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Get()
  @Endpoint({
    id: 'listAudit',
    readsMuch: true,
    tag: 'History',
    summary: 'List what was done to users, tokens and subscriptions',
    description: 'Changes of users, tokens and webhook subscriptions, newest first.',
    path: ['account_id'],
    status: 200,
    response: [AuditEntryJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() { limit, cursor, ...filter }: AuditQuery,
    @Paged() pages: PageReader,
  ): Promise<AuditEntryJson[]> {
    const entries = await pages.getPage(
      { limit: limit ?? DEFAULT_PAGE_SIZE, cursor },
      (range) =>
        this.audit.list(accountId, filter, {
          before: range.after?.[0] ?? null,
          limit: range.limit,
        }),
      ({ id }) => [id],
    );
    return entries.map(({ json }) => json);
  }
}
