import type { Pool } from 'pg';
import { Batcher } from '#platform/database/batcher.js';
import { query } from '#platform/database/connection.js';

const MAX_RUNNING = 2;
const BATCH_SIZE = 100;

type NewKey = { subjectId: number; wrapped: Buffer };

/** Inserts new personal keys. Those that are created at once share a statement. */
export class KeyCreations {
  private readonly batcher = new Batcher<NewKey, boolean>(MAX_RUNNING, BATCH_SIZE, (keys) =>
    this.insertAll(keys),
  );

  constructor(private readonly pool: Pool) {}

  /** Inserts a key. @returns false when the person has one already */
  insert(subjectId: number, wrapped: Buffer): Promise<boolean> {
    return this.batcher.add({ subjectId, wrapped });
  }

  /** Inserts in the order of ids, so that two processes cannot deadlock over ids that both have taken. */
  private async insertAll(keys: NewKey[]): Promise<PromiseSettledResult<boolean>[]> {
    const rows = await query<{ subject_id: number }>(this.pool, {
      name: 'personal_keys_create',
      text: `insert into personal_keys (subject_id, wrapped)
             select id, wrapped from unnest($1::bigint[], $2::bytea[]) with ordinality as x (id, wrapped, place)
             order by id, place
             on conflict do nothing returning subject_id`,
      values: [keys.map(({ subjectId }) => subjectId), keys.map(({ wrapped }) => wrapped)],
    });
    const created = new Set(rows.map(({ subject_id }) => subject_id));
    return keys.map(({ subjectId }) => ({
      status: 'fulfilled',
      // Of two that have the same id, the first has created it.
      value: created.delete(subjectId),
    }));
  }
}
