import { Body, Controller, Get, Patch, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#kernel/aggregate.js';
import { Authenticated, Context, type Caller } from '#http/caller.js';
import { DeclaresTag, Endpoint } from '#http/endpoint.js';
import { Paged, PageQuery, Pages } from '#http/page.js';
import { UpdateAccount } from './account.commands.js';
import { AccountJson, accountSettings, UpdateAccountDto } from './account.dto.js';
import { AccountsService } from './accounts.service.js';

@DeclaresTag({
  name: 'Stores',
  place: 20,
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
    summary: 'The stores that the token may access, by id',
    status: 200,
    answer: [AccountJson],
    errors: [422],
  })
  list(
    @Authenticated() { userId }: Caller,
    @Query() query: PageQuery,
    @Paged() pages: Pages,
  ): Promise<AccountJson[]> {
    return pages.answer(
      query,
      (range) => this.accounts.listFor(userId, range),
      ({ id }) => [id],
    );
  }

  @Get(':account_id')
  @Endpoint({
    id: 'getAccount',
    tag: 'Stores',
    summary: 'One store',
    path: ['account_id'],
    status: 200,
    answer: AccountJson,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext): Promise<AccountJson> {
    return this.accounts.find(accountId);
  }

  @Patch(':account_id')
  @Endpoint({
    id: 'updateAccount',
    tag: 'Stores',
    summary: 'Change the given fields',
    path: ['account_id'],
    status: 200,
    answer: AccountJson,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Body() body: UpdateAccountDto,
  ): Promise<AccountJson> {
    return this.commands.execute(new UpdateAccount(context, accountSettings(body)));
  }
}
