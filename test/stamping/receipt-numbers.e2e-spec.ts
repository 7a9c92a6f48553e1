import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ErrorJson } from '#platform/http/error-response.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { Client, startService, type LocalService } from '../support/services/service.js';

/** A process remembers the receipt numbers that it has seen; another one has to find them. */

let service: LocalService;
let otherService: LocalService;
let store: Client;
let storeAtOther: Client;

beforeAll(async () => {
  service = await startService();
  otherService = await startService(service.environment, service.database);
  store = await service.newStore();
  storeAtOther = new Client(otherService.baseUrl, store.accountId, store.token);
});
afterAll(async () => {
  await otherService.app.close();
  await service.stop();
});

describe('a receipt number that reaches another process', () => {
  it('gets the first result of a stamping, though its location was deleted since', async () => {
    const { path } = await enrol(store);
    const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location: { name: 'Old Town', address: 'Marktplatz 1', pin: { latitude: 53, longitude: 9 } },
    });
    const body = { stamps: 1, location_id: location.id, external_ref: 'stamping' };
    const first = await store.post(`${path}/stamp`, body);
    await store.send('DELETE', `${store.store}/locations/${location.id}`);
    const repeated = await storeAtOther.post(`${path}/stamp`, body);
    expect([first.status, repeated.status, repeated.body]).toEqual([200, 200, first.body]);
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');
  });

  it('gets the first result of a redemption, though its reward was switched off since', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 5);
    const body = { reward_id: rewards[0]?.id, external_ref: 'redemption' };
    const first = await store.post(`${path}/redeem`, body);
    const reward = { reward: { active: false } };
    await store.send('PATCH', `${store.store}/rewards/${rewards[0]?.id}`, reward);
    const repeated = await storeAtOther.post(`${path}/redeem`, body);
    expect([first.status, repeated.status, repeated.body]).toEqual([200, 200, first.body]);
  });

  it('is taken for a redemption of another reward, even of one that does not exist', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 8);
    const external_ref = 'two rewards';
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id, external_ref });
    const body = { reward_id: 999_999, external_ref };
    const refused = await storeAtOther.post<ErrorJson>(`${path}/redeem`, body);
    expect([refused.status, refused.body.code]).toEqual([422, 'taken']);
  });

  it('changes nothing about a customer card that does not exist', async () => {
    const path = `${store.store}/customers/999999/customer_cards/999999/stamp`;
    expect((await storeAtOther.post(path, { stamps: 1, external_ref: 'none' })).status).toBe(404);
  });
});
