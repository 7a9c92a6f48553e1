import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { grantInitialOwner } from '#identity/initial-owner.js';
import {
  createAccount,
  removeLogo,
  setLogo,
  updateAccount,
  type Account,
  type NewAccount,
} from './account.js';
import type { AccountJson } from './account.dto.js';
import { accountReadModel } from './account.entity.js';
import type { AccountEvent, AccountSettings } from './account.events.js';
import { AccountsService } from './accounts.service.js';
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
    readonly pipeline: CommandPipeline,
    readonly accounts: AccountsService,
  ) {}

  execute({ context, userId, changes }: UpdateAccount): Promise<AccountJson> {
    return change(this, context, userId, (state) => updateAccount(state, changes));
  }
}

export class SetLogo extends Command<AccountJson> {
  /** @param picture SHA-256 of what `StripPictures` has stored */
  constructor(
    readonly context: CommandContext,
    readonly userId: number,
    readonly picture: string,
  ) {
    super();
  }
}

@CommandHandler(SetLogo)
export class SetLogoHandler implements ICommandHandler<SetLogo> {
  constructor(
    readonly pipeline: CommandPipeline,
    readonly accounts: AccountsService,
  ) {}

  execute({ context, userId, picture }: SetLogo): Promise<AccountJson> {
    return change(this, context, userId, (state) => setLogo(state, picture));
  }
}

export class RemoveLogo extends Command<AccountJson> {
  constructor(
    readonly context: CommandContext,
    readonly userId: number,
  ) {
    super();
  }
}

@CommandHandler(RemoveLogo)
export class RemoveLogoHandler implements ICommandHandler<RemoveLogo> {
  constructor(
    readonly pipeline: CommandPipeline,
    readonly accounts: AccountsService,
  ) {}

  execute({ context, userId }: RemoveLogo): Promise<AccountJson> {
    return change(this, context, userId, removeLogo);
  }
}

export const accountHandlers = [
  CreateAccountHandler,
  UpdateAccountHandler,
  SetLogoHandler,
  RemoveLogoHandler,
];

/** @param userId the user for whom the response is rendered */
function change(
  { pipeline, accounts }: { pipeline: CommandPipeline; accounts: AccountsService },
  context: CommandContext,
  userId: number,
  decide: (state: Account | undefined) => AccountEvent[],
): Promise<AccountJson> {
  const id = context.accountId;
  return pipeline.handleCommand({
    readModel: accountReadModel,
    id,
    context,
    load: () => accounts.findCountsFor(userId, id),
    decide,
    respond: ({ state, inputs }) => accounts.toJson(state, inputs, inputs.personal),
  });
}
