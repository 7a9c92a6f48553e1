import { EventStoreDBClient } from '@eventstore/db-client';
import { describe, expect, it } from '@jest/globals';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type {
  CustomerCardDetailJson,
  CustomerCardJson,
} from '#loyalty/stamping/customer-card.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type Failure,
} from '../support/http/contract.js';
import { startEventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const AN_HOUR = 3_600_000;
const iso = (time: number) => new Date(time).toISOString();

/** A moment after every response before it and before every request after it. */
async function moment(): Promise<string> {
  const last = Date.now();
  const between = await eventually(Date.now, (now) => now > last);
  await eventually(Date.now, (now) => now > between);
  return iso(between);
}

const pastOf = (path: string, time: string) =>
  `${path}${path.includes('?') ? '&' : '?'}as_of=${encodeURIComponent(time)}`;

const show = <T>(path: string, time: string) => store.get<T>(pastOf(path, time));

/** Adds stamps. @returns the card of the response, without the id of the event that only responses of writes have */
async function stamp(path: string, stamps: number): Promise<CustomerCardDetailJson> {
  const { status, body } = await store.stamp(path, stamps);
  expect(status).toBe(200);
  const { event_id, ...card } = body;
  expect(event_id).toMatch(/^evt_/);
  return card;
}

describe('a customer card', () => {
  it('ASOF-01 A customer card is shown as it was, its last change included', async () => {
    const { path, customerCard } = await enrol(store);
    const issued = await moment();
    const three = await stamp(path, 3);
    const between = await moment();
    const seven = await stamp(path, 4);
    const responses = await Promise.all(
      [issued, three.updated_at, between, seven.updated_at].map((time) =>
        show<CustomerCardDetailJson>(path, time),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(responses.map(({ body }) => body)).toEqual([customerCard, three, three, seven]);
  });

  it('ASOF-02 The name, missing stamps, progress and rewards of a customer card are those of its template and rewards at the moment of `as_of`', async () => {
    const { path, card, rewards } = await enrol(store, { rewards: [2] });
    const before = await stamp(path, 3);
    const time = await moment();
    await store.patch(`${store.store}/cards/${card.id}`, {
      card: { name: 'Tea', stamps_required: 4 },
    });
    await store.delete(`${store.store}/rewards/${rewards[0]?.id}`);
    const { body: after } = await store.get<CustomerCardDetailJson>(path);
    expect(after).toMatchObject({ card_name: 'Tea', stamps_remaining: 1, available_rewards: [] });
    expect((await show(path, time)).body).toEqual(before);
    expect(before.available_rewards).toHaveLength(1);
  });

  it('ASOF-03 The status of a customer card is that of the moment of `as_of`', async () => {
    const expires_at = iso(Date.now() + 10_000);
    const { path } = await enrol(store, { card: { expires_at } });
    const time = await moment();
    await eventually(
      () => store.get<CustomerCardDetailJson>(path),
      ({ body }) => body.status === 'expired',
    );
    expect((await show(path, time)).body).toMatchObject({ status: 'active' });
    expect((await show(path, expires_at)).body).toMatchObject({ status: 'expired' });
  });
});

describe('the moment', () => {
  it('ASOF-04 A moment before the record existed is 404', async () => {
    const { path, customer, rewards } = await enrol(store, { rewards: [5] });
    const before = iso(Date.parse(customer.created_at) - 1);
    expectFailure(await show(path, before), 404, 'not_found');
    expectFailure(await show(`${store.store}/customers/${customer.id}`, before), 404, 'not_found');
    const earlier = iso(Date.parse(rewards[0]?.created_at ?? '') - 1);
    const reward = `${store.store}/rewards/${rewards[0]?.id}`;
    expectFailure(await show(reward, earlier), 404, 'not_found');
  });

  it('ASOF-05 A moment in the future is 422 `as_of`', async () => {
    const { path } = await enrol(store);
    expectRefused(await show(path, iso(Date.now() + AN_HOUR)), 'as_of');
  });

  it('ASOF-06 Anything that is no ISO 8601 time is 422 `as_of`', async () => {
    const { path, customer } = await enrol(store);
    for (const time of ['yesterday', '2026-02-30T10:00:00Z', '1700000000']) {
      expectRefused(await show(path, time), 'as_of');
      expectRefused(await show(`${store.store}/customers/${customer.id}`, time), 'as_of');
      expectRefused(await show(`${store.store}/rewards`, time), 'as_of');
    }
  });

  it('ASOF-07 A blank `as_of` means now', async () => {
    const { path } = await enrol(store);
    const now = await stamp(path, 1);
    expect((await show(path, '')).body).toEqual(now);
  });

  it('ASOF-08 `as_of` may have any offset; without one it is UTC', async () => {
    const { path } = await enrol(store);
    const before = await moment();
    await stamp(path, 1);
    const there = iso(Date.parse(before) + 2 * AN_HOUR).replace('Z', '+02:00');
    for (const time of [there, before.replace('Z', '')]) {
      expect((await show(path, time)).body).toMatchObject({ stamps_count: 0 });
    }
  });

  it('ASOF-09 The response about a moment is the same however often it is requested', async () => {
    const { path } = await enrol(store);
    const times: string[] = [];
    for (let stamps = 1; stamps <= 5; stamps++) times.push((await stamp(path, stamps)).updated_at);
    const sendRequest = () =>
      Promise.all(times.map(async (time) => (await show<CustomerCardDetailJson>(path, time)).body));
    const first = await sendRequest();
    expect(first.map(({ stamps_count }) => stamps_count)).toEqual([1, 3, 6, 10, 15]);
    await stamp(path, 1);
    expect(await sendRequest()).toEqual(first);
  });

  it('ASOF-10 A record of another store is 404', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const otherStore = await service.newStore();
    const time = await moment();
    const reward = rewards[0]?.id;
    for (const own of [path, `${store.store}/rewards/${reward}`]) {
      const foreign = own.replace(store.store, otherStore.store);
      expectFailure(await otherStore.get(pastOf(foreign, time)), 404, 'not_found');
    }
  });
});

describe('other records', () => {
  it('ASOF-11 A reward is shown as it was, also when it was deleted since', async () => {
    const { rewards } = await enrol(store, { rewards: [5] });
    const [reward] = rewards;
    const path = `${store.store}/rewards/${reward?.id}`;
    const before = await moment();
    const { body: renamed } = await store.patch<RewardJson>(path, { reward: { name: 'Cake' } });
    const between = await moment();
    expect((await store.delete(path)).status).toBe(204);
    expect((await show(path, before)).body).toEqual(reward);
    expect((await show(path, between)).body).toEqual(renamed);
    expectFailure(await show(path, await moment()), 404, 'not_found');
  });

  it('ASOF-12 The list of rewards is as it was, and its filters, order and pages apply to the rewards of then', async () => {
    const { card, rewards } = await enrol(store, { rewards: [5, 6, 7] });
    const list = `${store.store}/rewards?card_id=${card.id}`;
    const before = await moment();
    const [first, second] = rewards.map(({ id }) => `${store.store}/rewards/${id}`);
    await store.patch(`${first}`, { reward: { position: 9, active: false } });
    await store.delete(`${second}`);
    expect((await store.get<RewardJson[]>(list)).body.map(({ id }) => id)).toEqual([
      rewards[2]?.id,
      rewards[0]?.id,
    ]);
    expect((await show(list, before)).body).toEqual(rewards);
    expect((await show(`${list}&active=false`, before)).body).toEqual([]);
    const page = await store.get<RewardJson[]>(pastOf(`${list}&limit=2`, before));
    expect(page.body).toEqual(rewards.slice(0, 2));
    const next = /<https:\/\/[^/]+([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1];
    expect((await store.get(`${next}`)).body).toEqual(rewards.slice(2));
  });

  it('ASOF-13 A customer is shown as they were, with their cards as these were', async () => {
    const { customer, path } = await enrol(store);
    const own = `${store.store}/customers/${customer.id}`;
    const before = await store.get<CustomerJson>(own);
    const time = await moment();
    await store.patch(own, { customer: { first_name: 'Maria', metadata: { size: 4 } } });
    await stamp(path, 3);
    expect((await store.get(own)).body).toMatchObject({ first_name: 'Maria', stamp_count: 3 });
    expect((await show(own, time)).body).toEqual(before.body);
  });

  it("ASOF-14 The list of a customer's cards is as it was", async () => {
    const { customer, path } = await enrol(store);
    const list = `${store.store}/customers/${customer.id}/customer_cards`;
    const { body: before } = await store.get<CustomerCardJson[]>(list);
    const time = await moment();
    await stamp(path, 2);
    const { card: another } = await enrol(store);
    await store.post(list, { card_id: another.id });
    expect((await store.get<CustomerCardJson[]>(list)).body).toHaveLength(2);
    expect((await show(list, time)).body).toEqual(before);
  });

  it('ASOF-15 A card is shown as it was, with the counts of then', async () => {
    const { card, rewards } = await enrol(store, { rewards: [5, 6] });
    const path = `${store.store}/cards/${card.id}`;
    const before = await store.get<CardJson>(path);
    expect(before.body).toMatchObject({ rewards_count: 2, customer_cards_count: 1 });
    const time = await moment();
    await store.patch(path, { card: { name: 'Tea' } });
    await store.delete(`${store.store}/rewards/${rewards[0]?.id}`);
    await store.post(`${store.store}/customers`, {
      customer: { first_name: 'Ben', phone: `${1_000_000 + card.id}` },
      card_id: card.id,
    });
    expect((await store.get(path)).body).toMatchObject({
      name: 'Tea',
      rewards_count: 1,
      customer_cards_count: 2,
    });
    expect((await show(path, time)).body).toEqual(before.body);
    expectFailure(await show(path, iso(Date.parse(card.created_at) - 1)), 404, 'not_found');
  });

  it('ASOF-16 The list of cards is as it was, and `scope` applies to the cards of then', async () => {
    const own = await service.newStore();
    const { card } = await enrol(own);
    const list = `${own.store}/cards`;
    const { body: before } = await own.get<CardJson[]>(list);
    const time = await moment();
    await own.post(`${list}/${card.id}/archive`);
    await enrol(own);
    const at = async (query: string) => (await own.get(pastOf(`${list}?${query}`, time))).body;
    expect(await at('')).toEqual(before);
    expect(await at('scope=archived')).toEqual([]);
    expect(await at('scope=all&limit=1')).toEqual(before);
  });

  it('ASOF-17 A store, and the list of stores, is shown as it was, with the counts of then', async () => {
    const own = await service.newStore();
    const { card } = await enrol(own);
    const place = { location: { name: 'Shop', address: 'Main Street 1' } };
    await own.post(`${own.store}/locations`, place);
    const { body: poster } = await own.post<{ id: number }>(`${own.store}/posters`, {
      poster: { card_id: card.id },
    });
    const { body: before } = await own.get<AccountJson>(own.store);
    expect(before).toMatchObject({
      cards_count: 1,
      customers_count: 1,
      locations_count: 1,
      posters_count: 1,
    });
    const time = await moment();
    await own.patch(own.store, { account: { store_name: 'Tea House' } });
    await enrol(own);
    await own.post(`${own.store}/locations`, place);
    await own.delete(`${own.store}/posters/${poster.id}`);
    expect((await own.get(own.store)).body).toMatchObject({
      store_name: 'Tea House',
      cards_count: 2,
      customers_count: 2,
      locations_count: 2,
      posters_count: 0,
    });
    expect((await own.get(pastOf(own.store, time))).body).toEqual(before);
    expect((await own.get(pastOf('/api/v1/accounts', time))).body).toEqual([before]);
    const earlier = iso(Date.parse(before.created_at) - 1);
    expectFailure(await own.get(pastOf(own.store, earlier)), 404, 'not_found');
    expect((await own.get(pastOf('/api/v1/accounts', earlier))).body).toEqual([]);
  });
});

it('ASOF-18 A record of which the event store has lost events, or hides them, is 503 `history_damaged`, and all others are shown as they were', async () => {
  const server = await startEventStoreDb();
  const damaged = await startService({
    EVENT_STORE_URL: server.connectionString,
    EVENT_STORE_STREAM_PREFIX: 'inkpad_',
  });
  const own = await damaged.newStore();
  const [one, other] = [await enrol(own), await enrol(own)];
  await own.stamp(one.path, 2);
  const time = await moment();
  const client = EventStoreDBClient.connectionString(server.connectionString);
  await client.setStreamMetadata(`inkpad_customer_card-${one.customerCard.id}`, { maxCount: 1 });
  await client.dispose();
  const refused = await own.get<Failure>(pastOf(one.path, time));
  expectFailure(refused, 503, 'history_damaged');
  expect((await own.get(pastOf(other.path, time))).status).toBe(200);
  expect((await own.get(one.path)).body).toMatchObject({ stamps_count: 2 });
  await damaged.stop();
  await server.stop();
});
