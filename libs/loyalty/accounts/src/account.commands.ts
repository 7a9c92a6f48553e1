import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { grantInitialOwner } from '#identity/initial-owner.js';
import { createAccount, updateAccount, type NewAccount } from './account.js';
import { toAccountJson, type AccountJson } from './account.dto.js';
import { accountReadModel } from './account.entity.js';
import type { AccountSettings } from './account.events.js';
import { AccountsService } from './accounts.service.js';

export class CreateAccount extends Command<AccountJson> {
  constructor(
    readonly context: Omit<CommandContext, 'accountId'>,
    readonly attributes: NewAccount,
    /** The user who owns it from the beginning. Null: nobody yet. */
    readonly ownerId: number | null = null,
  ) {
    super();
  }
}

@CommandHandler(CreateAccount)
export class CreateAccountHandler implements ICommandHandler<CreateAccount> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly pool: Pool,
  ) {}

  async execute({ context, attributes, ownerId }: CreateAccount): Promise<AccountJson> {
    const { personal } = attributes;
    return withNewId(this.pool, accountReadModel.table, (id) => {
      const ownContext = { ...context, accountId: id };
      return this.pipeline.handleCommand({
        readModel: accountReadModel,
        id,
        isNew: true,
        context: ownContext,
        decide: () => ({
          events: createAccount(id, attributes),
          ...(ownerId !== null && {
            sideEffects: [grantInitialOwner({ userId: ownerId, personal }, ownContext)],
          }),
        }),
        respond: ({ state }) =>
          toAccountJson(
            state,
            { cards: 0, customers: 0, locations: 0, posters: 0 },
            state.personal,
          ),
      });
    });
  }
}

export class UpdateAccount extends Command<AccountJson> {
  constructor(
    readonly context: CommandContext,
    /** The user for whom the response is rendered. */
    readonly userId: number,
    readonly changes: Partial<AccountSettings>,
  ) {
    super();
  }
}

@CommandHandler(UpdateAccount)
export class UpdateAccountHandler implements ICommandHandler<UpdateAccount> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly accounts: AccountsService,
  ) {}

  async execute({ context, userId, changes }: UpdateAccount): Promise<AccountJson> {
    const id = context.accountId;
    return this.pipeline.handleCommand({
      readModel: accountReadModel,
      id,
      context,
      load: () => this.accounts.findCountsFor(userId, id),
      decide: (current) => updateAccount(current, changes),
      respond: ({ state, inputs }) => toAccountJson(state, inputs, inputs.personal),
    });
  }
}

export const accountHandlers = [CreateAccountHandler, UpdateAccountHandler];
