import { Injectable } from '@nestjs/common';
import { fingerprint } from '#kernel/sealing.js';
import { MasterKeys } from './master-keys.js';

/** Rows that are past go with those that come, a few at a time. */
const COUNT = `
  with past as (
    delete from daily_counts where key in (
      select key from daily_counts where until < now() and key <> $1
      order by until limit 10 for update skip locked)
  )
  insert into daily_counts as c (key, count, until) values ($1, 1, now() + interval '1 day')
  on conflict (key) do update set
    count = case when c.until < now() then 1 else c.count + 1 end,
    until = case when c.until < now() then now() + interval '1 day' else c.until end
  returning count, greatest(1, ceil(extract(epoch from until - now())))::int as seconds`;

type Row = { count: number; seconds: number };

/** Runs a query, on its own or as a part of the caller's transaction. */
export type RunQuery = (text: string, values: unknown[]) => Promise<Row[]>;

/**
 * Counts what may happen a number of times in 24 hours, for all processes and across restarts. A day begins with the first
 * time. The subject, such as somebody's address, is stored as a keyed hash, which later counts remove once its day is over.
 */
@Injectable()
export class DailyCounts {
  constructor(private readonly keys: MasterKeys) {}

  /**
   * Counts one more time.
   * @param subject what is counted, beginning with a word for its kind
   * @returns null while it is within the limit, else the seconds until the day ends
   */
  async count(
    query: RunQuery,
    subject: readonly (string | number)[],
    limit: number,
  ): Promise<number | null> {
    const key = fingerprint(this.keys.dataKey('daily counts'), ...subject);
    const [row] = await query(COUNT, [key]);
    if (!row) throw new Error('counting returned nothing');
    return row.count > limit ? row.seconds : null;
  }
}
