import { on } from 'node:events';
import { parentPort, type MessagePort } from 'node:worker_threads';
import type pg from 'pg';
import { readConfig, type Config } from '#kernel/config.js';
import { dataSource, poolOf } from '#database/data-source.js';
import { MasterKeys } from '#database/master-keys.js';
import type { EventStore } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { PostgresEventStore } from '#event-store/postgres-event-store.js';
import { Rows } from '#event-store/rows.js';
import { Verification, type Slice } from '#event-store/verification.js';
import { rowTables } from '../apps/row-tables.js';

/** @property answer gets what is found */
export type Task = Slice & { repair: boolean; answer: MessagePort };

/**
 * Slices as the script asks for them, until it sends null. An error ends the thread and is reported to the script. Only
 * what is needed is loaded, without the modules of the service, which would take longer than many slices.
 */
const port = parentPort;
if (port) {
  const config = readConfig(process.env);
  const source = await dataSource(config, 'script').initialize();
  const pool = poolOf(source);
  const masterKeys = new MasterKeys(pool, config);
  const keys = new PersonalKeys(pool, masterKeys);
  const { store, close } = await open(pool, keys, config);
  try {
    await masterKeys.onModuleInit();
    const rows = new Rows(pool, store, keys);
    const verification = new Verification(pool, store, rows, keys, rowTables);
    const verify = async ({ answer, repair, ...slice }: Task) =>
      answer.postMessage(await verification.slice(slice, repair));
    const running: Promise<void>[] = [];
    for await (const [task] of on(port, 'message') as AsyncIterable<[Task | null]>) {
      if (task === null) break;
      running.push(verify(task));
    }
    await Promise.all(running);
  } finally {
    masterKeys.onModuleDestroy();
    await close();
    await source.destroy();
  }
}

async function open(
  pool: pg.Pool,
  keys: PersonalKeys,
  config: Config,
): Promise<{ store: EventStore; close: () => Promise<void> }> {
  const store =
    config.eventStoreUrl === null
      ? new PostgresEventStore(pool, config)
      : await openEventStoreDb(pool, keys, config);
  return { store, close: () => store.onApplicationShutdown() };
}

async function openEventStoreDb(pool: pg.Pool, keys: PersonalKeys, config: Config) {
  const { EventStoreDbEventStore } = await import('#event-store/eventstoredb-event-store.js');
  const streams = rowTables.map(({ aggregate }) => `${aggregate.name}-`);
  return new EventStoreDbEventStore(pool, keys, config, streams);
}
