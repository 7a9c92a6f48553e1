import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { LOCKS } from '#platform/database/locks.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { createDataSource, getPool, QUEUE_LIMITS } from '#platform/database/data-source.js';
import { PINNED } from '#platform/database/session.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startPgBouncer, type PgBouncer } from '../support/database/pgbouncer.js';
import { startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  listReceivedBalances,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';

/** Tests the statements of docs/operating/scale.md about PgBouncer. */

const SLOW = 300_000;

async function withClient<R>(url: string, work: (client: pg.Client) => Promise<R>): Promise<R> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Finds the PostgreSQL sessions that hold the leader's lock. */
async function findLeaders(database: TestDatabase): Promise<number[]> {
  const { rows } = await database.query<{ pid: number }>(
    `select pid from pg_locks join pg_database d on d.oid = database
     where locktype = 'advisory' and objid = $1 and granted and datname = current_database()`,
    [LOCKS.fanOut],
  );
  return rows.map(({ pid }) => pid);
}

describe('PgBouncer with session pooling', () => {
  let pooler: PgBouncer;
  let service: Service;
  const webhooks = useWebhooks(() => service);

  beforeAll(async () => {
    const database = await createTestDatabase();
    pooler = await startPgBouncer(database.url, {
      pool_mode: 'session',
      default_pool_size: '60',
    });
    service = await startService(
      { DATABASE_URL: pooler.url, WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' },
      database,
    );
  }, SLOW);
  afterAll(async () => {
    await service.stop();
    await pooler.stop();
  }, SLOW);

  /** A leader whose link is lost has none for a moment; two never have it. */
  const expectOneLeader = () =>
    eventually(
      () => findLeaders(service.database),
      (pids) => pids.length === 1,
    );

  it(
    'lets one leader send webhooks in order, and another one after the leader was killed',
    async () => {
      const store = await service.newStore();
      const receiver = await webhooks.receive();
      await subscribe(store, receiver);
      const { path } = await enrol(store, { card: { stamps_required: 21 } });
      const leader = await webhooks.startDispatcher();
      await Promise.all(Array.from({ length: 10 }, () => stamp(store, path, 2)));
      const all = Array.from({ length: 20 }, (_, i) => i + 1);
      await eventually(
        () => receiver.events.length,
        (count) => count >= all.length,
      );
      expect(listReceivedBalances(receiver)).toEqual(all);
      await expectOneLeader();
      await leader.kill('SIGKILL');
      await webhooks.startDispatcher();
      await stamp(store, path);
      await eventually(
        () => listReceivedBalances(receiver),
        (counts) => counts.includes(21),
      );
      // Perhaps in the same PostgreSQL session, which PgBouncer has reset in between.
      await expectOneLeader();
    },
    SLOW,
  );

  it('passes notifications on to listeners', async () => {
    const notifications: unknown[] = [];
    await withClient(pooler.url, async (listener) => {
      listener.on('notification', ({ payload }) => notifications.push(payload));
      await listener.query('listen tried');
      await withClient(pooler.url, (client) => client.query(`notify tried, 'hello'`));
      await eventually(
        () => notifications,
        (payloads) => payloads.length > 0,
      );
    });
    expect(notifications).toEqual(['hello']);
  });

  it('leaves limits and pinned settings to the processes', async () => {
    const { username, pathname } = new URL(pooler.url);
    const role = `alter role ${username} in database ${pathname.slice(1)} set`;
    await service.database.query(`${role} datestyle = 'German'`);
    await service.database.query(`${role} bytea_output = 'escape'`);
    const source = createDataSource(testConfig(pooler.url), 'test', QUEUE_LIMITS);
    await source.initialize();
    const expected = { ...PINNED, ...QUEUE_LIMITS.session };
    const names = Object.keys(expected).map((name) => `current_setting('${name}') as ${name}`);
    const { rows } = await getPool(source).query(`select ${names.join(', ')}`);
    expect(rows).toEqual([expected]);
    await source.destroy();
  });
});

describe('PgBouncer with transaction pooling', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.close());

  it('gives every PostgreSQL session the pinned settings of its client', async () => {
    const { username, pathname } = new URL(database.url);
    await database.query(
      `alter role ${username} in database ${pathname.slice(1)} set datestyle = 'German'`,
    );
    const pooler = await startPgBouncer(database.url, {
      pool_mode: 'transaction',
      default_pool_size: '3',
    });
    const clients = Array.from({ length: 3 }, () => createDatabaseClient(pooler.url, 'test'));
    for (const client of clients) await client.connect();
    // The transactions overlap, so that each runs in another session than the one its client was opened in.
    const settings = await Promise.all(
      clients.map(async (client) => {
        await client.query('begin');
        const { rows } = await client.query<{ style: string; strings: string; zone: string }>(
          `select current_setting('datestyle') as style, current_setting('timezone') as zone,
             current_setting('standard_conforming_strings') as strings, pg_sleep(0.2)`,
        );
        await client.query('commit');
        return rows[0];
      }),
    );
    for (const setting of settings) {
      expect(setting).toMatchObject({ style: PINNED['datestyle'], strings: 'on', zone: 'UTC' });
    }
    await Promise.all(clients.map((client) => client.end()));
    await pooler.stop();
  });

  it('keeps an advisory lock after its client has disconnected', async () => {
    const pooler = await startPgBouncer(database.url, { pool_mode: 'transaction' });
    await withClient(pooler.url, (client) =>
      client.query('select pg_advisory_lock($1)', [LOCKS.fanOut]),
    );
    expect(await findLeaders(database)).toHaveLength(1);
    const [orphan] = await findLeaders(database);
    await database.query('select pg_terminate_backend($1, 10000)', [orphan]);
    expect(await findLeaders(database)).toEqual([]);
    await pooler.stop();
  });
});
