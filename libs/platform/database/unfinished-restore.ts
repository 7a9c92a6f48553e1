import type pg from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';

/** Table that exists from before anything is restored into the database until everything is restored. */
const MARKER = 'public.unfinished_restore';

/**
 * Refuses a database with an unfinished restore, which looks like an empty one: a service would start from scratch.
 * @throws ConfigError
 */
export async function assertNoUnfinishedRestore(
  client: Pick<pg.ClientBase, 'query'>,
): Promise<void> {
  if (!(await hasUnfinishedRestore(client))) return;
  throw new ConfigError(
    'A restore into this database was not finished: run inkpad restore again, or begin with a new database.',
  );
}

export async function hasUnfinishedRestore(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    'select to_regclass($1) is not null as there',
    [MARKER],
  );
  return rows[0]?.there ?? false;
}

export async function markUnfinishedRestore(client: pg.ClientBase): Promise<void> {
  await client.query(
    `create table if not exists ${MARKER} (since timestamptz not null default now())`,
  );
}

/** Marks the restore as finished. Call it in the transaction that restores everything. */
export async function markFinishedRestore(client: pg.ClientBase): Promise<void> {
  await client.query(`drop table ${MARKER}`);
}
