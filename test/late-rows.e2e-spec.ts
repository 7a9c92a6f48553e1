import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { CustomerCardRenderer } from '#public-events/customer-card-renderer.service.js';
import { startEventStoreDb, type EventStoreDb } from './support/eventstoredb/server.mjs';
import { startService, type Client, type Service } from './support/service.js';
import { enrol } from './support/story.js';

/** With EventStoreDB, an event can be read a moment before the rows of what it belongs to. */

let server: EventStoreDb;
let service: Service;
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

it('renders an event whose customer and card have no row yet', async () => {
  const { customer, card, customerCard, path } = await enrol(store);
  expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
  await service.database.query('delete from customers where id = $1', [customer.id]);
  await service.database.query('delete from cards where id = $1', [card.id]);
  const stream = `customer_card-${customerCard.id}`;
  const events = (await service.history()).filter((event) => event.stream === stream);
  const rendered = await service.app.get(CustomerCardRenderer, { strict: false }).render(events);
  expect([...rendered.values()].map(({ event }) => event)).toMatchObject([
    { data: { customer: { id: customer.id, first_name: customer.first_name } } },
    { data: { customer: { id: customer.id, first_name: customer.first_name } } },
  ]);
  expect((await store.get(`${store.store}/cards/${card.id}`)).status).toBe(200);
});
