import { parentPort, workerData } from 'node:worker_threads';
import { Config } from '#kernel/config.js';
import { databaseClient, type DatabaseClient } from '#database/database-client.js';
import { EventStore } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { ShadowFiller, type Wanted } from '#event-store/shadow-filler.js';
import { SHADOW } from '#event-store/shadow-tables.js';
import { rowTables } from '../apps/row-tables.js';
import { withServices } from './run-script.js';

/** What a thread is started with. @property tables names of the row tables to fill */
export type Filling = { tables: string[]; claims: boolean };

/**
 * An index may take long. But a statement of a process that was killed must not go on and keep the next rebuild waiting,
 * and one that is stopped in the middle of the switch must not hold up everybody.
 */
const SESSION = `
  set statement_timeout = 0;
  set client_connection_check_interval = '2s';
  set idle_in_transaction_session_timeout = '10s'`;

/**
 * A connection of the tables' owner whose unqualified names mean the shadows. What it writes is lost with the server,
 * but a commit that follows waits for the disk for all of it.
 */
export async function ownerClient({ databaseMigrationUrl }: Config): Promise<DatabaseClient> {
  const client = databaseClient(databaseMigrationUrl, 'rebuild', { query_timeout: 0 });
  await client.connect();
  await client.query(`set search_path = ${SHADOW}`);
  await client.query(SESSION);
  return client;
}

/** One part of the streams after the other, as the script asks for them. */
const port = parentPort;
if (port) {
  const { tables, claims } = workerData as Filling;
  await withServices(async (app) => {
    const client = await ownerClient(app.get(Config));
    await client.query('set synchronous_commit = off');
    try {
      const filler = new ShadowFiller(
        client,
        app.get(EventStore),
        app.get(PersonalKeys),
        rowTables.filter(({ table }) => tables.includes(table)),
        claims,
      );
      for (let part = await next(port); part !== null; part = await next(port)) {
        port.postMessage(await filler.fill(part));
      }
    } finally {
      await client.end();
    }
  });
}

function next(from: NonNullable<typeof port>): Promise<Wanted[] | null> {
  return new Promise((resolve) => from.once('message', resolve));
}
