import { Controller, Get } from '@nestjs/common';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { Authenticated, Context, type Caller } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { accountAnswer, type AccountJson } from './account.dto.js';
import { AccountsService } from './accounts.service.js';

@Controller('/api/v1/accounts')
export class AccountsController {
  constructor(private readonly accounts: AccountsService) {}

  @Get()
  @Endpoint({
    id: 'listAccounts',
    tag: 'Stores',
    summary: 'The stores that the token reaches, by id',
    status: 200,
    answer: z.array(accountAnswer),
  })
  list(@Authenticated() { userId }: Caller): Promise<AccountJson[]> {
    return this.accounts.listFor(userId);
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
}
