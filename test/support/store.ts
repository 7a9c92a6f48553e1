import { dataSource } from '#database/data-source.js';
import { readConfig, type Config } from '#kernel/config.js';
import { BEGINNING, type EventStore, type StoredEvent } from '#event-store/event-store.js';
import { EventStoreDbEventStore } from '#event-store/eventstoredb-event-store.js';
import { Outcomes } from '#event-store/outcomes.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { PostgresEventStore } from '#event-store/postgres-event-store.js';
import { Rows } from '#event-store/rows.js';

/** The event store as a process has it, whichever engine the settings name, without the rest of a service. */
export async function openStore(config: Config, streams?: string[]) {
  const source = await dataSource(config, 'test').initialize();
  const store =
    config.eventstoreUrl === null
      ? new PostgresEventStore(source, config)
      : new EventStoreDbEventStore(source, config, streams);
  const keys = new PersonalKeys(source, config);
  return {
    source,
    store,
    keys,
    rows: new Rows(source, store, keys),
    outcomes: new Outcomes(source, config),
    close: async () => {
      await store.onApplicationShutdown();
      await source.destroy();
    },
  };
}

/** Every event so far. */
export async function historyOf(store: EventStore): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, 500);
    const last = page.at(-1);
    if (!last) return events;
    events.push(...page);
    after = last.position;
  }
}

/** The same for a service of which only the settings are known. */
export async function historyIn(environment: NodeJS.ProcessEnv): Promise<StoredEvent[]> {
  const { store, close } = await openStore(readConfig(environment));
  try {
    return await historyOf(store);
  } finally {
    await close();
  }
}
