import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { withNewId } from '#platform/database/ids.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import {
  handleChange,
  RecordCommand,
  type RecordPlan,
} from '#platform/event-store/commands/record-commands.js';
import { grantInitialOwner } from '#identity/initial-owner.js';
import {
  account,
  createAccount,
  removeLogo,
  setLogo,
  updateAccount,
  type Account,
  type NewAccount,
} from './account.js';
import type { AccountCounts, AccountJson } from './account.dto.js';
import type { AccountEvent, AccountSettings } from './account.events.js';
import { AccountsService } from './accounts.service.js';
import { releaseMessages } from './message-release.js';
import { shareQuotas } from './quota-sharing.js';

export class CreateAccount extends Command<AccountJson> {
  constructor(
    readonly context: Omit<CommandContext, 'accountId'>,
    readonly attributes: NewAccount,
    /** The user who owns it from the beginning. Null: nobody yet. */
    readonly ownerId: number | null = null,
    /** Whether it shares quotas with the owner's other stores. */
    readonly sharesQuotas = false,
  ) {
    super();
  }
}

@CommandHandler(CreateAccount)
export class CreateAccountHandler implements ICommandHandler<CreateAccount> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly pool: Pool,
    private readonly accounts: AccountsService,
  ) {}

  async execute({
    context,
    attributes,
    ownerId,
    sharesQuotas,
  }: CreateAccount): Promise<AccountJson> {
    const { personal } = attributes;
    return withNewId(this.pool, account.table, (id) => {
      const ownContext = { ...context, accountId: id };
      return this.pipeline.handleCommand({
        readModel: account,
        id,
        isNew: true,
        context: ownContext,
        decide: () => ({
          events: createAccount(id, attributes),
          ...(ownerId !== null && {
            sideEffects: [
              ...(sharesQuotas ? [shareQuotas(id, ownerId)] : []),
              grantInitialOwner({ userId: ownerId, personal }, ownContext),
            ],
          }),
        }),
        respond: ({ state }) =>
          this.accounts.toJson(
            state,
            { cards: 0, customers: 0, locations: 0, posters: 0 },
            state.personal,
          ),
      });
    });
  }
}

/** Tells to change a store. The response is rendered for the user. */
class ChangeAccount extends RecordCommand<AccountJson> {
  constructor(
    context: CommandContext,
    readonly userId: number,
  ) {
    super(context, context.accountId);
  }
}

export class UpdateAccount extends ChangeAccount {
  constructor(
    context: CommandContext,
    userId: number,
    readonly changes: Partial<AccountSettings>,
  ) {
    super(context, userId);
  }
}

export class SetLogo extends ChangeAccount {
  /** @param picture SHA-256 of what `UploadedPictures` has stored */
  constructor(
    context: CommandContext,
    userId: number,
    readonly picture: string,
  ) {
    super(context, userId);
  }
}

export class RemoveLogo extends ChangeAccount {}

export const accountHandlers = [
  CreateAccountHandler,
  handleChange(UpdateAccount, account, [AccountsService], (command, accounts) =>
    planChange(command, accounts, (state) => {
      const events = updateAccount(state, command.changes);
      const isMoved = events.some(
        ({ type, data }) => type === 'AccountUpdated' && 'timeZone' in data,
      );
      return { events, sideEffects: isMoved ? releaseMessages(command.id) : [] };
    }),
  ),
  handleChange(SetLogo, account, [AccountsService], (command, accounts) =>
    planChange(command, accounts, (state) => setLogo(state, command.picture)),
  ),
  handleChange(RemoveLogo, account, [AccountsService], (command, accounts) =>
    planChange(command, accounts, removeLogo),
  ),
];

type Counts = AccountCounts & { personal: boolean };

function planChange(
  { id, userId }: ChangeAccount,
  accounts: AccountsService,
  decide: RecordPlan<Account, AccountEvent, Counts, AccountJson>['decide'],
): RecordPlan<Account, AccountEvent, Counts, AccountJson> {
  return {
    load: () => accounts.findCountsFor(userId, id),
    decide,
    respond: ({ state, inputs }) => accounts.toJson(state, inputs, inputs.personal),
  };
}
