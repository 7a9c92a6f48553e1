import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { hash } from '@node-rs/argon2';
import { randomBytes } from 'node:crypto';
import { IsNull, Raw, type EntityManager, type QueryDeepPartialEntity } from 'typeorm';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import { MasterKeys } from '#database/master-keys.js';
import {
  PlainWrites,
  type PlainTransaction,
  type PlainWriter,
} from '#event-store/plain-writes.service.js';
import { ApiTokenRow, MembershipRow, UserRow } from './identity.entity.js';
import { sha256Of, TOKEN_BYTES, tokenOf } from './token.js';
import { IDENTITY_CHANNEL } from './tokens.service.js';

export class CreateUser extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly email: string,
    readonly name: string,
    readonly password: string,
  ) {
    super();
  }
}

@CommandHandler(CreateUser)
export class CreateUserHandler implements ICommandHandler<CreateUser> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, email, name, password }: CreateUser): Promise<{ userId: number }> {
    if (!/^\S+@\S+\.\S+$/.test(email)) {
      throw new RejectedError({ email: ['is not an e-mail address'] });
    }
    const password_hash = await hash(password);
    return this.writes.write(by, async (transaction) => {
      const { manager, repeated } = transaction;
      const known = await presentUser(manager, email);
      // Every hash has a salt of its own, so an equal hash means that an earlier try was committed.
      if (repeated && known?.password_hash === password_hash) return { userId: known.id };
      if (known) throw emailTaken();
      const user = { email, name, password_hash, created_at: () => 'now()', removed_at: null };
      const { identifiers } = await manager
        .createQueryBuilder()
        .insert()
        .into(UserRow)
        .values(user)
        .orIgnore()
        .execute();
      // Another process has inserted the same address first.
      if (!identifiers[0]) throw emailTaken();
      const userId = Number(identifiers[0]['id']);
      await changed(transaction, 'user.created', [], { user_id: userId });
      return { userId };
    });
  }
}

export class RemoveUser extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(RemoveUser)
export class RemoveUserHandler implements ICommandHandler<RemoveUser> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, email }: RemoveUser): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await userIdOf(manager, email);
      await manager.update(UserRow, { id: userId }, { removed_at: () => 'now()' });
      const stores = await storesOf(manager, userId);
      await manager.delete(MembershipRow, { user_id: userId });
      await changed(transaction, 'user.removed', stores, { user_id: userId });
      return { userId };
    });
  }
}

export class AddMember extends Command<{ userId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly accountId: number,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(AddMember)
export class AddMemberHandler implements ICommandHandler<AddMember> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, accountId, email }: AddMember): Promise<{ userId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await userIdOf(manager, email);
      const stores: unknown[] = await manager.query('select 1 from accounts where id = $1', [
        accountId,
      ]);
      if (stores.length === 0) throw new NotFoundError('Store');
      await manager
        .createQueryBuilder()
        .insert()
        .into(MembershipRow)
        .values({ user_id: userId, account_id: accountId, created_at: () => 'now()' })
        .orIgnore()
        .execute();
      await changed(transaction, 'member.added', [accountId], { user_id: userId });
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

export class CreateToken extends Command<{ tokenId: number; token: string }> {
  constructor(
    readonly by: PlainWriter,
    readonly email: string,
    readonly name: string,
  ) {
    super();
  }
}

@CommandHandler(CreateToken)
export class CreateTokenHandler implements ICommandHandler<CreateToken> {
  constructor(
    private readonly writes: PlainWrites,
    private readonly keys: MasterKeys,
  ) {}

  async execute({ by, email, name }: CreateToken): Promise<{ tokenId: number; token: string }> {
    const token = tokenOf(randomBytes(TOKEN_BYTES), this.keys.dataKey('token checksums'));
    const sha256 = sha256Of(token);
    return this.writes.write(by, async (transaction) => {
      const { manager, repeated } = transaction;
      const known = repeated && (await manager.findOneBy(ApiTokenRow, { sha256 }));
      if (known) return { tokenId: known.id, token };
      const userId = await userIdOf(manager, email);
      const { identifiers } = await manager.insert(ApiTokenRow, {
        user_id: userId,
        name,
        sha256,
        has_checksum: true,
        created_at: () => 'now()',
      });
      const tokenId = Number(identifiers[0]?.['id']);
      const subject = { token_id: tokenId, user_id: userId, name };
      await changed(transaction, 'token.created', await storesOf(manager, userId), subject);
      return { tokenId, token };
    });
  }
}

export class RevokeToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly tokenId: number,
  ) {
    super();
  }
}

@CommandHandler(RevokeToken)
export class RevokeTokenHandler implements ICommandHandler<RevokeToken> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, tokenId }: RevokeToken): Promise<{ tokenId: number }> {
    return this.writes.write(by, async (transaction) => {
      const revoked = { revoked_at: () => 'coalesce(revoked_at, now())' };
      const stores = await changeToken(transaction.manager, tokenId, revoked);
      await changed(transaction, 'token.revoked', stores, { token_id: tokenId });
      return { tokenId };
    });
  }
}

export class LimitToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: PlainWriter,
    readonly tokenId: number,
    readonly perMinute: number,
  ) {
    super();
  }
}

@CommandHandler(LimitToken)
export class LimitTokenHandler implements ICommandHandler<LimitToken> {
  constructor(private readonly writes: PlainWrites) {}

  async execute({ by, tokenId, perMinute }: LimitToken): Promise<{ tokenId: number }> {
    return this.writes.write(by, async (transaction) => {
      const limit = { per_minute: perMinute };
      const stores = await changeToken(transaction.manager, tokenId, limit);
      const subject = { token_id: tokenId, per_minute: perMinute };
      await changed(transaction, 'token.limited', stores, subject);
      return { tokenId };
    });
  }
}

export const identityHandlers = [
  CreateUserHandler,
  RemoveUserHandler,
  AddMemberHandler,
  RemoveMemberHandler,
  CreateTokenHandler,
  RevokeTokenHandler,
  LimitTokenHandler,
];

/** Writes the audit entry and tells every api process to drop what it has cached. */
async function changed(
  transaction: PlainTransaction,
  type: string,
  accountIds: readonly number[],
  subject: object,
): Promise<void> {
  await transaction.audit({ accountIds, type, subject });
  await transaction.manager.query('select pg_notify($1, $2)', [IDENTITY_CHANNEL, type]);
}

function presentUser(manager: EntityManager, email: string): Promise<UserRow | null> {
  return manager.findOneBy(UserRow, {
    email: Raw((column) => `lower(${column}) = lower(:email)`, { email }),
    removed_at: IsNull(),
  });
}

async function userIdOf(manager: EntityManager, email: string): Promise<number> {
  const user = await presentUser(manager, email);
  if (!user) throw new NotFoundError(`User ${email}`);
  return user.id;
}

function emailTaken(): RejectedError {
  return new RejectedError({ email: ['is used by another user'] });
}

/** A change to a user, or to a token, is recorded for every store that the user may reach. */
async function storesOf(manager: EntityManager, userId: number): Promise<number[]> {
  const memberships = await manager.find(MembershipRow, {
    where: { user_id: userId },
    order: { account_id: 'asc' },
  });
  return memberships.map(({ account_id }) => account_id);
}

/** @returns the stores that the change is recorded for */
async function changeToken(
  manager: EntityManager,
  tokenId: number,
  change: QueryDeepPartialEntity<ApiTokenRow>,
): Promise<number[]> {
  const token = await manager.findOneBy(ApiTokenRow, { id: tokenId });
  if (!token) throw new NotFoundError('Token');
  await manager.update(ApiTokenRow, { id: tokenId }, change);
  return storesOf(manager, token.user_id);
}
