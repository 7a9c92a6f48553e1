import { mkdtempSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { readConfig, type Config } from '#configuration/config.js';

export type TestDatabase = {
  /** For the role of the processes, as in production. */
  url: string;
  /** For the role that owns the tables. */
  ownerUrl: string;
  /** As the owner, for what only a test does. */
  query: pg.Pool['query'];
  /** Ends all connections to it, so that no transaction holds up the readers of the next database. */
  close: () => Promise<void>;
};

/** The server of this worker. */
function testServer(): { url: string; ownerUrl: string } {
  const servers = JSON.parse(process.env['TEST_DATABASES'] ?? '[]') as ReturnType<
    typeof testServer
  >[];
  const server = servers[Number(process.env['JEST_WORKER_ID']) - 1];
  if (!server) throw new Error('no PostgreSQL was started for this worker');
  return server;
}

/**
 * A migrated database for one test file. Its connection does not keep this process from ending. It stays until its
 * server is removed: ext4 searches long for new files among those that were deleted in the last minutes, which made
 * creating a database take 0.27 s of processor instead of 0.07.
 * @param options isEmpty: without any tables
 */
export async function createTestDatabase({ isEmpty = false } = {}): Promise<TestDatabase> {
  const server = testServer();
  const template = new URL(server.ownerUrl);
  const name = `test_${randomBytes(6).toString('hex')}`;
  const admin = async (statement: string) => {
    const url = new URL(template);
    url.pathname = '/postgres';
    const client = new pg.Client(url.href);
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await admin(
    `create database ${name} template ${isEmpty ? 'template0' : template.pathname.slice(1)}`,
  );
  const [url, ownerUrl] = [server.url, server.ownerUrl].map((of) => {
    const own = new URL(of);
    own.pathname = `/${name}`;
    return own.href;
  }) as [string, string];
  const pool = new pg.Pool({
    connectionString: ownerUrl,
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  });
  // The next query fails with it; without a listener the whole test run would end.
  pool.on('error', () => undefined);
  return {
    url,
    ownerUrl,
    query: pool.query.bind(pool),
    close: async () => {
      await pool.end();
      await admin(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      );
    },
  };
}

/** Settings of a service under test: quiet, on a free port, with its own key. */
export function testConfig(databaseUrl: string, overrides: NodeJS.ProcessEnv = {}): Config {
  return readConfig(createTestEnvironment(databaseUrl, overrides));
}

export function createTestEnvironment(
  databaseUrl: string,
  overrides: NodeJS.ProcessEnv = {},
): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: databaseUrl,
    ...getEngineSettings(databaseUrl),
    DATA_DIR: mkdtempSync(join(tmpdir(), 'inkpad-test-')),
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    HOST: '127.0.0.1',
    PORT: '0',
    PUBLIC_URL: 'https://cards.example',
    LOG_LEVEL: 'error',
    HEALTH_PORT: '0',
    METRICS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '100000',
    STORE_RATE_LIMIT_PER_MINUTE: '100000',
    PAGE_RATE_LIMIT_PER_MINUTE: '100000',
    STORE_QUOTAS: 'webhook_subscriptions=100000',
    GEOCODER: 'none',
    ...overrides,
  };
}

/** Tells the servers of single tests, whose databases have usual names, from those of other runs. */
const RUN = randomBytes(4).toString('hex');

/**
 * Returns the settings of the engine that TEST_ENGINE names, by default PostgreSQL: for every process on a database the
 * same ones, through whatever proxy. For EventStoreDB they name the server of the whole run, and the database's own prefix.
 */
export function getEngineSettings(databaseUrl: string): NodeJS.ProcessEnv {
  if (process.env['TEST_ENGINE'] !== 'eventstoredb') return {};
  const { port, pathname } = new URL(databaseUrl);
  const name = pathname.slice(1);
  const prefix = name.startsWith('test_') ? name : `${RUN}_${port}_${name}`;
  return {
    EVENT_STORE_URL: process.env['EVENT_STORE_URL'] || process.env['TEST_EVENT_STORE_URL'],
    EVENT_STORE_STREAM_PREFIX: `${prefix}_`,
  };
}
