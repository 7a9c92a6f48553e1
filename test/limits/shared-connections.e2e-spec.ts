import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { mock } from 'node:test';
import fastify from 'fastify';
import type pg from 'pg';
import { Registry } from 'prom-client';
import { inTransaction, query, queryForGroup } from '#platform/database/connection.js';
import { DatabasePool } from '#platform/database/database-pool.js';
import { DatabaseWait, runWithWait } from '#platform/database/database-waits.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { shareDatabase } from '#platform/http/database-share.js';
import type { ErrorsFilter } from '#platform/http/errors.filter.js';
import { HttpMetrics } from '#platform/http/http-metrics.js';
import { OpenRequests } from '#platform/http/open-requests.js';
import { OverloadError } from '#platform/kernel/errors.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

const SIZE = 10;

let database: TestDatabase;
let pool: DatabasePool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new DatabasePool({
    connectionString: database.url,
    max: SIZE,
    connectionTimeoutMillis: 60_000,
  });
  // The server may end idle connections before the pool has.
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

type Use = { readsMuch?: boolean; isAbandoned?: () => boolean };

/** Runs work as a request of a store. */
function runFor<R>(owner: number, work: () => Promise<R>, use: Use = {}): Promise<R> {
  const wait = new DatabaseWait(undefined, use.isAbandoned);
  wait.owner = owner;
  wait.readsMuch = use.readsMuch ?? false;
  return new Promise((resolve, reject) => {
    runWithWait(wait, () => void work().then(resolve, reject));
  });
}

/** A statement that runs until `release`. */
const block = () => query(pool, { text: 'select pg_advisory_xact_lock_shared(7)' });
const respond = async () => (await query<{ n: number }>(pool, { text: 'select 1 as n' }))[0]?.n;

/** Runs a test while statements of `block` do not end. */
async function whileBlocked(run: (release: () => Promise<void>) => Promise<void>): Promise<void> {
  const lock = await pool.connect();
  await lock.query('select pg_advisory_lock(7)');
  let isReleased = false;
  const release = async () => {
    if (!isReleased) await lock.query('select pg_advisory_unlock(7)');
    isReleased = true;
  };
  try {
    await run(release);
  } finally {
    await release();
    lock.release();
  }
}

const countBlocked = async () => {
  const { rows } = await database.query<{ n: number }>(
    `select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database
     where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`,
  );
  return rows[0]?.n ?? 0;
};

describe('the connections of a pool', () => {
  it('gives another store one at once while 50 statements of a store are slow', async () => {
    await whileBlocked(async (release) => {
      const slow = Array.from({ length: 50 }, () => runFor(1, block));
      // One is held by the lock, and of the others the store leaves as many free as it has, and one more.
      await eventually(countBlocked, (count) => count === 4);
      expect(await runFor(2, respond)).toBe(1);
      expect(await respond()).toBe(1);
      expect(pool.queuedCount).toBe(46);
      await release();
      expect(await Promise.all(slow)).toHaveLength(50);
    });
    expect(pool.queuedCount).toBe(0);
  });

  it('leaves one for work of no store, however many stores have slow statements', async () => {
    await whileBlocked(async (release) => {
      const slow = Array.from({ length: 40 }, (_, i) => runFor(i % 8, block));
      await eventually(countBlocked, (count) => count === SIZE - 2);
      expect(await respond()).toBe(1);
      await release();
      expect(await Promise.all(slow)).toHaveLength(40);
    });
  });

  it('gives a transaction the further connection that it needs, although its store has its share', async () => {
    const nested = () => inTransaction(pool, () => respond());
    const all = Array.from({ length: 50 }, () => runFor(1, nested));
    expect(await Promise.all(all)).toEqual(all.map(() => 1));
  });

  it.each([{ readsMuch: false }, { readsMuch: true }])(
    'reads at once what all stores wait for, although a store with slow statements was first: %j',
    async (use) => {
      const maintenance = new Maintenance(
        pool,
        new ProcessLink(testConfig(database.url), 'test'),
        new Registry(),
      );
      await whileBlocked(async (release) => {
        const slow = Array.from({ length: 20 }, () => runFor(1, block, use));
        await eventually(countBlocked, (count) => count === (use.readsMuch ? 1 : 4));
        const requests = [1, 2].map((owner) => runFor(owner, async () => maintenance.find(), use));
        expect(await Promise.all(requests)).toEqual([undefined, undefined]);
        await release();
        await Promise.all(slow);
      });
    },
  );

  it('runs one large read of a store at a time, and those of other stores beside it', async () => {
    await whileBlocked(async (release) => {
      const large = { readsMuch: true };
      const slow = Array.from({ length: 20 }, () => runFor(1, block, large));
      await eventually(countBlocked, (count) => count === 1);
      expect(await runFor(2, respond, large)).toBe(1);
      expect(await runFor(1, respond)).toBe(1);
      expect(await countBlocked()).toBe(1);
      await release();
      expect(await Promise.all(slow)).toHaveLength(20);
    });
  });

  it('lets no large read of a request wait behind its own others in the queue of its store', async () => {
    await whileBlocked(async (release) => {
      const large = { readsMuch: true };
      const order: string[] = [];
      const read = async (name: string) => {
        await block();
        order.push(name);
      };
      const first = runFor(1, () => Promise.all([read('1a'), read('1b'), read('1c')]), large);
      await eventually(countBlocked, (count) => count === 1);
      const second = runFor(1, () => read('2'), large);
      await release();
      await Promise.all([first, second]);
      expect(order).toEqual(['1a', '2', '1b', '1c']);
    });
  });

  it('runs all large reads of a request, however many it starts at once', async () => {
    const reads = () => Promise.all(Array.from({ length: 150 }, respond));
    expect(await runFor(1, reads, { readsMuch: true })).toHaveLength(150);
  });

  it('gives a store one at once while 50 requests of strangers in a network are slow', async () => {
    const server = fastify();
    const metrics = new HttpMetrics(new Registry());
    new OpenRequests().install(server, testConfig(database.url), {
      metrics,
      errors: {} as ErrorsFilter,
    });
    server.get('/page', () => block());
    server.get('/store', (request) => {
      shareDatabase(request, 1);
      return query(pool, { text: 'select 1 as n' });
    });
    const get = (url: string, remoteAddress: string) => server.inject({ url, remoteAddress });
    await whileBlocked(async (release) => {
      const slow = Array.from({ length: 50 }, (_, i) => get('/page', `203.0.113.${i}`));
      await eventually(countBlocked, (count) => count === 4);
      expect((await get('/store', '203.0.113.9')).json()).toEqual([{ n: 1 }]);
      await release();
      await Promise.all(slow);
    });
    await server.close();
  });

  it('gives the slot of a request whose client is gone to the next one', async () => {
    await whileBlocked(async (release) => {
      const large = { readsMuch: true };
      const slow = runFor(1, block, large);
      const abandoned = runFor(1, block, { ...large, isAbandoned: () => true });
      const outcomes = Promise.allSettled([abandoned]);
      const next = runFor(1, respond, large);
      await release();
      const reason = expect.any(OverloadError) as unknown;
      expect(await outcomes).toEqual([{ status: 'rejected', reason }]);
      expect(await next).toBe(1);
      await slow;
    });
  });

  it('runs one large read at a time in a small pool, whose other connections stay free', async () => {
    const small = new DatabasePool({ connectionString: database.url, max: 3 });
    small.on('error', () => undefined);
    const text = 'select pg_advisory_xact_lock_shared(7)';
    await whileBlocked(async (release) => {
      const reads = [1, 2].map((owner) =>
        runFor(owner, () => query(small, { text }), { readsMuch: true }),
      );
      await eventually(countBlocked, (count) => count > 0);
      await runFor(3, () => query(small, { text: 'select 1' }));
      expect(await countBlocked()).toBe(1);
      await release();
      await Promise.all(reads);
    });
    await small.end();
  });

  it('ends every wait with an error that says to try again', async () => {
    const small = new DatabasePool({
      connectionString: database.url,
      max: 2,
      connectionTimeoutMillis: 1_000,
    });
    const first = await small.connect();
    const second = await small.connect();
    const select = () => query(small, { text: 'select 1' });
    const waiting = [runFor(1, select), select(), runFor(2, select, { readsMuch: true })];
    const outcomes = await Promise.allSettled(waiting);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ reason: expect.any(OverloadError) });
    }
    first.release();
    second.release();
    expect(await runFor(1, select)).toHaveLength(1);
    await small.end();
  });

  it('has a connection for a store again after one broke', async () => {
    const broken = await runFor(1, () => pool.connect());
    broken.release(new Error('broken'));
    const all = Array.from({ length: 30 }, () => runFor(1, respond));
    expect(await Promise.all(all)).toHaveLength(30);
  });
});

describe('a connection that a commit keeps', () => {
  const take = (from: DatabasePool) =>
    new Promise<pg.PoolClient>((resolve, reject) => {
      from.acquireForCommit((error, client) => (client ? resolve(client) : reject(error)));
    });
  const readPid = async (client: pg.PoolClient) =>
    (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  let small: DatabasePool;

  beforeEach(() => {
    small = new DatabasePool({ connectionString: database.url, max: 2 });
    small.on('error', () => undefined);
  });
  afterEach(() => small.end());

  it('is used again, although requests have all slots', async () => {
    const client = await take(small);
    const pid = await readPid(client);
    small.releaseAfterCommit(client);
    await whileBlocked(async (release) => {
      const text = 'select pg_advisory_xact_lock_shared(7)';
      const slow = Array.from({ length: 3 }, () => runFor(1, () => query(small, { text })));
      await eventually(countBlocked, (count) => count === 1);
      const again = await take(small);
      expect(await readPid(again)).toBe(pid);
      small.releaseAfterCommit(again);
      await release();
      await Promise.all(slow);
    });
  });

  it('goes to a request that finds no other', async () => {
    const clients = [await take(small), await take(small)];
    for (const client of clients) small.releaseAfterCommit(client);
    expect(small.unusedCount).toBe(2);
    const select = () => query(small, { text: 'select 1 as one' });
    expect(await Promise.all([select(), select(), select()])).toHaveLength(3);
    expect(small.totalCount).toBe(2);
  });

  it('goes to a request that waits when its commit ends', async () => {
    const clients = [await take(small), await take(small)];
    const waiting = query(small, { text: 'select 1 as one' });
    for (const client of clients) small.releaseAfterCommit(client);
    expect(await waiting).toEqual([{ one: 1 }]);
  });

  it('is closed when no commit has needed it for a while, except for one', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const idle = new DatabasePool({
      connectionString: database.url,
      max: 3,
      idleTimeoutMillis: 50,
    });
    try {
      const clients = [await take(idle), await take(idle), await take(idle)];
      for (const client of clients) idle.releaseAfterCommit(client);
      mock.timers.tick(30_000);
      idle.releaseAfterCommit(await take(idle));
      expect(idle.unusedCount).toBe(3);
      mock.timers.tick(60_000);
      await eventually(
        () => idle.totalCount,
        (count) => count === 1,
      );
    } finally {
      mock.timers.reset();
      await idle.end();
    }
  });

  it('runs the statements of groups, also after one that fails, until it breaks', async () => {
    const run = (expression: string) =>
      queryForGroup(small, { text: `select ${expression} as result` });
    const [first] = await run('pg_backend_pid()');
    await expect(run('1 / 0')).rejects.toThrow('division by zero');
    expect(await run('pg_backend_pid()')).toEqual([first]);
    await expect(run('pg_terminate_backend(pg_backend_pid())')).rejects.toThrow('terminating');
    expect(await run('pg_backend_pid()')).not.toEqual([first]);
    expect(small.totalCount).toBe(1);
  });

  it('is replaced when it breaks', async () => {
    const client = await take(small);
    const pid = await readPid(client);
    small.releaseAfterCommit(client);
    await database.query('select pg_terminate_backend($1)', [pid]);
    await eventually(
      () => small.totalCount,
      (count) => count === 0,
    );
    const next = await take(small);
    expect(await readPid(next)).not.toBe(pid);
    small.releaseAfterCommit(next);
  });
});
