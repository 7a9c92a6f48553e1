import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { testDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startPgBouncer, type PgBouncer } from '../support/pgbouncer.js';
import { startService, type Service } from '../support/service.js';
import { enrol } from '../support/story.js';
import { countsOf, stamp, subscribe, useWebhooks } from '../support/webhooks.js';

/** What docs/operating.md says about PgBouncer. */

const SLOW = 120_000;
const LEADER_LOCK = 727001;
const NAMED_LIMITS = { ignore_startup_parameters: 'options' };

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

const limitIn = (url: string): Promise<unknown> =>
  asking(url, async (client) => (await client.query('show statement_timeout')).rows[0]);

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
      ...NAMED_LIMITS,
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
      expect(countsOf(receiver)).toEqual(all);
      expect(await leadersIn(service.database)).toHaveLength(1);
      await killed.kill('SIGKILL');
      await webhooks.startDispatcher();
      await stamp(store, path);
      await eventually(
        () => countsOf(receiver),
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

  it('drops the limits that processes ask for, which the role has to set instead', async () => {
    const asked = new URL(pooler.url);
    asked.searchParams.set('options', '-c statement_timeout=20000');
    expect(await limitIn(asked.href)).toEqual({ statement_timeout: '0' });
    const { username, pathname } = asked;
    await service.database.query(
      `alter role ${username} in database ${pathname.slice(1)} set statement_timeout = '20s'`,
    );
    // A connection of the server that was made before keeps what it has.
    const fresh = await startPgBouncer(service.database.url, {
      pool_mode: 'session',
      ...NAMED_LIMITS,
    });
    expect(await limitIn(fresh.url)).toEqual({ statement_timeout: '20s' });
    await fresh.stop();
  });
});

describe('PgBouncer in its way', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database.close());

  it('refuses the processes while it is not told to ignore their options', async () => {
    const pooler = await startPgBouncer(database.url, { pool_mode: 'session' });
    const asked = new URL(pooler.url);
    asked.searchParams.set('options', '-c statement_timeout=20000');
    await expect(limitIn(asked.href)).rejects.toThrow('unsupported startup parameter: options');
    await pooler.stop();
  });

  it("keeps a leader's lock after the leader, when it pools by transaction", async () => {
    const pooler = await startPgBouncer(database.url, {
      pool_mode: 'transaction',
      ...NAMED_LIMITS,
    });
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
