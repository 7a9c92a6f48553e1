import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Aggregate, DomainEvent } from '#kernel/aggregate.js';
import { event } from '#event-store/port/event-store.contract.js';
import { readCheckpoint } from '#event-store/port/checkpoint.js';
import { BEGINNING } from '#event-store/port/event-store.js';
import { isAfter } from '#event-store/port/position.js';
import {
  READ_MODELS_SUBSCRIPTION,
  ReadModelCatchUp,
} from '#event-store/read-models/read-model-catch-up.subscription.js';
import type { ReadModels, ReadModel } from '#event-store/read-models/read-models.js';
import { testConfig, testDatabase, type TestDatabase } from './support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from './support/emulators/eventstoredb/server.mjs';
import { eventually } from './support/jest/eventually.js';
import { openStore, streamKinds } from './support/database/event-store.js';

type Counter = { accountId: number; value: number };
type CountEvent = { type: 'Counted'; data: object };

const counter: Aggregate<Counter, CountEvent> = {
  name: 'counter',
  names: { Counted: 'counter.counted' },
  projectionVersion: 1,
  evolve: (state, { data, meta }) => {
    if ('broken' in data) throw new Error('an event that cannot be projected');
    return { accountId: meta.accountId, value: (state?.value ?? 0) + 1 };
  },
};
const counters: ReadModel<Counter, CountEvent> = { aggregate: counter, table: 'accounts' };

const ROWS = 'select from accounts where id = any ($1)';

/** Rows whose writers did not live to write them, in EventStoreDB: there they come after their events. */
describe('read model catch-up', () => {
  let server: EventStoreDb;
  let database: TestDatabase;
  let process: Awaited<ReturnType<typeof openStore>>;
  let ids = 0;

  beforeAll(async () => {
    server = await startEventStoreDb();
    database = await testDatabase();
    // As in production. The server of the tests does without.
    await database.query(`do $$ begin
      execute format('alter database %I set synchronous_commit = on', current_database());
    end $$`);
    process = await openStore(
      testConfig(database.url, { EVENT_STORE_URL: server.connectionString }),
      streamKinds('counter'),
    );
  });
  afterAll(async () => {
    await process.close();
    await server.stop();
    await database.close();
  });

  afterEach(() =>
    database.query(`
      drop function if exists fail_once cascade;
      drop sequence if exists failures`),
  );

  async function eventWithoutRow(data = {}): Promise<number> {
    const id = ++ids;
    const events = [event('Counted', data)];
    const writes = [{ stream: `counter-${id}`, expected: null, events }];
    await process.store.commit({ accountId: 1, writes });
    return id;
  }

  const eventWithRow = async (): Promise<void> => {
    const write = {
      stream: `counter-${++ids}`,
      expected: null,
      events: [event('Counted')],
      row: { table: 'accounts', id: ids, projectionVersion: 1, state: { accountId: 1, value: 1 } },
    };
    await process.store.commit({ accountId: 1, writes: [write] });
  };

  async function untilThere(...expected: number[]): Promise<void> {
    await untilThereBy(process.rows, ...expected);
  }

  async function untilThereBy(rows: ReadModels, ...expected: number[]): Promise<void> {
    const stop = new AbortController();
    const { pool, store } = process;
    const last = (await store.readAll(BEGINNING, 1_000)).at(-1)?.position ?? BEGINNING;
    const table = counters as unknown as ReadModel<{ accountId: number }, DomainEvent>;
    const running = new ReadModelCatchUp(pool, store, rows, [table]).run(stop.signal);
    try {
      await eventually(
        async () => (await database.query(ROWS, [expected])).rowCount,
        (count) => count === expected.length,
        30_000,
      );
      await eventually(
        () => readCheckpoint(pool, READ_MODELS_SUBSCRIPTION),
        (reached) => !isAfter(last, reached),
        30_000,
      );
    } finally {
      stop.abort();
      await running;
    }
  }

  it.each([
    ['a row is written', 'accounts', '40P01'],
    ['a row is written', 'accounts', '55P03'],
    ['its checkpoint is saved', 'es.checkpoints', '40P01'],
  ])(
    'brings the row though the database fails once when %s (%s, %s)',
    async (_, table, errcode) => {
      const [first, second] = [await eventWithoutRow(), await eventWithoutRow()];
      // A sequence counts on when a transaction is rolled back; the role of the processes may not use it.
      await database.query(`
      create sequence failures;
      create function fail_once() returns trigger language plpgsql security definer as $$
      begin
        if nextval('failures') = 1 then raise 'just once' using errcode = '${errcode}'; end if;
        return new;
      end $$;
      create trigger fail_once before insert or update on ${table}
        for each row execute function fail_once()`);
      await untilThere(first, second);
      const { rows } = await database.query<{ tries: number }>(
        'select last_value as tries from failures',
      );
      expect(Number(rows[0]?.tries)).toBeGreaterThan(1);
    },
  );

  it('reads no stream whose writer lives', async () => {
    const { store, rows, pool } = process;
    await untilThere(await eventWithoutRow());
    const stop = new AbortController();
    const table = counters as unknown as ReadModel<{ accountId: number }, DomainEvent>;
    const running = new ReadModelCatchUp(pool, store, rows, [table]).run(stop.signal);
    const { streamReads } = server.requestCounts;
    for (let i = 0; i < 20; i++) await eventWithRow();
    const last = (await store.readAll(BEGINNING, 1_000)).at(-1)?.position ?? BEGINNING;
    await eventually(
      () => readCheckpoint(pool, READ_MODELS_SUBSCRIPTION),
      (reached) => !isAfter(last, reached),
    );
    stop.abort();
    await running;
    expect(server.requestCounts.streamReads).toBe(streamReads);
  });

  it('looks again where the database may have crashed since it looked', async () => {
    const { rows } = process;
    const end = `
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    let looks = 0;
    let isEnded = false;
    const watched: ReadModels = Object.assign(Object.create(rows) as ReadModels, {
      findBehind: (...parameters: Parameters<ReadModels['findBehind']>) => {
        looks++;
        return rows.findBehind(...parameters);
      },
      load: async (...parameters: Parameters<ReadModels['load']>) => {
        if (!isEnded) await database.query(end);
        isEnded = true;
        const isLoaded = async () => {
          const [load] = await Promise.allSettled([rows.load(...parameters)]);
          return load.status === 'fulfilled';
        };
        await eventually(isLoaded, (loaded) => loaded);
      },
    });
    await untilThereBy(watched, await eventWithoutRow());
    expect(looks).toBeGreaterThan(1);
  });

  it('waits for the disk, which a writer does not', async () => {
    await database.query(`
      create table waits (setting text);
      create function note_wait() returns trigger language plpgsql security definer as $$
      begin
        insert into waits values (current_setting('synchronous_commit'));
        return new;
      end $$;
      create trigger note_wait before insert on accounts for each row execute function note_wait()`);
    const waits = async () => (await database.query('select setting from waits')).rows;
    await eventWithRow();
    expect(await waits()).toEqual([{ setting: 'off' }]);
    await untilThere(await eventWithoutRow());
    expect(await waits()).toEqual([{ setting: 'off' }, { setting: 'on' }]);
    await database.query('drop function note_wait cascade; drop table waits');
  });

  it('is not held up by a stream that cannot be projected', async () => {
    const broken = await eventWithoutRow({ broken: true });
    await untilThere(await eventWithoutRow());
    expect((await database.query(ROWS, [[broken]])).rowCount).toBe(0);
  });
});
