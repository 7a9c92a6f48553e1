import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { isConnectionLoss } from '#platform/database/connection.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import {
  createDatabaseClient,
  SilentConnectionError,
  type LimitedStatement,
} from '#platform/database/database-client.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { ProcessLink } from '#platform/database/process-link.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Connections whose other end stops responding: nothing is closed, and no error ever comes. */
describe('an api whose database connections stop responding', () => {
  let database: TestDatabase;
  let line: DatabaseProxy;
  let service: Service;
  let store: Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    line = await DatabaseProxy.to(database.url);
    service = await startService({ DATABASE_URL: line.url }, database);
    store = await service.newStore();
  });
  afterAll(async () => {
    line.unmute();
    await service.stop();
    await line.close();
  });

  const readReadiness = async () => (await fetch(`${service.baseUrl}/health/ready`)).status;

  it('is ready again as soon as new connections work', async () => {
    expect(await readReadiness()).toBe(200);
    line.muteOpen();
    await eventually(readReadiness, (status) => status === 503);
    await eventually(readReadiness, (status) => status === 200);
    line.unmute();
  });

  it('responds to a read with 503, and to a later one with 200 over a new connection', async () => {
    const cards = `${store.store}/cards`;
    expect((await store.get(cards)).status).toBe(200);
    line.muteOpen();
    const responses = await Promise.all([1, 2, 3].map(() => store.get(cards)));
    expect(responses.map(({ status }) => status)).toContain(503);
    await eventually(
      () => store.get(cards),
      ({ status }) => status === 200,
    );
    line.unmute();
  });

  it('sends no response to a write whose outcome is unknown', async () => {
    const { path, customerCard } = await enrol(store);
    const { release, isWaitedFor } = await lockCustomerCard(database, customerCard.id);
    const response = store.stamp(path).then(
      ({ status }) => status,
      () => 'no response',
    );
    await isWaitedFor();
    line.mute();
    await release();
    // EventStoreDB has the event, and only the read model is late.
    const isElsewhere = service.environment['EVENT_STORE_URL'] !== undefined;
    expect(await response).toBe(isElsewhere ? 200 : 'no response');
    line.unmute();
    const delivery = await eventually(
      () => store.get<CustomerCardDetailJson>(path),
      ({ status }) => status === 200,
    );
    expect(delivery.body.stamps_count).toBe(1);
  });

  it('responds with the result of a write that was committed without confirmation', async () => {
    const { path, customerCard } = await enrol(store);
    const { release, isWaitedFor } = await lockCustomerCard(database, customerCard.id);
    const response = store.stamp(path);
    await isWaitedFor();
    line.muteResponses();
    await release();
    const { status, body } = await response;
    expect([status, body.stamps_count]).toEqual([200, 1]);
    expect(await store.readBalance(path)).toBe(1);
    line.unmute();
  });
});

describe('a database connection that stops responding', () => {
  let database: TestDatabase;
  let line: DatabaseProxy;

  beforeAll(async () => {
    database = await createTestDatabase();
    line = await DatabaseProxy.to(database.url);
  });
  afterAll(async () => {
    line.unmute();
    await line.close();
    await database.close();
  });

  it('is replaced when it links a process, which learns that it may have missed notifications', async () => {
    const payloads: string[] = [];
    let missedCount = 0;
    const link = new ProcessLink(testConfig(line.url), 'test');
    link.listen(
      'silence',
      (payload) => payloads.push(payload),
      () => missedCount++,
    );
    await link.poll();
    expect(missedCount).toBe(1);
    line.muteOpen();
    await eventually(
      () => missedCount,
      (count) => count === 2,
    );
    await database.query(`select pg_notify('silence', 'anew')`);
    await eventually(
      () => payloads,
      (payloads) => payloads.includes('anew'),
    );
    await link.onApplicationShutdown();
  });

  it('is closed when its first query times out, whatever the time limits of later queries', async () => {
    const client = createDatabaseClient(line.url, 'silence');
    const loss = new Promise((resolve) => client.on('error', resolve));
    await client.connect();
    const query = (query_timeout: number) => {
      const statement: LimitedStatement = { text: 'select 1', query_timeout };
      return client.query(statement).catch((error: unknown) => error);
    };
    line.muteOpen();
    const first = query(1_000);
    // Later than the test's own time limit.
    const second = query(600_000);
    expect(await first).toBeInstanceOf(SilentConnectionError);
    expect(await loss).toBeInstanceOf(SilentConnectionError);
    expect(await second).toBeInstanceOf(SilentConnectionError);
    line.unmute();
  });

  it("does not keep a leader's lock", async () => {
    const abort = new AbortController();
    const leaders: string[] = [];
    const candidate = async (name: string, url: string) => {
      const link = new ProcessLink(testConfig(url), 'test');
      await new LeaderLock(link).lead({ name, lock: 1 }, abort.signal, async (leading) => {
        leaders.push(name);
        await new Promise((resolve) => leading.addEventListener('abort', resolve));
      });
      await link.onApplicationShutdown();
    };
    const candidates = [candidate('first', line.url)];
    try {
      await eventually(
        () => leaders,
        (all) => all.length === 1,
      );
      line.muteOpen();
      candidates.push(candidate('other', database.url));
      // Either candidate, the first one over a new connection.
      await eventually(
        () => leaders,
        (all) => all.length === 2,
      );
    } finally {
      abort.abort();
      await Promise.all(candidates);
      line.unmute();
    }
  });

  it('is not used again after a TypeORM transaction failed on it, nor are the idle ones of its pool', async () => {
    const source = await createDataSource(testConfig(line.url), 'test').initialize();
    const pool = getPool(source);
    const clients = await Promise.all([1, 2, 3].map(() => pool.connect()));
    for (const client of clients) client.release();
    pool.acquireForCommit((_error, client) => client && pool.releaseAfterCommit(client));
    await eventually(
      () => pool.unusedCount,
      (count) => count === pool.totalCount,
    );
    const open = pool.totalCount;
    expect(open).toBeGreaterThan(2);
    const loss = await source
      .transaction(async (manager) => {
        await manager.query('select 1');
        line.muteOpen();
        await manager.query('select 2');
      })
      .catch((error: unknown) => error);
    expect(isConnectionLoss(loss)).toBe(true);
    expect(await pool.query('select 3 as three')).toMatchObject({ rows: [{ three: 3 }] });
    expect(pool.totalCount).toBe(1);
    await source.destroy();
  });

  it.each(['migrate', 'verify', 'cli', 'rebase-positions', 'setup'])(
    'makes npm run %s exit with an error',
    async (script) => {
      line.mute();
      const parameters =
        script === 'cli' ? ['token:create', '--user', 'me@shop.example', '--name', 'till'] : [];
      const environment = createTestEnvironment(line.url);
      const program = startProgram(`dist/apps/cli/${script}.js`, environment, parameters);
      expect(await program.exitCode).toBe(1);
      expect(program.output()).not.toBe('');
      line.unmute();
    },
  );
});

/** Locks a customer card in another session, so that nobody can write it. */
async function lockCustomerCard(database: TestDatabase, id: number) {
  const holder = new pg.Client(database.url);
  await holder.connect();
  await holder.query('begin');
  await holder.query('select from customer_cards where id = $1 for update', [id]);
  return {
    isWaitedFor: () =>
      eventually(
        () =>
          database.query(
            `select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'`,
          ),
        ({ rowCount }) => rowCount === 1,
      ),
    release: async () => {
      await holder.query('commit');
      await holder.end();
    },
  };
}
