import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { DataSource } from 'typeorm';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { CreateAccount, UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { NewAccount } from '#loyalty/accounts/account.js';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { AccountSettings } from '#loyalty/accounts/account.events.js';
import { AllAccounts } from '#loyalty/accounts/all-accounts.service.js';
import { InviteUser } from '#identity/invitation.commands.js';
import { Members } from '#identity/members.service.js';
import type { Role } from '#identity/roles.js';
import { getPresentUser } from '#identity/user.commands.js';
import { Config } from '#configuration/config.js';
import { AdminCommands } from './admin-commands.service.js';
import { toCreatedInvitationJson, type CreatedInvitationJson } from './admin-member.dto.js';
import { ISSUES } from '#translations/issues.js';

/** Creates and changes stores, and invites to them, for operators. */
@Injectable()
export class AdminStores {
  constructor(
    private readonly bus: CommandBus,
    private readonly commands: AdminCommands,
    private readonly source: DataSource,
    private readonly all: AllAccounts,
    private readonly members: Members,
    private readonly config: Config,
  ) {}

  /** @throws RejectedError when there is no such owner */
  async create(by: AuditedWriter, attributes: NewAccount, ownerId: number): Promise<AccountJson> {
    try {
      await getPresentUser(this.source.manager, ownerId);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      throw new RejectedError({ owner_id: [ISSUES.unknown_user] });
    }
    return this.bus.execute(new CreateAccount(by, attributes, ownerId));
  }

  /** @throws NotFoundError */
  async update(
    by: AuditedWriter,
    accountId: number,
    settings: Partial<AccountSettings>,
  ): Promise<AccountJson> {
    const ownerId = await this.all.findPersonalOwnerId(accountId);
    return this.bus.execute(new UpdateAccount({ ...by, accountId }, ownerId, settings));
  }

  /**
   * Invites in the name of the store's first owner.
   * @throws NotFoundError, RejectedError when there is no owner
   */
  async invite(
    by: AuditedWriter,
    accountId: number,
    { email, role }: { email: string; role: Role },
  ): Promise<CreatedInvitationJson> {
    await this.all.get(accountId);
    const owners = await this.members.listMembers(accountId);
    const owner = owners.find((member) => member.role === 'owner');
    if (!owner) {
      throw new RejectedError(
        { base: [ISSUES.store_without_owner] },
        'validation_failed',
        'Add a member with the role owner first.',
      );
    }
    return this.commands.execute(
      by,
      (author) => new InviteUser(author, owner.id, accountId, email, role, null),
      ({ secret, ...invitation }) => {
        const url = `${this.config.publicUrl}/app/invitations/${secret}`;
        return toCreatedInvitationJson(invitation, role, url);
      },
    );
  }
}
