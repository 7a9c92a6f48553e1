import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readModels } from '../../apps/read-models.js';
import { DatabasePool } from '#platform/database/database-pool.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import {
  OrphanedStreams,
  type Orphans,
} from '#platform/event-store/verification/orphaned-streams.js';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

const STREAMS = 100_000;
let database: TestDatabase;
/** The number of rows that had been read before the search. */
let readsBefore = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.query('create table rows_of_cards (id bigint primary key)');
  await database.query('insert into rows_of_cards select n from generate_series(1, $1::int) n', [
    STREAMS,
  ]);
  await database.query(
    `insert into es.events
     select '3', n, 'card-' || n, 0, gen_random_uuid(), 'A', 1, 1, '{}', '{}', sha256(n::text::bytea), now()
     from generate_series(1, $1::int) n`,
    [STREAMS],
  );
  await database.query('vacuum analyze');
});
afterAll(() => database.close());

it('the search for orphaned streams finds a missing read model and reads fewer than two rows a stream', async () => {
  await database.query('delete from rows_of_cards where id = 4711');
  await database.query('select pg_stat_force_next_flush()');
  readsBefore = await countReads();
  await withOrphanedStreams(async (orphanedStreams) => {
    expect(await findAll(orphanedStreams)).toEqual({
      slices: [{ table: 'rows_of_cards', ids: [4711] }],
      unknown: [],
    });
  });
  const read = await eventually(countReads, (rows) => rows >= STREAMS - 1);
  expect(read).toBeLessThan(2 * STREAMS);
});

it('the search for orphaned streams names those of an unknown aggregate', async () => {
  await database.query('insert into rows_of_cards values (4711) on conflict do nothing');
  await database.query(
    `insert into es.events
     select '3', 0, 'nothing-1', 0, gen_random_uuid(), 'A', 1, 1, '{}', '{}', sha256('nothing'), now()`,
  );
  await withOrphanedStreams(async (orphanedStreams) => {
    expect(await findAll(orphanedStreams)).toEqual({ slices: [], unknown: ['nothing-1'] });
  });
});

it('the search in a log finds streams without a read model, whatever their names', async () => {
  await database.query('insert into rows_of_cards values (4711) on conflict do nothing');
  const names = ['card-1', 'card-x', 'card-1e30', 'nothing-1', 'card-999999'];
  await withOrphanedStreams(async (orphanedStreams) => {
    await orphanedStreams.add(names.map((stream) => ({ stream, revision: 0 }) as StoredEvent));
    expect(await findAll(orphanedStreams)).toEqual({
      slices: [{ table: 'rows_of_cards', ids: [999_999] }],
      unknown: ['card-x', 'card-1e30', 'nothing-1'],
    });
  }, true);
});

async function findAll(orphanedStreams: OrphanedStreams): Promise<Orphans> {
  const all: Orphans = { slices: [], unknown: [] };
  for await (const { slices, unknown } of orphanedStreams.find()) {
    all.slices.push(...slices);
    all.unknown.push(...unknown);
  }
  return all;
}

async function withOrphanedStreams(
  work: (orphanedStreams: OrphanedStreams) => Promise<void>,
  isInLog = false,
): Promise<void> {
  const pool = new DatabasePool({ connectionString: database.ownerUrl });
  // A pool ends before its connections are closed: closing the database may end them.
  pool.on('error', () => undefined);
  try {
    const store = new PostgresEventStore(pool);
    const tables = readModels
      .filter(({ table }) => table === 'cards')
      .map((cards) => ({ ...cards, table: 'rows_of_cards' }));
    const engine = isInLog ? Object.create(store, { isInDatabase: { value: false } }) : store;
    await work(new OrphanedStreams(pool, engine as PostgresEventStore, tables));
  } finally {
    // A connection reports its statistics when it ends.
    await pool.end();
  }
}

async function countReads(): Promise<number> {
  await database.query('select pg_stat_clear_snapshot()');
  const { rows } = await database.query<{ rows: string }>(
    `select t.seq_tup_read + i.idx_tup_read - $1 as rows
     from pg_stat_user_tables t join pg_stat_user_indexes i using (relid) where t.relname = 'rows_of_cards'`,
    [readsBefore],
  );
  return Number(rows[0]?.rows);
}
