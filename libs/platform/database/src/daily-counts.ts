import { Injectable } from '@nestjs/common';
import { fingerprint } from '#kernel/sealing.js';
import { query, type Queryable } from './connection.js';
import { renderCount } from './expiring-count.js';
import { MasterKeys } from './master-keys.js';

const COUNT = renderCount('daily_counts', 'count', '1 day');

const FIND = `
    select count, greatest(1, ceil(extract(epoch from until - now())))::int as seconds
    from daily_counts where key = $1 and until > now()`;

const RELEASE = `
    update daily_counts set count = count - 1 where key = $1 and until > now() and count > 0
    returning count, 1 as seconds`;

type Row = { count: number; seconds: number };

/**
 * Counts events against limits per 24 hours, for all processes and across restarts. A day begins with the first
 * event. The subject, such as somebody's address, is stored as a keyed hash, which later counts remove once its day
 * is over.
 */
@Injectable()
export class DailyCounts {
  constructor(private readonly keys: MasterKeys) {}

  /**
   * Counts one event, unless the limit has been reached.
   * @param subject what is counted, beginning with a word for its kind
   * @returns null while it is within the limit, else the seconds until the day ends
   */
  async count(
    by: Queryable,
    subject: readonly (string | number)[],
    limit: number,
  ): Promise<number | null> {
    const key = fingerprint(this.keys.getDataKey('daily counts'), ...subject);
    const [row] = await query<Row>(by, COUNT, [key]);
    if (!row) throw new Error('counting returned nothing');
    if (row.count <= limit) return null;
    await query(by, RELEASE, [key]);
    return row.seconds;
  }

  /** Takes back one event of today. */
  async release(by: Queryable, subject: readonly (string | number)[]): Promise<void> {
    const key = fingerprint(this.keys.getDataKey('daily counts'), ...subject);
    await query(by, RELEASE, [key]);
  }

  /** Reads how often something was counted today. */
  async get(by: Queryable, subject: readonly (string | number)[]): Promise<number> {
    const key = fingerprint(this.keys.getDataKey('daily counts'), ...subject);
    const [row] = await query<Row>(by, FIND, [key]);
    return row?.count ?? 0;
  }
}
