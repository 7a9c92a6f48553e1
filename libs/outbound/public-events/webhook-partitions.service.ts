import type pg from 'pg';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';

const DAYS_AHEAD = 7;

/**
 * Runs work on partitioned tables. Partitions are created days ahead. If one is missing nevertheless, it is created
 * immediately, so that a webhook is always sent. It is dropped later like all others.
 */
export async function withPartitions<R>(pool: pg.Pool, work: () => Promise<R>): Promise<R> {
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const day = findMissingDay(error);
      if (day === undefined || tries === 100) throw error;
      await createPartitions(pool, day, day);
    }
  }
}

export async function createPartitionsAhead(pool: pg.Pool, now: Date): Promise<void> {
  const dayMs = 24 * 3600 * 1000;
  await createPartitions(pool, now, new Date(now.getTime() + DAYS_AHEAD * dayMs));
}

async function createPartitions(pool: pg.Pool, first: Date, last: Date): Promise<void> {
  await pool.query('select webhook_make_partitions($1, $2)', [first, last]);
}

/** "Partition key of the failing row contains (seq) = (2855569136287746)." */
function findMissingDay(error: unknown): Date | undefined {
  const databaseError = findDatabaseError(error);
  if (databaseError?.code !== SQLSTATE.checkViolation || databaseError.constraint !== undefined)
    return undefined;
  const id = /\) = \((\d+)\)/.exec(databaseError.detail ?? '')?.[1];
  return id === undefined ? undefined : new Date(Number(BigInt(id) >> 37n) * 86_400_000);
}
