import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { createHash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { ask } from '#database/connection.js';
import { Notifications } from '#database/notifications.js';
import { Authenticator, type Caller } from '#http/caller.js';

export const IDENTITY_CHANNEL = 'inkpad_identity';

/** The bound on how long a revoked token could live if its notification were lost. */
const KEPT_MS = 5_000;

const FIND_TOKEN = {
  name: 'identity_find_token',
  text: `select t.id, t.user_id, t.per_minute from api_tokens t join users u on u.id = t.user_id
         where t.sha256 = $1 and t.revoked_at is null and u.removed_at is null`,
};
const FIND_MEMBERSHIP = {
  name: 'identity_find_membership',
  text: 'select 1 from memberships where user_id = $1 and account_id = $2',
};

/** Only its SHA-256 is kept: whoever reads the database cannot use a token. */
export function newToken(): { token: string; sha256: Buffer } {
  const token = `ink_${randomBytes(32).toString('base64url')}`;
  return { token, sha256: sha256Of(token) };
}

function sha256Of(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Who a token belongs to, remembered for a few seconds and forgotten at once on any change. */
@Injectable()
export class TokensService extends Authenticator implements OnModuleInit, OnModuleDestroy {
  private readonly callers = new LRUCache<string, Caller>({ max: 10_000, ttl: KEPT_MS });
  private readonly reached = new LRUCache<string, true>({ max: 10_000, ttl: KEPT_MS });
  private readonly changes: Notifications;

  constructor(
    private readonly pool: Pool,
    config: Config,
  ) {
    super();
    const forget = () => {
      this.callers.clear();
      this.reached.clear();
    };
    this.changes = new Notifications(config.databaseUrl, IDENTITY_CHANNEL, forget, forget);
  }

  async onModuleInit(): Promise<void> {
    await this.changes.listen();
  }

  async onModuleDestroy(): Promise<void> {
    await this.changes.close();
  }

  override async callerOf(token: string): Promise<Caller | undefined> {
    // Looked up by hash: comparing in constant time is not needed where nothing is compared.
    const sha256 = sha256Of(token);
    const key = sha256.toString('base64');
    const known = this.callers.get(key);
    if (known) return known;
    const [row] = await ask<{ id: number; user_id: number; per_minute: number | null }>(this.pool, {
      ...FIND_TOKEN,
      values: [sha256],
    });
    if (!row) return undefined;
    const caller = { tokenId: row.id, userId: row.user_id, perMinute: row.per_minute };
    this.callers.set(key, caller);
    return caller;
  }

  override async reaches(caller: Caller, accountId: number): Promise<boolean> {
    const key = `${caller.userId} ${accountId}`;
    if (this.reached.get(key)) return true;
    const values = [caller.userId, accountId];
    const rows = await ask(this.pool, { ...FIND_MEMBERSHIP, values });
    if (rows.length === 0) return false;
    this.reached.set(key, true);
    return true;
  }
}
