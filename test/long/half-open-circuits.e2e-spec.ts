import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { isConnectionLoss } from '#database/connection.js';
import { createDataSource, getPool } from '#database/data-source.js';
import {
  createDatabaseClient,
  SilentConnectionError,
  type LimitedStatement,
} from '#database/database-client.js';
import { LeaderLock } from '#database/leader-lock.js';
import { Notifications } from '#database/notifications.js';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import {
  testConfig,
  testDatabase,
  testEngine,
  testEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Connections whose other end falls silent: nothing is closed, and no error ever comes. */
describe('an api whose connections to the database fall silent', () => {
  let database: TestDatabase;
  let line: DatabaseProxy;
  let service: Service;
  let store: Client;

  beforeAll(async () => {
    database = await testDatabase();
    line = await DatabaseProxy.to(database.url);
    service = await startService({ DATABASE_URL: line.url }, database);
    store = await service.newStore();
  });
  afterAll(async () => {
    line.unmute();
    await service.stop();
    await line.close();
  });

  const ready = async () => (await fetch(`${service.baseUrl}/health/ready`)).status;

  it('is ready again as soon as new ones work, though the old ones stay silent', async () => {
    expect(await ready()).toBe(200);
    line.muteOpen();
    await eventually(ready, (status) => status === 503);
    await eventually(ready, (status) => status === 200);
    line.unmute();
  });

  it('answers a read with 503, and the next ones over new connections', async () => {
    const cards = `${store.store}/cards`;
    expect((await store.get(cards)).status).toBe(200);
    line.muteOpen();
    const answers = await Promise.all([1, 2, 3].map(() => store.get(cards)));
    expect(answers.map(({ status }) => status)).toContain(503);
    expect((await store.get(cards)).status).toBe(200);
    line.unmute();
  });

  it('gives no answer to a write whose outcome stays unknown', async () => {
    const { path, customerCard } = await enrol(store);
    const { release, isWaitedFor } = await heldRow(database, customerCard.id);
    const stamped = store.post(`${path}/stamp`, { stamps: 1 }).then(
      ({ status }) => status,
      () => 'no answer',
    );
    await isWaitedFor();
    line.mute();
    await release();
    // EventStoreDB has it, and only the row is late.
    const isElsewhere = service.environment['EVENT_STORE_URL'] !== undefined;
    expect(await stamped).toBe(isElsewhere ? 200 : 'no answer');
    line.unmute();
    const delivery = await eventually(
      () => store.get<CustomerCardDetailJson>(path),
      ({ status }) => status === 200,
    );
    expect(delivery.body.stamps_count).toBe(1);
  });

  it('settles a write that was committed, and answers it once', async () => {
    const { path, customerCard } = await enrol(store);
    const { release, isWaitedFor } = await heldRow(database, customerCard.id);
    const stamped = store.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps: 1 });
    await isWaitedFor();
    line.muteResponses();
    await release();
    const { status, body } = await stamped;
    expect([status, body.stamps_count]).toEqual([200, 1]);
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(1);
    line.unmute();
  });
});

describe('a connection that falls silent', () => {
  let database: TestDatabase;
  let line: DatabaseProxy;

  beforeAll(async () => {
    database = await testDatabase();
    line = await DatabaseProxy.to(database.url);
  });
  afterAll(async () => {
    line.unmute();
    await line.close();
    await database.close();
  });

  it('that listens reconnects, and reports that notifications may have been missed', async () => {
    const heard: string[] = [];
    let losses = 0;
    const listening = new Notifications(
      line.url,
      'silence',
      (payload) => heard.push(payload),
      () => losses++,
    );
    await listening.listen();
    expect(losses).toBe(1);
    line.muteOpen();
    await eventually(
      () => losses,
      (count) => count >= 3,
    );
    await database.query(`select pg_notify('silence', 'anew')`);
    await eventually(
      () => heard,
      (payloads) => payloads.includes('anew'),
    );
    await listening.close();
  });

  it('is given up as soon as one answer is overdue, whatever was asked after it', async () => {
    const client = createDatabaseClient(line.url, 'silence');
    const lost = new Promise((resolve) => client.on('error', resolve));
    await client.connect();
    const statement: LimitedStatement = { text: 'select 1', query_timeout: 1_000 };
    const query = () => client.query(statement).catch((error: unknown) => error);
    line.muteOpen();
    const first = query();
    await wait(500);
    const second = query();
    expect(await first).toBeInstanceOf(SilentConnectionError);
    expect(await lost).toBeInstanceOf(SilentConnectionError);
    expect(await second).toBeInstanceOf(SilentConnectionError);
    line.unmute();
  });

  it("does not keep a leader's lock, though its other end never closes", async () => {
    const over = new AbortController();
    const led: string[] = [];
    const candidate = (name: string, url: string) =>
      new LeaderLock(testConfig(url)).lead({ name, lock: 1 }, over.signal, async (leading) => {
        led.push(name);
        await new Promise((resolve) => leading.addEventListener('abort', resolve));
      });
    const candidates = [candidate('first', line.url)];
    try {
      await eventually(
        () => led,
        (all) => all.length === 1,
      );
      line.muteOpen();
      candidates.push(candidate('other', database.url));
      // Either of them, the first one over a new connection.
      await eventually(
        () => led,
        (all) => all.length === 2,
      );
    } finally {
      over.abort();
      await Promise.all(candidates);
      line.unmute();
    }
  });

  it('in a transaction of TypeORM is not used again, nor are those that lay idle beside it', async () => {
    const source = await createDataSource(testConfig(line.url), 'test').initialize();
    const pool = getPool(source);
    await Promise.all([1, 2, 3].map(() => pool.query('select pg_sleep(0.1)')));
    const open = pool.totalCount;
    expect(open).toBeGreaterThan(2);
    const lost = await source
      .transaction(async (manager) => {
        await manager.query('select 1');
        line.muteOpen();
        await manager.query('select 2');
      })
      .catch((error: unknown) => error);
    expect(isConnectionLoss(lost)).toBe(true);
    expect(await pool.query('select 3 as three')).toMatchObject({ rows: [{ three: 3 }] });
    expect(pool.totalCount).toBe(1);
    await source.destroy();
  });

  it.each(['migrate', 'verify', 'cli', 'rebase-positions', 'setup'])(
    'ends the script %s with an error',
    async (script) => {
      const engine = await testEngine();
      line.mute();
      const parameters =
        script === 'cli' ? ['token:create', '--user', 'me@shop.example', '--name', 'till'] : [];
      const environment = testEnvironment(line.url, engine.environment);
      const program = startProgram(`dist/scripts/${script}.js`, environment, parameters);
      expect(await program.exitCode).toBe(1);
      expect(program.output()).not.toBe('');
      line.unmute();
      await engine.stop();
    },
  );
});

/** A customer card that nobody can write while a session of somebody else holds it. */
async function heldRow(database: TestDatabase, id: number) {
  const holder = new pg.Client(database.url);
  await holder.connect();
  await holder.query('begin');
  // With PostgreSQL the stream is what a commit waits for; otherwise it is the row.
  await holder.query(`select from es.streams where stream_id = $1 for update`, [
    `customer_card-${id}`,
  ]);
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
