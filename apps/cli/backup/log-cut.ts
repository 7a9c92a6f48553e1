import { setTimeout as wait } from 'node:timers/promises';
import type { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { createDatabaseClient, type DatabaseClient } from '#platform/database/database-client.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { LOCKS } from '#platform/database/locks.js';
import { isRolledBackForRetry } from '#platform/database/sqlstate.js';
import type { EventStore, Position } from '#platform/event-store/port/event-store.js';

/** How long commits may wait until those that have begun are finished. */
const HOLD_MS = 3_000;
const POLL_MS = 10;
const RETRY_MS = 500;
/** Longer than the lease of a commit whose process died: any other process finishes it by then. */
const GIVE_UP_MS = 120_000;
/** A commit that takes longer is left by a process that died. Waiting for it must not hold up the others. */
const OLD = "interval '5 seconds'";

/**
 * Finds a moment at which PostgreSQL and the log of another engine fit together (ADR-0060): no commit is unfinished, and
 * none begins, while the snapshot is taken and the end of the log is read. Commits to one stream go on; they need nothing
 * in PostgreSQL but a read model, which may lag.
 * @param takeSnapshot runs the first query of the transaction that reads PostgreSQL
 * @returns what `takeSnapshot` returned, and the end of the log, up to which it belongs to that snapshot
 * @throws ConfigError when a commit stays unfinished
 * @throws UnavailableError
 */
export async function cutLog<R>(
  { databaseUrl }: Pick<Config, 'databaseUrl'>,
  store: EventStore,
  takeSnapshot: () => Promise<R>,
): Promise<{ snapshot: R; end: Position }> {
  const gate = createDatabaseClient(databaseUrl, 'backup gate');
  await connectFirst(databaseUrl, () => gate.connect());
  try {
    for (const deadline = performance.now() + GIVE_UP_MS; ;) {
      const cut = await tryCut(gate, store, takeSnapshot);
      if (cut) return cut;
      if (performance.now() > deadline) {
        throw new ConfigError(
          'A commit to KurrentDB (EventStoreDB) stays unfinished. Run the dispatcher with EVENT_STORE_URL for a minute, and try again.',
        );
      }
      await wait(RETRY_MS);
    }
  } finally {
    await gate.end();
  }
}

/** @returns undefined when commits did not finish in time */
async function tryCut<R>(
  gate: DatabaseClient,
  store: EventStore,
  takeSnapshot: () => Promise<R>,
): Promise<{ snapshot: R; end: Position } | undefined> {
  if (await hasIntents(gate, `and created_at < now() - ${OLD}`)) return undefined;
  await gate.query('begin');
  try {
    // The server lets commits go on even if this process is stopped.
    await gate.query(
      `set local lock_timeout = '${HOLD_MS}ms'; set local idle_in_transaction_session_timeout = '10s'`,
    );
    if (!(await lock(gate))) return undefined;
    for (const deadline = performance.now() + HOLD_MS; await hasIntents(gate);) {
      if (performance.now() > deadline) return undefined;
      await wait(POLL_MS);
    }
    const snapshot = await takeSnapshot();
    return { snapshot, end: await store.head() };
  } finally {
    await gate.query('rollback');
  }
}

/** @returns false when commits that were beginning did not let it have the lock in time */
async function lock(gate: DatabaseClient): Promise<boolean> {
  try {
    // `es.wait_for_backup` shares it.
    await gate.query('select pg_advisory_xact_lock($1)', [LOCKS.backup]);
    return true;
  } catch (error) {
    if (isRolledBackForRetry(error)) return false;
    throw error;
  }
}

/** Tells whether a commit is unfinished. One that waits for a repair is completed after a restore as well. */
async function hasIntents(gate: DatabaseClient, condition = ''): Promise<boolean> {
  const { rowCount } = await gate.query(
    `select from es.intents where damage is null ${condition} limit 1`,
  );
  return rowCount !== 0;
}
