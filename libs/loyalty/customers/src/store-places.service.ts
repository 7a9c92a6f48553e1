import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { query } from '#database/connection.js';
import type { Place } from './customer.js';

/** Reads where stores are. */
@Injectable()
export class StorePlaces {
  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError */
  async get(accountId: number): Promise<Place> {
    const [row] = await query<{ time_zone: string; country: string | null }>(this.pool, {
      name: 'customers_place',
      text: 'select time_zone, country from accounts where id = $1',
      values: [accountId],
    });
    if (!row) throw new NotFoundError('Store');
    return { timeZone: row.time_zone, country: row.country };
  }
}
