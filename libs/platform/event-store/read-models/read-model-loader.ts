import { Batcher, type BatchSlots } from '#platform/database/batcher.js';
import { awaitQuery, query, queryForGroup } from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import type { ExtraValues } from '../port/event-store.js';
import type { PersonalKeys, WrappedKey } from '../personal-keys/personal-keys.js';

export type ReadModelRow = {
  id: number;
  revision: number;
  hash: Buffer;
  projection_version: number;
  state: object;
  extra_values: ExtraValues;
  subject_id: number | null;
} & (WrappedKey | Record<keyof WrappedKey, null>);

type Source = {
  table: string;
  extraColumn?: (id: string, account: string) => string;
  subjectIdSql?: string;
};

/** Reads rows of read models by id. */
export class ReadModelLoader {
  private readonly one: { name: string; text: string };
  private readonly several: { name: string; text: string };
  private readonly batcher: Batcher<number, ReadModelRow | undefined>;

  /** @param slots shared with other readers and writers of rows */
  constructor(
    private readonly pool: DatabasePool,
    private readonly keys: PersonalKeys,
    { table, extraColumn = () => `'{}'::jsonb`, subjectIdSql = 'null::bigint' }: Source,
    slots: BatchSlots | undefined,
  ) {
    // Key by key: as a join, a plan made while there are few keys reads all of them.
    const text = `
      select r.id, r.revision, r.hash, r.projection_version, r.state, ${extraColumn('r.id', 'r.account_id')} as extra_values,
        ${subjectIdSql} as subject_id, k.wrapped, k.previous_wrapped, k.is_renewed
      from ${table} r left join lateral (
        select * from personal_keys where subject_id = ${subjectIdSql} offset 0) k on true where`;
    // PostgreSQL would plan the statement for several ids anew each time, even for a single id.
    this.one = { name: `row_${table}`, text: `${text} r.id = $1` };
    this.several = { name: `rows_${table}`, text: `${text} r.id = any ($1)` };
    this.batcher = new Batcher(slots ?? 2, slots ? 64 : 32, async (ids) => {
      const requestedAt = performance.now();
      const statement = this.createStatement(ids);
      // With PostgreSQL kept connections are for commits: beside a silent one, a load waits for its slot alone.
      const reading = slots
        ? awaitQuery(queryForGroup<ReadModelRow>(this.pool, statement))
        : query<ReadModelRow>(this.pool, statement);
      const rows = this.toMap(await reading, requestedAt);
      return ids.map((id) => ({ status: 'fulfilled', value: rows.get(id) }));
    });
  }

  /** Reads a row together with those that other requests read at the moment. */
  read(id: number): Promise<ReadModelRow | undefined> {
    return this.batcher.add(id);
  }

  /** Reads many rows in one statement. @returns those that exist, by id */
  async readAll(ids: number[]): Promise<Map<number, ReadModelRow>> {
    const requestedAt = performance.now();
    return this.toMap(await query(this.pool, this.createStatement(ids)), requestedAt);
  }

  private createStatement(ids: number[]) {
    return ids.length === 1 ? { ...this.one, values: ids } : { ...this.several, values: [ids] };
  }

  private toMap(rows: ReadModelRow[], requestedAt: number): Map<number, ReadModelRow> {
    const rowsById = new Map<number, ReadModelRow>();
    for (const row of rows) {
      rowsById.set(row.id, row);
      const { subject_id: subjectId } = row;
      if (subjectId !== null)
        this.keys.remember(subjectId, row.wrapped === null ? null : row, requestedAt);
    }
    return rowsById;
  }
}
