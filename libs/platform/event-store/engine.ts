import type { DatabasePool } from '#platform/database/database-pool.js';
import type { ProcessLink } from '#platform/database/process-link.js';
import type { ProcessSession } from '#platform/database/process-session.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import type { EventStoreDbEventStore } from './eventstoredb/eventstoredb-event-store.js';
import type { PersonalKeys } from './personal-keys/personal-keys.js';
import { PostgresEventStore } from './postgres/postgres-event-store.js';
import type { PlainTable, AnyReadModel } from './read-models/read-models.js';

/**
 * Opens the event store of the configured engine. Nothing else knows which engine runs.
 * @param readModels of every aggregate: only their streams are read
 * @param plainTables whose positions must be of this server
 * @param session of a process that commits; a script has none, and no link
 */
export async function openEventStore(
  pool: DatabasePool,
  keys: PersonalKeys,
  config: PlatformConfig,
  readModels: AnyReadModel[],
  plainTables: PlainTable[],
  session?: ProcessSession,
  link?: ProcessLink,
): Promise<PostgresEventStore | EventStoreDbEventStore> {
  if (config.eventStoreUrl === null) return new PostgresEventStore(pool, plainTables, link);
  // The client takes 20 MB of memory, so it is loaded only when there is a server to talk to.
  const { EventStoreDbEventStore: Engine } =
    await import('./eventstoredb/eventstoredb-event-store.js');
  return new Engine(pool, keys, config, readModels, session);
}
