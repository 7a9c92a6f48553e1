import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { query } from '#platform/database/connection.js';
import {
  CapOverrides,
  type CapShare,
} from '#platform/event-store/commands/cap-overrides.service.js';
import { CapReachedError, renderCapName } from '#platform/event-store/port/caps.js';
import type { Cap } from '#platform/event-store/port/event-store.js';
import { customerCap } from './customer.entity.js';

/** How long a store counts as full: counting a hundred thousand customers takes some milliseconds. */
const FULL_FOR_MS = 5_000;

/** One of so many customers is left to staff. */
const RESERVED_SHARE = 10;

/** The kept count comes first: only a store that may be full is counted. */
const IS_FULL = {
  name: 'customers_quota_is_full',
  text: `select case when (select c.count from es.cap_counts c where c.cap = $2) < $3 then false
           else (select count(*) from customers
                 where account_id = any ($1) and merged_into is null and erased_at is null) >= $3
         end as is_full`,
};

/** Limits how many customers a store has, where a setting or its own quota says so (QUOTA-03). */
@Injectable()
export class CustomerQuota {
  /** How many customers stores that share a quota had at least, by the store whose quota it is. */
  private readonly fullStores = new ExpiringCache<number, { max: number }>({
    max: 10_000,
    ttl: FULL_FOR_MS,
  });

  constructor(
    private readonly pool: Pool,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /**
   * Finds the cap to be checked with the commit of a new customer; undefined without a limit.
   * @param isSignup whether somebody signs up, for whom the reserve is not
   * @throws CapReachedError when the store is known to be full
   */
  async findCap(accountId: number, id: number, isSignup: boolean): Promise<Cap | undefined> {
    const { owner, owners, max: quota } = await this.findShare(accountId);
    if (quota === null) return undefined;
    const max = isSignup ? withoutReserve(quota) : quota;
    if (await this.isFull(owner, owners, max)) throw new CapReachedError(customerCap);
    const reservedShare = isSignup ? RESERVED_SHARE : 0;
    return { kind: customerCap, owner, owners, id, max: quota, reservedShare };
  }

  /** Tells whether nobody can sign up with the store any more, because of its quota of customers (QUOTA-04). */
  async isFullForSignups(accountId: number): Promise<boolean> {
    const { owner, owners, max } = await this.findShare(accountId);
    return max !== null && this.isFull(owner, owners, withoutReserve(max));
  }

  /** Finds how many customers a store may have, with those that share the quota; null: any number. */
  findShare(accountId: number): Promise<CapShare> {
    return this.overrides.getShare<number | null>(
      customerCap.table,
      accountId,
      this.config.quotas.customers,
    );
  }

  private async isFull(owner: number, owners: number[], max: number): Promise<boolean> {
    // What is above one number is above a smaller one too.
    if ((this.fullStores.get(owner)?.max ?? -1) >= max) return true;
    const [row] = await query<{ is_full: boolean }>(this.pool, {
      ...IS_FULL,
      values: [owners, renderCapName(customerCap.table, owner), max],
    });
    if (row?.is_full === true) this.fullStores.set(owner, { max });
    return row?.is_full === true;
  }
}

/** Leaves a tenth of a quota to staff, so that strangers who sign up never make the till refuse a customer. */
function withoutReserve(max: number): number {
  return max - Math.ceil(max / RESERVED_SHARE);
}
