import { EventStoreDBClient } from '@eventstore/db-client';
import { createTestDatabase } from '../database/database.js';
import { startEventStoreDb } from '../emulators/eventstoredb/server.mjs';
import { startService, type LocalService } from './service.js';

export type SharedEventStore = Awaited<ReturnType<typeof startOnSharedEventStore>>;

/** Starts a service on an EventStoreDB to which others append as well, and on a database that outlives it. */
export async function startOnSharedEventStore() {
  const server = await startEventStoreDb();
  const database = await createTestDatabase();
  const services: LocalService[] = [];
  const start = async (environment: NodeJS.ProcessEnv): Promise<LocalService> => {
    const service = await startService(
      { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true', ...environment },
      { ...database, close: async () => undefined },
    );
    services.push(service);
    return service;
  };
  const service = await start({ EVENT_STORE_URL: server.connectionString });
  const client = EventStoreDBClient.connectionString(server.connectionString);
  return {
    server,
    database,
    service,
    store: await service.newStore(),
    /** Somebody else on the server. */
    client,
    /** Starts another service on the database. */
    start,
    stop: async () => {
      await client.dispose();
      for (const service of services) await service.stop();
      await server.stop();
      await database.close();
    },
  };
}
