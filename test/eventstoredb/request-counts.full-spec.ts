import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { parsePosition, isAfter } from '#platform/event-store/port/position.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { Client, startService, type LocalService } from '../support/services/service.js';
import { StatementCounter } from '../support/database/statement-counter.js';
import { createTestEnvironment } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp } from '../support/services/webhook-dispatcher.js';

const CALLERS = 16;
const STAMPS = 800;
/**
 * Statements a second that do not depend on the number of stamps. The api took 9.5 without any, the dispatcher 89 to 93
 * with them, of which 13 check its connections, its session and the clock (ADR-0098 to ADR-0100), and 7 look for messages
 * to customers.
 */
const BACKGROUND_STATEMENTS = { api: 10, dispatcher: 95 };
/** As many as the dispatcher sends in about five seconds without work. */
const IDLE_STATEMENTS = 75;
const SLOW = 300_000;
const SUBSCRIPTIONS = ['read_models', 'history', 'transparency log', 'webhooks', 'geocoding'];

// Measures the cost of a stamp on both servers, with an api and a dispatcher as in production.

let server: EventStoreDb;
let service: LocalService;
let sql: { api: StatementCounter; dispatcher: StatementCounter };
let api: Program;
let dispatcher: Program;
let store: Client;
const paths: string[] = [];

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  const owner = await service.newStore();
  sql = {
    api: await StatementCounter.to(service.database.url),
    dispatcher: await StatementCounter.to(service.database.url),
  };
  const port = await findFreePort();
  const settings = { EVENT_STORE_URL: server.connectionString, GEOCODER: 'offline' };
  const { url } = service.database;
  api = startProgram(
    'dist/apps/api/main.js',
    createTestEnvironment(url, { ...settings, DATABASE_URL: sql.api.url, PORT: String(port) }),
  );
  dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(url, { ...settings, DATABASE_URL: sql.dispatcher.url }),
  );
  store = new Client(`http://127.0.0.1:${port}`, owner.accountId, owner.token);
  for (let i = 0; i < 4 * CALLERS; i++) paths.push((await enrol(owner)).path);
  await eventually(
    () => store.get(`${store.store}/cards`).catch(() => ({ status: 0 })),
    ({ status }) => status === 200,
  );
  await waitForSubscriptions();
}, SLOW);
afterAll(async () => {
  await Promise.all([api.kill('SIGTERM'), dispatcher.kill('SIGTERM')]);
  await Promise.all([sql.api.close(), sql.dispatcher.close()]);
  await service.stop();
  await server.stop();
}, SLOW);

/** Waits until every subscription has processed all events. */
async function waitForSubscriptions(): Promise<void> {
  const events = await service.history();
  const last = events.at(-1)?.position;
  if (!last) throw new Error('there is no history');
  await eventually(
    async () => {
      const { rows } = await service.database.query<{ subscription: string; position: string }>(
        'select subscription, position from es.positions',
      );
      return rows;
    },
    (rows) =>
      SUBSCRIPTIONS.every((name) => rows.some(({ subscription }) => subscription === name)) &&
      rows.every(({ position }) => !isAfter(last, parsePosition(position))),
  );
}

it(
  'a plain stamp costs EventStoreDB one append and no stream read',
  async () => {
    expect(service.app.get(EventStore).isInDatabase).toBe(false);
    const before = { ...server.requestCounts };
    for (const path of paths.slice(0, 10)) {
      await stamp(store, path);
      await waitForSubscriptions();
    }
    expect(server.requestCounts.appends - before.appends).toBe(10);
    expect(server.requestCounts.streamReads - before.streamReads).toBe(0);
  },
  SLOW,
);

it(
  'many concurrent stamps cost few PostgreSQL statements and hardly any stream reads',
  async () => {
    let remaining = STAMPS;
    const before = {
      api: sql.api.count,
      dispatcher: sql.dispatcher.count,
      ...server.requestCounts,
    };
    const startedAt = Date.now();
    const stampUntilDone = async () => {
      for (let n = remaining--; n > 0; n = remaining--)
        await stamp(store, paths[n % paths.length] ?? '');
    };
    await Promise.all(Array.from({ length: CALLERS }, stampUntilDone));
    const api = sql.api.count - before.api;
    const apiSeconds = (Date.now() - startedAt) / 1_000;
    await waitForSubscriptions();
    const dispatcher = sql.dispatcher.count - before.dispatcher;
    const seconds = (Date.now() - startedAt) / 1_000;
    expect(server.requestCounts.appends - before.appends).toBeLessThanOrEqual(STAMPS);
    expect((server.requestCounts.streamReads - before.streamReads) / STAMPS).toBeLessThanOrEqual(
      0.01,
    );
    expect(api).toBeLessThanOrEqual(0.5 * STAMPS + BACKGROUND_STATEMENTS.api * apiSeconds);
    // The dispatcher batches events by time, so a few stamps a second take as many statements as a thousand.
    const limit = Math.max(0.1 * STAMPS, BACKGROUND_STATEMENTS.dispatcher * seconds);
    expect(dispatcher).toBeLessThanOrEqual(limit);
  },
  SLOW,
);

it(
  'an idle Inkpad looks every five seconds whether EventStoreDB responds, whatever others have written there',
  async () => {
    const connection = new EventStoreDbConnection(server.connectionString);
    for (let n = 0; n < 100; n++) {
      await connection.append({
        streamName: `others-${n}`,
        expectedRevision: undefined,
        events: Array.from({ length: 10 }, () => ({ id: randomUUID(), type: 'A', data: {} })),
      });
    }
    await connection.dispose();
    const waitForStatements = async (count: number) => {
      const before = sql.dispatcher.count;
      await eventually(
        () => sql.dispatcher.count - before,
        (statements) => statements >= count,
      );
    };
    await waitForStatements(IDLE_STATEMENTS);
    const before = { ...server.requestCounts };
    const startedAt = performance.now();
    await waitForStatements(4 * IDLE_STATEMENTS);
    const seconds = (performance.now() - startedAt) / 1_000;
    const { logReads, events, searched } = server.requestCounts;
    expect(server.requestCounts).toEqual({ ...before, logReads, events, searched });
    // Each of the two processes reads the end of the log every five seconds, and less than as often for anything else.
    expect(logReads - before.logReads).toBeLessThanOrEqual(3 * Math.ceil(seconds / 5 + 1));
    expect(events - before.events).toBeLessThanOrEqual(logReads - before.logReads);
    expect(searched - before.searched).toBeLessThanOrEqual(logReads - before.logReads);
  },
  SLOW,
);
