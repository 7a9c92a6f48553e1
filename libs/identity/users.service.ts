import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { findEmailKey } from '#platform/kernel/email-address.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query, type Queryable } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { Role } from './roles.js';

/** @property email null some time after the user was removed @property tokens how many are in force */
export type ListedUser = {
  id: number;
  email: string | null;
  emailConfirmedAt: Date | null;
  name: string;
  createdAt: Date;
  removedAt: Date | null;
  stores: { account_id: number; role: Role }[];
  tokens: number;
};

/** @property accountId only members of this store @property email only the user with this address */
export type UserFilter = { accountId: number | null; email: string | null; hasRemoved: boolean };

const USER = `
  select u.id, u.email, u.email_confirmed_at as "emailConfirmedAt", u.name,
    u.created_at as "createdAt", u.removed_at as "removedAt",
    (select coalesce(json_agg(json_build_object('account_id', m.account_id, 'role', m.role)
       order by m.account_id), '[]') from memberships m where m.user_id = u.id) as stores,
    (select count(*)::int from api_tokens t where t.user_id = u.id and t.revoked_at is null
       and (t.expires_at is null or t.expires_at > now())) as tokens
  from users u`;

/** Lists the users of the whole service, for operators; `Members` lists those of a store. */
@Injectable()
export class Users {
  constructor(private readonly pool: Pool) {}

  /** @param range null: all of them */
  list(
    { accountId, email, hasRemoved }: UserFilter,
    range: PageRange | null,
  ): Promise<ListedUser[]> {
    const values: unknown[] = [];
    const value = (parameter: unknown) => `$${values.push(parameter)}`;
    const conditions = [`u.id > ${value(range?.after?.[0] ?? 0)}`];
    if (!hasRemoved) conditions.push('u.removed_at is null');
    if (accountId !== null) {
      conditions.push(
        `u.id in (select user_id from memberships where account_id = ${value(accountId)})`,
      );
    }
    // An address that none can have belongs to nobody.
    if (email !== null) conditions.push(`u.email_key = ${value(findEmailKey(email) ?? '')}`);
    return query<ListedUser>(this.pool, {
      text: `${USER} where ${conditions.join(' and ')} order by u.id limit ${value(range?.limit ?? null)}`,
      values,
    });
  }

  /** Gets a user, also a removed one. @param by a transaction that has just changed them @throws NotFoundError */
  async get(id: number, by: Queryable = this.pool): Promise<ListedUser> {
    const text = `${USER} where u.id = $1`;
    const [user] = await query<ListedUser>(by, { name: 'users_get', text, values: [id] });
    if (!user) throw new NotFoundError('User');
    return user;
  }
}
