import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomBytes } from 'node:crypto';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { hashToken, parseNewToken, TOKEN_BYTES, toToken, UNRESTRICTED } from '#identity/token.js';
import { ADMIN_CHECKSUMS, ADMIN_PREFIX } from './admin-tokens.service.js';

export class CreateAdminToken extends Command<{ tokenId: number; token: string }> {
  constructor(
    readonly by: AuditedWriter,
    readonly name: string,
    /** Null: valid until it is revoked. */
    readonly expiresAt: Date | null = null,
    readonly isReadOnly = false,
  ) {
    super();
  }
}

@CommandHandler(CreateAdminToken)
export class CreateAdminTokenHandler implements ICommandHandler<CreateAdminToken> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly keys: MasterKeys,
  ) {}

  async execute(command: CreateAdminToken): Promise<{ tokenId: number; token: string }> {
    const { by, expiresAt, isReadOnly } = command;
    const { name } = parseNewToken(
      { name: command.name, expiresAt, restrictions: UNRESTRICTED },
      getNow(),
    );
    const key = this.keys.getDataKey(ADMIN_CHECKSUMS);
    const token = toToken(randomBytes(TOKEN_BYTES), key, ADMIN_PREFIX);
    const sha256 = hashToken(token);
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      // By an earlier try, which was committed.
      const [existing] = await query<{ id: number }>(manager, {
        text: 'select id from admin_tokens where sha256 = $1',
        values: [sha256],
      });
      if (existing) return { tokenId: existing.id, token };
      const [created] = await query<{ id: number }>(manager, {
        text: `insert into admin_tokens (name, sha256, read_only, created_at, expires_at)
         values ($1, $2, $3, now(), $4) returning id`,
        values: [name, sha256, isReadOnly, expiresAt],
      });
      if (!created) throw new Error('the insert returned no row');
      const subject = {
        admin_token_id: created.id,
        name,
        ...(expiresAt && { expires_at: expiresAt.toISOString() }),
        ...(isReadOnly && { read_only: true }),
      };
      await transaction.audit({ accountIds: [], type: 'admin_token.created', subject });
      return { tokenId: created.id, token };
    });
  }
}

export class RevokeAdminToken extends Command<{ tokenId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly tokenId: number,
  ) {
    super();
  }
}

@CommandHandler(RevokeAdminToken)
export class RevokeAdminTokenHandler implements ICommandHandler<RevokeAdminToken> {
  constructor(private readonly writes: AuditedWrites) {}

  /** @throws NotFoundError */
  async execute({ by, tokenId }: RevokeAdminToken): Promise<{ tokenId: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const [token] = await query<{ revoked_at: Date | null }>(manager, {
        text: 'select revoked_at from admin_tokens where id = $1 for update',
        values: [tokenId],
      });
      if (!token) throw new NotFoundError('Admin token');
      if (token.revoked_at !== null) return { tokenId };
      await query(manager, 'update admin_tokens set revoked_at = now() where id = $1', [tokenId]);
      const subject = { admin_token_id: tokenId };
      await transaction.audit({ accountIds: [], type: 'admin_token.revoked', subject });
      return { tokenId };
    });
  }
}

export const adminTokenHandlers = [CreateAdminTokenHandler, RevokeAdminTokenHandler];
