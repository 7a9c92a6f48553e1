import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query, type Queryable } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import { TOKEN_DETAILS, type TokenDetails } from './members.service.js';

/** @property perMinute null: the limit of the settings @property lastUsedAt to the minute */
export type ApiTokenRecord = TokenDetails & {
  id: number;
  userId: number;
  email: string | null;
  perMinute: number | null;
  createdAt: Date;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
  /** Whether it ends once its user shows that the address is theirs. */
  endsWhenConfirmed: boolean;
};

/** @property user by id or the key of the address; null: of everybody @property isComplete with those that are no longer in force */
export type TokenFilter = { user: number | string | null; isComplete: boolean };

/** Tokens themselves are known to nobody: only their hashes are stored. */
const TOKEN = `
  select t.id, ${TOKEN_DETAILS}, u.id as "userId", u.email, t.per_minute as "perMinute",
    t.created_at as "createdAt", t.last_used_at as "lastUsedAt", t.revoked_at as "revokedAt",
    u.email_confirmed_at is null as "endsWhenConfirmed"
  from api_tokens t join users u on u.id = t.user_id`;

/** Lists the API tokens of the whole service, for operators; `Members` lists those that reach a store. */
@Injectable()
export class ApiTokens {
  constructor(private readonly pool: Pool) {}

  /** @param range null: all of them */
  list({ user, isComplete }: TokenFilter, range: PageRange | null): Promise<ApiTokenRecord[]> {
    const values: unknown[] = [];
    const value = (parameter: unknown) => `$${values.push(parameter)}`;
    const conditions = [`t.id > ${value(range?.after?.[0] ?? 0)}`];
    if (!isComplete) {
      conditions.push(`t.revoked_at is null and u.removed_at is null
        and (t.expires_at is null or t.expires_at > now())`);
    }
    if (typeof user === 'number') conditions.push(`t.user_id = ${value(user)}`);
    if (typeof user === 'string') {
      conditions.push(`u.email_key = ${value(user)}`);
    }
    return query<ApiTokenRecord>(this.pool, {
      text: `${TOKEN} where ${conditions.join(' and ')} order by t.id limit ${value(range?.limit ?? null)}`,
      values,
    });
  }

  /** @param by a transaction that has just changed it @throws NotFoundError */
  async get(id: number, by: Queryable = this.pool): Promise<ApiTokenRecord> {
    const text = `${TOKEN} where t.id = $1`;
    const [token] = await query<ApiTokenRecord>(by, { name: 'api_tokens_get', text, values: [id] });
    if (!token) throw new NotFoundError('Token');
    return token;
  }
}
