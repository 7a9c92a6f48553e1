import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { event, newStream } from '#platform/event-store/port/event-store.contract.js';
import { ConflictError, type Commit, type Head } from '#platform/event-store/port/event-store.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

describe('a commit of one stream', () => {
  let database: TestDatabase;
  let store: PostgresEventStore;
  let close: () => Promise<void>;

  beforeAll(async () => {
    database = await createTestDatabase();
    const config = testConfig(database.url);
    const source = await createDataSource(config, 'test').initialize();
    store = new PostgresEventStore(getPool(source));
    close = async () => {
      await store.onApplicationShutdown();
      await source.destroy();
      await database.close();
    };
  });
  afterAll(() => close());

  const table = 'locations';
  let id = 0;

  /** Creates the next commit to a stream: two events and the read model. */
  const createCommit = (
    on: { stream: string; id: number; head: Head | null },
    name: string,
  ): Commit => ({
    accountId: 1,
    writes: [
      {
        stream: on.stream,
        expected: on.head,
        events: [event('Renamed', { name, quoted: '"\\\n{}' }), event('Moved')],
        row: { table, id: on.id, projectionVersion: 3, state: { name } },
      },
    ],
  });

  async function createStream() {
    const on = { stream: newStream(), id: ++id, head: null as Head | null };
    [on.head = null] = await store.commit(createCommit(on, 'first'));
    return on;
  }

  async function readStored(of: { stream: string; id: number }) {
    const columns = 'revision, hash, projection_version, account_id, state';
    const { rows } = await database.query(`select ${columns} from ${table} where id = $1`, [of.id]);
    const events = [];
    for await (const storedEvent of store.readStream(of.stream)) events.push(storedEvent);
    return { row: rows[0] as Record<string, unknown>, events };
  }

  it('writes the same events and read model alone as in a group', async () => {
    const [lone, one, other] = [await createStream(), await createStream(), await createStream()];
    const [head] = await store.commit(createCommit(lone, 'second'));
    await Promise.all([one, other].map((on) => store.commit(createCommit(on, 'second'))));
    const [alone, among] = [await readStored(lone), await readStored(one)];
    expect(alone.events.map(({ type, data, revision }) => [type, data, revision])).toEqual(
      among.events.map(({ type, data, revision }) => [type, data, revision]),
    );
    expect(alone.row).toEqual({ ...among.row, hash: Buffer.from(head?.hash ?? '', 'hex') });
    expect(alone.events.at(-1)?.hash).toBe(head?.hash);
  });

  it('writes a missing read model, and leaves one that is ahead', async () => {
    const on = await createStream();
    await database.query(`delete from ${table} where id = $1`, [on.id]);
    [on.head = null] = await store.commit(createCommit(on, 'second'));
    expect((await readStored(on)).row).toMatchObject({ revision: 3, state: { name: 'second' } });
    await database.query(`update ${table} set revision = 99 where id = $1`, [on.id]);
    await store.commit(createCommit(on, 'third'));
    expect((await readStored(on)).row).toMatchObject({ revision: 99, state: { name: 'second' } });
  });

  it('writes nothing when the expected revision is outdated', async () => {
    const on = await createStream();
    await store.commit(createCommit(on, 'second'));
    await expect(store.commit(createCommit(on, 'late'))).rejects.toThrow(ConflictError);
    expect((await readStored(on)).row).toMatchObject({ revision: 3, state: { name: 'second' } });
  });

  it('and those in a group read the events by index, also by plans made while there were few', async () => {
    const readScans = async () => {
      const { rows } = await database.query<{ whole: number; byIndex: number }>(
        `select seq_scan::int as whole, idx_scan::int as "byIndex" from pg_stat_user_tables
         where schemaname = 'es' and relname = 'events'`,
      );
      return rows[0] ?? { whole: 0, byIndex: 0 };
    };
    const streams = [await createStream(), await createStream(), await createStream()];
    await database.query('vacuum analyze es.events');
    await database.query('select pg_stat_force_next_flush()');
    const before = await readScans();
    for (let i = 0; i < 10; i++) {
      for (const on of streams)
        [on.head = null] = await store.commit(createCommit(on, `alone ${i}`));
      const heads = await Promise.all(
        streams.map((on) => store.commit(createCommit(on, `grouped ${i}`))),
      );
      for (const [n, on] of streams.entries()) on.head = heads[n]?.[0] ?? null;
    }
    await database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    const after = await eventually(readScans, ({ byIndex }) => byIndex >= before.byIndex + 60);
    expect(after.whole).toBe(before.whole);
  });
});
