import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { expectRefused, useService } from '../support/http/contract.js';
import type { Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import type { Client } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * An api caches the read models of customer cards that it has read or written. What another api changes meanwhile must
 * count all the same (ADR-0077).
 */
const service = useService();
const LOADS_AFTER_STALE = 16;
/** The most conflicts that one test causes. */
const MAX_CONFLICTS = 20;
const sparePaths: string[] = [];
const store = service.useStore();
let otherApi: { program: Program; second: Client };

beforeAll(async () => {
  otherApi = await startSecondApi(service.running, store);
  for (let i = 0; i < LOADS_AFTER_STALE; i++) sparePaths.push((await enrol(store)).path);
});
// After a conflict, an api loads some cards although they are cached. This restores the cache for the next test.
afterEach(async () => {
  for (let i = 0; i < MAX_CONFLICTS; i++) await Promise.all(sparePaths.map((path) => stamp(path)));
});
afterAll(() => otherApi.program.kill('SIGTERM'));

/** Enrols a customer, and lets this api cache their card. */
async function readCard(options: Parameters<typeof enrol>[1] = {}) {
  const enrolled = await enrol(store, options);
  const { status } = await store.get(enrolled.path);
  expect(status).toBe(200);
  return enrolled;
}

const stamp = (path: string, stamps = 1, client: Client = store) =>
  client.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps, note: 'with milk' });

/** Sends a request to the other api. */
const sendToOtherApi = async (method: string, path: string, body?: unknown) => {
  const { status } = await otherApi.second.send(method, path, body);
  expect([200, 201, 204]).toContain(status);
};

describe('a cached customer card', () => {
  const createLockClient = () => new pg.Client(service.running.database.url);
  let lockClient: pg.Client | undefined;

  afterEach(async () => {
    await lockClient?.end();
    lockClient = undefined;
  });

  it('is stamped and redeemed without being loaded again', async () => {
    const { path, rewards } = await readCard({ rewards: [3] });
    lockClient = createLockClient();
    await lockClient.connect();
    // A load reads the customer's key as well, so it would wait here.
    await lockClient.query('begin');
    await lockClient.query('lock table personal_keys in access exclusive mode');
    expect((await stamp(path)).body.stamps_count).toBe(1);
    expect((await stamp(path, 2)).body.stamps_count).toBe(3);
    const reward_id = rewards[0]?.id;
    expect((await store.post(`${path}/redeem`, { reward_id })).status).toBe(200);
    await lockClient.query('rollback');
    expect((await stamp(path)).body.stamps_count).toBe(1);
  });

  it('is stamped with a note that another api can decrypt', async () => {
    const { path } = await readCard();
    await stamp(path);
    await stamp(path);
    const { body } = await otherApi.second.get<{ note: string | null }[]>(`${path}/events`);
    expect(body.slice(0, 2).map(({ note }) => note)).toEqual(['with milk', 'with milk']);
  });

  it('keeps no response for a customer whom a merge gave the card and who is erased since', async () => {
    const { customer: survivor } = await enrol(store);
    const { customer, customerCard } = await readCard();
    const customers = `${store.store}/customers`;
    const survivorPath = `${customers}/${survivor.id}`;
    const merge = { from_customer_id: customer.id };
    expect((await store.post(`${survivorPath}/merge`, merge)).status).toBe(200);
    const stampOnce = () =>
      store.send<CustomerCardDetailJson>(
        'POST',
        `${survivorPath}/customer_cards/${customerCard.id}/stamp`,
        { stamps: 1 },
        { 'idempotency-key': `merged ${customerCard.id}` },
      );
    expect((await stampOnce()).body).toMatchObject({ customer_id: survivor.id, stamps_count: 1 });
    expect((await store.post(`${survivorPath}/unmerge`, merge)).status).toBe(200);
    expect((await store.post(`${survivorPath}/erase`)).status).toBe(204);
    expectRefused(await stampOnce(), 'base', 'customer_erased');
  });
});

describe('a cached customer card that another api changes', () => {
  it('counts the stamps of both apis', async () => {
    const { path } = await readCard();
    for (let i = 1; i <= 20; i++) {
      const client = i % 2 === 0 ? store : otherApi.second;
      expect((await stamp(path, 1, client)).body.stamps_count).toBe(i);
    }
  });

  it('allows redeeming a reward that the stamps of the other api pay for', async () => {
    const { path, rewards } = await readCard({ rewards: [5] });
    await stamp(path, 5, otherApi.second);
    expect((await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id })).status).toBe(200);
  });

  it('refuses to spend stamps that the other api has spent', async () => {
    const { path, rewards } = await readCard({ rewards: [2] });
    await stamp(path, 2);
    const reward_id = rewards[0]?.id;
    await sendToOtherApi('POST', `${path}/redeem`, { reward_id });
    expectRefused(await store.post(`${path}/redeem`, { reward_id }), 'base', 'insufficient_stamps');
  });

  it('has the new limit at the next stamp, whether it is committed alone or with others', async () => {
    const cards = [await readCard(), await readCard(), await readCard()];
    const [alone, ...others] = cards;
    for (const { card } of cards) {
      const changes = { card: { max_stamps_per_request: 1 } };
      await sendToOtherApi('PATCH', `${store.store}/cards/${card.id}`, changes);
    }
    expectRefused(await stamp(`${alone?.path}`, 2), 'base', 'stamp_limit_reached');
    const untouched = await readCard();
    const responses = await Promise.all([...others, untouched].map(({ path }) => stamp(path, 2)));
    expect(responses.map(({ status }) => status)).toEqual([422, 422, 200]);
  });

  it('shows new, renamed and inactive rewards in the next response', async () => {
    const { card, path, rewards } = await readCard({ rewards: [1] });
    const reward = `${store.store}/rewards/${rewards[0]?.id}`;
    const stampAndListRewards = async () =>
      (await stamp(path)).body.available_rewards.map(({ name }) => name);
    await sendToOtherApi('POST', `${store.store}/rewards`, {
      reward: { card_id: card.id, name: 'Cake', stamps_required: 1 },
    });
    expect(await stampAndListRewards()).toEqual(['Reward at 1', 'Cake']);
    await sendToOtherApi('PATCH', reward, { reward: { name: 'Tea' } });
    expect(await stampAndListRewards()).toEqual(['Tea', 'Cake']);
    await sendToOtherApi('PATCH', reward, { reward: { active: false } });
    expect(await stampAndListRewards()).toEqual(['Cake']);
  });

  it('refuses a stamp after its customer was erased', async () => {
    const { path, customer } = await readCard();
    await sendToOtherApi('POST', `${store.store}/customers/${customer.id}/erase`);
    expectRefused(await stamp(path), 'base', 'customer_erased');
  });

  it('shows in the next response that its pass was installed', async () => {
    const { path, customerCard } = await readCard();
    expect((await stamp(path)).body.pass_installed).toBe(false);
    await service.running.database.query(
      `insert into pass_installations (customer_card_id, platform, account_id, installed_at)
       values ($1, 'apple', $2, now())`,
      [customerCard.id, store.accountId],
    );
    expect((await stamp(path)).body.pass_installed).toBe(true);
  });

  it('hands a stamp to the surviving card after its customer was merged', async () => {
    const { card, path, customer } = await readCard();
    await stamp(path, 2);
    const { customer: otherCustomer } = await enrol(store, { on: card });
    await sendToOtherApi('POST', `${store.store}/customers/${otherCustomer.id}/merge`, {
      from_customer_id: customer.id,
    });
    const { body } = await stamp(path);
    expect(body).toMatchObject({ customer_id: otherCustomer.id, stamps_count: 3 });
  });
});

describe('the version of a store', () => {
  const findVersion = async () => {
    const { rows } = await service.running.database.query<{ version: number }>(
      'select version from account_versions where account_id = $1',
      [store.accountId],
    );
    return rows[0]?.version ?? 0;
  };

  it('rises with a change of the store, a card or a reward and with an erasure, not with stamps, enrolments or edited customers', async () => {
    const { card, customer, rewards, path } = await enrol(store, { rewards: [5] });
    const card_id = card.id;
    const reward = `${store.store}/rewards/${rewards[0]?.id}`;
    const requests: [string, string, object?][] = [
      ['PATCH', `/api/v1/accounts/${store.accountId}`, { account: { time_zone: 'Asia/Tokyo' } }],
      ['PATCH', `${store.store}/cards/${card_id}`, { card: { name: 'Tea' } }],
      ['POST', `${store.store}/cards/${card_id}/archive`],
      ['POST', `${store.store}/cards/${card_id}/unarchive`],
      ['POST', `${store.store}/rewards`, { reward: { card_id, name: 'Pie', stamps_required: 1 } }],
      ['PATCH', reward, { reward: { name: 'Tea' } }],
      ['DELETE', reward],
      ['POST', `${path}/stamp`, { stamps: 1 }],
      [
        'POST',
        `${store.store}/customers`,
        { customer: { first_name: 'Bea', email: 'b@example.com' }, card_id },
      ],
      ['PATCH', `${store.store}/customers/${customer.id}`, { customer: { first_name: 'Cy' } }],
      ['POST', `${store.store}/customers/${customer.id}/erase`],
    ];
    const raisingRequests: string[] = [];
    for (const [method, url, body] of requests) {
      const before = await findVersion();
      const { status } = await store.send(method, url, body);
      expect([200, 201, 204]).toContain(status);
      if ((await findVersion()) > before)
        raisingRequests.push(`${method} ${url.split('/').at(-1)}`);
    }
    expect(raisingRequests).toEqual([
      `PATCH ${store.accountId}`,
      `PATCH ${card_id}`,
      'POST archive',
      'POST unarchive',
      'POST rewards',
      `PATCH ${rewards[0]?.id}`,
      `DELETE ${rewards[0]?.id}`,
      'POST erase',
    ]);
  });

  it('rises when the key of a customer is renewed', async () => {
    const { customer } = await enrol(store);
    const before = await findVersion();
    expect(
      await service.running.app.get(PersonalKeys).renew(customer.account_id, [customer.id]),
    ).toEqual([]);
    expect(await findVersion()).toBeGreaterThan(before);
    // The result names customers whose key is being renewed already.
    expect(
      await service.running.app.get(PersonalKeys).renew(customer.account_id, [customer.id]),
    ).toEqual([customer.id]);
  });
});
