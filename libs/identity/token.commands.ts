import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomBytes } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { getNow } from '#platform/kernel/clock.js';
import { findChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { getUserId, type UserRef } from './identity.commands.js';
import { ApiTokenRow, UserRow } from './identity.entity.js';
import {
  hashToken,
  MAX_TOKENS_PER_USER,
  parseNewToken,
  TOKEN_BYTES,
  toRestrictionsJson,
  toToken,
  UNRESTRICTED,
  type TokenRestrictions,
} from './token.js';
import { auditChange, listStoreIds } from './user-audit.service.js';
import { ISSUES } from '#translations/issues.js';

/**
 * Holds a token right after its creation. It is stored as a hash, and sealed for 24 hours for whoever sends the form again.
 * @property endsWhenConfirmed whether it ends once the user shows that the address is theirs
 */
type CreatedToken = {
  tokenId: number;
  token: string;
  expiresAt: string | null;
  endsWhenConfirmed: boolean;
};

export class CreateToken extends Command<CreatedToken> {
  constructor(
    readonly by: AuditedWriter,
    readonly user: UserRef,
    readonly name: string,
    /** Null: valid until it is revoked. */
    readonly expiresAt: Date | null = null,
    readonly restrictions: TokenRestrictions = UNRESTRICTED,
  ) {
    super();
  }
}

@CommandHandler(CreateToken)
export class CreateTokenHandler implements ICommandHandler<CreateToken> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly keys: MasterKeys,
  ) {}

  async execute(command: CreateToken): Promise<CreatedToken> {
    const { by, user } = command;
    const expiresAt = command.expiresAt?.toISOString() ?? null;
    const { name, restrictions } = parseNewToken(command, getNow());
    const token = toToken(randomBytes(TOKEN_BYTES), this.keys.getDataKey('token checksums'));
    const sha256 = hashToken(token);
    return this.writes.write(by, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const userId = await getUserId(manager, user);
      const { email_confirmed_at } = await manager.findOneByOrFail(UserRow, { id: userId });
      const endsWhenConfirmed = email_confirmed_at === null;
      const existing = isRepeated && (await manager.findOneBy(ApiTokenRow, { sha256 }));
      if (existing) return { tokenId: existing.id, token, expiresAt, endsWhenConfirmed };
      await assertMemberOf(manager, userId, restrictions.accountIds ?? []);
      await assertBelowLimit(manager, userId);
      const { identifiers } = await manager.insert(ApiTokenRow, {
        user_id: userId,
        name,
        sha256,
        created_at: () => 'now()',
        expires_at: command.expiresAt,
        role: restrictions.role,
        account_ids: restrictions.accountIds,
        read_only: restrictions.isReadOnly,
      });
      const tokenId = Number(identifiers[0]?.['id']);
      const subject = {
        token_id: tokenId,
        user_id: userId,
        name,
        ...(expiresAt && { expires_at: expiresAt }),
        ...toRestrictionsJson(restrictions),
      };
      const stores = await listReachableStoreIds(manager, tokenId);
      await auditChange(transaction, 'token.created', stores, subject);
      return { tokenId, token, expiresAt, endsWhenConfirmed };
    });
  }
}

/** Names the member who revokes a token on the pages of a store. */
export type Revoker = { userId: number; accountId: number; canRevokeOthers: boolean };

export class RevokeToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly tokenId: number,
    /** Null: an operator, who may revoke any. */
    readonly revoker: Revoker | null = null,
  ) {
    super();
  }
}

@CommandHandler(RevokeToken)
export class RevokeTokenHandler implements ICommandHandler<RevokeToken> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({ by, tokenId, revoker }: RevokeToken): Promise<{ tokenId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      if (revoker) await assertCanRevoke(manager, tokenId, revoker);
      const { user_id } = await getToken(manager, tokenId);
      await revokeTokens(transaction, user_id, tokenId);
      return { tokenId };
    });
  }
}

export class LimitToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly tokenId: number,
    readonly perMinute: number,
  ) {
    super();
  }
}

@CommandHandler(LimitToken)
export class LimitTokenHandler implements ICommandHandler<LimitToken> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({ by, tokenId, perMinute }: LimitToken): Promise<{ tokenId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const limit = { per_minute: perMinute };
      const { per_minute } = await getToken(manager, tokenId);
      if (per_minute === perMinute) return { tokenId };
      await manager.update(ApiTokenRow, { id: tokenId }, limit);
      const subject = { token_id: tokenId, changes: findChanges({ per_minute }, limit) };
      const stores = await listReachableStoreIds(manager, tokenId);
      await auditChange(transaction, 'token.limited', stores, subject);
      return { tokenId };
    });
  }
}

export const tokenHandlers = [CreateTokenHandler, RevokeTokenHandler, LimitTokenHandler];

async function assertBelowLimit(manager: EntityManager, userId: number): Promise<void> {
  const [row] = await query<{ tokens: number }>(manager, {
    text: `select count(*) as tokens from api_tokens
     where user_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())`,
    values: [userId],
  });
  if (row && row.tokens < MAX_TOKENS_PER_USER) return;
  throw new RejectedError(
    { base: [ISSUES.too_many_tokens({ max: MAX_TOKENS_PER_USER })] },
    'limit_reached',
    'Revoke tokens that are not used any more.',
  );
}

/** @throws RejectedError when the token would name a store that its user does not belong to */
async function assertMemberOf(
  manager: EntityManager,
  userId: number,
  accountIds: readonly number[],
): Promise<void> {
  const own = new Set(accountIds.length === 0 ? [] : await listStoreIds(manager, userId));
  const others = accountIds.filter((id) => !own.has(id));
  if (others.length === 0) return;
  throw new RejectedError({
    account_ids: others.map((id) => ISSUES.user_outside_store({ id })),
  });
}

/** Lists the stores that a token reaches now. A change of it is recorded for each of them. */
async function listReachableStoreIds(manager: EntityManager, tokenId: number): Promise<number[]> {
  const rows = await query<{ account_id: number }>(manager, {
    text: `select m.account_id from api_tokens t join memberships m on m.user_id = t.user_id
     where t.id = $1 and (t.account_ids is null or m.account_id = any (t.account_ids))
     order by m.account_id`,
    values: [tokenId],
  });
  return rows.map(({ account_id }) => account_id);
}

/**
 * Asserts that the member may revoke the token: their own, and as an owner those of others. Of these none of the stores
 * may be somebody else's, where the token would stop working as well.
 * @throws NotFoundError also when the token of another user does not reach the store
 */
async function assertCanRevoke(
  manager: EntityManager,
  tokenId: number,
  { userId, accountId, canRevokeOthers }: Revoker,
): Promise<void> {
  const [token] = await query<{ user_id: number; reaches: boolean; elsewhere: boolean }>(manager, {
    text: `select t.user_id,
       exists (select from memberships m
               where m.user_id = t.user_id and m.account_id = $3
                 and (t.account_ids is null or $3 = any (t.account_ids))) as reaches,
       exists (select from memberships m
               where m.user_id = t.user_id
                 and (t.account_ids is null or m.account_id = any (t.account_ids)) and not exists (
                 select from memberships own where own.user_id = $2
                   and own.account_id = m.account_id and own.role = 'owner')) as elsewhere
     from api_tokens t where t.id = $1`,
    values: [tokenId, userId, accountId],
  });
  if (token?.user_id === userId) return;
  if (!token?.reaches || !canRevokeOthers) throw new NotFoundError('Token');
  if (!token.elsewhere) return;
  throw new RejectedError(
    { base: [ISSUES.token_of_other_stores] },
    'validation_failed',
    'Remove its user from this store, or have the user revoke the token.',
  );
}

/** Locks the token. @throws NotFoundError */
async function getToken(manager: EntityManager, tokenId: number): Promise<ApiTokenRow> {
  const token = await manager.findOne(ApiTokenRow, {
    where: { id: tokenId },
    lock: { mode: 'for_no_key_update' },
  });
  if (!token) throw new NotFoundError('Token');
  return token;
}

/**
 * Revokes the tokens of a user that are not revoked yet, each with an audit entry.
 * @param tokenId only this one
 * @returns how many
 */
export async function revokeTokens(
  transaction: AuditedTransaction,
  userId: number,
  tokenId: number | null = null,
): Promise<number> {
  const { manager } = transaction;
  const rows = await query<{ id: number }>(manager, {
    text: `update api_tokens set revoked_at = now()
     where user_id = $1 and ($2::bigint is null or id = $2) and revoked_at is null returning id`,
    values: [userId, tokenId],
  });
  const revoked = rows.map(({ id }) => id).sort((a, b) => a - b);
  for (const token_id of revoked) {
    const stores = await listReachableStoreIds(manager, token_id);
    await auditChange(transaction, 'token.revoked', stores, { token_id });
  }
  return revoked.length;
}
