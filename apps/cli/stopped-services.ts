import type pg from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { createDatabaseClient } from '#platform/database/database-client.js';

/**
 * Runs work that requires everything else of Inkpad to be stopped. The connection stays open until the work is done, so
 * that a second such command detects the first.
 * @throws ConfigError while an api, a dispatcher or a command is connected
 */
export async function withServicesStopped<R>(
  databaseUrl: string,
  name: string,
  work: (guard: pg.Client) => Promise<R>,
): Promise<R> {
  // Its statements may rewrite whole tables.
  const guard = createDatabaseClient(databaseUrl, name, { query_timeout: 0 });
  await connectFirst(databaseUrl, () => guard.connect());
  try {
    await refuseWhileConnected(guard);
    return await work(guard);
  } finally {
    await guard.end();
  }
}

/** @throws ConfigError while anything of Inkpad except this connection and `ownName` is connected */
export async function refuseWhileConnected(guard: pg.Client, ownName = ''): Promise<void> {
  const { rows } = await guard.query<{ application_name: string }>(
    `select distinct application_name from pg_stat_activity
     where datname = current_database() and application_name like 'inkpad %'
       and pid <> pg_backend_pid() and application_name <> $1
     order by application_name`,
    [ownName],
  );
  if (rows.length === 0) return;
  const names = rows.map((row) => row.application_name).join(', ');
  throw new ConfigError(
    `Inkpad is still connected to the database (${names}): stop the api, the dispatcher and all commands first.`,
  );
}
