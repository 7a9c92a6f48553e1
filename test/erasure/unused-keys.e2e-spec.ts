import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** A customer's personal key is created before their first event. It does not stay when there is none. */

let service: LocalService;
let store: Client;

beforeAll(async () => {
  service = await startService({ STORE_QUOTAS: 'customers=2' });
  store = await service.newStore();
});
afterAll(() => service.stop());

const countKeys = async () =>
  (
    await service.database.query<{ count: number }>(
      'select count(*)::int as count from personal_keys',
    )
  ).rows[0]?.count;

const create = (body: object, headers = {}) =>
  store.send<{ id: number }>('POST', `${store.store}/customers`, body, headers);

it('refused creations leave no personal keys', async () => {
  const { customer, card } = await enrol(store, { email: 'anna@example.com' });
  const before = await countKeys();
  const person = { first_name: 'Anna', email: 'ben@example.com' };
  const key = { 'idempotency-key': 'unused-keys' };
  const responses = [
    await create({ customer: { ...person, email: 'anna@example.com' } }),
    await create({ customer: { ...person, email: 'anna@example.com' } }, key),
    await create({ customer: person, card_id: card.id + 1_000 }),
    await create({ customer: { ...person, birthday: '9999-01-01' } }),
  ];
  expect(responses.map(({ status }) => status)).toEqual([422, 422, 404, 422]);
  expect(await countKeys()).toBe(before);
  const created = await create({ customer: person });
  expect(created.status).toBe(201);
  // Now the store is full.
  expect((await create({ customer: { first_name: 'Cem', email: 'cem@example.com' } })).status).toBe(
    422,
  );
  expect(await countKeys()).toBe((before ?? 0) + 1);
  // Those who exist keep theirs.
  for (const id of [customer.id, created.body.id]) {
    const path = `${store.store}/customers/${id}`;
    expect((await store.send('PATCH', path, { customer: { last_name: 'Berg' } })).status).toBe(200);
  }
});

it('of many simultaneous creations with one address one key stays', async () => {
  const otherStore = await service.newStore();
  const before = (await countKeys()) ?? 0;
  const responses = await Promise.all(
    Array.from({ length: 10 }, () =>
      otherStore.post(`${otherStore.store}/customers`, {
        customer: { first_name: 'Dora', email: 'dora@example.com' },
      }),
    ),
  );
  expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(await countKeys()).toBe(before + 1);
});
