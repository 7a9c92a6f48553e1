import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Batcher } from '#platform/database/batcher.js';
import { query } from '#platform/database/connection.js';
import type { StoreRegion } from './customer.js';

const MAX_BATCHES = 2;
const BATCH_SIZE = 100;

type RegionRow = { id: number; time_zone: string; country: string | null };

/** Reads the time zones and countries of stores. */
@Injectable()
export class StoreRegions {
  private readonly loads = new Batcher<number, StoreRegion>(MAX_BATCHES, BATCH_SIZE, (ids) =>
    this.load(ids),
  );

  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError */
  get(accountId: number): Promise<StoreRegion> {
    return this.loads.add(accountId);
  }

  private async load(accountIds: number[]): Promise<PromiseSettledResult<StoreRegion>[]> {
    const rows = await query<RegionRow>(this.pool, {
      name: 'find_store_regions',
      text: `select id, time_zone, country from accounts
             where id = any (array(select unnest($1::bigint[])))`,
      values: [[...new Set(accountIds)]],
    });
    const regions = new Map(rows.map((row) => [row.id, row]));
    return accountIds.map((id) => {
      const row = regions.get(id);
      if (!row) return { status: 'rejected', reason: new NotFoundError('Store') };
      return { status: 'fulfilled', value: { timeZone: row.time_zone, country: row.country } };
    });
  }
}
