import { Body, Controller, Get, Param, Patch, Post, Query } from '@nestjs/common';

import { AllAccounts } from '#loyalty/accounts/all-accounts.service.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { toAccountSettings } from '#loyalty/accounts/account.dto.js';
import { AdminWriter } from './admin-commands.service.js';
import {
  NewStoreDto,
  StoreChangesDto,
  StoreJson,
  StoreQuery,
  toNewAccount,
} from './admin-store.dto.js';
import { AdminStores } from './admin-stores.service.js';
import { ACCOUNT_ID } from './path-parameters.js';

/** Of a list without `limit`: what is counted of each store takes time. */
const PAGE_SIZE = 100;

@DeclaresTag({
  name: 'Provisioned stores',
  order: 510,
  description: 'All stores of the service. As in the API of the stores, paths call them accounts.',
})
@Controller('/api/admin/v1/accounts')
export class AdminStoresController {
  constructor(
    private readonly stores: AdminStores,
    private readonly all: AllAccounts,
  ) {}

  @Get()
  @Endpoint({
    id: 'adminListStores',
    tag: 'Provisioned stores',
    summary: 'List all stores',
    description: 'Every store of the service, by id; 100 without limit.',
    status: 200,
    response: [StoreJson],
    errors: [422],
  })
  async list(
    @Query() { user_id: userId, ...page }: StoreQuery,
    @Paged() pages: PageReader,
  ): Promise<StoreJson[]> {
    return pages.getPage(
      { ...page, limit: page.limit ?? PAGE_SIZE },
      (range) => this.all.list(userId, range),
      ({ id }) => [id],
    );
  }

  @Post()
  @Endpoint({
    id: 'adminCreateStore',
    tag: 'Provisioned stores',
    summary: 'Create a store',
    description: 'A store with a user as its owner, in one step.',
    status: 201,
    response: StoreJson,
    errors: [422],
  })
  async create(@AdminWriter() by: AuditedWriter, @Body() body: NewStoreDto): Promise<StoreJson> {
    return this.stores.create(by, toNewAccount(body), body.owner_id);
  }

  @Get(':account_id')
  @Endpoint({
    id: 'adminGetStore',
    tag: 'Provisioned stores',
    summary: 'Show any store',
    description: 'Its names, settings and how many records it has.',
    path: [ACCOUNT_ID],
    status: 200,
    response: StoreJson,
    errors: [404],
  })
  async show(@Param('account_id') id: string): Promise<StoreJson> {
    return this.all.get(parsePathId(id));
  }

  @Patch(':account_id')
  @Endpoint({
    id: 'adminUpdateStore',
    tag: 'Provisioned stores',
    summary: 'Update any store',
    description: 'Only the given fields change.',
    path: [ACCOUNT_ID],
    status: 200,
    response: StoreJson,
    errors: [404, 422],
  })
  async update(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Body() body: StoreChangesDto,
  ): Promise<StoreJson> {
    return this.stores.update(by, parsePathId(id), toAccountSettings(body));
  }
}
