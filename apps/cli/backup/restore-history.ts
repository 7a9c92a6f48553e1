import type pg from 'pg';
import type { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { isConnectionLoss } from '#platform/database/connection.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { markFinishedRestore } from '#platform/database/unfinished-restore.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { Head } from '#platform/event-store/port/event-store.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import type { Manifest } from './backup-manifest.js';
import { withoutTriggers } from './backup-tables.js';
import { catchUpReadModels, EngineMove, hasEventStoreDbHistory } from '../moves/engine-move.js';

/** @throws ConfigError when KurrentDB has a history already, which is never added to */
export async function refuseUsedEventStore(config: Config): Promise<void> {
  const { eventStoreUrl } = config;
  if (eventStoreUrl === null) return;
  if (!(await hasEventStoreDbHistory(Object.assign(config, { eventStoreUrl })))) return;
  throw new ConfigError(
    `KurrentDB (streams ${config.eventStoreStreamPrefix}*) holds a history already. Restore into an empty server, or set EVENT_STORE_STREAM_PREFIX to a new prefix. Nothing was changed.`,
  );
}

/**
 * Brings read models up to date where the engine of the backup lets them lag, and events to that of the settings. The
 * restore is finished then; killed before, it starts anew.
 */
export async function finishHistory(
  guard: pg.Client,
  config: Config,
  { engine }: Manifest,
): Promise<void> {
  if (config.eventStoreUrl !== null || engine === 'eventstoredb') {
    const source = createDataSource(config, 'restore copy');
    await connectFirst(config.databaseUrl, () => source.initialize());
    const masterKeys = new MasterKeys(getPool(source), config);
    try {
      await masterKeys.load();
      const { eventStoreUrl } = config;
      // Before a move, which starts the catch-up of read models at the end of the log.
      if (engine === 'eventstoredb') await catchUp(getPool(source), masterKeys);
      if (eventStoreUrl !== null)
        await moveToKurrentDb(
          getPool(source),
          Object.assign(config, { eventStoreUrl }),
          masterKeys,
        );
    } finally {
      await source.destroy();
    }
  }
  await inTransaction(guard, async () => {
    if (config.eventStoreUrl !== null) {
      // KurrentDB has them now.
      await withoutTriggers(guard, 'es.events', () => guard.query('truncate es.events'));
    }
    await markFinishedRestore(guard);
  });
}

/** Catches up read models: with KurrentDB some may be behind their streams, also in a backup. */
async function catchUp(pool: DatabasePool, masterKeys: MasterKeys): Promise<void> {
  const store = new PostgresEventStore(pool);
  const { rows } = await pool.query<Head & { stream: string }>(
    `select distinct on (stream_id) stream_id as stream, revision, encode(hash, 'hex') as hash from es.events
     order by stream_id, revision desc`,
  );
  const heads = new Map(rows.map(({ stream, revision, hash }) => [stream, { revision, hash }]));
  try {
    const keys = new PersonalKeys(pool, masterKeys, customerSubjects);
    await catchUpReadModels(pool, store, keys, heads);
  } finally {
    await store.onApplicationShutdown();
  }
}

async function moveToKurrentDb(
  pool: DatabasePool,
  config: Config & { eventStoreUrl: string },
  masterKeys: MasterKeys,
): Promise<void> {
  const moving = new EngineMove(pool, config, masterKeys, 'eventstoredb');
  try {
    await moving.switchOver(await moving.copy());
  } finally {
    await moving.close();
  }
}

async function inTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('begin');
  try {
    await work();
    await client.query('commit');
  } catch (error) {
    if (!isConnectionLoss(error)) await client.query('rollback');
    throw error;
  }
}
