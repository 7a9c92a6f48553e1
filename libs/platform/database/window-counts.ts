import { Injectable } from '@nestjs/common';
import { fingerprint } from '#platform/kernel/sealing.js';
import { query, type Queryable } from './connection.js';
import { MasterKeys } from './master-keys.js';

/**
 * Writes a statement, for a `with`, that deletes a few expired rows of a table along with each insert. So nothing else has to
 * delete them.
 * @param key the columns of the primary key
 * @param inserted the parameters of the row that the insert may update, which is left alone
 */
export function renderDeleteExpired(table: string, key: string, inserted: string): string {
  return `
      delete from ${table} where (${key}) in (
        select ${key} from ${table} where until < now() and (${key}) <> (${inserted})
        order by until limit 10 for update skip locked)`;
}

const ADD = `
    with past as (${renderDeleteExpired('counts', 'key', '$1')}
    )
    insert into counts as c (key, count, until) values ($1, 1, now() + $2::interval)
    on conflict (key) do update set
      count = case when c.until < now() then 1 else c.count + 1 end,
      until = case when c.until < now() then excluded.until else c.until end
    returning count, greatest(1, ceil(extract(epoch from until - now())))::int as seconds`;

/** What is counted, beginning with a word for its kind. */
export type CountSubject = readonly (string | number)[];

/** @property seconds until the window ends, at least 1 */
export type Count = { count: number; seconds: number };

/**
 * Counts events within windows that begin with the first event, for all processes and across restarts. The subject, such
 * as somebody's address, is stored as a keyed hash, which later counts remove once its window is over.
 */
@Injectable()
export class WindowCounts {
  constructor(private readonly keys: MasterKeys) {}

  /** Counts one event. @param window the length of the window if this is its first event */
  async add(
    by: Queryable,
    subject: CountSubject,
    window: '15 minutes' | '1 hour' | '1 day',
  ): Promise<Count> {
    const values = [this.getKey(subject), window];
    const [row] = await query<Count>(by, { name: 'counts_add', text: ADD, values });
    if (!row) throw new Error('counting returned nothing');
    return row;
  }

  /**
   * Counts one event of a day, unless the limit has been reached.
   * @returns null while it is within the limit, else the seconds until the day ends
   */
  async addUpTo(by: Queryable, subject: CountSubject, limit: number): Promise<number | null> {
    const { count, seconds } = await this.add(by, subject, '1 day');
    if (count <= limit) return null;
    await this.release(by, subject);
    return seconds;
  }

  /** Takes back one event. */
  async release(by: Queryable, subject: CountSubject): Promise<void> {
    const text =
      'update counts set count = count - 1 where key = $1 and until > now() and count > 0';
    await query(by, text, [this.getKey(subject)]);
  }

  /** Takes back all events. */
  async forget(by: Queryable, subject: CountSubject): Promise<void> {
    await query(by, 'delete from counts where key = $1', [this.getKey(subject)]);
  }

  /** Reads how many events of the window there are. */
  async get(by: Queryable, subject: CountSubject): Promise<number> {
    const [row] = await query<{ count: number }>(
      by,
      'select count from counts where key = $1 and until > now()',
      [this.getKey(subject)],
    );
    return row?.count ?? 0;
  }

  private getKey(subject: CountSubject): Buffer {
    return fingerprint(this.keys.getDataKey('counts'), ...subject);
  }
}
