import type { Pool } from 'pg';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { readConfig, type Config } from '#configuration/config.js';
import {
  BEGINNING,
  type EventStore,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { EventStoreDbEventStore } from '#platform/event-store/eventstoredb/eventstoredb-event-store.js';
import { StoredResponses } from '#platform/event-store/commands/stored-responses.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { PostgresEventStore } from '#platform/event-store/postgres/postgres-event-store.js';
import { StreamCallbacks } from '#platform/event-store/commands/stream-callbacks.js';
import { ReadModels, type StreamKind } from '#platform/event-store/read-models/read-models.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { readModels } from '../../../apps/read-models.js';
import type { TestDatabase } from './database.js';
import { eventually } from '../jest/eventually.js';

/** The event store of the engine that the settings name, without the rest of a service. */
export async function openStore(config: Config, kinds: StreamKind[] = readModels) {
  const source = await createDataSource(config, 'test').initialize();
  const pool = getPool(source);
  const masterKeys = new MasterKeys(pool, config);
  await masterKeys.onModuleInit();
  const keys = new PersonalKeys(pool, masterKeys, customerSubjects);
  const link = new ProcessLink(config, 'test');
  const store =
    config.eventStoreUrl === null
      ? new PostgresEventStore(pool, [], link)
      : new EventStoreDbEventStore(pool, keys, config, kinds);
  const rows = new ReadModels(pool, store, keys);
  new StreamCallbacks(store, rows, keys, readModels).onModuleInit();
  return {
    pool,
    source,
    link,
    store,
    keys,
    rows,
    responses: new StoredResponses(pool, masterKeys, keys, new ProcessSession(pool, link)),
    close: async () => {
      await store.onApplicationShutdown();
      await link.onApplicationShutdown();
      await source.destroy();
    },
  };
}

/** Names the kinds of streams to read, for streams without a table. */
export function streamKinds(...names: string[]): StreamKind[] {
  return names.map((name) => ({ name, table: name }));
}

/** Reads every event so far. */
export async function readAllEvents(store: EventStore): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, 500);
    const last = page.at(-1);
    if (!last) return events;
    events.push(...page);
    after = last.position;
  }
}

/**
 * Readers of the log stop below the oldest transaction running anywhere on the server, an earlier test's
 * included: waits until that is later than everything written so far.
 */
export async function waitUntilReadable({ query }: Pick<TestDatabase, 'query'>): Promise<void> {
  const { rows } = await query<{ now: string }>('select pg_current_xact_id()::text as now');
  await eventually(
    () =>
      query<{ readable: boolean }>(
        'select pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8 as readable',
        [rows[0]?.now],
      ),
    (result) => result.rows[0]?.readable === true,
  );
}

/** The same for a service known only by its settings. */
export async function readHistory(environment: NodeJS.ProcessEnv): Promise<StoredEvent[]> {
  const config = readConfig(environment);
  const { source, store, close } = await openStore(config);
  try {
    const pool = getPool(source);
    if (config.eventStoreUrl === null) await waitUntilReadable({ query: pool.query.bind(pool) });
    return await readAllEvents(store);
  } finally {
    await close();
  }
}

export async function readKeys(pool: Pool, config: Config): Promise<PersonalKeys> {
  const masterKeys = new MasterKeys(pool, config);
  await masterKeys.onModuleInit();
  return new PersonalKeys(pool, masterKeys, customerSubjects);
}
