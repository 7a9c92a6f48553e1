import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { mock } from 'node:test';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { inTransaction, query, queryForGroup } from '#platform/database/connection.js';
import { RolledBackError } from '#platform/database/database-client.js';
import { DatabasePool } from '#platform/database/database-pool.js';
import {
  FinishedRequestError,
  DatabaseWait,
  findWait,
  runAsCommit,
  runWithWait,
  SecondConnectionError,
} from '#platform/database/database-waits.js';
import { Batcher } from '#platform/database/batcher.js';
import { ThrottledNotify } from '#platform/database/throttled-notify.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { useService } from '../support/http/contract.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());

const trace = new AsyncLocalStorage<string>();

type CallbackContext = {
  error: Error | null;
  wait: DatabaseWait | undefined;
  of: string | undefined;
};
type Use = { readsMuch?: boolean; isAbandoned?: boolean; isFinished?: boolean };

function createWait(owner: number, use: Use = {}): DatabaseWait {
  const isAbandoned = () => use.isAbandoned ?? false;
  const wait = new DatabaseWait(undefined, isAbandoned, undefined, () => use.isFinished ?? false);
  wait.owner = owner;
  wait.readsMuch = use.readsMuch ?? false;
  return wait;
}

/** Runs work as a request, with a context of tracing. */
function runFor<R>(wait: DatabaseWait, work: () => Promise<R>, name = 'own'): Promise<R> {
  return new Promise((resolve, reject) => {
    trace.run(name, () => runWithWait(wait, () => void work().then(resolve, reject)));
  });
}

const toOutcome = (result: Promise<unknown>) =>
  result.then(
    () => 'done',
    (error: unknown) => error,
  );

/** Runs a test with a pool of its own. */
async function withPool(
  size: number,
  run: (pool: DatabasePool) => Promise<void>,
  isStrict = true,
): Promise<void> {
  const pool = new DatabasePool({ connectionString: database.url, max: size, isStrict });
  pool.on('error', () => undefined);
  try {
    await run(pool);
  } catch (error) {
    // Not awaited: it would wait for the connections that the failed test holds.
    void pool.end();
    throw error;
  }
  await pool.end();
}

const select = (pool: pg.Pool) => query(pool, { text: 'select 1 as one' });
/** The use of a large read whose client has gone, which opens the only connection of a pool. */
async function openByClosedRead(pool: DatabasePool): Promise<void> {
  const use: Use = { readsMuch: true };
  await runFor(createWait(1, use), () => select(pool), 'read');
  expect(pool.totalCount).toBe(1);
  use.isAbandoned = true;
  use.isFinished = true;
}
/** Runs a statement as a commit does, and reports in which context it calls back. */
function commit(pool: DatabasePool, text = 'select 1') {
  return new Promise<CallbackContext>((resolve, reject) => {
    pool.acquireForCommit((cause, client) => {
      if (!client) return reject(cause ?? new Error('no connection'));
      client.query(text, [], (error: Error | null) => {
        pool.releaseAfterCommit(client, error ?? undefined);
        resolve({ error, wait: findWait(), of: trace.getStore() });
      });
    });
  });
}

describe('a connection that a request has opened', () => {
  it('calls back as the request whose statement it runs, or as nobody', async () => {
    await withPool(1, async (pool) => {
      await openByClosedRead(pool);
      expect(await commit(pool)).toEqual({ error: null, wait: undefined, of: undefined });
      const wait = createWait(2);
      expect(await runFor(wait, () => commit(pool))).toEqual({ error: null, wait, of: 'own' });
    });
  });

  it('calls back in the same way when the server ends it', async () => {
    await withPool(2, async (pool) => {
      await openByClosedRead(pool);
      const end = 'select pg_terminate_backend(pg_backend_pid())';
      const error = expect.objectContaining({ code: '57P01' }) as unknown;
      expect(await commit(pool, end)).toEqual({ error, wait: undefined, of: undefined });
      const wait = createWait(2);
      expect(await runFor(wait, () => commit(pool, end))).toEqual({ error, wait, of: 'own' });
      expect(await commit(pool)).toEqual({ error: null, wait: undefined, of: undefined });
    });
  });

  it('lets further commits begin in its callback', async () => {
    await withPool(3, async (pool) => {
      await openByClosedRead(pool);
      const results = await new Promise<unknown[]>((resolve, reject) => {
        pool.acquireForCommit((cause, client) => {
          if (!client) return reject(cause ?? new Error('no connection'));
          client.query('select 1', [], () => {
            pool.releaseAfterCommit(client);
            Promise.all([commit(pool), commit(pool), commit(pool)]).then(resolve, reject);
          });
        });
      });
      expect(results).toEqual(results.map(() => ({ error: null, wait: undefined, of: undefined })));
    });
  });

  it('emits notifications as nobody', async () => {
    await withPool(1, async (pool) => {
      await openByClosedRead(pool);
      const client = await pool.connect();
      const notified = new Promise((resolve) => {
        client.once('notification', () => resolve([findWait(), trace.getStore()]));
      });
      await client.query('listen contexts');
      await runFor(createWait(2), () => client.query(`select pg_notify('contexts', '')`));
      expect(await notified).toEqual([undefined, undefined]);
      client.release();
    });
  });
});

describe('a request that waits for a connection', () => {
  it('gets it in its own context, whoever releases it', async () => {
    await withPool(1, async (pool) => {
      const holder = await runFor(createWait(1), () => pool.connect(), 'holder');
      const waits = [createWait(1), createWait(2), createWait(3, { readsMuch: true })];
      const contexts = waits.map((wait, i) =>
        runFor(
          wait,
          () =>
            new Promise((resolve, reject) => {
              pool.connect((error, _client, release) => {
                if (error) return reject(error);
                resolve([findWait(), trace.getStore()]);
                release();
              });
            }),
          `waiter ${i}`,
        ),
      );
      trace.run('releaser', () => runWithWait(createWait(9), () => holder.release()));
      expect(await Promise.all(contexts)).toEqual(waits.map((wait, i) => [wait, `waiter ${i}`]));
    });
  });
});

describe('a commit', () => {
  const wasteful: Use = { readsMuch: true, isAbandoned: true };

  it('waits neither for the large reads of its owner nor for its client', async () => {
    await withPool(4, async (pool) => {
      const result = runFor(createWait(1, wasteful), () => commit(pool));
      expect((await result).error).toBeNull();
      const group = runFor(createWait(1, wasteful), () =>
        queryForGroup(pool, { text: 'select 1 as one' }),
      );
      expect(await group).toEqual([{ one: 1 }]);
    });
  });

  it('with a transaction waits for them just as little, and counts the time for its request', async () => {
    await withPool(4, async (pool) => {
      const wait = createWait(1, wasteful);
      const result = runFor(wait, () =>
        runAsCommit(() => inTransaction(pool, (client) => client.query('select pg_sleep(0.02)'))),
      );
      expect((await result).rowCount).toBe(1);
      expect(wait.milliseconds).toBeGreaterThan(15);
      expect(wait.transactionCount).toBe(0);
    });
  });

  it('gets a connection while its owner has used up its share', async () => {
    await withPool(6, async (pool) => {
      const lock = await pool.connect();
      await lock.query('select pg_advisory_lock(11)');
      const block = () => query(pool, { text: 'select pg_advisory_xact_lock_shared(11)' });
      const slow = Array.from({ length: 20 }, () => runFor(createWait(1), block));
      await eventually(
        () => pool.queuedCount,
        (count) => count === 18,
      );
      const all = await Promise.all([
        runFor(createWait(1), () => commit(pool)),
        runFor(createWait(1), () =>
          runAsCommit(() => inTransaction(pool, (client) => client.query('select 1'))),
        ),
      ]);
      expect(all).toHaveLength(2);
      await lock.query('select pg_advisory_unlock(11)');
      await Promise.all(slow);
      lock.release();
    });
  });
});

describe('notifications of news', () => {
  it('are sent as nobody, whoever has the news', async () => {
    await withPool(2, async (pool) => {
      const failures: unknown[] = [];
      const listener = await pool.connect();
      await listener.query('listen contexts');
      let notificationCount = 0;
      const notified = new Promise<void>((resolve) => {
        listener.on('notification', () => {
          if (++notificationCount === 2) resolve();
        });
      });
      const notify = new ThrottledNotify(pool, 'contexts', (error) => failures.push(error));
      const use: Use = { readsMuch: true };
      await runFor(createWait(1, use), async () => {
        // The second one is sent after the interval, by when the client has gone.
        const first = notify.notify();
        expect(notify.notify()).toBeUndefined();
        use.isAbandoned = true;
        use.isFinished = true;
        await first;
      });
      await notified;
      expect(failures).toEqual([]);
      listener.release();
      notify.close();
    });
  });
});

describe('a batch', () => {
  it('runs as nobody, whoever it was scheduled by', async () => {
    const contexts: unknown[] = [];
    const batcher = new Batcher<number, number>(1, 1, (items) => {
      contexts.push([findWait(), trace.getStore()]);
      return Promise.resolve(items.map((value) => ({ status: 'fulfilled', value })));
    });
    const all = [1, 2, 3].map((item) => runFor(createWait(item), () => batcher.add(item)));
    await Promise.all(all);
    expect(contexts).toEqual(contexts.map(() => [undefined, undefined]));
  });

  it('is refused to a transaction, which would wait for another connection', async () => {
    const batcher = new Batcher<number, number>(1, 1, () => Promise.resolve([]));
    await withPool(1, async (pool) => {
      const outcome = toOutcome(inTransaction(pool, () => batcher.add(1)));
      expect(await outcome).toBeInstanceOf(SecondConnectionError);
    });
  });
});

describe('a request that is answered', () => {
  const refused = expect.any(FinishedRequestError) as unknown;

  it('runs no statement any more, on whatever connection, outside of production', async () => {
    await withPool(2, async (pool) => {
      const createFinished = () => createWait(1, { isFinished: true });
      const client = await pool.connect();
      const outcomes = [
        runFor(createFinished(), () => select(pool)),
        runFor(createFinished(), () => pool.query('select 1')),
        runFor(createFinished(), () => pool.connect()),
        runFor(createFinished(), () => inTransaction(pool, () => Promise.resolve())),
        runFor(createFinished(), () => queryForGroup(pool, { text: 'select 1' })),
        runFor(createFinished(), () => commit(pool)),
        runFor(createFinished(), () => client.query('select 1')),
        runFor(createFinished(), () => {
          return new Promise((resolve, reject) => {
            client.query('select 1', (error: Error | null) => (error ? reject(error) : resolve(1)));
          });
        }),
      ].map(toOutcome);
      expect(await Promise.all(outcomes)).toEqual(outcomes.map(() => refused));
      client.release();
      expect(await select(pool)).toHaveLength(1);
    });
  });

  it('leaves no transaction open when it is answered within one', async () => {
    await withPool(1, async (pool) => {
      const use: Use = {};
      const work = async (client: pg.PoolClient) => {
        await client.query('create temp table of_request (id int)');
        use.isFinished = true;
        await client.query('insert into of_request values (1)');
      };
      const outcome = toOutcome(runFor(createWait(1, use), () => inTransaction(pool, work)));
      expect(await outcome).toEqual(refused);
      const text = `select to_regclass('of_request') as name`;
      expect(await query(pool, { text })).toEqual([{ name: null }]);
    });
  });

  it('is not looked for in production', async () => {
    await withPool(
      1,
      async (pool) => {
        const rows = runFor(createWait(1, { isFinished: true }), () => select(pool));
        expect(await rows).toHaveLength(1);
      },
      false,
    );
  });
});

describe('a transaction', () => {
  it.each(['commit', 'COMMIT', ' end'])(
    'fails when PostgreSQL answers %j with a rollback, because an error was passed over',
    async (end) => {
      await withPool(1, async (pool) => {
        const client = await pool.connect();
        await client.query('begin');
        await client.query('create temp table passed_over (id int)');
        await client.query('select 1 / 0').catch(() => undefined);
        expect(await toOutcome(client.query(end))).toBeInstanceOf(RolledBackError);
        client.release();
        const outcome = inTransaction(pool, async (own) => {
          await own.query('create temp table passed_over (id int)');
          await own.query('select 1 / 0').catch(() => undefined);
          return 'written';
        });
        expect(await toOutcome(outcome)).toBeInstanceOf(RolledBackError);
        const text = `select to_regclass('passed_over') as name`;
        expect(await query(pool, { text })).toEqual([{ name: null }]);
        expect(await inTransaction(pool, () => Promise.resolve('fine'))).toBe('fine');
      });
    },
  );
});

describe('the service', () => {
  const service = useService({ DATABASE_POOL: '5' });
  const store = service.useStore();

  const countStatuses = (responses: { status: number; text: string }[]) => {
    const counts: Record<string, number> = {};
    for (const { status, text } of responses) {
      const kind = status < 300 ? 'done' : `${status} ${text}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    return counts;
  };

  it('stamps with receipts beside large reads of the past, and notifies of each', async () => {
    const warn = mock.method(Logger.prototype, 'warn');
    const warnings = () => warn.mock.calls.map(({ arguments: [message] }) => String(message));
    const { card } = await enrol(store);
    const people = await Promise.all(Array.from({ length: 8 }, () => enrol(store, { on: card })));
    const past = new Date().toISOString();
    let receipts = 0;
    for (let round = 0; round < 6; round++) {
      const reads = people.map(({ path }) => store.get(`${path}?as_of=${past}`));
      const stamps = people.flatMap(({ path }) =>
        Array.from({ length: 4 }, () => store.stamp(path, { external_ref: `r${++receipts}` })),
      );
      // It makes what is cached of the cards stale, so that groups of commits lose and are repeated one by one.
      const changes = [1, 2].map((i) =>
        store.patch(`${store.store}/cards/${card.id}`, { card: { name: `Round ${round} ${i}` } }),
      );
      expect(countStatuses(await Promise.all([...stamps, ...changes]))).toEqual({ done: 34 });
      await Promise.all(reads);
    }
    expect(warnings().filter((message) => /notified|disconnected/.test(message))).toEqual([]);
    warn.mock.restore();
    const balances = await Promise.all(people.map(({ path }) => store.readBalance(path)));
    expect(balances.reduce((sum, balance) => sum + balance, 0)).toBe(receipts);
  });

  it('makes changes of one record at once, whatever one of them has in its query', async () => {
    const { card } = await enrol(store);
    const path = `${store.store}/cards/${card.id}`;
    for (let round = 0; round < 3; round++) {
      const changes = Array.from({ length: 30 }, (_, i) =>
        store.patch(i === 0 ? `${path}?as_of=2020-01-01T00:00:00Z` : path, {
          card: { name: `Change ${i}` },
        }),
      );
      expect(countStatuses(await Promise.all(changes))).toEqual({ done: 30 });
    }
  });

  it('makes changes of one customer at once while other clients leave', async () => {
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    const leaving = new AbortController();
    const left = Array.from({ length: 10 }, (_, i) =>
      fetch(store.baseUrl + path, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${store.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ customer: { metadata: { [`left${i}`]: i } } }),
        signal: leaving.signal,
      }).catch(() => undefined),
    );
    const changes = Array.from({ length: 20 }, (_, i) =>
      store.patch<CustomerJson>(path, { customer: { metadata: { [`k${i}`]: i } } }),
    );
    leaving.abort();
    expect(countStatuses(await Promise.all(changes))).toEqual({ done: 20 });
    await Promise.all(left);
  });
});
