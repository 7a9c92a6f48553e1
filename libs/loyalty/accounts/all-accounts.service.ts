import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import { toAccountJson, type AccountJson } from './account.dto.js';
import { ACCOUNT_COUNTS, type AccountRow } from './accounts.service.js';

const ROW = `
  a.state, exists (select from memberships p where p.account_id = a.id and p.personal) as personal,
  ${ACCOUNT_COUNTS}`;

const LIST = {
  name: 'all_accounts_list',
  text: `select ${ROW} from accounts a where a.id > $1 order by a.id limit $2`,
};
const LIST_OF_USER = {
  name: 'all_accounts_of_user',
  text: `select ${ROW} from memberships m join accounts a on a.id = m.account_id
         where m.user_id = $3 and m.account_id > $1 order by m.account_id limit $2`,
};
const FIND = { name: 'all_accounts_find', text: `select ${ROW} from accounts a where a.id = $1` };
const FIND_OWNER = {
  name: 'all_accounts_personal_owner',
  text: 'select user_id from memberships where account_id = $1 and personal',
};

/** Lists the stores of the whole service, for operators; `AccountsService` lists those of a token. */
@Injectable()
export class AllAccounts {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** @param userId only those of this user; null: all */
  async list(userId: number | null, { after, limit }: PageRange): Promise<AccountJson[]> {
    const values = [after?.[0] ?? 0, limit];
    const rows = await query<AccountRow>(
      this.pool,
      userId === null ? { ...LIST, values } : { ...LIST_OF_USER, values: [...values, userId] },
    );
    return rows.map((row) => this.toJson(row));
  }

  /** @throws NotFoundError */
  async get(id: number): Promise<AccountJson> {
    const [row] = await query<AccountRow>(this.pool, { ...FIND, values: [id] });
    if (!row) throw new NotFoundError('Store');
    return this.toJson(row);
  }

  private toJson(row: AccountRow): AccountJson {
    return toAccountJson(row.state, row, row.personal, this.config.publicUrl);
  }

  /** Finds the user whose own store it is; 0: nobody's. */
  async findPersonalOwnerId(id: number): Promise<number> {
    const [row] = await query<{ user_id: number }>(this.pool, { ...FIND_OWNER, values: [id] });
    return row?.user_id ?? 0;
  }
}
