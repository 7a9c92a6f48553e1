import { Injectable, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import { Pool } from 'pg';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { UnauthorizedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { Authenticator, type Caller } from '#platform/http/caller.js';
import { findDenial, limitRole, type DenialCode, type Role } from './roles.js';
import { TokenUses } from './token-uses.service.js';
import { hasValidChecksum } from './token.js';
import { IDENTITY_CHANNEL } from './user-audit.service.js';

/** Limits the size only. Entries need no expiry: every change clears the whole cache. */
const CACHE_SIZE = 10_000;
/** Few users belong to more stores; a token may be used for one that is not among these. */
const MAX_ROLES = 50;
/** Trusts a poll for so long that, with the poll, the request and a busy moment, a change counts within a second. */
const CURRENT_FOR_MS = 800;

/** Finds a token with its user's roles, so that a first request takes one query instead of two. */
const FIND_TOKEN = {
  name: 'identity_find_token',
  text: `select t.id as "tokenId", t.user_id as "principalId", t.per_minute as "perMinute", t.role as "maxRole",
           t.account_ids as "accountIds", t.read_only as "isReadOnly",
           extract(epoch from t.expires_at - now())::float8 * 1000 as "expiresInMs",
           array(select jsonb_build_array(account_id, role) from memberships m
                 where m.user_id = t.user_id limit ${MAX_ROLES}) as roles
         from api_tokens t join users u on u.id = t.user_id
         where t.sha256 = $1 and t.revoked_at is null and u.removed_at is null
           and (t.expires_at is null or t.expires_at > now())`,
};
const FIND_MEMBERSHIP = {
  name: 'identity_find_membership',
  text: `select (select role from memberships where user_id = u.id and account_id = $2) as role
         from users u where u.id = $1 and u.removed_at is null`,
};

/** @property maxRole what the user's role in any store is limited to; null: it is not */
type TokenCaller = Caller & { maxRole: Role | null };

/** @property expiresInMs by the database's clock */
type TokenRow = TokenCaller & {
  expiresInMs: number | null;
  roles: [accountId: number, role: Role][];
};

/** @property expiresAt by `performance.now()`, so that setting the clock back revives no token */
type CachedCaller = { caller: TokenCaller; expiresAt: number };

/**
 * Finds the user of a token and their rights. Results are cached: a notification clears the cache within moments of a
 * change of users, memberships or tokens. Since one may get lost, each poll reads a version that every change raises;
 * without a recent poll the cache is not used. The checksum reveals tokens that were not created here, so that invented
 * ones cause no query.
 */
@Injectable()
export class TokensService extends Authenticator implements OnModuleInit {
  override readonly accountName = 'Store';
  /** Caches callers by token hash. False: revoked or expired, or its user was removed. */
  private readonly callers = new LRUCache<string, CachedCaller | false>({ max: CACHE_SIZE });
  /** Caches the roles of users in their stores. */
  private readonly roles = new LRUCache<string, Role>({ max: CACHE_SIZE });
  /** Counts changes: a result that was requested before the last one is not cached. */
  private changes = 0;
  private rightsVersion: number | undefined;
  /** When the last successful poll was sent, by `performance.now()`. */
  private polledAt = -Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
    private readonly uses: TokenUses,
    private readonly link: ProcessLink,
  ) {
    super();
  }

  async onModuleInit(): Promise<void> {
    const clear = () => this.clearCache();
    this.link.listen(IDENTITY_CHANNEL, clear, clear);
    this.link.join<{ rights_version: number }>({
      columns: '(select version from rights_version) as rights_version',
      receive: ({ rights_version: version }, { sentAt }) => {
        if (version !== this.rightsVersion) this.clearCache();
        this.rightsVersion = version;
        this.polledAt = sentAt;
      },
    });
    await this.link.poll();
  }

  override authenticate(token: string): Awaitable<TokenCaller | undefined> {
    // Looked up by hash: comparing in constant time is not needed where nothing is compared.
    const key = hash('sha256', token, 'base64');
    const cachedCaller = this.findCached(this.callers, key);
    // A cached token was created here.
    return cachedCaller === undefined ? this.load(token, key) : this.useCaller(cachedCaller);
  }

  override findKnownDenial(
    caller: TokenCaller,
    accountId: number,
    operation: string | undefined,
  ): DenialCode | null | undefined {
    if (!canReach(caller, accountId)) return findDenial(null, operation);
    const role = this.findCached(this.roles, createRoleKey(caller.principalId, accountId));
    return role && findDenial(limitRole(role, caller.maxRole), operation);
  }

  override async findDenial(
    caller: TokenCaller,
    accountId: number,
    operation: string | undefined,
  ): Promise<DenialCode | null> {
    const denial = this.findKnownDenial(caller, accountId, operation);
    if (denial !== undefined) return denial;
    const role = await this.loadRole(caller.principalId, accountId);
    return findDenial(role && limitRole(role, caller.maxRole), operation);
  }

  private async load(token: string, key: string): Promise<TokenCaller | undefined> {
    if (!hasValidChecksum(token, this.keys.getDataKey('token checksums'))) return undefined;
    return this.useCaller(await this.find(key));
  }

  private useCaller(entry: CachedCaller | false): TokenCaller | undefined {
    if (!entry || entry.expiresAt <= performance.now()) return undefined;
    this.uses.recordUse(entry.caller.tokenId);
    return entry.caller;
  }

  private clearCache(): void {
    this.changes++;
    this.callers.clear();
    this.roles.clear();
  }

  private findCached<V extends NonNullable<unknown>>(
    cache: LRUCache<string, V>,
    key: string,
  ): V | undefined {
    return performance.now() - this.polledAt < CURRENT_FOR_MS ? cache.get(key) : undefined;
  }

  private async find(key: string): Promise<CachedCaller | false> {
    const { changes } = this;
    const requestedAt = performance.now();
    const values = [Buffer.from(key, 'base64')];
    const [row] = await query<TokenRow>(this.pool, { ...FIND_TOKEN, values });
    if (!row) {
      if (changes === this.changes) this.callers.set(key, false);
      return false;
    }
    const { expiresInMs, roles, ...caller } = row;
    const entry = { caller, expiresAt: requestedAt + (expiresInMs ?? Infinity) };
    if (changes !== this.changes) return entry;
    this.callers.set(key, entry);
    for (const [accountId, role] of roles) {
      this.roles.set(createRoleKey(caller.principalId, accountId), role);
    }
    return entry;
  }

  private async loadRole(userId: number, accountId: number): Promise<Role | null> {
    const { changes } = this;
    const values = [userId, accountId];
    const [user] = await query<{ role: Role | null }>(this.pool, { ...FIND_MEMBERSHIP, values });
    // Removed since the token was looked up.
    if (!user) throw new UnauthorizedError();
    if (user.role !== null && changes === this.changes) {
      this.roles.set(createRoleKey(userId, accountId), user.role);
    }
    return user.role;
  }
}

/** Tells whether the token is for this store. Its user may still not belong to it. */
function canReach({ accountIds }: Caller, accountId: number): boolean {
  return accountIds === null || accountIds.includes(accountId);
}

function createRoleKey(userId: number, accountId: number): string {
  return `${userId} ${accountId}`;
}
