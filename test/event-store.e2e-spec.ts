import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createDataSource, getPool } from '#database/data-source.js';
import { event, eventStoreContract, newStream } from '#event-store/port/event-store.contract.js';
import { ConflictError, type Head, type StoredEvent } from '#event-store/port/event-store.js';
import { isAfter } from '#event-store/port/position.js';
import { PostgresEventStore } from '#event-store/postgres/postgres-event-store.js';
import { testConfig, testDatabase, type TestDatabase } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { DatabaseProxy } from './support/database/database-proxy.js';

async function open() {
  const database = await testDatabase();
  const config = testConfig(database.url);
  const source = await createDataSource(config, 'test').initialize();
  const store = new PostgresEventStore(getPool(source), config);
  return {
    database,
    store,
    close: async () => {
      await store.onApplicationShutdown();
      await source.destroy();
      await database.close();
    },
  };
}

eventStoreContract('PostgreSQL', open);

describe('events in PostgreSQL', () => {
  let database: TestDatabase;
  let store: PostgresEventStore;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ database, store, close } = await open());
  });
  afterAll(() => close());

  const append = (stream: string, type = 'A') =>
    store.commit({ accountId: 1, writes: [{ stream, expected: null, events: [event(type)] }] });

  let hangUp: () => Promise<void> = async () => undefined;
  afterEach(async () => {
    await hangUp();
    hangUp = async () => undefined;
  });

  /** A process whose connections to the database can be cut, for one test. */
  async function connectOverLine() {
    const line = await DatabaseProxy.to(database.url);
    const config = testConfig(line.url);
    const source = await createDataSource(config, 'test').initialize();
    const remote = new PostgresEventStore(getPool(source), config);
    hangUp = async () => {
      await remote.onApplicationShutdown();
      await source.destroy();
      await line.close();
    };
    return { remote, line };
  }

  /** A second session that holds its transaction open, as a slow writer would. */
  async function slowWriter() {
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query('begin');
    return {
      append: (stream: string) =>
        client.query(
          `select es.commit($1, $2, '{}', '[]', null, null, true, null)`,
          commitArguments(stream, event('Slow')),
        ),
      takeTransactionId: () => client.query('select pg_current_xact_id()'),
      finish: async (how: 'commit' | 'rollback') => {
        await client.query(how);
        await client.end();
      },
    };
  }

  it.each(['update es.events set type = type', 'delete from es.events', 'truncate es.events'])(
    'refuses: %s',
    async (statement) => {
      await append(newStream());
      await expect(database.query(statement)).rejects.toThrow('never changed or removed');
    },
  );

  it('refuses even in the replica role, in which other triggers do not fire', async () => {
    await database.query('set session_replication_role = replica');
    try {
      await expect(database.query('delete from es.events')).rejects.toThrow('never changed');
    } finally {
      await database.query('set session_replication_role = origin');
    }
  });

  it('does not pass a transaction that is still open, and shows it once it commits', async () => {
    const from = await store.head();
    const late = await slowWriter();
    const [lateStream, quickStream] = [newStream(), newStream()];
    await late.append(lateStream);
    await append(quickStream);
    expect(await store.readAll(from, 100)).toEqual([]);
    await late.finish('commit');
    const seen = await eventually(
      () => store.readAll(from, 100),
      (events) => events.length === 2,
    );
    expect(seen.map((stored) => stored.stream)).toEqual([lateStream, quickStream]);
  });

  it('does not lose the event of a transaction with the lower id and the later number', async () => {
    const from = await store.head();
    const low = await slowWriter();
    await low.takeTransactionId();
    const high = newStream();
    await append(high);
    const lowStream = newStream();
    await low.append(lowStream);
    const position = (await store.readAll(from, 100)).at(-1)?.position ?? from;
    await low.finish('commit');
    const seen = await eventually(
      () => store.readAll(position, 100),
      (events) => events.length === 2,
    );
    expect(seen.map((stored) => stored.stream)).toEqual([lowStream, high]);
  });

  it('reads the head past commits made while a transaction stays open', async () => {
    const open = await slowWriter();
    await open.takeTransactionId();
    const [before, after] = [newStream(), newStream()];
    await append(before);
    const head = await store.head();
    await append(after);
    const placeOf = async (stream: string) => {
      for await (const { position } of store.readStream(stream)) return position;
      throw new Error(`${stream} is empty`);
    };
    expect(isAfter(await placeOf(before), head)).toBe(false);
    expect(isAfter(await placeOf(after), head)).toBe(true);
    await open.finish('commit');
    const seen = await eventually(
      () => store.readAll(head, 100),
      (events) => events.length > 0,
    );
    expect(seen.map((stored) => stored.stream)).toEqual([after]);
  });

  it('continues after a transaction that rolls back', async () => {
    const from = await store.head();
    const failing = await slowWriter();
    await failing.append(newStream());
    const stream = newStream();
    await append(stream);
    await failing.finish('rollback');
    const seen = await eventually(
      () => store.readAll(from, 100),
      (events) => events.length > 0,
    );
    expect(seen.map((stored) => stored.stream)).toEqual([stream]);
  });

  it('never shows revision n+1 before n, however writers interleave', async () => {
    const from = await store.head();
    const stream = newStream();
    const stop = new AbortController();
    const seen: StoredEvent[] = [];
    const following = store.subscribe({
      after: from,
      batch: 50,
      signal: stop.signal,
      onEvents: async (events) => void seen.push(...events),
    });
    let head = null as Head | null;
    for (let i = 0; i < 40; i++) {
      const [a, b]: (Head | null)[] = await Promise.all([
        store
          .commit({ accountId: 1, writes: [{ stream, expected: head, events: [event(`A${i}`)] }] })
          .then(
            ([next]) => next ?? null,
            () => null,
          ),
        store
          .commit({
            accountId: 1,
            writes: [
              { stream, expected: head, events: [event(`B${i}`)] },
              { stream: newStream(), expected: null, events: [event('Other')] },
            ],
          })
          .then(
            ([next]) => next ?? null,
            () => null,
          ),
      ]);
      head = a ?? b ?? null;
    }
    const ours = () => seen.filter((stored) => stored.stream === stream);
    await eventually(ours, (events) => events.length === 40);
    stop.abort();
    await following;
    expect(ours().map((stored) => stored.revision)).toEqual(
      Array.from({ length: 40 }, (_, i) => i),
    );
  });

  it('notifies of appended events: merges bursts, but always announces the last one', async () => {
    const listener = new pg.Client(database.url);
    let heard = 0;
    listener.on('notification', () => heard++);
    await listener.connect();
    await listener.query('listen inkpad_events');
    const isAnnounced = async (...appends: Promise<Head[]>[]) => {
      await Promise.all(appends);
      const before = heard;
      await eventually(
        async () => heard,
        (now) => now > before,
      );
    };
    const many = Array.from({ length: 300 }, () => append(newStream()));
    await isAnnounced(...many);
    await isAnnounced(append(newStream()));
    expect(heard).toBeLessThan(many.length);
    await listener.end();
  });

  it('resolves a connection lost during a commit: the commit is stored once', async () => {
    const stream = newStream();
    const [head] = await append(stream);
    const blocker = new pg.Client(database.url);
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('select 1 from es.streams where stream_id = $1 for update', [stream]);
    const committed = store.commit({
      accountId: 1,
      writes: [{ stream, expected: head ?? null, events: [event('B')] }],
    });
    await eventually(
      () =>
        database.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query like '%es.commit%' and wait_event_type = 'Lock'`,
        ),
      (killed) => killed.rowCount === 1,
    );
    await blocker.query('rollback');
    await blocker.end();
    expect((await committed)[0]?.revision).toBe(1);
    const types: string[] = [];
    for await (const stored of store.readStream(stream)) types.push(stored.type);
    expect(types).toEqual(['A', 'B']);
  });

  it('resolves a group whose connection is cut after its commit: each is stored once, a lost race is reported', async () => {
    const { remote, line } = await connectOverLine();
    const createStream = async (stream: string) => ({
      stream,
      expected: (await append(stream))[0] ?? null,
    });
    const group = [
      await createStream(newStream()),
      await createStream(newStream()),
      await createStream(newStream()),
    ] as const;
    const [lost, pending] = group;
    const adding = (place: typeof lost) => ({
      accountId: 1,
      writes: [{ ...place, events: [event('B')] }],
    });
    await store.commit(adding(lost));
    const blocker = new pg.Client(database.url);
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('select 1 from es.streams where stream_id = $1 for update', [
      pending.stream,
    ]);
    // Asked for in one turn, they share a transaction, which waits for the held one.
    const results = Promise.allSettled(group.map((place) => remote.commit(adding(place))));
    const inFlight = () =>
      database.query(
        `select 1 from pg_stat_activity where query like '%es.commit%' and state = 'active'
           and datname = current_database() and pid <> pg_backend_pid()`,
      );
    await eventually(inFlight, ({ rowCount }) => rowCount === 1);
    line.muteAnswers();
    await blocker.query('rollback');
    await blocker.end();
    await eventually(inFlight, ({ rowCount }) => rowCount === 0);
    await line.cut();
    await line.mend();
    const [first, ...others] = await results;
    expect(first).toMatchObject({ status: 'rejected', reason: expect.any(ConflictError) });
    expect(others.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled']);
    expect(others).toMatchObject([{ value: [{ revision: 1 }] }, { value: [{ revision: 1 }] }]);
    for (const { stream } of group) {
      const types: string[] = [];
      for await (const stored of store.readStream(stream)) types.push(stored.type);
      expect(types).toEqual(['A', 'B']);
    }
  });

  it('makes the appends the first writes of their transaction', async () => {
    const client = new pg.Client(database.url);
    await client.connect();
    const stream = newStream();
    const other = newStream();
    await append(other);
    // The row's lock makes the commit wait after its append would have begun; its claim comes later.
    await client.query('begin');
    await client.query('select 1 from es.streams where stream_id = $1 for update', [other]);
    const [head] = (await streamHead(other)).map(({ revision, hash }) => ({
      revision,
      hash: hash.toString('hex'),
    }));
    const claimed = store.commit({
      accountId: 1,
      writes: [
        { stream: other, expected: head ?? null, events: [event('B')] },
        { stream, expected: null, events: [event('A')] },
      ],
      claims: [{ kind: 'late', value: Buffer.from(stream), stream }],
    });
    await eventually(
      () =>
        database.query(
          `select 1 from pg_stat_activity where query like '%es.commit%' and wait_event_type = 'Lock'`,
        ),
      (waiting) => waiting.rowCount === 1,
    );
    const locks = await database.query(
      `select relation::regclass::text as name from pg_locks
       where locktype = 'relation' and mode = 'RowExclusiveLock' and relation::regclass::text like 'es.claims%'`,
    );
    expect(locks.rows).toEqual([]);
    await client.query('commit');
    await client.end();
    await claimed;
  });

  async function streamHead(stream: string) {
    const { rows } = await database.query<{ revision: number; hash: Buffer }>(
      'select revision, hash from es.streams where stream_id = $1',
      [stream],
    );
    return rows;
  }
});

function commitArguments(stream: string, added: ReturnType<typeof event>): string[] {
  const hash = 'ab'.repeat(32);
  const heads = [{ s: stream, a: 1, x: -1, p: null, n: 1, h: hash }];
  const events = [
    {
      s: stream,
      r: 0,
      id: added.id,
      t: added.type,
      v: 1,
      a: 1,
      d: added.data,
      m: added.meta,
      h: hash,
      at: added.meta.recordedAt,
    },
  ];
  return [JSON.stringify(heads), JSON.stringify(events)];
}
