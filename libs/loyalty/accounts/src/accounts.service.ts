import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import type { Range } from '#http/page.js';
import type { Account } from './account.js';
import { accountJson, type AccountCounts, type AccountJson } from './account.dto.js';

type AccountRow = { state: Account } & AccountCounts;

const COUNTS = `
  (select count(*) from cards c where c.account_id = a.id) as cards,
  (select count(*) from customers u where u.account_id = a.id) as customers,
  (select count(*) from locations l
    where l.account_id = a.id and l.deleted_at is null) as locations,
  (select count(*) from posters p
    where p.account_id = a.id and p.deleted_at is null) as posters`;

const ACCOUNTS = `select a.state, ${COUNTS} from accounts a`;

@Injectable()
export class AccountsService {
  constructor(private readonly pool: Pool) {}

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
