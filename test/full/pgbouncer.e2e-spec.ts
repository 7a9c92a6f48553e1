import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createDatabaseClient } from '#database/database-client.js';
import { createDataSource, getPool, QUEUE_LIMITS } from '#database/data-source.js';
import { PINNED } from '#database/session.js';
import { testConfig, testDatabase, type TestDatabase } from '../support/database/database.js';
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

/** Tests the statements of docs/operating.md about PgBouncer. */

const SLOW = 120_000;
const LEADER_LOCK = 727001;

async function asking<R>(url: string, work: (client: pg.Client) => Promise<R>): Promise<R> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The sessions of the server that hold the leader's lock. */
async function leadersIn(database: TestDatabase): Promise<number[]> {
  const { rows } = await database.query<{ pid: number }>(
    `select pid from pg_locks join pg_database d on d.oid = database
     where locktype = 'advisory' and objid = $1 and granted and datname = current_database()`,
    [LEADER_LOCK],
  );
  return rows.map(({ pid }) => pid);
}

describe('PgBouncer that pools by session', () => {
  let pooler: PgBouncer;
  let service: Service;
  const webhooks = useWebhooks(() => service);

  beforeAll(async () => {
    const database = await testDatabase();
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

  it(
    'counts stamps and sends their webhooks, also when the leader is killed',
    async () => {
      const store = await service.newStore();
      const receiver = await webhooks.receive();
      await subscribe(store, receiver);
      const { path } = await enrol(store, { card: { stamps_required: 21 } });
      const killed = await webhooks.startDispatcher();
      await Promise.all(Array.from({ length: 10 }, () => stamp(store, path, 2)));
      const all = Array.from({ length: 20 }, (_, i) => i + 1);
      await eventually(
        () => receiver.events.length,
        (count) => count >= all.length,
      );
      expect(listReceivedBalances(receiver)).toEqual(all);
      expect(await leadersIn(service.database)).toHaveLength(1);
      await killed.kill('SIGKILL');
      await webhooks.startDispatcher();
      await stamp(store, path);
      await eventually(
        () => listReceivedBalances(receiver),
        (counts) => counts.includes(21),
      );
      // Perhaps over the same session of the server, which PgBouncer has cleared in between.
      expect(await leadersIn(service.database)).toHaveLength(1);
    },
    SLOW,
  );

  it('passes on notifications', async () => {
    const heard: unknown[] = [];
    await asking(pooler.url, async (listener) => {
      listener.on('notification', ({ payload }) => heard.push(payload));
      await listener.query('listen tried');
      await asking(pooler.url, (client) => client.query(`notify tried, 'hello'`));
      await eventually(
        () => heard,
        (payloads) => payloads.length > 0,
      );
    });
    expect(heard).toEqual(['hello']);
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

describe('PgBouncer in its way', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database.close());

  it('pins what it passes on to the sessions of the server, also when it pools by transaction', async () => {
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
    // In transactions that overlap, so that each has another session than the one it was opened on.
    const styles = await Promise.all(
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
    for (const style of styles) {
      expect(style).toMatchObject({ style: PINNED['datestyle'], strings: 'on', zone: 'UTC' });
    }
    await Promise.all(clients.map((client) => client.end()));
    await pooler.stop();
  });

  it("keeps a leader's lock after the leader, when it pools by transaction", async () => {
    const pooler = await startPgBouncer(database.url, { pool_mode: 'transaction' });
    await asking(pooler.url, (client) =>
      client.query('select pg_advisory_lock($1)', [LEADER_LOCK]),
    );
    expect(await leadersIn(database)).toHaveLength(1);
    const [orphan] = await leadersIn(database);
    await database.query('select pg_terminate_backend($1, 10000)', [orphan]);
    expect(await leadersIn(database)).toEqual([]);
    await pooler.stop();
  });
});
