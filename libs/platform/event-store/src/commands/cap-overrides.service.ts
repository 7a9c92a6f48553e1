import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { query } from '#database/connection.js';
import { renderCapName } from '../port/caps.js';

const MAX_CACHED = 20_000;
const CURRENT_FOR_MS = 1_000;

const FIND = {
  name: 'cap_overrides_find',
  text: 'select max from es.cap_overrides where cap = $1',
};

/**
 * Finds maxima of single owners where no cap is checked in a commit, or none may be needed. Known for a second, because some
 * are looked up for each request.
 */
@Injectable()
export class CapOverrides {
  private readonly cache = new ExpiringCache<string, { max: number | undefined }>({
    max: MAX_CACHED,
    ttl: CURRENT_FOR_MS,
  });

  constructor(private readonly pool: Pool) {}

  /** Gets the maximum of an owner, or else the usual one. @param recordKind such as a table */
  async getMax<M extends number | null>(
    recordKind: string,
    owner: number,
    usual: M,
  ): Promise<number | M> {
    const cap = renderCapName(recordKind, owner);
    const cached = this.cache.get(cap);
    if (cached) return cached.max ?? usual;
    const [row] = await query<{ max: number }>(this.pool, { ...FIND, values: [cap] });
    this.cache.set(cap, { max: row?.max });
    return row?.max ?? usual;
  }
}
