import { Injectable } from '@nestjs/common';
import { fingerprint } from '#platform/kernel/sealing.js';
import { query, type Queryable } from './connection.js';
import { MasterKeys } from './master-keys.js';

/**
 * Writes a statement, for a `with`, that deletes a few expired rows of a table along with each insert. So nothing else has to
 * delete them.
 * @param key the columns of the primary key
 * @param inserted an SQL expression of what the insert may update, which is left alone
 */
export function renderDeleteExpired(table: string, key: string, inserted: string): string {
  return `
      delete from ${table} where (${key}) in (
        select ${key} from ${table} where until < now() and (${key}) <> ${inserted}
        order by until limit 10 for update skip locked)`;
}

/** $1 the keys and $2 how many events of each, ordered, so that two statements never wait for each other. */
const ADD = `
    with past as (${renderDeleteExpired('counts', 'key', 'all ($1::bytea[])')}
    )
    insert into counts as c (key, count, until)
    select key, count, now() + $3::interval from unnest($1::bytea[], $2::int[]) n (key, count)
    on conflict (key) do update set
      count = case when c.until < now() then excluded.count else c.count + excluded.count end,
      until = case when c.until < now() then excluded.until else c.until end
    returning key, count, greatest(1, ceil(extract(epoch from until - now())))::int as seconds`;

const RELEASE =
  'update counts set count = count - 1 where key = $1 and until > now() and count > 0';

/** What is counted, beginning with a word for its kind. */
export type CountSubject = readonly (string | number)[];

type Window = '15 minutes' | '1 hour' | '1 day';

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
  async add(by: Queryable, subject: CountSubject, window: Window): Promise<Count> {
    const [count] = (await this.addAll(by, [this.getKey(subject)], window)).values();
    if (!count) throw new Error('counting returned nothing');
    return count;
  }

  /**
   * Counts one event of a day, unless the limit has been reached.
   * @returns null while it is within the limit, else the seconds until the day ends
   */
  async addUpTo(by: Queryable, subject: CountSubject, limit: number): Promise<number | null> {
    const [seconds = null] = await this.addEachUpTo(by, [subject], limit);
    return seconds;
  }

  /** Does the same for an event of each subject, in one statement. */
  async addEachUpTo(
    by: Queryable,
    subjects: CountSubject[],
    limit: number,
  ): Promise<(number | null)[]> {
    const keys = subjects.map((subject) => this.getKey(subject));
    const counts = await this.addAll(by, keys, '1 day');
    const excess = new Map(
      [...counts].map(([key, { count }]) => [key, Math.max(0, count - limit)]),
    );
    const results: (number | null)[] = [];
    for (const [i, key] of [...keys.entries()].reverse()) {
      const [name, left] = [key.toString('hex'), excess.get(key.toString('hex')) ?? 0];
      results[i] = left > 0 ? (counts.get(name)?.seconds ?? null) : null;
      if (left === 0) continue;
      excess.set(name, left - 1);
      await query(by, RELEASE, [key]);
    }
    return results;
  }

  /** Takes back one event. */
  async release(by: Queryable, subject: CountSubject): Promise<void> {
    await query(by, RELEASE, [this.getKey(subject)]);
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

  /** @returns by the key in hex */
  private async addAll(by: Queryable, keys: Buffer[], window: Window): Promise<Map<string, Count>> {
    const events = new Map<string, number>();
    for (const key of keys.map((buffer) => buffer.toString('hex')).sort()) {
      events.set(key, (events.get(key) ?? 0) + 1);
    }
    const unique = [...events.keys()].map((key) => Buffer.from(key, 'hex'));
    const rows = await query<Count & { key: Buffer }>(by, {
      name: 'counts_add',
      text: ADD,
      values: [unique, [...events.values()], window],
    });
    return new Map(rows.map(({ key, ...count }) => [key.toString('hex'), count]));
  }

  private getKey(subject: CountSubject): Buffer {
    return fingerprint(this.keys.getDataKey('counts'), ...subject);
  }
}
