import {
  EventStoreDBClient,
  binaryEvent,
  jsonEvent,
  type EventData,
  type JSONType,
} from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ErrorJson } from '#platform/http/error-response.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import {
  createTestDatabase,
  createTestEnvironment,
  testConfig,
} from '../support/database/database.js';
import { openStore } from '../support/database/event-store.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** On a shared server, anybody may append to streams with names like ours, and administrators delete them. */

/** By default. */
const PREFIX = 'inkpad_';

let server: EventStoreDb;
let service: LocalService;
let store: Client & { email: string };
let client: EventStoreDBClient;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  client = EventStoreDBClient.connectionString(server.connectionString);
});
afterAll(async () => {
  await client.dispose();
  await service.stop();
  await server.stop();
});

const append = (stream: string, event: EventData) => client.appendToStream(PREFIX + stream, event);

/** Copies an event of ours with something in it changed. */
async function copyEvent(stream: string, changes: object): Promise<EventData> {
  const copies: EventData[] = [];
  // To its end: a client waits for its reads when it is disposed of.
  for await (const { event } of client.readStream(PREFIX + stream, { maxCount: 1 })) {
    const { type, data, metadata } = event ?? { type: '', data: {}, metadata: {} };
    const copy = { type, data: data as JSONType, metadata: metadata as object, ...changes };
    copies.push(jsonEvent(copy));
  }
  const [copy] = copies;
  if (!copy) throw new Error(`${stream} is empty`);
  return copy;
}

const VARIANTS: [what: string, append: (stream: string) => Promise<unknown>][] = [
  ['no metadata', (stream) => append(stream, jsonEvent({ type: 'Sold', data: { amount: 5 } }))],
  [
    'metadata of another application',
    (stream) => append(stream, jsonEvent({ type: 'Sold', data: {}, metadata: { userId: 5 } })),
  ],
  [
    'a part of our metadata',
    async (stream) => append(stream, await copyEvent(stream, { metadata: { accountId: 1 } })),
  ],
  ['bytes', (stream) => append(stream, binaryEvent({ type: 'Sold', data: Buffer.from([0, 1]) }))],
  [
    'data that are no object',
    async (stream) => append(stream, await copyEvent(stream, { data: [1] })),
  ],
  ['a link', (stream) => append(stream, binaryEvent({ type: '$>', data: Buffer.from('0@x-1') }))],
  ['a tombstone', (stream) => client.tombstoneStream(PREFIX + stream)],
];

describe.each(VARIANTS)('a card with %s in its stream', (_what, damage) => {
  it('is read, and refuses changes with 503 and its own words, while all other cards go on', async () => {
    const damaged = await enrol(store);
    const otherHolder = await enrol(store);
    await damage(`customer_card-${damaged.customerCard.id}`);
    const refused = await store.stamp(damaged.path);
    expect([refused.status, refused.body]).toEqual([
      503,
      expect.objectContaining({
        code: 'history_damaged',
        error: 'This record cannot be changed until its history is repaired',
        resolution: expect.stringContaining('Sending the request again does not help'),
      }),
    ]);
    expect((await store.get(damaged.path)).body).toMatchObject({ stamps_count: 0 });
    expect((await store.stamp(otherHolder.path)).status).toBe(200);
  });
});

it('a merge that would write to a stream with such an event is refused before it writes anything', async () => {
  const damaged = await enrol(store);
  const into = await enrol(store);
  await append(`customer_card-${damaged.customerCard.id}`, jsonEvent({ type: 'Sold', data: {} }));
  const { appended } = server;
  const refused = await store.post<ErrorJson>(
    `${store.store}/customers/${into.customer.id}/merge`,
    { from_customer_id: damaged.customer.id },
  );
  expect([refused.status, refused.body.code]).toEqual([503, 'history_damaged']);
  expect(server.appended).toBe(appended);
  expect((await store.stamp(into.path)).status).toBe(200);
});

it('every follower passes such events by, and goes on', async () => {
  for (const stream of ['card-007', 'customer-9999999999999999999', 'reward-x', 'account-900'])
    await append(stream, jsonEvent({ type: 'Sold', data: {} }));
  const { path } = await enrol(store);
  expect((await store.stamp(path)).status).toBe(200);
  const last = (await service.history()).at(-1);
  if (!last) throw new Error('the history is empty');
  await append('customer-901', jsonEvent({ type: 'Sold', data: {} }));
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, { ...service.environment, LOG_LEVEL: 'warn' }),
  );
  try {
    const names = ['card messages', 'history', 'passes', 'read_models', 'transparency log'];
    await eventually(
      () =>
        service.database.query<{ subscription: string }>(
          'select subscription from es.positions where position >= $1 order by 1',
          [formatPosition(last.position)],
        ),
      ({ rows }) =>
        [...names, 'webhooks'].every((name) =>
          rows.some(({ subscription }) => subscription === name),
        ),
    );
    await eventually(dispatcher.output, (output) => output.includes('inkpad_card-007'));
    expect(dispatcher.output().match(/inkpad_card-007/g)).toHaveLength(1);
    expect(dispatcher.output()).not.toMatch(/TypeError|"level":"error"/);
  } finally {
    await dispatcher.kill('SIGTERM');
  }
});

it('a new record gets no number whose stream somebody else uses, or has used and deleted', async () => {
  const { customer, customerCard } = await enrol(store);
  const event = () => jsonEvent({ type: 'Sold', data: {} });
  for (let n = 1; n <= 40; n++) await append(`customer-${customer.id + n}`, event());
  await append(`customer_card-${customerCard.id + 1}`, event());
  await append(`customer_card-${customerCard.id + 2}`, event());
  await client.deleteStream(`${PREFIX}customer_card-${customerCard.id + 2}`);
  await append(`customer_card-${customerCard.id + 3}`, event());
  await client.tombstoneStream(`${PREFIX}customer_card-${customerCard.id + 3}`);
  const next = await enrol(store);
  expect(next.customer.id).toBeGreaterThan(customer.id + 40);
  expect(next.customerCard.id).toBeGreaterThan(customerCard.id + 3);
  expect((await store.stamp(next.path)).status).toBe(200);
  const { status } = await store.get<CreatedCustomerJson>(
    `${store.store}/customers/${customer.id + 1}`,
  );
  expect(status).toBe(404);
});

it('another process starts on such a history', async () => {
  const opened = await openStore(testConfig(service.database.url, service.environment));
  try {
    await opened.store.onModuleInit();
    expect(service.app.get(EventStore).countDamage().foreignStreams).toBeGreaterThan(0);
  } finally {
    await opened.close();
  }
});

/** Starts an api for the first time beside somebody else's stream. @returns its log up to its start */
async function startBeside(stream: string, prefix: string): Promise<string> {
  const shared = await startEventStoreDb();
  const others = EventStoreDBClient.connectionString(shared.connectionString);
  await others.appendToStream(stream, jsonEvent({ type: 'Sold', data: {} }));
  await others.dispose();
  const database = await createTestDatabase();
  const environment = {
    EVENT_STORE_URL: shared.connectionString,
    EVENT_STORE_STREAM_PREFIX: prefix,
    LOG_LEVEL: 'info',
  };
  const api = startProgram(
    'dist/apps/api/main.js',
    createTestEnvironment(database.url, environment),
  );
  const output = await eventually(api.output, (text) => text.includes('KurrentDB 26.0.3'));
  await api.kill('SIGTERM');
  await shared.stop();
  await database.close();
  expect(output).not.toMatch(/TypeError|"level":"error"/);
  return output;
}

it.each(['', 'inkpad_', 'own_'])(
  'a first start with EVENT_STORE_STREAM_PREFIX=%s beside a stream with a name like ours begins, and says so in one sentence',
  async (prefix) => {
    const used = prefix === '' ? PREFIX : prefix;
    expect(await startBeside(`${used}customer-1`, prefix)).toContain(
      `KurrentDB (streams ${used}*) is also used by somebody else, as the stream ${used}customer-1 shows: Inkpad passes such streams by and takes other numbers, and a prefix of its own in EVENT_STORE_STREAM_PREFIX would keep them apart.`,
    );
    expect(await startBeside('customer-1', prefix)).not.toContain('somebody else');
  },
);
