import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { EventStoreDbIdentity } from '#platform/event-store/eventstoredb/eventstoredb-identity.js';
import { EventStoreDbReader } from '#platform/event-store/eventstoredb/eventstoredb-reader.js';
import { OwnStreams } from '#platform/event-store/eventstoredb/eventstoredb-streams.js';
import { ForeignEvents } from '#platform/event-store/eventstoredb/foreign-events.js';
import { readModels } from '../../apps/read-models.js';
import {
  createTestDatabase,
  createTestEnvironment,
  testConfig,
  type TestDatabase,
} from '../support/database/database.js';
import { openStore } from '../support/database/event-store.js';
import { writeNeighboursEvents } from '../support/emulators/eventstoredb/neighbours.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { startService } from '../support/services/service.js';

/** A history begins with the event that links it to its database, and nobody looks for it before that event. */

const NEIGHBOURS_EVENTS = 20_000;
/** What one look at the neighbours' events would look at, many times over. */
const MAX_SEARCHED = NEIGHBOURS_EVENTS / 4;

let server: EventStoreDb;

beforeAll(async () => {
  server = await startEventStoreDb();
  await writeNeighboursEvents(server.connectionString, NEIGHBOURS_EVENTS);
});
afterAll(() => server.stop());

/** Looks whether a history is linked, and lets something happen before it looks at the first streams. */
async function checkAfter(
  { url }: TestDatabase,
  prefix: string,
  happen: () => Promise<void>,
): Promise<void> {
  const { pool, close } = await openStore(
    testConfig(url, {
      EVENT_STORE_URL: server.connectionString,
      EVENT_STORE_STREAM_PREFIX: prefix,
    }),
  );
  const connection = new EventStoreDbConnection(server.connectionString);
  const foreignEvents = new ForeignEvents(new Logger('test'));
  const kinds = readModels.map(({ name }) => `${name}-`);
  const streams = new OwnStreams(prefix, kinds, foreignEvents);
  class SlowReader extends EventStoreDbReader {
    override async readEvents(...[refs]: Parameters<EventStoreDbReader['readEvents']>) {
      await happen();
      return super.readEvents(refs);
    }
  }
  const reader = new SlowReader(connection, streams);
  try {
    await new EventStoreDbIdentity(
      pool,
      connection,
      reader,
      streams,
      readModels,
      foreignEvents,
    ).check();
  } finally {
    await connection.dispose();
    await close();
  }
}

it('a process that finds the first records of another one of its service takes them for its own', async () => {
  const database = await createTestDatabase();
  const prefix = 'race_';
  const checked = checkAfter(database, prefix, async () => {
    const service = await startService({
      DATABASE_URL: database.url,
      EVENT_STORE_URL: server.connectionString,
      EVENT_STORE_STREAM_PREFIX: prefix,
    });
    await service.newStore();
    await service.stop();
  });
  await expect(checked).resolves.toBeUndefined();
  await database.close();
});

it('a process that finds the first records of another service meanwhile is refused', async () => {
  const database = await createTestDatabase();
  const prefix = 'stranger_';
  const checked = checkAfter(database, prefix, async () => {
    const service = await startService({
      EVENT_STORE_URL: server.connectionString,
      EVENT_STORE_STREAM_PREFIX: prefix,
    });
    await service.newStore();
    await service.stop();
  });
  await expect(checked).rejects.toThrow(
    /^The database is empty, and KurrentDB \(streams stranger_\*\) holds a history already: /,
  );
  await database.close();
});

it('a service, verify, rebuild and a backup look at nothing that others wrote before its history began', async () => {
  const { searched } = server.requestCounts;
  const service = await startService({
    EVENT_STORE_URL: server.connectionString,
    EVENT_STORE_STREAM_PREFIX: 'late_',
  });
  const store = await service.newStore();
  const { path } = await enrol(store);
  expect((await store.stamp(path)).status).toBe(200);
  const environment = createTestEnvironment(service.database.url, service.environment);
  const dispatcher = startProgram('dist/apps/dispatcher/main.js', environment);
  const events = await service.history();
  try {
    await eventually(
      () => service.database.query('select from history'),
      ({ rowCount }) => rowCount === events.length,
    );
    const folder = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'backup');
    for (const [name, ...args] of [['verify'], ['rebuild'], ['backup', folder]]) {
      const program = startProgram(`dist/apps/cli/${name}.js`, environment, args);
      expect([name, await program.exitCode, program.output()]).toEqual([
        name,
        0,
        expect.anything(),
      ]);
    }
  } finally {
    await dispatcher.kill('SIGTERM');
    await service.stop();
  }
  expect(server.requestCounts.searched - searched).toBeLessThan(MAX_SEARCHED);
});
