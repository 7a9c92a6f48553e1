import { Body, Controller, Get, Patch, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { AsOfPageQuery, AsOfQuery } from '#platform/http/as-of.js';
import { Authenticated, Context, type Caller } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { UpdateAccount } from './account.commands.js';
import { AccountJson, UpdateAccountDto, toAccountSettings } from './account.dto.js';
import { AccountsService } from './accounts.service.js';

/** Holds 5,000 stores with long texts: clients expect all stores of a token in one array. */
const LIST_BYTES = 16 * 1024 * 1024;

@DeclaresTag({
  name: 'Stores',
  order: 20,
  description: 'The stores that a token may access; paths call them accounts.',
})
@Controller('/api/v1/accounts')
export class AccountsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly accounts: AccountsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listAccounts',
    tag: 'Stores',
    summary: 'List stores',
    description: 'Every store that the token may access, by id.',
    status: 200,
    response: [AccountJson],
    errors: [422],
  })
  async list(
    @Authenticated() caller: Caller,
    @Query() { as_of: time, ...page }: AsOfPageQuery,
    @Paged() pages: PageReader,
  ): Promise<AccountJson[]> {
    const key = ({ id }: AccountJson) => [id];
    return time === null
      ? pages.getPage(page, (range) => this.accounts.listFor(caller, range), key, LIST_BYTES)
      : pages.getPageFrom(page, await this.accounts.listPastFor(caller, time), key, LIST_BYTES);
  }

  @Get(':account_id')
  @Endpoint({
    id: 'getAccount',
    tag: 'Stores',
    summary: 'Show a store',
    description: 'Its names, settings and how many records it has.',
    path: ['account_id'],
    status: 200,
    response: AccountJson,
    errors: [404, 422],
  })
  async show(
    @Authenticated() { principalId: userId }: Caller,
    @Context() { accountId }: CommandContext,
    @Query() { as_of: time }: AsOfQuery,
  ): Promise<AccountJson> {
    return time === null
      ? this.accounts.get(userId, accountId)
      : this.accounts.getPast(userId, accountId, time);
  }

  @Patch(':account_id')
  @Endpoint({
    id: 'updateAccount',
    tag: 'Stores',
    summary: 'Update a store',
    description: 'Only the given fields change. Sends store.updated if one does.',
    path: ['account_id'],
    status: 200,
    response: AccountJson,
    errors: [404, 422],
  })
  async update(
    @Authenticated() { principalId: userId }: Caller,
    @Context() context: CommandContext,
    @Body() body: UpdateAccountDto,
  ): Promise<AccountJson> {
    return this.commands.execute(new UpdateAccount(context, userId, toAccountSettings(body)));
  }
}
