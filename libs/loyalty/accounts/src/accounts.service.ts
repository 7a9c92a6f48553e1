import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { AsOf, type Past } from '#event-store/as-of.service.js';
import { PastCounts } from '#event-store/past-counts.service.js';
import type { Range } from '#http/page.js';
import type { Account } from './account.js';
import { accountRows } from './account.entity.js';
import { accountJson, type AccountCounts, type AccountJson } from './account.dto.js';

type AccountRow = { state: Account } & AccountCounts;

const COUNTS = `
  (select count(*) from cards c where c.account_id = a.id) as cards,
  (select count(*) from customers u
    where u.account_id = a.id and u.merged_into is null) as customers,
  (select count(*) from locations l
    where l.account_id = a.id and l.deleted_at is null) as locations,
  (select count(*) from posters p
    where p.account_id = a.id and p.deleted_at is null) as posters`;

const ACCOUNTS = `select a.state, ${COUNTS} from accounts a`;

@Injectable()
export class AccountsService {
  constructor(
    private readonly pool: Pool,
    private readonly asOf: AsOf,
    private readonly pastCounts: PastCounts,
  ) {}

  /** Every store that the user belongs to. */
  async listFor(userId: number, { after, limit }: Range): Promise<AccountJson[]> {
    const rows = await ask<AccountRow>(this.pool, {
      text: `${ACCOUNTS} join memberships m on m.account_id = a.id
       where m.user_id = $1 and m.account_id > $2 order by m.account_id limit $3`,
      values: [userId, after?.[0] ?? 0, limit],
    });
    return rows.map((row) => accountJson(row.state, row));
  }

  /** @throws NotFoundError */
  async find(id: number): Promise<AccountJson> {
    const [row] = await ask<AccountRow>(this.pool, {
      text: `${ACCOUNTS} where a.id = $1`,
      values: [id],
    });
    if (!row) throw new NotFoundError('Store');
    return accountJson(row.state, row);
  }

  /** As it was. @throws NotFoundError when it did not exist yet */
  async findPast(id: number, time: Date): Promise<AccountJson> {
    const past = await this.asOf.at(time);
    const account = await this.asOf.state(accountRows, id, past);
    if (!account) throw new NotFoundError('Store');
    return accountJson(account, await this.countsPast(id, past));
  }

  /** The stores that the user belongs to now, as they were. */
  async listPastFor(userId: number, time: Date): Promise<AccountJson[]> {
    const past = await this.asOf.at(time);
    const rows = await ask<{ id: number }>(this.pool, {
      text: 'select account_id as id from memberships where user_id = $1 order by account_id',
      values: [userId],
    });
    const ids = rows.map(({ id }) => id);
    const stores: AccountJson[] = [];
    for (const account of await this.asOf.states(accountRows, ids, past)) {
      stores.push(accountJson(account, await this.countsPast(account.id, past)));
    }
    return stores;
  }

  private async countsPast(id: number, past: Past): Promise<AccountCounts> {
    const [own] = await ask<Record<'cards' | 'locations' | 'posters', number[]>>(this.pool, {
      name: 'accounts_own',
      text: `select array(select id from cards where account_id = $1) as cards,
        array(select id from locations where account_id = $1) as locations,
        array(select id from posters where account_id = $1) as posters`,
      values: [id],
    });
    const count = async (table: 'cards' | 'locations' | 'posters') =>
      (await this.asOf.records(table, own?.[table].map(Number) ?? [], past)).length;
    return {
      cards: await count('cards'),
      customers: await this.pastCounts.customersOf(id, past),
      locations: await count('locations'),
      posters: await count('posters'),
    };
  }

  /** Zeros if there is no such store. */
  async counts(id: number): Promise<AccountCounts> {
    const [row] = await ask<AccountCounts>(this.pool, {
      name: 'accounts_counts',
      text: `select ${COUNTS} from (select $1::bigint as id) a`,
      values: [id],
    });
    if (!row) throw new Error('counting always answers');
    return row;
  }
}
