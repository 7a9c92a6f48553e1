import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import { startService, type ApiResponse, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

// Empty: the default, which the other tests' stores go beyond.
const service = useService({ STORE_QUOTAS: '' });
const store = service.useStore();
/** Another process of the same service. */
let otherService: Service;

beforeAll(async () => {
  const { database, environment } = service.running;
  otherService = await startService(environment, { ...database, close: async () => undefined });
});
afterAll(() => otherService.stop());

const callers = () => {
  const there = Object.assign(store.as(store.token), { baseUrl: otherService.baseUrl });
  return Array.from({ length: 4 }, () => [store, there]).flat();
};

/** Asks both processes for more than there may be, many at once: exactly so many are made. @returns their ids */
async function expectAtMost(limit: number, list: string, body: (i: number) => object) {
  const responses: ApiResponse<{ id: number }>[] = [];
  let sent = 0;
  const caller = async (client: ContractClient) => {
    while (sent < limit + 8) responses.push(await client.post(list, body(sent++)));
  };
  await Promise.all(callers().map(caller));
  const refused = responses.filter(({ status }) => status !== 201);
  expect(responses.length - refused.length).toBe(limit);
  for (const response of refused) expectRefused(response, 'base', 'limit_reached');
  return responses.flatMap(({ status, body }) => (status === 201 ? [body.id] : []));
}

/** Many want each place that is free again: one gets it. */
async function expectRoomAfterDeletion(list: string, body: object, ids: number[]) {
  for (const id of ids.slice(0, 6)) {
    expect((await store.delete(`${list}/${id}`)).status).toBe(204);
    const responses = await Promise.all(callers().map((client) => client.post(list, body)));
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
  }
}

describe('limits of records', () => {
  it('REWARD-26 A card has at most 50 rewards, deleted ones not counted', async () => {
    const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: 'Full' },
    });
    const body = { reward: { card_id: card.id, name: 'Cake', stamps_required: 5 } };
    const list = `${store.store}/rewards`;
    const ids = await expectAtMost(50, list, () => body);
    await expectRoomAfterDeletion(list, body, ids);
  });

  it('CARD-57 A store has at most 500 cards, archived ones included', async () => {
    const list = `${store.store}/cards`;
    const { body: createdCards } = await store.get<CardJson[]>(`${list}?scope=all`);
    const [id] = await expectAtMost(500 - createdCards.length, list, () => ({
      card: { name: 'Coffee' },
    }));
    await store.post(`${list}/${id}/archive`);
    expectRefused(await store.post(list, { card: { name: 'Tea' } }), 'base', 'limit_reached');
  });

  it('LOC-20 A store has at most 500 locations, deleted ones not counted', async () => {
    const body = { location: { name: 'Shop', address: '1 Main Street' } };
    const list = `${store.store}/locations`;
    const ids = await expectAtMost(500, list, () => body);
    await expectRoomAfterDeletion(list, body, ids);
  });

  it('POSTER-35 A store has at most 200 posters, deleted ones not counted', async () => {
    const [card] = (await store.get<CardJson[]>(`${store.store}/cards`)).body;
    const body = { poster: { card_id: card?.id, title: 'Join' } };
    const list = `${store.store}/posters`;
    const ids = await expectAtMost(200, list, () => body);
    await expectRoomAfterDeletion(list, body, ids);
  });

  it('HOOK-65 A store has at most 25 subscriptions; one more is 422 `base` with the code `limit_reached`, however many are created at once', async () => {
    const body = { events: ['*'], target_url: 'https://1.1.1.1/hook' };
    const list = `${store.store}/webhook_subscriptions`;
    const ids = await expectAtMost(25, list, () => body);
    await expectRoomAfterDeletion(list, body, ids);
  });

  it('CUST-56 The references of one customer come to at most 32 KiB of JSON together, metadata and times included; more is 422 `external_references`', async () => {
    const own = await service.newStore();
    const { customer } = await enrol(own);
    const path = `${own.store}/customers/${customer.id}`;
    const add = (id: string, letters: number) =>
      own.patch<CustomerJson>(path, {
        customer: {
          external_references: [
            { source: 'till', external_id: id, metadata: { text: 'x'.repeat(letters) } },
          ],
        },
      });
    for (const id of ['one', 'two']) expect((await add(id, 16_000)).status).toBe(200);
    expectRefused(await add('three', 1_000), 'external_references');
    expect((await add('three', 100)).status).toBe(200);
  });
});

describe('one request', () => {
  it('CONV-40 One request writes at most 256 KiB to the history; what would take more is 422 `base`, on a dry run as well', async () => {
    const own = await service.newStore();
    const { card, path } = await enrol(own);
    const rewards = Array.from({ length: 40 }, (_, i) => ({
      card_id: card.id,
      name: `Cake ${i}`,
      description: '🎂'.repeat(2_000),
      stamps_required: 1 + (i % 2),
    }));
    for (const reward of rewards) await own.post(`${own.store}/rewards`, { reward });
    const before = await service.running.history();
    expectRefused(await own.stamp(path, 2), 'base');
    expectRefused(await own.stamp(path, { stamps: 2, dry_run: true }), 'base');
    expect(await service.running.history()).toHaveLength(before.length);
    expect((await own.stamp(path, 1)).status).toBe(200);
    expect((await own.stamp(path, 1)).body.stamps_count).toBe(2);
  });
});
