import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { MasterKeys } from '#database/master-keys.js';
import { Notifications } from '#database/notifications.js';
import { Authenticator, type Caller } from '#http/caller.js';
import { kindOf, sha256Of } from './token.js';

export const IDENTITY_CHANNEL = 'inkpad_identity';

/** How long a revoked token can still work at most if its notification is lost. */
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
const UNCHECKED_TOKENS = {
  name: 'identity_unchecked_tokens',
  text: `select encode(sha256, 'base64') as key from api_tokens
         where not has_checksum and revoked_at is null`,
};

/**
 * Finds whom a token belongs to. Answers are cached for a few seconds, and dropped at once on any change. The checksum
 * shows which tokens were not made here, so that inventing tokens does not make the database work.
 */
@Injectable()
export class TokensService extends Authenticator implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('tokens');
  /** False: revoked, or its user was removed. */
  private readonly callers = new LRUCache<string, Caller | false>({ max: 10_000, ttl: KEPT_MS });
  private readonly reached = new LRUCache<string, true>({ max: 10_000, ttl: KEPT_MS });
  /** The hashes of tokens from before there were checksums. No request adds to them. */
  private unchecked: ReadonlySet<string> = new Set();
  private uncheckedAsked = 0;
  private uncheckedAsOf = 0;
  private readonly changes: Notifications;

  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
    config: Config,
  ) {
    super();
    const forget = () => {
      this.callers.clear();
      this.reached.clear();
      this.loadUnchecked().catch((error: unknown) =>
        // They are read again when the connection is back.
        this.log.warn(`tokens without a checksum could not be read: ${messageOf(error)}`),
      );
    };
    this.changes = new Notifications(config.databaseUrl, IDENTITY_CHANNEL, forget, forget);
  }

  async onModuleInit(): Promise<void> {
    await this.loadUnchecked();
    await this.changes.listen();
  }

  async onModuleDestroy(): Promise<void> {
    await this.changes.close();
  }

  override async callerOf(token: string): Promise<Caller | undefined> {
    const kind = kindOf(token, this.keys.dataKey('token checksums'));
    if (kind === 'foreign') return undefined;
    // Looked up by hash: comparing in constant time is not needed where nothing is compared.
    const sha256 = sha256Of(token);
    const key = sha256.toString('base64');
    if (kind === 'unchecked' && !this.unchecked.has(key)) return undefined;
    const known = this.callers.get(key);
    if (known !== undefined) return known || undefined;
    const [row] = await ask<{ id: number; user_id: number; per_minute: number | null }>(this.pool, {
      ...FIND_TOKEN,
      values: [sha256],
    });
    if (!row) {
      this.callers.set(key, false);
      return undefined;
    }
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

  private async loadUnchecked(): Promise<void> {
    const asOf = ++this.uncheckedAsked;
    const rows = await ask<{ key: string }>(this.pool, UNCHECKED_TOKENS);
    // After two changes in quick succession, their answers may arrive in the wrong order.
    if (asOf < this.uncheckedAsOf) return;
    this.uncheckedAsOf = asOf;
    this.unchecked = new Set(rows.map(({ key }) => key));
  }
}
