import type { Client } from 'pg';
import { getEmailKey } from '#platform/kernel/email-address.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { hashToken } from '#identity/token.js';
import { readConfig } from '#configuration/config.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { LOCAL_OWNER } from './operator.js';
import { runProgram } from './run-program.js';

const CONNECT_WITHIN_MS = 10_000;

/**
 * Creates the first user, store and token in a database without tokens, and prints them as one JSON line, with the secret of a
 * link by which that user can sign in. Loads what creates them only then, because every start of the service waits for this.
 */
runProgram(async () => {
  const isNew = !(await withDatabase(hasTokens));
  if (isNew) await waitForEvents();
  const created = isNew && (await (await import('./first-store.js')).createFirstStore());
  const sign_in_token = isLocal() ? await withDatabase(createSignInLink) : null;
  console.log(JSON.stringify({ created: isNew, ...created, sign_in_token }));
});

/** Tells whether the service is one on a developer's machine. */
function isLocal(): boolean {
  const { hostname } = new URL(readConfig(process.env).publicUrl);
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** Creates a link that signs in once, within ten minutes. @returns its secret; null: the first user is no more */
async function createSignInLink(client: Client): Promise<string | null> {
  const token = createSecret();
  const { rowCount } = await client.query(
    `insert into sessions (user_id, sha256, awaits_code, by_company, by_link, created_at, seen_at, expires_at)
     select id, $2, true, false, true, now(), now(), now() + interval '10 minutes'
     from users where email_key = $1 and removed_at is null`,
    [getEmailKey(LOCAL_OWNER), hashToken(token)],
  );
  return rowCount === 1 ? token : null;
}

/** Waits for KurrentDB as for the database, because the first store begins the history. */
async function waitForEvents(): Promise<void> {
  const config = readConfig(process.env);
  const { eventStoreUrl } = config;
  if (eventStoreUrl === null) return;
  const { waitForEventStore } =
    await import('#platform/event-store/eventstoredb/event-store-wait.js');
  await waitForEventStore(eventStoreUrl, config, (line) => console.error(line));
}

async function hasTokens(client: Client): Promise<boolean> {
  const { rowCount } = await client.query('select from api_tokens limit 1');
  return rowCount === 1;
}

async function withDatabase<R>(work: (client: Client) => Promise<R>): Promise<R> {
  const { databaseUrl } = readConfig(process.env);
  const client = createDatabaseClient(databaseUrl, 'setup', {
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: CONNECT_WITHIN_MS,
  });
  return connectFirst(databaseUrl, async () => {
    try {
      await client.connect();
      return await work(client);
    } finally {
      await client.end();
    }
  });
}
