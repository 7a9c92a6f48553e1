import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Batcher } from '#platform/database/batcher.js';
import { query } from '#platform/database/connection.js';
import type { Channel } from '#platform/kernel/aggregate.js';
import type { ConsentRule, StoreRegion } from './customer.js';

const MAX_BATCHES = 2;
const BATCH_SIZE = 100;

/** The rules of a store that decisions about its customers depend on. */
export type CustomerRules = StoreRegion & { confirmsCounterConsents: boolean };

type RegionRow = {
  id: number;
  time_zone: string;
  country: string | null;
  confirms_counter_consents: boolean;
};

/** The channels of pages on which people of the store record what a customer says. */
const PAGES: ReadonlySet<Channel> = new Set(['staff', 'owner']);

/** Finds whether a consent waits for its confirmation: always on signup pages, where anybody may enter any address. */
export function findConsentRule(channel: Channel, rules: CustomerRules): Required<ConsentRule> {
  return {
    needsConsentLink: channel === 'poster' || (rules.confirmsCounterConsents && PAGES.has(channel)),
  };
}

/** Reads the time zones and countries of stores. */
@Injectable()
export class StoreRegions {
  private readonly loads = new Batcher<number, CustomerRules>(MAX_BATCHES, BATCH_SIZE, (ids) =>
    this.load(ids),
  );

  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError */
  get(accountId: number): Promise<CustomerRules> {
    return this.loads.add(accountId);
  }

  private async load(accountIds: number[]): Promise<PromiseSettledResult<CustomerRules>[]> {
    const rows = await query<RegionRow>(this.pool, {
      name: 'find_store_regions',
      text: `select id, time_zone, country, confirms_counter_consents from accounts
             where id = any (array(select unnest($1::bigint[])))`,
      values: [[...new Set(accountIds)]],
    });
    const regions = new Map(rows.map((row) => [row.id, row]));
    return accountIds.map((id) => {
      const row = regions.get(id);
      if (!row) return { status: 'rejected', reason: new NotFoundError('Store') };
      const {
        time_zone: timeZone,
        country,
        confirms_counter_consents: confirmsCounterConsents,
      } = row;
      return { status: 'fulfilled', value: { timeZone, country, confirmsCounterConsents } };
    });
  }
}
