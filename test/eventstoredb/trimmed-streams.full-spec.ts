import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ErrorJson } from '#platform/http/error-response.js';
import { Browser } from '../support/browser/browser.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Administrators trim and delete streams. $all has everything until the next scavenge. */

let server: EventStoreDb;
let service: LocalService;
let store: Client & { email: string };

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
  const program = startProgram('dist/apps/cli/verify.js', environment);
  return { code: await program.exitCode, output: program.output() };
}

/** Enrols a customer whose card has four events. */
async function enrolAndStamp() {
  const enrolled = await enrol(store);
  for (let i = 0; i < 3; i++) await store.stamp(enrolled.path);
  const stream = `customer_card-${enrolled.customerCard.id}`;
  return { ...enrolled, stream, name: `inkpad_${stream}` };
}

const findCode = async (path: string) => {
  const { status, body } = await store.get<ErrorJson>(path);
  return status === 200 ? status : [status, body.code];
};

async function waitForDispatcher(): Promise<void> {
  const { length } = await service.history();
  const readCount = async () => (await service.database.query('select from history')).rowCount;
  await eventually(readCount, (count) => count === length);
}

const VARIANTS: [
  what: string,
  trim: (client: EventStoreDBClient, name: string) => Promise<unknown>,
  lost: string,
][] = [
  ['$maxCount', (client, name) => client.setStreamMetadata(name, { maxCount: 1 }), 'events 0 to 2'],
  ['$tb', (client, name) => client.setStreamMetadata(name, { truncateBefore: 2 }), 'events 0 to 1'],
  ['$maxAge', (client, name) => client.setStreamMetadata(name, { maxAge: 1 }), 'all of its events'],
  ['a soft delete', (client, name) => client.deleteStream(name), 'all of its events'],
];

describe.each(VARIANTS)('a stream trimmed by %s', (_what, trim, lost) => {
  it('fails as_of and explain with a code, is stamped on, and verify says what the next scavenge destroys', async () => {
    const { path, name } = await enrolAndStamp();
    const otherHolder = await enrolAndStamp();
    const time = new Date().toISOString();
    await administrate((client) => trim(client, name));
    // Events are older than $maxAge after a while.
    await eventually(
      () => findCode(`${path}/explain`),
      (outcome) => outcome !== 200,
    );
    for (const query of [`${path}?as_of=${time}`, `${path}/explain`])
      expect(await findCode(query)).toEqual([503, 'history_damaged']);
    for (const query of [`${otherHolder.path}?as_of=${time}`, `${otherHolder.path}/explain`])
      expect(await findCode(query)).toBe(200);
    const { code, output } = await verify();
    expect(code).toBe(1);
    expect(output).toContain(`${name}: its settings (`);
    expect(output).toContain(
      `hide ${lost}, which the next scavenge destroys: before it, set the stream's metadata to {}`,
    );
    expect(output).not.toMatch(/\n\s+at /);

    await administrate((client) => client.setStreamMetadata(name, {}));
    expect(await findCode(`${path}/explain`)).toBe(200);
    expect((await store.stamp(path)).status).toBe(200);
    expect((await verify()).output).not.toContain(name);
  });
});

it('a stream that a scavenge has trimmed is named with what is missing, its card is stamped on, and the rest goes on', async () => {
  const { path, stream, name } = await enrolAndStamp();
  const otherHolder = await enrolAndStamp();
  await administrate((client) => client.setStreamMetadata(name, { maxCount: 1 }));
  server.fault.scavenge();
  expect(await findCode(`${path}/explain`)).toEqual([503, 'history_damaged']);
  expect((await store.stamp(path)).status).toBe(200);
  expect(await findCode(`${otherHolder.path}/explain`)).toBe(200);
  const { code, output } = await verify();
  expect(code).toBe(1);
  expect(output).toContain(`${stream}: events 0 to 3 are missing`);
  expect(output).not.toContain(otherHolder.stream);
  expect(output).not.toMatch(/\n\s+at /);
});

it('a stream that a scavenge has destroyed keeps its read model, even when verify repairs', async () => {
  const { path, stream, name } = await enrolAndStamp();
  await administrate((client) => client.tombstoneStream(name));
  server.fault.scavenge();
  const environment = createTestEnvironment(service.database.url, service.environment);
  const repair = startProgram('dist/apps/cli/verify.js', environment, ['--repair']);
  expect(await repair.exitCode).toBe(1);
  expect(repair.output()).toContain(`${name}: event `);
  expect(repair.output()).toContain('deletes the stream for good');
  expect(repair.output()).toContain(`${stream}: the read model has no stream`);
  expect((await store.get(path)).body).toMatchObject({ stamps_count: 3 });
  expect(await findCode(`${path}/explain`)).toEqual([503, 'history_damaged']);
});

it('a merge with a card whose settings hide its events is refused with its own words, and written nowhere', async () => {
  const { customer, name } = await enrolAndStamp();
  const into = await enrolAndStamp();
  await administrate((client) => client.deleteStream(name));
  const { appended } = server;
  const merge = `${store.store}/customers/${into.customer.id}/merge`;
  const refused = await store.post<ErrorJson>(merge, { from_customer_id: customer.id });
  expect([refused.status, refused.body.code]).toEqual([503, 'history_damaged']);
  expect(server.appended).toBe(appended);
});

describe('a history that is behind a scavenge', () => {
  it('passes what is missing, says so once for each stream, and goes on', async () => {
    const { path, customer, stream, name } = await enrolAndStamp();
    await administrate((client) => client.setStreamMetadata(name, { maxCount: 2 }));
    server.fault.scavenge();
    const listStamps = async ({ id }: typeof customer) => {
      const path = `${store.store}/history?customer_id=${id}&type=stamp.earned`;
      return (await store.get<HistoryEntryJson[]>(path)).body;
    };
    const stamps = { customer_id: customer.id, stamps: 1, balance: null };
    expect(await listStamps(customer)).toMatchObject([stamps, stamps]);
    const environment = createTestEnvironment(service.database.url, {
      ...service.environment,
      LOG_LEVEL: 'warn',
    });
    const dispatcher = startProgram('dist/apps/dispatcher/main.js', environment);
    await waitForDispatcher();
    const { customer: later } = await enrolAndStamp();
    await store.stamp(path);
    await waitForDispatcher();
    expect(await listStamps(customer)).toMatchObject([stamps, stamps, stamps]);
    expect((await listStamps(later)).map(({ balance }) => balance)).toEqual([3, 2, 1]);
    expect(await findCode(`${path}/explain`)).toEqual([503, 'history_damaged']);
    const line = `${stream}: the event store has lost what was before event 2; the rest goes on`;
    const output = await eventually(dispatcher.output, (text) => text.includes(line));
    await dispatcher.kill('SIGTERM');
    expect(output.split(line)).toHaveLength(2);
    expect(dispatcher.output()).not.toContain('blocks everything after it');
  });
});

it('the pages of the history list the rest, and what they know of what is hidden', async () => {
  const { customer, name } = await enrolAndStamp();
  const otherHolder = await enrolAndStamp();
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, service.environment),
  );
  await waitForDispatcher();
  await dispatcher.kill('SIGTERM');
  await administrate((client) => client.deleteStream(name));
  const owner = await Browser.signedIn(service, store.email);
  const base = `/app/stores/${store.accountId}`;
  const lost = 'No details: this part of the history is damaged';
  const countLost = async (page: string) => {
    const { status, text } = await owner.get(page);
    expect(status).toBe(200);
    return text.split(lost).length - 1;
  };
  const { text } = await owner.get(`${base}/history`);
  for (const { id } of [customer, otherHolder.customer])
    expect(text).toContain(`${base}/customers/${id}"`);
  expect(await countLost(`${base}/history?customer_id=${customer.id}`)).toBe(4);
  expect(await countLost(`${base}/customers/${customer.id}`)).toBe(4);
  expect(await countLost(`${base}/customers/${otherHolder.customer.id}`)).toBe(0);
});

it('a dispatcher names at its start, and then once a day, what the next scavenge destroys and how to keep it', async () => {
  const { name } = await enrolAndStamp();
  await administrate((client) => client.setStreamMetadata(name, { maxCount: 1 }));
  const environment = { ...service.environment, LOG_LEVEL: 'warn' };
  for (let start = 0; start < 2; start++) {
    const dispatcher = startProgram(
      'dist/apps/dispatcher/main.js',
      createTestEnvironment(service.database.url, environment),
    );
    await eventually(dispatcher.output, (output) =>
      output.includes(
        `${name}: its settings ($maxCount 1) hide events 0 to 2, which the next scavenge destroys: before it, set the stream's metadata to {}`,
      ),
    );
    await dispatcher.kill('SIGTERM');
  }
});
