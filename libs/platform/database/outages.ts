import type pg from 'pg';
import { inTransaction } from './connection.js';
import type { LimitedStatement } from './database-client.js';
import type { DatabasePool } from './database-pool.js';
import { findDatabaseError, SQLSTATE } from './sqlstate.js';

/** Long enough for a load balancer to notice, short enough to recover soon. */
const RECENT_MS = 5_000;

/** Extends a file, which a full disk refuses: a change of one row often fits into an existing page. */
const FILE_EXTENSION = `create temp table space_probe on commit drop as
  select repeat('x', 1000) as filler from generate_series(1, 20)`;

/**
 * Checks that the database responds in time, can be written to, and has not just refused others for lack of space or
 * connections. Costs one read; only after such an error it also writes, until that succeeds.
 */
export async function assertWritable(pool: pg.Pool, withinMs: number): Promise<void> {
  const statement: LimitedStatement = {
    text: `select pg_is_in_recovery() as standby, current_setting('transaction_read_only') as read_only`,
    query_timeout: withinMs,
  };
  const { rows } = await pool.query<{ standby: boolean; read_only: string }>(statement);
  if (rows[0]?.standby) throw new Error('it is a standby, which cannot be written to');
  if (rows[0]?.read_only === 'on') throw new Error('it is read-only');
  const { outages } = pool as DatabasePool;
  const last = outages.last;
  if (!last) return;
  if (performance.now() < last.at + RECENT_MS) throw new Error(`it has just said: ${last.message}`);
  await probeSpace(pool, withinMs);
  if (outages.last === last) outages.last = undefined;
}

async function probeSpace(pool: pg.Pool, withinMs: number): Promise<void> {
  const statement: LimitedStatement = { text: FILE_EXTENSION, query_timeout: withinMs };
  try {
    await inTransaction(pool, (client) => client.query(statement));
  } catch (error) {
    // An administrator has taken the right to temporary tables away; then only time tells.
    if (findDatabaseError(error)?.code !== SQLSTATE.insufficientPrivilege) throw error;
  }
}
