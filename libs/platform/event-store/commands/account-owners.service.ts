import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { query } from '#platform/database/connection.js';

const MAX_KNOWN = 100_000;
const KNOWN_FOR_MS = 60_000;

const FIND = {
  name: 'account_owners_find',
  text: 'select shared_with from es.cap_sharing where owner = $1',
};

/**
 * Finds for which account another one counts: the first of its owner, with which it shares caps. Owners share the service
 * by it, so that several accounts bring nobody a larger share (ADR-0134). It never changes.
 */
@Injectable()
export class AccountOwners {
  private readonly owners = new ExpiringCache<number, number>({
    max: MAX_KNOWN,
    ttl: KNOWN_FOR_MS,
  });

  constructor(private readonly pool: Pool) {}

  /** Returns it without a lookup; undefined where it takes one. */
  findKnown(accountId: number): number | undefined {
    return this.owners.get(accountId);
  }

  async find(accountId: number): Promise<number> {
    const cached = this.owners.get(accountId);
    if (cached !== undefined) return cached;
    const [row] = await query<{ shared_with: number }>(this.pool, { ...FIND, values: [accountId] });
    const owner = row?.shared_with ?? accountId;
    this.owners.set(accountId, owner);
    return owner;
  }
}
