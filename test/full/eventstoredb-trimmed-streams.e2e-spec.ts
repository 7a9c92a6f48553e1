import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ErrorJson } from '#http/error-response.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Administrators trim and delete streams. $all has everything until the next scavenge. */

let server: EventStoreDb;
let service: LocalService;
let store: Client;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
});
afterAll(async () => {
  await service.stop();
  await server.stop();
});

async function administrate(work: (client: EventStoreDBClient) => Promise<unknown>): Promise<void> {
  const client = EventStoreDBClient.connectionString(server.connectionString);
  await work(client);
  await client.dispose();
}

async function verify(): Promise<{ code: number | null; output: string }> {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const program = startProgram('dist/scripts/verify.js', environment);
  return { code: await program.exitCode, output: program.output() };
}

/** Enrols a customer whose card has four events. */
async function enrolAndStamp() {
  const enrolled = await enrol(store);
  for (let i = 0; i < 3; i++) await store.post(`${enrolled.path}/stamp`, { stamps: 1 });
  const stream = `customer_card-${enrolled.customerCard.id}`;
  return { ...enrolled, stream, name: `inkpad_${stream}` };
}

const findCode = async (path: string) => {
  const { status, body } = await store.get<ErrorJson>(path);
  return status === 200 ? status : [status, body.code];
};

const VARIANTS: [
  what: string,
  trim: (client: EventStoreDBClient, name: string) => Promise<unknown>,
  lost: string,
][] = [
  ['$maxCount', (client, name) => client.setStreamMetadata(name, { maxCount: 1 }), 'events 0 to 2'],
  ['$tb', (client, name) => client.setStreamMetadata(name, { truncateBefore: 2 }), 'events 0 to 1'],
  ['a soft delete', (client, name) => client.deleteStream(name), 'all of its events'],
];

describe.each(VARIANTS)('a stream trimmed by %s', (_what, trim, lost) => {
  it('fails as_of and explain with a code, is stamped on, and verify says what the next scavenge destroys', async () => {
    const { path, name } = await enrolAndStamp();
    const other = await enrolAndStamp();
    const time = new Date().toISOString();
    await administrate((client) => trim(client, name));
    for (const query of [`${path}?as_of=${time}`, `${path}/explain`])
      expect(await findCode(query)).toEqual([503, 'history_damaged']);
    for (const query of [`${other.path}?as_of=${time}`, `${other.path}/explain`])
      expect(await findCode(query)).toBe(200);
    const { code, output } = await verify();
    expect(code).toBe(1);
    expect(output).toContain(`${name}: its settings (`);
    expect(output).toContain(`hide ${lost}, which the next scavenge destroys: take them back`);
    expect(output).not.toMatch(/\n\s+at /);

    await administrate((client) => client.setStreamMetadata(name, {}));
    expect(await findCode(`${path}/explain`)).toBe(200);
    expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
    expect((await verify()).output).not.toContain(name);
  });
});

it('a stream that a scavenge has trimmed is named with what is missing, its card is stamped on, and the rest goes on', async () => {
  const { path, stream, name } = await enrolAndStamp();
  const other = await enrolAndStamp();
  await administrate((client) => client.setStreamMetadata(name, { maxCount: 1 }));
  server.fault.scavenge();
  expect(await findCode(`${path}/explain`)).toEqual([503, 'history_damaged']);
  expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
  expect(await findCode(`${other.path}/explain`)).toBe(200);
  const { code, output } = await verify();
  expect(code).toBe(1);
  expect(output).toContain(`${stream}: events 0 to 3 are missing`);
  expect(output).not.toContain(other.stream);
  expect(output).not.toMatch(/\n\s+at /);
});

it('a stream that a scavenge has destroyed keeps its read model, even when verify repairs', async () => {
  const { path, stream, name } = await enrolAndStamp();
  await administrate((client) => client.tombstoneStream(name));
  server.fault.scavenge();
  const environment = createTestEnvironment(service.database.url, service.environment);
  const repair = startProgram('dist/scripts/verify.js', environment, ['--repair']);
  expect(await repair.exitCode).toBe(1);
  expect(repair.output()).toContain(`${name}: event `);
  expect(repair.output()).toContain('deletes the stream for good');
  expect(repair.output()).toContain(`${stream.replace('-', 's ')}: the read model has no stream`);
  expect((await store.get(path)).body).toMatchObject({ stamps_count: 3 });
  expect(await findCode(`${path}/explain`)).toEqual([503, 'history_damaged']);
});
