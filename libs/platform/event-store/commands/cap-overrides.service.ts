import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { query } from '#platform/database/connection.js';
import { renderCapName } from '../port/caps.js';

const MAX_CACHED = 20_000;
const CURRENT_FOR_MS = 1_000;

const FIND = {
  name: 'cap_overrides_find',
  text: 'select max from es.cap_overrides where cap = $1',
};

/** Whoever has a maximum of its own does not share that with others. */
const FIND_SHARE = {
  name: 'cap_overrides_find_share',
  text: `
    with first as (
      select coalesce((
        select s.shared_with from es.cap_sharing s where s.owner = $2
          and not exists (select from es.cap_overrides o where o.cap = $1 || ' ' || s.owner)
      ), $2::bigint) as owner
    )
    select first.owner,
      array(
        select s.owner from es.cap_sharing s where s.shared_with = first.owner
          and not exists (select from es.cap_overrides o where o.cap = $1 || ' ' || s.owner)
        order by s.owner
      ) as others,
      (select o.max from es.cap_overrides o where o.cap = $1 || ' ' || first.owner) as max
    from first`,
};

/**
 * Describes a maximum that several owners may share.
 * @property owner the one whose maximum it is @property owners all who share it, the owner included
 * @property max null: it has none of its own
 */
export type CapShare<M extends number | null = number | null> = {
  owner: number;
  owners: number[];
  max: number | M;
};

/** Finds maxima of single owners where no cap is checked in a commit, or none may be needed. */
@Injectable()
export class CapOverrides {
  /** Known for a second, because some are looked up for each request. */
  private readonly shares = new ExpiringCache<string, CapShare>({
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
    const values = [renderCapName(recordKind, owner)];
    const [row] = await query<{ max: number }>(this.pool, { ...FIND, values });
    return row?.max ?? usual;
  }

  /** Gets the maximum that counts for an owner together with those who share it, or else the usual one. */
  async getShare<M extends number | null>(
    recordKind: string,
    owner: number,
    usual: M,
  ): Promise<CapShare<M>> {
    const cap = renderCapName(recordKind, owner);
    const cached = this.shares.get(cap);
    const share = cached ?? (await this.findShare(recordKind, owner));
    if (!cached) this.shares.set(cap, share);
    return { ...share, max: share.max ?? usual };
  }

  /** Finds the share as it is now. */
  async findShare(recordKind: string, owner: number): Promise<CapShare> {
    const [row] = await query<{ owner: number; others: number[]; max: number | null }>(this.pool, {
      ...FIND_SHARE,
      values: [recordKind, owner],
    });
    if (!row) throw new Error('a share always has a row');
    return { owner: row.owner, owners: [row.owner, ...row.others], max: row.max };
  }
}
