import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { query } from '#database/connection.js';
import type { StoreRegion } from './customer.js';

/** Reads the time zones and countries of stores. */
@Injectable()
export class StoreRegions {
  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError */
  async get(accountId: number): Promise<StoreRegion> {
    const [row] = await query<{ time_zone: string; country: string | null }>(this.pool, {
      name: 'find_store_region',
      text: 'select time_zone, country from accounts where id = $1',
      values: [accountId],
    });
    if (!row) throw new NotFoundError('Store');
    return { timeZone: row.time_zone, country: row.country };
  }
}
