import { eventStoreContract } from '#event-store/event-store.contract.js';
import { EventStoreDbEventStore } from '#event-store/eventstoredb-event-store.js';
import { dataSource } from '#database/data-source.js';
import { testConfig, testDatabase, testEngine, type TestDatabase } from './support/database.js';
import { startEventStoreDb } from './support/eventstoredb/server.mjs';

async function open(options: { batchAppend: boolean }) {
  const database = await testDatabase();
  const server = await startEventStoreDb(options);
  return openOn(database, { EVENTSTORE_URL: server.connectionString }, () => server.stop());
}

/** The real one, where there is one. */
async function openReal() {
  const database = await testDatabase();
  const { environment, stop } = await testEngine();
  return openOn(database, environment, stop);
}

async function openOn(
  database: TestDatabase,
  environment: NodeJS.ProcessEnv,
  stop: () => Promise<void>,
) {
  const config = testConfig(database.url, environment);
  const source = await dataSource(config, 'test').initialize();
  const store = new EventStoreDbEventStore(source, config, ['thing-']);
  return {
    store,
    close: async () => {
      await store.onApplicationShutdown();
      await stop();
      await source.destroy();
      await database.drop();
    },
  };
}

eventStoreContract('EventStoreDB', () => open({ batchAppend: true }));
eventStoreContract('EventStoreDB without batch append', () => open({ batchAppend: false }));

if (process.env['EVENTSTORE_URL'] && process.env['TEST_ENGINE'] === 'eventstoredb') {
  eventStoreContract('the EventStoreDB at EVENTSTORE_URL', openReal);
}
