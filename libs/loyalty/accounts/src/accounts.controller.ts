import { Body, Controller, Get, Patch, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { readBody, readQuery } from '#http/body.js';
import { Authenticated, Context, type Caller } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, pageQuery, Pages } from '#http/page.js';
import { UpdateAccount } from './account.commands.js';
import {
  accountAnswer,
  accountSettings,
  updateAccountDto,
  type AccountJson,
} from './account.dto.js';
import { AccountsService } from './accounts.service.js';

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
    summary: 'The stores that the token reaches, by id',
    query: pageQuery,
    status: 200,
    answer: z.array(accountAnswer),
    errors: [422],
  })
  list(
    @Authenticated() { userId }: Caller,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<AccountJson[]> {
    return pages.answer(
      readQuery(pageQuery, given),
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
    answer: accountAnswer,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext): Promise<AccountJson> {
    return this.accounts.find(accountId);
  }

  @Patch(':account_id')
  @Endpoint({
    id: 'updateAccount',
    tag: 'Stores',
    summary: 'Change what is named',
    path: ['account_id'],
    body: updateAccountDto,
    wrapper: 'account',
    status: 200,
    answer: accountAnswer,
    errors: [404, 422],
  })
  async update(@Context() context: CommandContext, @Body() body: unknown): Promise<AccountJson> {
    const input = await readBody(updateAccountDto, body, {
      wrapper: 'account',
      bare: Object.keys(updateAccountDto.shape),
    });
    return this.commands.execute(new UpdateAccount(context, accountSettings(input)));
  }
}
