import { readConfig } from '#configuration/config.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { runProgram } from './run-program.js';

const CONNECT_WITHIN_MS = 10_000;

/**
 * Creates the first user, store and token in a database without tokens, and prints them as one JSON line. Loads what
 * creates them only then, because every start of the service waits for this.
 */
runProgram(async () => {
  if (await hasTokens()) {
    console.log(JSON.stringify({ created: false }));
    return;
  }
  await waitForEvents();
  const { createFirstStore } = await import('./first-store.js');
  console.log(JSON.stringify({ created: true, ...(await createFirstStore()) }));
});

/** Waits for KurrentDB as for the database, because the first store begins the history. */
async function waitForEvents(): Promise<void> {
  const config = readConfig(process.env);
  const { eventStoreUrl } = config;
  if (eventStoreUrl === null) return;
  const { waitForEventStore } =
    await import('#platform/event-store/eventstoredb/event-store-wait.js');
  await waitForEventStore(eventStoreUrl, config, (line) => console.error(line));
}

async function hasTokens(): Promise<boolean> {
  const { databaseUrl } = readConfig(process.env);
  const client = createDatabaseClient(databaseUrl, 'setup', {
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: CONNECT_WITHIN_MS,
  });
  return connectFirst(databaseUrl, async () => {
    try {
      await client.connect();
      const { rowCount } = await client.query('select from api_tokens limit 1');
      return rowCount === 1;
    } finally {
      await client.end();
    }
  });
}
