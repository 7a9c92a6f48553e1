import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { ReversedReceiptJson } from '#loyalty/stamping/receipt-reversal.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import { Client, startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * A merge, or the reversal of a receipt, of which only the first event is in EventStoreDB: the process that was writing it has died, and clients go on
 * stamping both cards until another process finishes it.
 */

const SLOW = 300_000;

let server: EventStoreDb;
let service: Service;
let store: Client;
let program: Program;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
}, SLOW);
afterEach(async () => {
  server.fault.clear();
  await program.kill('SIGTERM');
}, SLOW);
afterAll(async () => {
  await service.stop();
  await server.stop();
}, SLOW);

const countIntents = async () =>
  (await service.database.query('select id from es.intents')).rowCount;
const read = async (path: string) => (await store.get<CustomerJson>(path)).body;

/** Kills another api once it has appended the first event of its merge. */
const mergeAndDie = (path: string, action: string, from: number) =>
  sendAndDie(`${path}/${action}`, { from_customer_id: from });

/** Kills another api once it has appended the first event of its commit. */
async function sendAndDie(path: string, body: object): Promise<void> {
  const secondApi = await startSecondApi(service, store);
  program = secondApi.program;
  const { second } = secondApi;
  const before = server.appended;
  const release = server.fault.holdResponses('append');
  const lostRequest = second.post(path, body).catch(() => undefined);
  await eventually(
    () => server.appended,
    (appended) => appended > before,
  );
  await program.kill('SIGKILL');
  await lostRequest;
  server.fault.clear();
  release();
  expect(await countIntents()).toBe(1);
}

async function recover(): Promise<void> {
  await service.database.query(`update es.intents set leased_until = now() - interval '1 hour'`);
  await eventually(countIntents, (count) => count === 0);
}

async function verify(): Promise<void> {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const check = startProgram('dist/apps/cli/verify.js', environment);
  expect({ code: await check.exitCode, output: check.output() }).toEqual({
    code: 0,
    output: expect.stringContaining('every read model matches'),
  });
}

it(
  'a merge whose process died after its first event is finished with the stamps made meanwhile, and so is an unmerge',
  async () => {
    const one = await enrol(store, { rewards: [8] });
    const two = await enrol(store);
    const [into, from] = [one, two].map(
      ({ customer }) => `${store.store}/customers/${customer.id}`,
    );
    const enrolment = await store.post<CustomerCardDetailJson>(`${from}/customer_cards`, {
      card_id: one.card.id,
    });
    const closedCardPath = `${from}/customer_cards/${enrolment.body.id}`;
    const stamp = async (path: string, stamps: number) =>
      expect((await store.stamp(path, stamps)).status).toBe(200);
    await stamp(one.path, 4);
    await stamp(closedCardPath, 2);
    await stamp(two.path, 1);

    await mergeAndDie(String(into), 'merge', two.customer.id);
    await stamp(one.path, 1);
    await stamp(closedCardPath, 1);
    await stamp(two.path, 1);
    await store.send('PATCH', String(from), { customer: { last_name: 'Tal' } });
    await recover();
    const survivor = await read(String(into));
    expect(survivor.customer_cards.map(({ id, stamps_count }) => [id, stamps_count])).toEqual([
      [one.customerCard.id, 8],
      [two.customerCard.id, 2],
    ]);
    const { body: card } = await store.get<CustomerCardDetailJson>(closedCardPath);
    expect([card.id, card.available_rewards.map(({ id }) => id)]).toEqual([
      one.customerCard.id,
      one.rewards.map(({ id }: RewardJson) => id),
    ]);
    expect(await read(String(from))).toMatchObject({
      merged_into: one.customer.id,
      last_name: 'Tal',
      stamp_count: 0,
    });
    await verify();

    await mergeAndDie(String(into), 'unmerge', two.customer.id);
    await stamp(one.path, 1);
    const [reward] = one.rewards;
    const redeemed = await store.post(`${one.path}/redeem`, { reward_id: reward?.id });
    expect(redeemed.status).toBe(200);
    await recover();
    // 9 stamps, 8 of them spent: one of the 3 that the merge had added is left.
    const balances = async (path: string) =>
      (await read(path)).customer_cards.map(({ id, stamps_count }) => [id, stamps_count]);
    expect(await balances(String(into))).toEqual([[one.customerCard.id, 0]]);
    expect(await balances(String(from))).toEqual([
      [two.customerCard.id, 2],
      [enrolment.body.id, 1],
    ]);
    expect((await read(String(from))).merged_into).toBeNull();
    await verify();
  },
  SLOW,
);

it(
  'the reversal of a receipt whose process died after its first event gives the other card its stamps back',
  async () => {
    const stamped = await enrol(store);
    const redeemed = await enrol(store, { rewards: [3], card: { initial_stamps: 4 } });
    const external_ref = 'voided';
    await store.post(`${stamped.path}/stamp`, { stamps: 2, external_ref });
    const redemption = { reward_id: redeemed.rewards[0]?.id, external_ref };
    expect((await store.post(`${redeemed.path}/redeem`, redemption)).status).toBe(200);

    const path = `${store.store}/receipts/reverse`;
    const body = { external_ref, reason: 'A void sale' };
    await sendAndDie(path, body);
    expect((await store.stamp(redeemed.path)).status).toBe(200);
    await recover();
    expect([await store.readBalance(stamped.path), await store.readBalance(redeemed.path)]).toEqual(
      [0, 5],
    );
    const again = await store.post<ReversedReceiptJson>(path, body);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(again.body.reversed).toHaveLength(2);
    expect(again.body.customer_card).toMatchObject({
      id: stamped.customerCard.id,
      stamps_count: 0,
    });
    await verify();
  },
  SLOW,
);
