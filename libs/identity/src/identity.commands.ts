import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { hash } from '@node-rs/argon2';
import { DataSource, type EntityManager } from 'typeorm';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import type { Actor, Channel } from '#kernel/aggregate.js';
import { IDENTITY_CHANNEL, newToken } from './tokens.service.js';

/** Users, memberships and tokens are plain rows; what is done to them goes to the audit log. */
export type Audited = { actor: Actor; channel: Channel; requestId: string };

export class CreateUser extends Command<{ userId: number }> {
  constructor(
    readonly by: Audited,
    readonly email: string,
    readonly name: string,
    readonly password: string,
  ) {
    super();
  }
}

@CommandHandler(CreateUser)
export class CreateUserHandler implements ICommandHandler<CreateUser> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, email, name, password }: CreateUser): Promise<{ userId: number }> {
    if (!/^\S+@\S+\.\S+$/.test(email)) throw new RejectedError({ email: ['is no e-mail address'] });
    const passwordHash = await hash(password);
    return change(this.source, by, null, 'user.created', async (manager) => {
      const [row]: [{ id: number }?] = await manager.query(
        `insert into users (email, name, password_hash, created_at) values ($1, $2, $3, now())
         on conflict (lower(email)) where removed_at is null do nothing returning id`,
        [email, name, passwordHash],
      );
      if (!row) throw new RejectedError({ email: ['is used by another user'] });
      return { subject: { user_id: row.id }, result: { userId: row.id } };
    });
  }
}

export class RemoveUser extends Command<{ userId: number }> {
  constructor(
    readonly by: Audited,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(RemoveUser)
export class RemoveUserHandler implements ICommandHandler<RemoveUser> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, email }: RemoveUser): Promise<{ userId: number }> {
    return change(this.source, by, null, 'user.removed', async (manager) => {
      const userId = await userIdOf(manager, email);
      await manager.query('update users set removed_at = now() where id = $1', [userId]);
      await manager.query('delete from memberships where user_id = $1', [userId]);
      return { subject: { user_id: userId }, result: { userId } };
    });
  }
}

export class AddMember extends Command<{ userId: number }> {
  constructor(
    readonly by: Audited,
    readonly accountId: number,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(AddMember)
export class AddMemberHandler implements ICommandHandler<AddMember> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, accountId, email }: AddMember): Promise<{ userId: number }> {
    return change(this.source, by, accountId, 'member.added', async (manager) => {
      const userId = await userIdOf(manager, email);
      const stores: unknown[] = await manager.query('select 1 from accounts where id = $1', [
        accountId,
      ]);
      if (stores.length === 0) throw new NotFoundError('Store');
      await manager.query(
        `insert into memberships (user_id, account_id, created_at) values ($1, $2, now())
         on conflict do nothing`,
        [userId, accountId],
      );
      return { subject: { user_id: userId }, result: { userId } };
    });
  }
}

export class RemoveMember extends Command<{ userId: number }> {
  constructor(
    readonly by: Audited,
    readonly accountId: number,
    readonly email: string,
  ) {
    super();
  }
}

@CommandHandler(RemoveMember)
export class RemoveMemberHandler implements ICommandHandler<RemoveMember> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, accountId, email }: RemoveMember): Promise<{ userId: number }> {
    return change(this.source, by, accountId, 'member.removed', async (manager) => {
      const userId = await userIdOf(manager, email);
      const [, removed]: [unknown, number] = await manager.query(
        'delete from memberships where user_id = $1 and account_id = $2',
        [userId, accountId],
      );
      if (removed === 0) throw new NotFoundError('Member');
      return { subject: { user_id: userId }, result: { userId } };
    });
  }
}

export class CreateToken extends Command<{ tokenId: number; token: string }> {
  constructor(
    readonly by: Audited,
    readonly email: string,
    readonly name: string,
  ) {
    super();
  }
}

@CommandHandler(CreateToken)
export class CreateTokenHandler implements ICommandHandler<CreateToken> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, email, name }: CreateToken): Promise<{ tokenId: number; token: string }> {
    const { token, sha256 } = newToken();
    return change(this.source, by, null, 'token.created', async (manager) => {
      const userId = await userIdOf(manager, email);
      const [row]: [{ id: number }] = await manager.query(
        `insert into api_tokens (user_id, name, sha256, created_at) values ($1, $2, $3, now())
         returning id`,
        [userId, name, sha256],
      );
      return {
        subject: { token_id: row.id, user_id: userId },
        result: { tokenId: row.id, token },
      };
    });
  }
}

export class RevokeToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: Audited,
    readonly tokenId: number,
  ) {
    super();
  }
}

@CommandHandler(RevokeToken)
export class RevokeTokenHandler implements ICommandHandler<RevokeToken> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, tokenId }: RevokeToken): Promise<{ tokenId: number }> {
    return change(this.source, by, null, 'token.revoked', async (manager) => {
      await changeToken(manager, 'revoked_at = coalesce(revoked_at, now())', [tokenId]);
      return { subject: { token_id: tokenId }, result: { tokenId } };
    });
  }
}

export class LimitToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: Audited,
    readonly tokenId: number,
    readonly perMinute: number,
  ) {
    super();
  }
}

@CommandHandler(LimitToken)
export class LimitTokenHandler implements ICommandHandler<LimitToken> {
  constructor(private readonly source: DataSource) {}

  async execute({ by, tokenId, perMinute }: LimitToken): Promise<{ tokenId: number }> {
    return change(this.source, by, null, 'token.limited', async (manager) => {
      await changeToken(manager, 'per_minute = $2', [tokenId, perMinute]);
      return {
        subject: { token_id: tokenId, per_minute: perMinute },
        result: { tokenId },
      };
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

/** One transaction: the change, its audit entry, and word to every api process to forget what it knew. */
async function change<R>(
  source: DataSource,
  by: Audited,
  accountId: number | null,
  type: string,
  work: (manager: EntityManager) => Promise<{ subject: object; result: R }>,
): Promise<R> {
  return source.transaction(async (manager) => {
    const { subject, result } = await work(manager);
    await manager.query(
      `insert into audit_log (account_id, type, actor, channel, request_id, subject, recorded_at)
       values ($1, $2, $3, $4, $5, $6, now())`,
      [
        accountId,
        type,
        JSON.stringify(by.actor),
        by.channel,
        by.requestId,
        JSON.stringify(subject),
      ],
    );
    await manager.query('select pg_notify($1, $2)', [IDENTITY_CHANNEL, type]);
    return result;
  });
}

async function userIdOf(manager: EntityManager, email: string): Promise<number> {
  const [row]: [{ id: number }?] = await manager.query(
    'select id from users where lower(email) = lower($1) and removed_at is null',
    [email],
  );
  if (!row) throw new NotFoundError(`User ${email}`);
  return row.id;
}

async function changeToken(
  manager: EntityManager,
  assignment: 'revoked_at = coalesce(revoked_at, now())' | 'per_minute = $2',
  values: number[],
): Promise<void> {
  const [, changed]: [unknown, number] = await manager.query(
    `update api_tokens set ${assignment} where id = $1`,
    values,
  );
  if (changed === 0) throw new NotFoundError('Token');
}
