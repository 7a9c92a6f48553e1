import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { DataSource } from 'typeorm';
import type { CommandContext } from '#kernel/aggregate.js';
import { nextId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/handle-command.js';
import { createAccount } from './account.js';
import { accountJson, type AccountJson } from './account.dto.js';
import { accountRows } from './account.entity.js';
import type { AccountAttributes } from './account.events.js';

export class CreateAccount extends Command<AccountJson> {
  constructor(
    readonly context: Omit<CommandContext, 'accountId'>,
    readonly attributes: AccountAttributes,
  ) {
    super();
  }
}

@CommandHandler(CreateAccount)
export class CreateAccountHandler implements ICommandHandler<CreateAccount> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly source: DataSource,
  ) {}

  async execute({ context, attributes }: CreateAccount): Promise<AccountJson> {
    const id = await nextId(this.source, 'accounts_id');
    return this.pipeline.handleCommand({
      rows: accountRows,
      id,
      context: { ...context, accountId: id },
      given: async () => undefined,
      decide: () => createAccount(id, attributes),
      answer: ({ state }) => accountJson(state, { cards: 0, customers: 0 }),
    });
  }
}

export const accountHandlers = [CreateAccountHandler];
