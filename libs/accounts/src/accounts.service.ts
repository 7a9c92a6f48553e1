import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { NotFoundError } from '#kernel/errors.js';
import type { Account } from './account.js';
import { accountJson, type AccountJson } from './account.dto.js';

type AccountRow = { state: Account; cards: number; customers: number };

const ACCOUNTS = `
  select a.state,
    (select count(*) from cards c where c.account_id = a.id) as cards,
    (select count(*) from customers u where u.account_id = a.id) as customers
  from accounts a`;

@Injectable()
export class AccountsService {
  constructor(private readonly source: DataSource) {}

  /** Every store that the user belongs to. */
  async listFor(userId: number): Promise<AccountJson[]> {
    const rows: AccountRow[] = await this.source.query(
      `${ACCOUNTS} join memberships m on m.account_id = a.id and m.user_id = $1 order by a.id`,
      [userId],
    );
    return rows.map((row) => accountJson(row.state, row));
  }

  /** @throws NotFoundError */
  async find(id: number): Promise<AccountJson> {
    const [row]: AccountRow[] = await this.source.query(`${ACCOUNTS} where a.id = $1`, [id]);
    if (!row) throw new NotFoundError('Store');
    return accountJson(row.state, row);
  }
}
