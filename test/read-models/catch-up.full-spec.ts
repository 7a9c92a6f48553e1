import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Aggregate, DomainEvent } from '#platform/kernel/aggregate.js';
import { event } from '#platform/event-store/port/event-store.contract.js';
import {
  READ_MODELS_SUBSCRIPTION,
  readPosition,
} from '#platform/event-store/port/subscription-position.js';
import { BEGINNING, type Head } from '#platform/event-store/port/event-store.js';
import { isAfter } from '#platform/event-store/port/position.js';
import { ReadModelCatchUp } from '#platform/event-store/eventstoredb/read-model-catch-up.js';
import { StreamCallbacks } from '#platform/event-store/commands/stream-callbacks.js';
import { ReadModels, type ReadModel } from '#platform/event-store/read-models/read-models.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { openStore, streamKinds } from '../support/database/event-store.js';

type Counter = { accountId: number; value: number };
type CountEvent = { type: 'Counted'; data: object };

const counter: Aggregate<Counter, CountEvent> = {
  name: 'counter',
  table: 'accounts',
  events: { Counted: { name: 'counter.counted', publishedAs: null } },
  projectionVersion: 1,
  evolve: (state, { data, meta }) => {
    if ('broken' in data) throw new Error('an event that cannot be projected');
    return { accountId: meta.accountId, value: (state?.value ?? 0) + 1 };
  },
};

const FIND_ROWS = 'select from accounts where id = any ($1)';

/**
 * Writes read models whose writers died before they did. This happens with EventStoreDB, where they are written after
 * their events.
 */
describe('read model catch-up', () => {
  let server: EventStoreDb;
  let database: TestDatabase;
  let process: Awaited<ReturnType<typeof openStore>>;
  let ids = 0;

  beforeAll(async () => {
    server = await startEventStoreDb();
    database = await createTestDatabase();
    // As in production: the PostgreSQL of the tests has it off.
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

  async function commitWithoutReadModel(data = {}): Promise<number> {
    const id = ++ids;
    const events = [event('Counted', data)];
    const writes = [{ stream: `counter-${id}`, expected: null, events }];
    await process.store.commit({ accountId: 1, writes });
    return id;
  }

  /** @param id with `expected`, of a stream that exists */
  const commitWithReadModel = async (id = ++ids, expected: Head | null = null) => {
    const write = {
      stream: `counter-${id}`,
      expected,
      events: [event('Counted')],
      row: { table: 'accounts', id, projectionVersion: 1, state: { accountId: 1, value: 1 } },
    };
    const [head] = await process.store.commit({ accountId: 1, writes: [write] });
    return { id, head };
  };

  function createCatchUp(rows: ReadModels): ReadModelCatchUp {
    const { pool, store, keys } = process;
    const table = counter as unknown as ReadModel<{ accountId: number }, DomainEvent>;
    new StreamCallbacks(store, rows, keys, [table]).onModuleInit();
    return new ReadModelCatchUp(pool, store);
  }

  async function catchUpUntil(...expected: number[]): Promise<void> {
    await catchUpWithUntil(process.rows, ...expected);
  }

  async function catchUpWithUntil(rows: ReadModels, ...expected: number[]): Promise<void> {
    const stop = new AbortController();
    const { pool, store } = process;
    const last = (await store.readAll(BEGINNING, 1_000)).at(-1)?.position ?? BEGINNING;
    const running = createCatchUp(rows).run(stop.signal);
    try {
      await eventually(
        async () => (await database.query(FIND_ROWS, [expected])).rowCount,
        (count) => count === expected.length,
      );
      await eventually(
        () => readPosition(pool, READ_MODELS_SUBSCRIPTION),
        (reached) => !isAfter(last, reached),
      );
    } finally {
      stop.abort();
      await running;
    }
  }

  it.each([
    ['a read model is written', 'accounts', '40P01'],
    ['a read model is written', 'accounts', '55P03'],
    ['its position is saved', 'es.positions', '40P01'],
  ])(
    'writes a missing read model although the database fails once when %s (%s, %s)',
    async (_, table, errcode) => {
      const [first, second] = [await commitWithoutReadModel(), await commitWithoutReadModel()];
      // A sequence keeps its value when a transaction is rolled back. The definer may use it, the processes may not.
      await database.query(`
      create sequence failures;
      create function fail_once() returns trigger language plpgsql security definer as $$
      begin
        if nextval('failures') = 1 then raise 'just once' using errcode = '${errcode}'; end if;
        return new;
      end $$;
      create trigger fail_once before insert or update on ${table}
        for each row execute function fail_once()`);
      await catchUpUntil(first, second);
      const { rows } = await database.query<{ tries: number }>(
        'select last_value as tries from failures',
      );
      expect(Number(rows[0]?.tries)).toBeGreaterThan(1);
    },
  );

  describe('that another process writes while it is found to be behind', () => {
    /** Reads with another process that writes each read model as soon as it was found to be behind. */
    const readBesideAnother = async <R>(read: (rows: ReadModels) => Promise<R>): Promise<R> => {
      const { pool, store, keys, rows } = process;
      const besideAnother: typeof store = Object.assign(Object.create(store) as typeof store, {
        isProjected: async (stream: string, revision: number) => {
          const isProjected = await store.isProjected(stream, revision);
          if (!isProjected) await rows.catchUp(counter, Number(stream.split('-')[1]));
          return isProjected;
        },
      });
      return read(new ReadModels(pool, besideAnother, keys));
    };

    it('is read when it was missing', async () => {
      const id = await commitWithoutReadModel();
      const loaded = await readBesideAnother((rows) => rows.loadCurrent(counter, id));
      expect(loaded?.state).toEqual({ accountId: 1, value: 1 });
    });

    it('is read again when it was outdated', async () => {
      const { id, head } = await commitWithReadModel();
      const writes = [
        { stream: `counter-${id}`, expected: head ?? null, events: [event('Counted')] },
      ];
      await process.store.commit({ accountId: 1, writes });
      const loaded = await readBesideAnother((rows) => rows.loadCurrent(counter, id));
      expect(loaded?.state).toEqual({ accountId: 1, value: 2 });
    });

    it('is among many when it was missing', async () => {
      const id = await commitWithoutReadModel();
      const loaded = await readBesideAnother((rows) => rows.loadAll(counter, [id]));
      expect(loaded.get(id)?.state).toEqual({ accountId: 1, value: 1 });
    });
  });

  it('reads no stream whose writer has written the read model', async () => {
    const { store, rows, pool } = process;
    await catchUpUntil(await commitWithoutReadModel());
    const created = [];
    for (let i = 0; i < 20; i++) created.push(await commitWithReadModel());
    const stop = new AbortController();
    const running = createCatchUp(rows).run(stop.signal);
    const { streamReads } = server.requestCounts;
    for (const { id, head } of created) await commitWithReadModel(id, head);
    const last = (await store.readAll(BEGINNING, 1_000)).at(-1)?.position ?? BEGINNING;
    await eventually(
      () => readPosition(pool, READ_MODELS_SUBSCRIPTION),
      (reached) => !isAfter(last, reached),
    );
    stop.abort();
    await running;
    expect(server.requestCounts.streamReads).toBe(streamReads);
  });

  it('checks again which read models are missing after the database has closed its connections', async () => {
    const { rows } = process;
    const closeConnections = `
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    let checkCount = 0;
    let isClosed = false;
    const watchedReadModels: ReadModels = Object.assign(Object.create(rows) as ReadModels, {
      findBehind: (...parameters: Parameters<ReadModels['findBehind']>) => {
        checkCount++;
        return rows.findBehind(...parameters);
      },
      catchUp: async (...parameters: Parameters<ReadModels['catchUp']>) => {
        if (!isClosed) await database.query(closeConnections);
        isClosed = true;
        const isLoaded = async () => {
          const [load] = await Promise.allSettled([rows.catchUp(...parameters)]);
          return load.status === 'fulfilled';
        };
        await eventually(isLoaded, (loaded) => loaded);
      },
    });
    await catchUpWithUntil(watchedReadModels, await commitWithoutReadModel());
    expect(checkCount).toBeGreaterThan(1);
  });

  it('commits with synchronous_commit on, and writers commit with it off', async () => {
    await database.query(`
      create table waits (setting text);
      create function note_wait() returns trigger language plpgsql security definer as $$
      begin
        insert into waits values (current_setting('synchronous_commit'));
        return new;
      end $$;
      create trigger note_wait before insert on accounts for each row execute function note_wait()`);
    const readSettings = async () => (await database.query('select setting from waits')).rows;
    await commitWithReadModel();
    expect(await readSettings()).toEqual([{ setting: 'off' }]);
    await catchUpUntil(await commitWithoutReadModel());
    expect(await readSettings()).toEqual([{ setting: 'off' }, { setting: 'on' }]);
    await database.query('drop function note_wait cascade; drop table waits');
  });

  it('gives an event to a reader who waits only once its read model is written', async () => {
    const { store, rows } = process;
    createCatchUp(rows);
    const [first, failing, last] = [
      await commitWithoutReadModel(),
      await commitWithoutReadModel(),
      await commitWithoutReadModel(),
    ];
    const ids = [first, failing, last];
    const streams = new Set(ids.map((id) => `counter-${id}`));
    const events = (await store.readAll(BEGINNING, 1_000)).filter(({ stream }) =>
      streams.has(stream),
    );
    await database.query(`
      create function fail_once() returns trigger language plpgsql as $$
      begin
        if new.id = ${failing} then raise 'cannot be written'; end if;
        return new;
      end $$;
      create trigger fail_once before insert on accounts for each row execute function fail_once()`);
    // As followers do: all together, then one by one.
    await expect(store.waitUntilProjected(events)).rejects.toThrow('cannot be written');
    const waits = await Promise.allSettled(
      events.map((storedEvent) => store.waitUntilProjected([storedEvent])),
    );
    expect(waits.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    await expect(store.waitUntilProjected(events)).rejects.toThrow('cannot be written');
    const countRows = async () => (await database.query(FIND_ROWS, [ids])).rowCount;
    expect(await countRows()).toBe(2);
    await database.query('drop function fail_once cascade');
    await store.waitUntilProjected(events);
    expect(await countRows()).toBe(3);
  });

  it('continues after a stream that cannot be projected', async () => {
    const broken = await commitWithoutReadModel({ broken: true });
    await catchUpUntil(await commitWithoutReadModel());
    expect((await database.query(FIND_ROWS, [[broken]])).rowCount).toBe(0);
  });
});
