import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { EnteredStore } from '#web/pages/current-user.js';

/** Far more than anybody has, but still readable on one page. */
const MAX_STORES = 500;

@Injectable()
export class Stores {
  constructor(private readonly pool: Pool) {}

  /** Lists the stores of a user by name. */
  async listForUser(userId: number): Promise<EnteredStore[]> {
    return query<EnteredStore>(this.pool, {
      name: 'stores_of_user',
      text: `select a.id, a.name, m.role
             from memberships m join accounts a on a.id = m.account_id
             where m.user_id = $1 order by lower(a.name), a.id limit ${MAX_STORES}`,
      values: [userId],
    });
  }
}
