import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { EntityManager } from 'typeorm';
import { findChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { getUserId, type UserRef } from './identity.commands.js';
import { MembershipRow, UserRow } from './identity.entity.js';
import type { Role } from './roles.js';
import { StoreProfiles } from './store-profiles.service.js';
import { auditChange } from './user-audit.service.js';
import { getPresentUser } from './user.commands.js';
import { ISSUES } from '#translations/issues.js';

/** @property isConfirmed whether somebody has shown that they read the e-mails to the user's address */
export type AddedMember = { userId: number; isConfirmed: boolean };

export class AddMember extends Command<AddedMember> {
  constructor(
    readonly by: AuditedWriter,
    readonly accountId: number,
    readonly user: UserRef,
    readonly role: Role,
    /** The store is this user's own. */
    readonly personal = false,
  ) {
    super();
  }
}

@CommandHandler(AddMember)
export class AddMemberHandler implements ICommandHandler<AddMember> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly profiles: StoreProfiles,
  ) {}

  async execute({ by, accountId, user, role, personal }: AddMember): Promise<AddedMember> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const { id: userId, email_confirmed_at } = await getPresentUser(manager, user);
      const stores = await this.profiles.findProfiles([accountId], manager);
      if (stores.length === 0) throw new NotFoundError('Store');
      const member = { user_id: userId, account_id: accountId };
      const [added] = await query(manager, {
        text: `insert into memberships (user_id, account_id, role, personal, created_at)
         values ($1, $2, $3, $4, now()) on conflict do nothing returning user_id`,
        values: [userId, accountId, role, personal],
      });
      const isConfirmed = email_confirmed_at !== null;
      if (added) {
        await auditChange(transaction, 'member.added', [accountId], { user_id: userId, role });
        return { userId, isConfirmed };
      }
      const membership = await manager.findOneByOrFail(MembershipRow, member);
      if (membership.role !== role) {
        throw new RejectedError({
          base: [ISSUES.already_member({ role: membership.role })],
        });
      }
      return { userId, isConfirmed };
    });
  }
}

export class RemoveMember extends Command<{ userId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly accountId: number,
    readonly user: UserRef,
    /** Refuses to remove the last owner. */
    readonly keepsOwner = false,
  ) {
    super();
  }
}

@CommandHandler(RemoveMember)
export class RemoveMemberHandler implements ICommandHandler<RemoveMember> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({ by, accountId, user, keepsOwner }: RemoveMember): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const userId = await getUserId(manager, user);
      if (keepsOwner) await assertNotLastOwner(manager, accountId, userId);
      const { affected } = await manager.delete(MembershipRow, {
        user_id: userId,
        account_id: accountId,
      });
      if (!affected && !isRepeated) throw new NotFoundError('Member');
      if (affected) {
        await auditChange(transaction, 'member.removed', [accountId], { user_id: userId });
        // Also when there are others: they may be leaving those in other transactions at the same time.
        await manager.update(UserRow, { id: userId }, { left_stores_at: () => 'now()' });
      }
      return { userId };
    });
  }
}

export class ChangeRole extends Command<{ userId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly accountId: number,
    readonly user: UserRef,
    readonly role: Role,
    /** Refuses to change the role of the last owner. */
    readonly keepsOwner = false,
  ) {
    super();
  }
}

@CommandHandler(ChangeRole)
export class ChangeRoleHandler implements ICommandHandler<ChangeRole> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({
    by,
    accountId,
    user,
    role,
    keepsOwner,
  }: ChangeRole): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await getUserId(manager, user);
      const member = { user_id: userId, account_id: accountId };
      const membership = await manager.findOneBy(MembershipRow, member);
      if (!membership) throw new NotFoundError('Member');
      if (membership.role === role) return { userId };
      if (keepsOwner) await assertNotLastOwner(manager, accountId, userId);
      await manager.update(MembershipRow, member, { role });
      const subject = {
        user_id: userId,
        changes: findChanges({ role: membership.role }, { role }),
      };
      await auditChange(transaction, 'member.role_changed', [accountId], subject);
      return { userId };
    });
  }
}

export const memberHandlers = [AddMemberHandler, RemoveMemberHandler, ChangeRoleHandler];

/** Locks all owners, so that two of them cannot remove each other at the same time. @throws RejectedError */
async function assertNotLastOwner(
  manager: EntityManager,
  accountId: number,
  userId: number,
): Promise<void> {
  const owners = await query<{ user_id: number }>(manager, {
    text: `select user_id from memberships where account_id = $1 and role = 'owner'
     order by user_id for update`,
    values: [accountId],
  });
  if (owners.length !== 1 || owners[0]?.user_id !== userId) return;
  throw new RejectedError(
    { base: [ISSUES.only_owner] },
    'validation_failed',
    'Make somebody else an owner first.',
  );
}
