import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import {
  event,
  eventStoreContract,
  newStream,
} from '#platform/event-store/port/event-store.contract.js';
import {
  ClaimTakenError,
  ConflictError,
  type Commit,
  type Head,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { isAfter } from '#platform/event-store/port/position.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';

async function open() {
  const database = await createTestDatabase();
  const config = testConfig(database.url);
  const source = await createDataSource(config, 'test').initialize();
  const store = new PostgresEventStore(getPool(source));
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

describe('the PostgreSQL event store', () => {
  let database: TestDatabase;
  let store: PostgresEventStore;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ database, store, close } = await open());
  });
  afterAll(() => close());

  const append = (stream: string, type = 'A') =>
    store.commit({ accountId: 1, writes: [{ stream, expected: null, events: [event(type)] }] });

  /** Commits to new streams at once, each with a claim on one of the values. @returns which of them succeeded */
  async function claimTogether(values: string[]): Promise<boolean[]> {
    const results = await Promise.allSettled(
      values.map((value) => {
        const stream = newStream();
        const claim = { kind: 'receipt', value: Buffer.from(value), stream };
        const writes = [{ stream, expected: null, events: [event('A')] }];
        return store.commit({ accountId: 1, writes, claims: [claim] });
      }),
    );
    const errors = results.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    );
    expect(errors.filter((error) => !(error instanceof ClaimTakenError))).toEqual([]);
    return results.map(({ status }) => status === 'fulfilled');
  }

  it('commits claims together, and lets only the second of two with the same value fail', async () => {
    const values = Array.from({ length: 200 }, (_, i) => `value ${i}`);
    expect(await claimTogether(values)).toEqual(values.map(() => true));
    const again = values.map((_, i) => (i % 50 === 7 ? `value ${i}` : `other ${i}`));
    expect(await claimTogether(again)).toEqual(values.map((_, i) => i % 50 !== 7));
    const twice = values.map((_, i) => `twice ${Math.floor(i / 2)}`);
    const won = await claimTogether(twice);
    for (let i = 0; i < twice.length; i += 2)
      expect([won[i], won[i + 1]].sort()).toEqual([false, true]);
    const { rows } = await database.query<{ claims: number; streams: number }>(
      `select count(*)::int as claims, count(distinct stream_id)::int as streams
       from es.claims where kind = 'receipt'`,
    );
    const count = 200 + 196 + 100;
    expect(rows).toEqual([{ claims: count, streams: count }]);
  });

  it('claims nothing for a stream that has moved, when others are committed with it', async () => {
    const moved = newStream();
    await append(moved);
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, i) => {
        const stream = i % 10 === 3 ? moved : newStream();
        const claim = { kind: 'moved', value: Buffer.from(`moved ${i}`), stream };
        const writes = [{ stream, expected: null, events: [event('A')] }];
        return store.commit({ accountId: 1, writes, claims: [claim] });
      }),
    );
    expect(results.map(({ status }) => status)).toEqual(
      results.map((_, i) => (i % 10 === 3 ? 'rejected' : 'fulfilled')),
    );
    const { rows } = await database.query<{ claims: number }>(
      `select count(*)::int as claims from es.claims where kind = 'moved'`,
    );
    expect(rows).toEqual([{ claims: 90 }]);
  });

  let hangUp: () => Promise<void> = async () => undefined;
  afterEach(async () => {
    await hangUp();
    hangUp = async () => undefined;
  });

  /** Opens an event store whose connections to the database can be cut, for one test. */
  async function connectByProxy() {
    const line = await DatabaseProxy.to(database.url);
    const config = testConfig(line.url);
    const source = await createDataSource(config, 'test').initialize();
    const remote = new PostgresEventStore(getPool(source));
    hangUp = async () => {
      await remote.onApplicationShutdown();
      await source.destroy();
      await line.close();
    };
    return { remote, line };
  }

  /** Opens a session with an open transaction, as a slow writer has. */
  async function openSlowWriter() {
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query('begin');
    return {
      append: (stream: string) =>
        client.query(
          `select es.commit($1, $2, '{}', '[]', null, null, true, null)`,
          createCommitArguments(stream, event('Slow')),
        ),
      takeTransactionId: () => client.query('select pg_current_xact_id()'),
      finish: async (command: 'commit' | 'rollback') => {
        await client.query(command);
        await client.end();
      },
    };
  }

  it.each(['update es.events set type = type', 'delete from es.events', 'truncate es.events'])(
    'refuses to change stored events: %s',
    async (statement) => {
      await append(newStream());
      await expect(database.query(statement)).rejects.toThrow('never changed or removed');
    },
  );

  it('refuses to delete stored events in the replica role, in which other triggers do not fire', async () => {
    await database.query('set session_replication_role = replica');
    try {
      await expect(database.query('delete from es.events')).rejects.toThrow('never changed');
    } finally {
      await database.query('set session_replication_role = origin');
    }
  });

  it('reads nothing after an open transaction until that has committed', async () => {
    const from = await store.head();
    const slow = await openSlowWriter();
    const [lateStream, quickStream] = [newStream(), newStream()];
    await slow.append(lateStream);
    await append(quickStream);
    expect(await store.readAll(from, 100)).toEqual([]);
    await slow.finish('commit');
    const events = await eventually(
      () => store.readAll(from, 100),
      (events) => events.length === 2,
    );
    expect(events.map((storedEvent) => storedEvent.stream)).toEqual([lateStream, quickStream]);
  });

  it('reads the event of a transaction with an earlier transaction id and a later sequence number', async () => {
    const from = await store.head();
    const low = await openSlowWriter();
    await low.takeTransactionId();
    const high = newStream();
    await append(high);
    const lowStream = newStream();
    await low.append(lowStream);
    const position = (await store.readAll(from, 100)).at(-1)?.position ?? from;
    await low.finish('commit');
    const events = await eventually(
      () => store.readAll(position, 100),
      (events) => events.length === 2,
    );
    expect(events.map((storedEvent) => storedEvent.stream)).toEqual([lowStream, high]);
  });

  it('places the head between two commits while a transaction is open', async () => {
    const open = await openSlowWriter();
    await open.takeTransactionId();
    const [before, after] = [newStream(), newStream()];
    await append(before);
    const head = await store.head();
    await append(after);
    const findPosition = async (stream: string) => {
      for await (const { position } of store.readStream(stream)) return position;
      throw new Error(`${stream} is empty`);
    };
    expect(isAfter(await findPosition(before), head)).toBe(false);
    expect(isAfter(await findPosition(after), head)).toBe(true);
    await open.finish('commit');
    const events = await eventually(
      () => store.readAll(head, 100),
      (events) => events.length > 0,
    );
    expect(events.map((storedEvent) => storedEvent.stream)).toEqual([after]);
  });

  it('reads on after a transaction that was rolled back', async () => {
    const from = await store.head();
    const writer = await openSlowWriter();
    await writer.append(newStream());
    const stream = newStream();
    await append(stream);
    await writer.finish('rollback');
    const events = await eventually(
      () => store.readAll(from, 100),
      (events) => events.length > 0,
    );
    expect(events.map((storedEvent) => storedEvent.stream)).toEqual([stream]);
  });

  it('delivers an event that was not announced while another subscriber catches up', async () => {
    const from = await store.head();
    const backlog = Array.from({ length: 200 }, () => newStream());
    await Promise.all(backlog.map((stream) => append(stream)));
    const stop = new AbortController();
    let handledCount = 0;
    const streams: string[] = [];
    const subscriptions = [
      store.subscribe({
        after: from,
        batch: 1,
        signal: stop.signal,
        onEvents: async () => {
          handledCount++;
          await new Promise((resolve) => setTimeout(resolve, 100));
        },
      }),
      store.subscribe({
        after: await store.head(),
        batch: 50,
        signal: stop.signal,
        onEvents: async (page) => void streams.push(...page.map(({ stream }) => stream)),
      }),
    ];
    await eventually(
      () => handledCount,
      (count) => count > 10,
    );
    const stream = newStream();
    await append(stream);
    await eventually(
      () => streams,
      (all) => all.includes(stream),
    );
    expect(handledCount).toBeLessThan(backlog.length);
    stop.abort();
    await Promise.all(subscriptions);
  });

  it('delivers the revisions of a stream in order while writers interleave', async () => {
    const from = await store.head();
    const stream = newStream();
    const stop = new AbortController();
    const events: StoredEvent[] = [];
    const subscription = store.subscribe({
      after: from,
      batch: 50,
      signal: stop.signal,
      onEvents: async (page) => void events.push(...page),
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
    const ours = () => events.filter((storedEvent) => storedEvent.stream === stream);
    await eventually(ours, (events) => events.length === 40);
    stop.abort();
    await subscription;
    expect(ours().map((storedEvent) => storedEvent.revision)).toEqual(
      Array.from({ length: 40 }, (_, i) => i),
    );
  });

  it('notifies of the last of many appends, with fewer notifications than appends', async () => {
    const listener = new pg.Client(database.url);
    let notificationCount = 0;
    listener.on('notification', () => notificationCount++);
    await listener.connect();
    await listener.query('listen inkpad_events');
    const waitForNotification = async (...appends: Promise<Head[]>[]) => {
      await Promise.all(appends);
      const before = notificationCount;
      await eventually(
        async () => notificationCount,
        (now) => now > before,
      );
    };
    const many = Array.from({ length: 300 }, () => append(newStream()));
    await waitForNotification(...many);
    await waitForNotification(append(newStream()));
    expect(notificationCount).toBeLessThan(many.length);
    await listener.end();
  });

  it('stores a commit once when its connection is lost while it runs', async () => {
    const stream = newStream();
    const [head] = await append(stream);
    const blocker = new pg.Client(database.ownerUrl);
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('lock table es.events in share mode');
    const pendingCommit = store.commit({
      accountId: 1,
      writes: [{ stream, expected: head ?? null, events: [event('B')] }],
    });
    await eventually(
      () =>
        database.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query like '%es.commit%' and wait_event_type = 'Lock'`,
        ),
      (result) => result.rowCount === 1,
    );
    await blocker.query('rollback');
    await blocker.end();
    expect((await pendingCommit)[0]?.revision).toBe(1);
    const types: string[] = [];
    for await (const storedEvent of store.readStream(stream)) types.push(storedEvent.type);
    expect(types).toEqual(['A', 'B']);
  });

  it('stores each commit of a group once when the connection is lost after it, and reports a conflict', async () => {
    const { remote, line } = await connectByProxy();
    const createStream = async (stream: string) => ({
      stream,
      expected: (await append(stream))[0] ?? null,
    });
    const group = [
      await createStream(newStream()),
      await createStream(newStream()),
      await createStream(newStream()),
    ] as const;
    const [conflicting] = group;
    const createCommit = (place: typeof conflicting) => ({
      accountId: 1,
      writes: [{ ...place, events: [event('B')] }],
    });
    await store.commit(createCommit(conflicting));
    const blocker = new pg.Client(database.ownerUrl);
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('lock table es.events in share mode');
    // Commits of one turn of the event loop share a transaction, which waits for the lock.
    const results = Promise.allSettled(group.map((place) => remote.commit(createCommit(place))));
    const inFlight = () =>
      database.query(
        `select 1 from pg_stat_activity where query like '%es.commit%' and state = 'active'
           and datname = current_database() and pid <> pg_backend_pid()`,
      );
    await eventually(inFlight, ({ rowCount }) => rowCount === 1);
    line.muteResponses();
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
      for await (const storedEvent of store.readStream(stream)) types.push(storedEvent.type);
      expect(types).toEqual(['A', 'B']);
    }
  });

  it.each([
    ['commits', 'rejects one commit of a group, and writes the others'],
    ['rolls back', 'writes every commit of a group'],
  ])(
    'waits for another process that continues a stream at the same time: when that %s, it %s',
    async (end) => {
      const createStream = async () => {
        const stream = newStream();
        const [expected = null] = await append(stream);
        return { stream, expected };
      };
      const places = [await createStream(), await createStream(), await createStream()] as const;
      const alone = await createStream();
      const otherClient = new pg.Client(database.url);
      await otherClient.connect();
      await otherClient.query('begin');
      const streams = [places[1].stream, alone.stream];
      await otherClient.query(
        `insert into es.events
         select pg_current_xact_id(), nextval('es.global_seq'), stream_id, 1, gen_random_uuid(), 'Other', 1, 1, '{}',
           '{}', sha256('other'), now()
         from unnest($1::text[]) stream_id`,
        [streams],
      );
      const commit = (place: typeof alone) =>
        store.commit({ accountId: 1, writes: [{ ...place, events: [event('B'), event('C')] }] });
      const countWaiting = () =>
        database.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
      const lone = Promise.allSettled([commit(alone)]);
      await eventually(countWaiting, ({ rowCount }) => rowCount === 1);
      const group = Promise.allSettled(places.map(commit));
      await eventually(countWaiting, ({ rowCount }) => rowCount === 2);
      await otherClient.query(end === 'commits' ? 'commit' : 'rollback');
      await otherClient.end();
      const results = [...(await group), ...(await lone)];
      const lost = new Set(end === 'commits' ? [1, 3] : []);
      const rejected = { status: 'rejected', reason: expect.any(ConflictError) };
      const fulfilled = { status: 'fulfilled', value: [{ revision: 2 }] };
      expect(results).toMatchObject(results.map((_, i) => (lost.has(i) ? rejected : fulfilled)));
      const types = async (stream: string) => {
        const list: string[] = [];
        for await (const stored of store.readStream(stream)) list.push(stored.type);
        return list.join('');
      };
      expect(await Promise.all([...places, alone].map(({ stream }) => types(stream)))).toEqual(
        results.map((_, i) => (lost.has(i) ? 'AOther' : 'ABC')),
      );
    },
  );

  it('continues a stream only after the event with the expected hash, alone and in a group', async () => {
    const stream = newStream();
    const [head] = await append(stream);
    const others = [newStream(), newStream()];
    const hash = head?.hash.replace(/^./, (first) => (first === '0' ? '1' : '0')) ?? '';
    const commit = () =>
      store.commit({
        accountId: 1,
        writes: [{ stream, expected: { revision: 0, hash }, events: [event('B')] }],
      });
    await expect(commit()).rejects.toThrow(ConflictError);
    const [first, ...rest] = await Promise.allSettled([
      commit(),
      ...others.map((name) => append(name)),
    ]);
    expect(first).toMatchObject({ reason: expect.any(ConflictError) });
    expect(rest.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  });

  it('lets commits to several streams share a transaction, and writes each of them whole or not at all', async () => {
    const createCommits = () =>
      Promise.all(
        Array.from({ length: 3 }, async (): Promise<Commit> => {
          const existing = newStream();
          const [expected = null] = await append(existing);
          return {
            accountId: 1,
            writes: [
              { stream: newStream(), expected: null, events: [event('B')] },
              { stream: existing, expected, events: [event('B')] },
            ],
          };
        }),
      );
    const list = async (commit: Commit | undefined) => {
      const { rows } = await database.query<{ stream_id: string; tx: string }>(
        `select stream_id, tx::text from es.events where type = 'B' and stream_id = any ($1)
         order by pos`,
        [commit?.writes.map(({ stream }) => stream)],
      );
      return { streams: rows.map((row) => row.stream_id), tx: rows.map((row) => row.tx) };
    };
    const getStreams = (commit: Commit) => commit.writes.map(({ stream }) => stream);

    const together = await createCommits();
    await Promise.all(together.map((commit) => store.commit(commit)));
    const stored = await Promise.all(together.map(list));
    expect(stored.map(({ streams }) => streams)).toEqual(together.map(getStreams));
    expect(new Set(stored.flatMap(({ tx }) => tx)).size).toBe(1);

    const mixed = await createCommits();
    const [, moved] = mixed;
    const [, late] = moved?.writes ?? [];
    await store.commit({ accountId: 1, writes: late ? [{ ...late, events: [event('C')] }] : [] });
    const results = await Promise.allSettled(mixed.map((commit) => store.commit(commit)));
    expect(results).toMatchObject([
      { status: 'fulfilled', value: [{ revision: 0 }, { revision: 1 }] },
      { status: 'rejected', reason: expect.any(ConflictError) },
      { status: 'fulfilled', value: [{ revision: 0 }, { revision: 1 }] },
    ]);
    const streams = (await Promise.all(mixed.map(list))).map((listing) => listing.streams);
    expect(streams).toEqual(mixed.map((commit, i) => (i === 1 ? [] : getStreams(commit))));
  });

  it('writes no claim before the events of its transaction', async () => {
    const client = new pg.Client(database.ownerUrl);
    await client.connect();
    const stream = newStream();
    const otherStream = newStream();
    const [head] = await append(otherStream);
    // The lock makes the commit wait at its append; its claim comes later.
    await client.query('begin');
    await client.query('lock table es.events in share mode');
    const pendingCommit = store.commit({
      accountId: 1,
      writes: [
        { stream: otherStream, expected: head ?? null, events: [event('B')] },
        { stream, expected: null, events: [event('A')] },
      ],
      claims: [{ kind: 'late', value: Buffer.from(stream), stream }],
    });
    await eventually(
      () =>
        database.query(
          `select 1 from pg_stat_activity where query like '%es.commit%' and wait_event_type = 'Lock'`,
        ),
      (result) => result.rowCount === 1,
    );
    const locks = await database.query(
      `select relation::regclass::text as name from pg_locks
       where locktype = 'relation' and mode = 'RowExclusiveLock' and relation::regclass::text like 'es.claims%'`,
    );
    expect(locks.rows).toEqual([]);
    await client.query('commit');
    await client.end();
    await pendingCommit;
  });
});

function createCommitArguments(stream: string, newEvent: ReturnType<typeof event>): string[] {
  const hash = 'ab'.repeat(32);
  const heads = [{ s: stream, x: -1, p: null }];
  const events = [
    {
      s: stream,
      r: 0,
      id: newEvent.id,
      t: newEvent.type,
      v: 1,
      a: 1,
      d: newEvent.data,
      m: newEvent.meta,
      h: hash,
      at: newEvent.meta.recordedAt,
    },
  ];
  return [JSON.stringify(heads), JSON.stringify(events)];
}
