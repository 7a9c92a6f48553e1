import { jsonEvent } from '@eventstore/db-client';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { DispatchGauges } from '#outbound/dispatch/dispatch-gauges.service.js';
import { event } from '#platform/event-store/port/event-store.contract.js';
import { BEGINNING, EventStore } from '#platform/event-store/port/event-store.js';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { EventStoreDbReader } from '#platform/event-store/eventstoredb/eventstoredb-reader.js';
import { OwnStreams } from '#platform/event-store/eventstoredb/eventstoredb-streams.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { CustomerCardRenderer } from '#outbound/public-events/customer-card-renderer.service.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { createTestDatabase, createTestEnvironment } from '../support/database/database.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** With EventStoreDB, an event can be read before the read models of its records are written, or long after its append. */

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

it('the renderer of public events renders one whose customer and card have no read model yet', async () => {
  const { customer, card, customerCard, path } = await enrol(store);
  expect((await store.stamp(path)).status).toBe(200);
  await service.database.query('delete from customers where id = $1', [customer.id]);
  await service.database.query('delete from cards where id = $1', [card.id]);
  // This process may not use its cached template either.
  await service.database.query('update account_versions set version = version + 1');
  const stream = `customer_card-${customerCard.id}`;
  // As whoever follows the log does, for these and all earlier events.
  const history = await service.history();
  await service.app.get(EventStore).waitUntilProjected(history);
  const events = history.filter((event) => event.stream === stream);
  const render = await service.app.get(CustomerCardRenderer, { strict: false }).prepare(events);
  const publicEvents = await render(events, () => false);
  expect([...publicEvents.values()].map(({ event }) => event)).toMatchObject([
    { data: { customer: { id: customer.id, first_name: customer.first_name } } },
    { data: { customer: { id: customer.id, first_name: customer.first_name } } },
  ]);
  expect((await store.get(`${store.store}/cards/${card.id}`)).status).toBe(200);
});

it('inkpad_subscription_lag_seconds is at least the age of the first unread event, and 0 at the head', async () => {
  const app = service.app;
  const log = app.get(EventStore);
  const readLag = async (position: string): Promise<number | undefined> => {
    await service.database.query(
      `insert into es.positions (subscription, position) values ('webhooks', $1)
       on conflict (subscription) do update set position = excluded.position`,
      [position],
    );
    const registry = new Registry();
    expect(new DispatchGauges(app.get(Pool), log, registry)).toBeDefined();
    const metric = registry.getSingleMetric('inkpad_subscription_lag_seconds');
    if (!(metric instanceof Gauge)) throw new Error('there is no such gauge');
    const { values } = await metric.get();
    return values.find(({ labels }) => labels['subscription'] === 'webhooks')?.value;
  };
  const [first] = await log.readAll(BEGINNING, 1);
  const before = (Date.now() - Date.parse(first?.meta.recordedAt ?? '')) / 1_000;
  expect(await readLag(formatPosition(BEGINNING))).toBeGreaterThanOrEqual(before);
  expect(await readLag(formatPosition(await log.head()))).toBe(0);
});

it('the log is read past the streams of others on the server', async () => {
  const shared = await startEventStoreDb();
  const connection = new EventStoreDbConnection(shared.connectionString);
  const reader = new EventStoreDbReader(connection, new OwnStreams('ours_', ['thing-']));
  const { meta } = event('A');
  const append = (stream: string, count: number) =>
    connection.client.appendToStream(
      stream,
      Array.from({ length: count }, () =>
        jsonEvent({
          type: 'A',
          data: {},
          metadata: { ...meta, schemaVersion: 1, hash: 'a'.repeat(64) },
        }),
      ),
    );
  try {
    await append('others_thing-1', 2_000);
    await append('ours_thing-1', 3);
    await append('others_thing-2', 2_000);
    await append('ours_thing-2', 2);
    const events = await reader.readAll(BEGINNING, 500);
    expect(events.map(({ stream, revision }) => [stream, revision])).toEqual([
      ['thing-1', 0],
      ['thing-1', 1],
      ['thing-1', 2],
      ['thing-2', 0],
      ['thing-2', 1],
    ]);
    // The first page shows that the server is shared; without a filter there would be nine.
    expect(shared.requestCounts.logReads).toBe(2);
    const [, , third] = events;
    expect(await reader.readAll(third?.position ?? BEGINNING, 500)).toEqual(events.slice(3));

    const otherReader = new EventStoreDbReader(connection, new OwnStreams('new_', ['thing-']));
    expect(await otherReader.readAll(BEGINNING, 1)).toEqual([]);
    // Pages of 3, 6, 12, … 192 events, and the rest with the filter.
    expect(shared.requestCounts.logReads).toBeLessThanOrEqual(2 + 1 + 8);
  } finally {
    await connection.dispose();
    await shared.stop();
  }
});

it('several streams are asked for at once, up to a position of the log, and each read asks for no more than is needed', async () => {
  const ownServer = await startEventStoreDb();
  const connection = new EventStoreDbConnection(ownServer.connectionString);
  const reader = new EventStoreDbReader(connection, new OwnStreams('', ['thing-']));
  const append = (stream: string, count: number) =>
    connection.append({
      streamName: stream,
      expectedRevision: undefined,
      events: Array.from({ length: count }, () => ({
        id: randomUUID(),
        type: 'A',
        data: {},
        metadata: { ...event('A').meta, schemaVersion: 1, hash: 'a'.repeat(64) },
      })),
    });
  try {
    const names = Array.from({ length: 10 }, (_, i) => `thing-${i + 1}`);
    for (const stream of names) await append(stream, 3);
    await append('thing-11', 600);
    const until = await reader.readHead();
    await append('thing-12', 1);
    const ranges = [...names, 'thing-11', 'thing-12'].map((stream) => ({
      stream,
      to: Infinity,
      until,
    }));
    const release = ownServer.fault.holdResponses('read');
    const batches: string[][] = [];
    const reading = (async () => {
      for await (const events of reader.readStreams(ranges)) {
        batches.push(events.map(({ stream }) => stream));
      }
    })();
    await eventually(
      () => ownServer.requestCounts.streamReads,
      (count) => count === ranges.length,
    );
    expect(batches).toEqual([]);
    ownServer.fault.clear();
    release();
    await reading;
    const counts = new Map<string, number>();
    for (const stream of batches.flat()) counts.set(stream, (counts.get(stream) ?? 0) + 1);
    expect([...counts]).toEqual([...names.map((stream) => [stream, 3]), ['thing-11', 600]]);

    const before = ownServer.requestCounts.events;
    expect(await reader.readEvents([{ stream: 'thing-11', revision: 5 }])).toHaveLength(1);
    expect(ownServer.requestCounts.events - before).toBe(1);
  } finally {
    await connection.dispose();
    await ownServer.stop();
  }
});

it('a stream is read completely when another request renews the connection meanwhile', async () => {
  const { customerCard, path } = await enrol(store);
  expect((await store.stamp(path)).status).toBe(200);
  const proxy = await DatabaseProxy.to(server.connectionString);
  const connection = new EventStoreDbConnection(proxy.url);
  const reader = new EventStoreDbReader(connection, new OwnStreams('inkpad_', ['customer_card-']));
  const readTypes = async () => {
    const types: string[] = [];
    for await (const { type } of reader.readStream(`customer_card-${customerCard.id}`)) {
      types.push(type);
    }
    return types;
  };
  try {
    const whole = await readTypes();
    expect(whole.length).toBeGreaterThan(1);
    proxy.muteResponses();
    const { requestCount } = proxy;
    const types = readTypes();
    await eventually(
      () => proxy.requestCount,
      (now) => now > requestCount,
    );
    connection.renew(connection.client);
    expect(await types).toEqual(whole);
  } finally {
    proxy.unmute();
    await connection.dispose();
    await proxy.close();
  }
});

it('a stamp with a known receipt number gets the first result while the read model lacks the merge of its card', async () => {
  const { card, customer, customerCard, path } = await enrol(store);
  const { customer: otherCustomer, path: otherPath } = await enrol(store, { on: card });
  const into = `${store.store}/customers/${otherCustomer.id}`;
  const stamp = (at: string) =>
    store.post<CustomerCardDetailJson>(`${at}/stamp`, { stamps: 2, external_ref: 'R-77' });
  expect((await stamp(path)).status).toBe(200);
  const row = `from customer_cards where id = ${customerCard.id}`;
  await service.database.query(`create table before as select state, revision, hash ${row}`);
  const body = { from_customer_id: customer.id };
  expect((await store.post(`${into}/merge`, body)).status).toBe(200);
  await service.database.query(
    `update customer_cards r set state = b.state, revision = b.revision, hash = b.hash
     from before b where r.id = ${customerCard.id}`,
  );
  const again = await stamp(otherPath);
  expect([again.status, again.body.id, again.body.stamps_count]).toEqual([200, customerCard.id, 2]);
});

it.each([
  ['26.0.3', 'KurrentDB 26.0.3', false],
  ['24.6.0.0', 'EventStoreDB 24.6.0', true],
])(
  'a start on version %s logs %s, and warns unless it is supported',
  async (version, name, isWarned) => {
    const database = await createTestDatabase();
    const otherServer = await startEventStoreDb({ version });
    const api = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(database.url, {
        EVENT_STORE_URL: otherServer.connectionString.replace('esdb:', 'kurrentdb:'),
        PORT: String(await findFreePort()),
        LOG_LEVEL: 'info',
      }),
    );
    await eventually(api.output, (output) => output.includes('listening on'));
    expect(api.output()).toContain(name);
    expect(api.output().includes(`${name} is not supported`)).toBe(isWarned);
    await api.kill('SIGTERM');
    await otherServer.stop();
    await database.close();
  },
);
