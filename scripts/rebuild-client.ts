import type { Config } from '#configuration/config.js';
import { connectFirst } from '#database/first-connection.js';
import { createDatabaseClient, type DatabaseClient } from '#database/database-client.js';
import { STAGING } from '#event-store/verification/staging-tables.js';

/**
 * An index may take long, and less if it is sorted in memory. But a statement of a process that was killed must not go
 * on and keep the next rebuild waiting, and one that is stopped in the middle of the switch must not hold up everybody.
 */
const SESSION = `
  set statement_timeout = 0;
  set maintenance_work_mem = '128MB';
  set client_connection_check_interval = '2s';
  set idle_in_transaction_session_timeout = '10s'`;

/** Connects as the tables' owner, with unqualified names that mean the staging tables. */
export async function connectAsOwner({ databaseMigrationUrl }: Config): Promise<DatabaseClient> {
  const client = createDatabaseClient(databaseMigrationUrl, 'rebuild', { query_timeout: 0 });
  await connectFirst(databaseMigrationUrl, () => client.connect());
  await client.query(`set search_path = ${STAGING}`);
  await client.query(SESSION);
  return client;
}

/**
 * Connects for filling the staging tables: what is written is lost with the server, but a commit that follows waits for
 * the disk.
 */
export async function connectForFilling(config: Config): Promise<DatabaseClient> {
  const client = await connectAsOwner(config);
  await client.query('set synchronous_commit = off');
  return client;
}
