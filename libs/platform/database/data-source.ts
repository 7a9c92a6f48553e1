import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { getKeyId, createMasterKey } from '#platform/kernel/keyring.js';
import { QUERY_TIMEOUT_MS, CONNECTION } from './database-client.js';
import { DatabasePool } from './database-pool.js';
import type { SessionSettings } from './session.js';

/** Limits the length of transactions: an open writing one holds back every reader of the log. */
const SESSION_LIMITS: SessionSettings = {
  statement_timeout: '20s',
  idle_in_transaction_session_timeout: '20s',
  lock_timeout: '10s',
};

const LIMITS = { session: SESSION_LIMITS, query_timeout: QUERY_TIMEOUT_MS };
/**
 * Limits for requests, which must not take more than 8 s when the server is silent (ERR-24). The server's own limit
 * is shorter than ours, so that ours expires only when nothing arrives at all.
 */
export const REQUEST_LIMITS: typeof LIMITS = {
  session: { ...SESSION_LIMITS, statement_timeout: '5s' },
  query_timeout: 6_000,
};
/**
 * Limits for work on queues, which are short most of the time: a cached plan must not scan a whole queue that has
 * grown. Compiling a full scan is not worth it. As everything uses an index, no statement needs a plan for its
 * values.
 */
export const QUEUE_LIMITS: typeof LIMITS = {
  ...LIMITS,
  session: {
    ...SESSION_LIMITS,
    enable_seqscan: 'off',
    jit: 'off',
    plan_cache_mode: 'force_generic_plan',
  },
};
/** No limits, for migrations: on a large table one may take hours. */
export const NO_LIMITS: typeof LIMITS = {
  session: { statement_timeout: '0', lock_timeout: '0' },
  query_timeout: 0,
};

type KeyConfig = Pick<PlatformConfig, 'masterKey' | 'masterKeyPrevious'>;

export function createDataSourceOptions(
  config: KeyConfig & Pick<PlatformConfig, 'databaseUrl' | 'databasePool' | 'isProduction'>,
  application: string,
  limits = LIMITS,
): PostgresDataSourceOptions {
  return {
    type: 'postgres',
    url: config.databaseUrl,
    applicationName: createApplicationName(config, application),
    poolSize: config.databasePool,
    driver: { Pool: DatabasePool },
    extra: {
      ...CONNECTION,
      ...limits,
      idleTimeoutMillis: 60_000,
      isStrict: !config.isProduction,
    },
  };
}

/**
 * Creates the application name of the pool's connections. It contains the ids of the keys, so that a rotation sees
 * which processes lack the new one.
 */
export function createApplicationName(
  { masterKey, masterKeyPrevious }: KeyConfig,
  application: string,
): string {
  const keys = masterKeyPrevious ? [masterKey, masterKeyPrevious] : [masterKey];
  const ids = keys.map((key) => getKeyId(createMasterKey(key).fingerprint));
  return `inkpad ${application} key ${ids.join('+')}`;
}

export function createDataSource(
  ...options: Parameters<typeof createDataSourceOptions>
): DataSource {
  return new DataSource(createDataSourceOptions(...options));
}

/**
 * Returns the pool of TypeORM, injected as `pg.Pool`. The commit path runs named statements, which TypeORM cannot
 * issue, and unnamed ones are parsed and planned at each call.
 */
export function getPool(source: DataSource): DatabasePool {
  const { master } = source.driver as unknown as { master: DatabasePool };
  return master;
}
