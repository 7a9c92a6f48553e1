import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { FieldIssues } from '#platform/kernel/issues.js';
import { open, seal } from '#platform/kernel/sealing.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { PageRange } from '#platform/http/page.js';
import type { RowPeople } from './customer-matches.service.js';
import type { RowState } from './customer-import.js';
import type { FileRow } from './import-file.js';

export type NewRow = {
  row: number;
  cells: string[];
  state: RowState;
  errors: FieldIssues | null;
  customerId: number | null;
  people: RowPeople;
  /** What a start would do with it; null: it has errors, or nobody asked. */
  expected: 'created' | 'updated' | 'unchanged' | null;
};

/** @property cells null: deleted */
export type StoredRow = Omit<NewRow, 'cells' | 'people' | 'expected'> & {
  cells: string[] | null;
  customerCardId: number | null;
};

/** What became of a row. */
export type RowResult = Omit<StoredRow, 'cells'>;

type Row = {
  row: number;
  state: RowState;
  sealed: Buffer | null;
  errors: FieldIssues | null;
  customer_id: number | null;
  customer_card_id: number | null;
};

const CELLS_BATCH_SIZE = 1_000;

const COLUMNS = 'row, state, sealed, errors, customer_id, customer_card_id';

/**
 * Records results of rows that are still in a former state, and counts them, so that none is counted twice. Takes each
 * result by its place instead of by a join: without statistics of a new import, PostgreSQL would compare each of its
 * rows with each result, which took 0.5 s for 256 of 4,000 rows instead of 14 ms.
 */
const RECORD = {
  name: 'import_rows_record',
  text: `with recorded as (
           update import_rows r
           set state = ($4::text[])[array_position($3::int[], r.row)],
             errors = ($5::text[])[array_position($3, r.row)]::jsonb,
             customer_id = ($6::bigint[])[array_position($3, r.row)],
             customer_card_id = ($7::bigint[])[array_position($3, r.row)],
             customer_ids = array_remove(r.customer_ids || ($6)[array_position($3, r.row)], null),
             sealed = case when ($4)[array_position($3, r.row)] = 'failed' then r.sealed end,
             claims = case when ($4)[array_position($3, r.row)] = 'failed' then r.claims else '{}' end
           where r.import_id = $1 and r.row = any ($3) and r.state = any ($2)
           returning r.state
         ), counts as (
           select count(*)::int as done, count(*) filter (where state = 'created')::int as created,
             count(*) filter (where state = 'updated')::int as updated,
             count(*) filter (where state = 'unchanged')::int as unchanged,
             count(*) filter (where state = 'failed')::int as failed,
             count(*) filter (where state = 'undone')::int as undone,
             count(*) filter (where state = 'refused')::int as refused
           from recorded
         )
         update imports i
         set rows_done = i.rows_done + c.done, created = i.created + c.created, updated = i.updated + c.updated,
           unchanged = i.unchanged + c.unchanged, failed = i.failed + c.failed, undone = i.undone + c.undone,
           refused = i.refused + c.refused, updated_at = now()
         from counts c where i.id = $1`,
};

/** The results of a check as parameters: arrays of arrays of different lengths travel as texts. */
const CHECKED = {
  parameters: '$2::int[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[]',
  names: 'row, state, errors, customer_id, expected, claims, customer_ids',
  columns:
    'x.row, x.state, x.errors::jsonb, x.customer_id, x.expected, x.claims::bytea[], x.customer_ids::bigint[]',
};

function listCheckedValues(rows: NewRow[]): unknown[] {
  return [
    rows.map(({ row }) => row),
    rows.map(({ state }) => state),
    rows.map(({ errors }) => errors && JSON.stringify(errors)),
    rows.map(({ customerId }) => customerId),
    rows.map(({ expected }) => expected),
    rows.map(({ people }) =>
      renderArray(people.claims.map((claim) => `"\\\\x${claim.toString('hex')}"`)),
    ),
    rows.map(({ people }) => renderArray(people.customerIds)),
  ];
}

function renderArray(elements: (string | number)[]): string {
  return `{${elements.join(',')}}`;
}

/**
 * Stores the rows of imports. Their cells are sealed with a data key, which no rotation changes: they are kept only
 * until the row is applied, or for 30 days.
 */
@Injectable()
export class ImportRows {
  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
  ) {}

  sealFile(importId: number, bytes: Buffer): Buffer {
    return seal(this.key, bytes, `import ${importId}`);
  }

  openFile(importId: number, sealed: Buffer): Buffer {
    return open(this.key, sealed, `import ${importId}`);
  }

  /** Stores rows, in the place of what an attempt before this one has stored of them. */
  async insert(importId: number, rows: NewRow[]): Promise<void> {
    await this.pool.query({
      name: 'import_rows_insert',
      text: `insert into import_rows as r (import_id, row, state, errors, customer_id, expected, claims, customer_ids, sealed)
             select $1, ${CHECKED.columns}, x.sealed
             from unnest(${CHECKED.parameters}, $9::bytea[]) as x (${CHECKED.names}, sealed)
             on conflict (import_id, row) do update set state = excluded.state, errors = excluded.errors,
               customer_id = excluded.customer_id, expected = excluded.expected, claims = excluded.claims,
               customer_ids = excluded.customer_ids
             where r.sealed is not null`,
      values: [
        importId,
        ...listCheckedValues(rows),
        rows.map(({ row, cells }) => this.sealCells(importId, row, cells)),
      ],
    });
  }

  /** Stores the result of another check of rows that are there. */
  async replaceChecks(importId: number, rows: NewRow[]): Promise<void> {
    if (rows.length === 0) return;
    const pick = (place: number, type: string) =>
      `($${place}::${type}[])[array_position($2::int[], r.row)]`;
    await this.pool.query({
      name: 'import_rows_replace_checks',
      text: `update import_rows r
             set state = ${pick(3, 'text')}, errors = ${pick(4, 'text')}::jsonb, customer_id = ${pick(5, 'bigint')},
               expected = ${pick(6, 'text')}, claims = ${pick(7, 'text')}::bytea[], customer_ids = ${pick(8, 'text')}::bigint[]
             where r.import_id = $1 and r.row = any ($2) and r.sealed is not null`,
      values: [importId, ...listCheckedValues(rows)],
    });
  }

  /** Lists the cells of all rows that still have theirs, in the order of the file. */
  async listCells(importId: number): Promise<FileRow[]> {
    const all: FileRow[] = [];
    for (let after = 0; ;) {
      const { rows } = await this.pool.query<{ row: number; sealed: Buffer }>({
        name: 'import_rows_cells',
        text: `select row, sealed from import_rows
               where import_id = $1 and row > $2 and sealed is not null order by row limit ${CELLS_BATCH_SIZE}`,
        values: [importId, after],
      });
      for (const { row, sealed } of rows) {
        all.push({ row, cells: this.openCells(importId, row, sealed) });
      }
      const last = rows.at(-1);
      if (!last || rows.length < CELLS_BATCH_SIZE) return all;
      after = last.row;
    }
  }

  /** Lists the next rows in some states, in the order of the file. */
  async listNext(importId: number, states: RowState[], limit: number): Promise<StoredRow[]> {
    const { rows } = await this.pool.query<Row>({
      name: 'import_rows_next',
      text: `select x.* from unnest($2::text[]) as s (state)
             cross join lateral (
               select ${COLUMNS} from import_rows r
               where r.import_id = $1 and r.state = s.state order by r.row limit $3
             ) x
             order by x.row limit $3`,
      values: [importId, states, limit],
    });
    return rows.map((row) => this.toStored(importId, row));
  }

  /** Finds which of some rows are still to be applied. */
  async findPending(importId: number, numbers: number[]): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ row: number }>({
      name: 'import_rows_pending',
      text: `select row from import_rows where import_id = $1 and row = any ($2) and state = 'pending'`,
      values: [importId, numbers],
    });
    return new Set(rows.map(({ row }) => row));
  }

  async record(importId: number, from: RowState[], results: RowResult[]): Promise<void> {
    if (results.length === 0) return;
    await this.pool.query({
      ...RECORD,
      values: [
        importId,
        from,
        results.map(({ row }) => row),
        results.map(({ state }) => state),
        results.map(({ errors }) => errors && JSON.stringify(errors)),
        results.map(({ customerId }) => customerId),
        results.map(({ customerCardId }) => customerCardId),
      ],
    });
  }

  /** Lists rows for the API. @param state null: in any */
  async list(
    importId: number,
    state: RowState | null,
    { after, limit }: PageRange,
  ): Promise<StoredRow[]> {
    const inState = state === null ? '' : 'and state = $4';
    const rows = await query<Row>(this.pool, {
      name: `import_rows_list${state === null ? '' : '_in_state'}`,
      text: `select ${COLUMNS} from import_rows
             where import_id = $1 and row > $2 ${inState} order by row limit $3`,
      values: [importId, after?.[0] ?? 0, limit, ...(state === null ? [] : [state])],
    });
    return rows.map((row) => this.toStored(importId, row));
  }

  private sealCells(importId: number, row: number, cells: string[]): Buffer {
    return seal(this.key, Buffer.from(JSON.stringify(cells)), `import ${importId} row ${row}`);
  }

  private openCells(importId: number, row: number, sealed: Buffer): string[] {
    const plain = open(this.key, sealed, `import ${importId} row ${row}`);
    return JSON.parse(plain.toString()) as string[];
  }

  private toStored(importId: number, from: Row): StoredRow {
    const { row, state, sealed, errors } = from;
    return {
      row,
      state,
      errors,
      cells: sealed && this.openCells(importId, row, sealed),
      customerId: from.customer_id,
      customerCardId: from.customer_card_id,
    };
  }

  private get key(): Buffer {
    return this.keys.getDataKey('uploaded files');
  }
}
