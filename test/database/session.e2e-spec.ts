import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { createDataSource, getPool, QUEUE_LIMITS } from '#platform/database/data-source.js';
import { PINNED } from '#platform/database/session.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { databaseIn, nameIn } from '../support/database/database-encodings.js';
import { eventually } from '../support/jest/eventually.js';
import { runNode } from '../support/services/program.js';
import { startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/** Defaults that differ from what Inkpad expects. */
const HOSTILE: Record<string, string> = {
  client_encoding: 'LATIN1',
  datestyle: 'German',
  intervalstyle: 'iso_8601',
  timezone: 'Asia/Kolkata',
  bytea_output: 'escape',
  extra_float_digits: '-10',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  search_path: 'nowhere',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  statement_timeout: '1s',
  lock_timeout: '1ms',
};

/** Sets defaults for the database, and for the role in it. */
async function makeHostile(database: TestDatabase, settings: Record<string, string>) {
  const { username, pathname } = new URL(database.url);
  for (const [name, value] of Object.entries(settings)) {
    await database.query(`alter database ${pathname.slice(1)} set ${name} = '${value}'`);
    await database.query(
      `alter role ${username} in database ${pathname.slice(1)} set ${name} = '${value}'`,
    );
  }
}

type Queryable = { query: (text: string) => Promise<{ rows: unknown[] }> };

async function readSettings(client: Queryable, names: string[]): Promise<Record<string, string>> {
  const list = names.map((name) => `current_setting('${name}') as ${name}`);
  const { rows } = await client.query(`select ${list.join(', ')}`);
  return rows[0] as Record<string, string>;
}

describe('a database with other defaults', () => {
  let service: Service;
  const webhooks = useWebhooks(() => service);

  beforeAll(async () => {
    const database = await createTestDatabase();
    await makeHostile(database, HOSTILE);
    service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' }, database);
  });
  afterAll(() => service.stop());

  it('still applies its own settings to other clients', async () => {
    const otherClient = new pg.Client(service.database.url);
    await otherClient.connect();
    const { client_encoding: _ours, ...settings } = HOSTILE;
    const names = Object.keys(settings).filter((name) => name !== 'datestyle');
    expect(await readSettings(otherClient, names)).toMatchObject(
      Object.fromEntries(names.map((name) => [name, settings[name]])),
    );
    await otherClient.end();
  });

  it('has no effect on the settings of a single connection', async () => {
    const client = createDatabaseClient(service.database.url, 'test', {
      session: { tcp_keepalives_idle: '4' },
    });
    await client.connect();
    expect(await readSettings(client, Object.keys(PINNED))).toEqual(PINNED);
    expect(await readSettings(client, ['tcp_keepalives_idle'])).toEqual({
      tcp_keepalives_idle: '4',
    });
    await client.end();
  });

  it.each([
    ['an api', undefined],
    ['a dispatcher', QUEUE_LIMITS],
  ])('has no effect on the settings and timeouts in the pool of %s', async (_what, limits) => {
    const source = createDataSource(testConfig(service.database.url), 'test', limits);
    await source.initialize();
    const { session } = limits ?? { session: { statement_timeout: '20s', lock_timeout: '10s' } };
    const expected = { ...PINNED, ...session };
    expect(await readSettings(getPool(source), Object.keys(expected))).toEqual(expected);
    const [typeorm] = (await source.query(`select current_setting('datestyle') as style`)) as {
      style: string;
    }[];
    expect(typeorm).toEqual({ style: PINNED['datestyle'] });
    await source.destroy();
  });

  it('stores and returns names and times of customers and deliveries unchanged', async () => {
    const store = await service.newStore();
    const receiver = await webhooks.receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await webhooks.startDispatcher();
    await stamp(store, path, 2);
    await eventually(
      () => receiver.events.length,
      (count) => count === 2,
    );
    const name = `☕ O'Brien \\ "NULL"`;
    const response = await store.post<{ id: number; first_name: string; created_at: string }>(
      `${store.store}/customers`,
      { customer: { first_name: name, email: 'obrien@example.com' } },
    );
    expect([response.status, response.body.first_name]).toEqual([201, name]);
    const read = await store.get(`${store.store}/customers/${response.body.id}`);
    expect(read.body).toMatchObject({ first_name: name, created_at: response.body.created_at });
    const deliveries = await eventually(
      () =>
        store.get<{ status: string }[]>(
          `${store.store}/webhook_subscriptions/${subscription.id}/deliveries`,
        ),
      ({ body }) => body.every(({ status }) => status === 'delivered'),
    );
    expect(deliveries.status).toBe(200);
    expect(deliveries.body).toHaveLength(2);
  });

  it('can be migrated', async () => {
    const { url, ownerUrl } = service.database;
    const environment = createTestEnvironment(url, { DATABASE_MIGRATION_URL: ownerUrl });
    expect(runNode(['dist/apps/cli/migrate.js'], environment)).toEqual({
      status: 0,
      output: 'the database is up to date\n',
    });
  });
});

describe('a database in another encoding', () => {
  it.each(['LATIN1', 'SQL_ASCII'])('is refused by clients and pools: %s', async (encoding) => {
    const database = await createTestDatabase();
    const url = await databaseIn(encoding, database);
    const message = `has the encoding ${encoding}, which does not hold every text`;
    const client = createDatabaseClient(url, 'test');
    await expect(client.connect()).rejects.toThrow(message);
    const source = createDataSource(testConfig(url), 'test');
    await expect(source.initialize()).rejects.toThrow(message);
    await eventually(
      () => database.query(`select from pg_stat_activity where datname = $1`, [nameIn(url)]),
      ({ rowCount }) => rowCount === 0,
    );
    await database.close();
  });
});
