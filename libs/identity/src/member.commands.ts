import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import { PlainWrites, type PlainWriter } from '#event-store/plain-writes.service.js';
import { changed, userIdOf } from './identity.commands.js';
import { MembershipRow } from './identity.entity.js';
import type { Role } from './roles.js';

export class AddMember extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly accountId: number,
    readonly email: string,
    readonly role: Role,
    /** The store is this user's own. */
    readonly personal = false,
  ) {
    super();
  }
}

@CommandHandler(AddMember)
export class AddMemberHandler implements ICommandHandler<AddMember> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, accountId, email, role, personal }: AddMember): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await userIdOf(manager, email);
      const stores: unknown[] = await manager.query('select 1 from accounts where id = $1', [
        accountId,
      ]);
      if (stores.length === 0) throw new NotFoundError('Store');
      const member = { user_id: userId, account_id: accountId };
      await manager
        .createQueryBuilder()
        .insert()
        .into(MembershipRow)
        .values({ ...member, role, personal, created_at: () => 'now()' })
        .orIgnore()
        .execute();
      const known = await manager.findOneByOrFail(MembershipRow, member);
      if (known.role !== role) {
        throw new RejectedError({ base: [`is a member already, with the role ${known.role}`] });
      }
      await changed(transaction, 'member.added', [accountId], { user_id: userId, role });
      return { userId };
    });
  }
}

export class RemoveMember extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly accountId: number,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(RemoveMember)
export class RemoveMemberHandler implements ICommandHandler<RemoveMember> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, accountId, email }: RemoveMember): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager, repeated } = transaction;
      const userId = await userIdOf(manager, email);
      const { affected } = await manager.delete(MembershipRow, {
        user_id: userId,
        account_id: accountId,
      });
      if (!affected && !repeated) throw new NotFoundError('Member');
      if (affected) await changed(transaction, 'member.removed', [accountId], { user_id: userId });
      return { userId };
    });
  }
}

export class ChangeRole extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly accountId: number,
    readonly email: string,
    readonly role: Role,
  ) {
    super();
  }
}

@CommandHandler(ChangeRole)
export class ChangeRoleHandler implements ICommandHandler<ChangeRole> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, accountId, email, role }: ChangeRole): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await userIdOf(manager, email);
      const member = { user_id: userId, account_id: accountId };
      const known = await manager.findOne(MembershipRow, {
        where: member,
        lock: { mode: 'pessimistic_write' },
      });
      if (!known) throw new NotFoundError('Member');
      if (known.role === role) return { userId };
      await manager.update(MembershipRow, member, { role });
      const subject = { user_id: userId, role, previous_role: known.role };
      await changed(transaction, 'member.role_changed', [accountId], subject);
      return { userId };
    });
  }
}

export const memberHandlers = [AddMemberHandler, RemoveMemberHandler, ChangeRoleHandler];
