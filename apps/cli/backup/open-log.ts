import { createDataSource, getPool } from '#platform/database/data-source.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { Config } from '#configuration/config.js';
import { openEventStore } from '#platform/event-store/engine.js';
import type { EventStore } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { readModels } from '../../read-models.js';

/** The log of another engine, to be read only: personal data stay sealed. */
export type OpenLog = { store: EventStore; close: () => Promise<void> };

/**
 * Opens the log of KurrentDB, if events are there. The first read checks that they belong to this database.
 * @returns null: events are in PostgreSQL
 */
export async function openLog(config: Config, application: string): Promise<OpenLog | null> {
  if (config.eventStoreUrl === null) return null;
  const source = createDataSource(config, application);
  await connectFirst(config.databaseUrl, () => source.initialize());
  const pool = getPool(source);
  const keys = new PersonalKeys(pool, new MasterKeys(pool, config), customerSubjects);
  const store = await openEventStore(pool, keys, config, readModels, []);
  return {
    store,
    close: async () => {
      await store.onApplicationShutdown();
      await source.destroy();
    },
  };
}
