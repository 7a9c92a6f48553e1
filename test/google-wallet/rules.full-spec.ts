import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { useService, expectFailure, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import {
  findBalance,
  listNotifications,
  findObject,
  openLink,
  saveToGoogle,
  waitForBalance,
} from '../support/emulators/google/passes.js';
import {
  startGoogleWallet,
  type CallbackEvent,
  type GoogleWallet,
} from '../support/emulators/google/server.mjs';
import type { Program } from '../support/services/program.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, startDispatcher } from '../support/services/webhook-dispatcher.js';

let google: GoogleWallet;
let dispatcher: Program;
const settings: NodeJS.ProcessEnv = {};

beforeAll(async () => {
  google = await startGoogleWallet();
  Object.assign(settings, google.environment);
});
const service = useService(settings);
const withoutGoogle = useService();
beforeAll(async () => {
  dispatcher = await startDispatcher(service.running);
});
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await google.stop();
});

/** A card in a customer's Google Wallet. */
async function saved(options: Parameters<typeof enrol>[1] = {}) {
  const store = await service.newStore();
  const story = await enrol(store, options);
  const { uuid } = story.customerCard;
  await saveToGoogle(google, store, uuid);
  return { ...story, store, uuid };
}

async function callBack(event: Partial<CallbackEvent> & { objectId: string }, wrong = {}) {
  const body = google.envelope({ classId: 'any', eventType: 'save', ...event }, wrong);
  return post(body);
}

function post(body: string) {
  return service.anonymous.send('POST', '/wallet/google/callback', body, {
    'content-type': 'application/json',
  });
}

const isInstalled = async (store: ContractClient, path: string) =>
  (await store.get<CustomerCardDetailJson>(path)).body.pass_installed;

const WEB_CARD = 'https://cards.example/passes';

function untilState(uuid: string, state: string) {
  return eventually(
    () => findObject(google, uuid),
    (object) => object?.['state'] === state,
  );
}

describe('the Google link of a customer card', () => {
  it("GOOGLE-01 `google_wallet_url` redirects with 302 to Google's page for saving the card, with a link signed for this request", async () => {
    const store = await service.newStore();
    const { customerCard } = await enrol(store);
    expect(customerCard.google_wallet_url).toBe(`${WEB_CARD}/${customerCard.uuid}/google`);
    const url = `${store.baseUrl}/passes/${customerCard.uuid}/google`;
    const response = await fetch(url, { redirect: 'manual' });
    expect(response.status).toBe(302);
    expect(response.headers.get('cache-control')).toContain('no-store');
    const link = response.headers.get('location') ?? '';
    expect(link.startsWith(`${google.saveUrl}/`)).toBe(true);
    expect(link.length).toBeLessThanOrEqual(1800);
    expect((await google.save(link)).status).toBe(200);
    expect(google.saved.size).toBeGreaterThan(0);
  });

  it('GOOGLE-02 The card in the wallet shows the balance, the code, the name and colours of the card, the rewards, and until when it is valid', async () => {
    const store = await service.newStore({ timeZone: 'Europe/Berlin' });
    const pin = { latitude: 53.5503, longitude: 9.9929 };
    await store.post(`${store.store}/locations`, {
      location: { name: 'Old Town', address: 'Marktplatz 1, Hamburg', pin },
    });
    const { customerCard, card } = await enrol(store, {
      card: { stamps_required: 8, card_color: '#123456', expires_at: '2099-01-31T22:59:59Z' },
      rewards: [3, 8],
    });
    await saveToGoogle(google, store, customerCard.uuid);
    expect(findObject(google, customerCard.uuid)).toMatchObject({
      state: 'ACTIVE',
      accountId: customerCard.code,
      barcode: { type: 'QR_CODE', value: customerCard.code },
      loyaltyPoints: { balance: { string: '0 / 8' } },
      validTimeInterval: { end: { date: '2099-01-31T23:59:59+01:00' } },
    });
    const loyaltyClass = [...google.classes.values()].find(({ id }) =>
      id.includes(`card_${card.id}_`),
    );
    expect(loyaltyClass).toMatchObject({
      issuerName: 'Corner Café',
      programName: 'Coffee',
      hexBackgroundColor: '#123456',
      merchantLocations: [pin],
      callbackOptions: { url: 'https://cards.example/wallet/google/callback' },
    });
    expect(JSON.stringify(loyaltyClass)).toContain('Reward at 3: 3 stamps');
    const images = [
      loyaltyClass?.['programLogo'],
      findObject(google, customerCard.uuid)?.['heroImage'],
    ];
    for (const image of images as { sourceUri: { uri: string } }[]) {
      const url = image.sourceUri.uri.replace('https://cards.example', store.baseUrl);
      const { status, headers } = await fetch(url);
      expect([status, headers.get('content-type')]).toEqual([200, 'image/png']);
    }
  });

  it('GOOGLE-03 With an unknown uuid or an expired card `google_wallet_url` leads to the web card, `{public}/passes/{uuid}`', async () => {
    const store = await service.newStore();
    const unknown = randomUUID();
    expect(await openLink(store, unknown)).toBe(`${WEB_CARD}/${unknown}`);
    expect(await openLink(store, 'no%20uuid')).toBe(`${WEB_CARD}/no%20uuid`);
    const expired = await enrol(store);
    await store.patch(`${store.store}/cards/${expired.card.id}`, {
      card: { expires_at: '2020-01-01T00:00:00Z' },
    });
    const past = expired.customerCard.uuid;
    expect(await openLink(store, past)).toBe(`${WEB_CARD}/${past}`);
  });

  it('GOOGLE-04 While Google is down `google_wallet_url` leads to a link that holds the whole pass, or, where that would be too long, to the web card', async () => {
    const { store, card } = await saved();
    const { body: customer } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
      customer: { first_name: 'Ben', email: 'ben@example.com' },
      card_id: card.id,
    });
    const { uuid, id } = customer.customer_card ?? { uuid: '', id: 0 };
    const large = await enrol(store, {
      card: { header_text: 'x'.repeat(255) },
      rewards: [2, 4, 6, 8],
    });
    await google.stopListening();
    const link = await openLink(store, uuid);
    const page = await openLink(store, large.customerCard.uuid);
    await stamp(store, `${store.store}/customers/${customer.id}/customer_cards/${id}`);
    await google.listenAgain();
    expect((await google.save(link)).status).toBe(200);
    expect(page).toBe(`${WEB_CARD}/${large.customerCard.uuid}`);
    await waitForBalance(google, uuid, '1 / 10');
    await waitForBalance(google, large.customerCard.uuid, '0 / 10');
    await saveToGoogle(google, store, large.customerCard.uuid);
  });
});

describe('without Google', () => {
  it('GOOGLE-14 Without Google set up `google_wallet_url` leads to the web card', async () => {
    const store = await withoutGoogle.newStore();
    const { uuid } = (await enrol(store)).customerCard;
    expect(await openLink(store, uuid)).toBe(`${WEB_CARD}/${uuid}`);
    expectFailure(await store.post('/wallet/google/callback', {}), 404, 'not_found');
  });
});

describe('a card in Google Wallet', () => {
  it('GOOGLE-05 A stamp changes the balance of the pass, and Google tells the customer of it, once', async () => {
    const { store, path, uuid } = await saved();
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    await eventually(
      () => listNotifications(google, uuid),
      ([notification]) => notification?.text === '1 / 10',
    );
    await stamp(store, path, 1, { stamps: 2 });
    await waitForBalance(google, uuid, '3 / 10');
    expect(
      listNotifications(google, uuid).map(({ kind, text, seen }) => [kind, text, seen]),
    ).toEqual([
      ['update', '1 / 10', true],
      ['update', '3 / 10', true],
    ]);
  });

  it('GOOGLE-06 With `skip_notifications` the balance of the pass changes silently', async () => {
    const { store, path, uuid } = await saved();
    await stamp(store, path, 1, { skip_notifications: true });
    await waitForBalance(google, uuid, '1 / 10');
    expect(listNotifications(google, uuid)).toEqual([]);
  });

  it('GOOGLE-07 Google tells of an unlocked reward with a message of its own', async () => {
    const { store, path, uuid } = await saved({ rewards: [2] });
    await stamp(store, path, 1, { stamps: 2 });
    const notifications = await eventually(
      () => listNotifications(google, uuid),
      ({ length }) => length > 0,
    );
    expect(notifications).toMatchObject([
      { kind: 'message', text: 'Your reward is ready: Reward at 2.', seen: true },
    ]);
    expect(findBalance(google, uuid)).toBe('2 / 10');
  });

  it('GOOGLE-08 Google tells of three changes and shows three messages in 24 hours; beyond that, passes change silently', async () => {
    const { store, path, uuid } = await saved();
    for (const n of [1, 2, 3, 4, 5]) {
      await stamp(store, path);
      await waitForBalance(google, uuid, `${n} / 10`);
    }
    expect(listNotifications(google, uuid).map(({ text }) => text)).toEqual([
      '1 / 10',
      '2 / 10',
      '3 / 10',
    ]);
    const requests = google.writes.filter(
      ({ path: to, body }) => to.includes(uuid) && body['notifyPreference'] !== undefined,
    );
    expect(requests).toHaveLength(3);
  });

  it('GOOGLE-09 The pass of an erased customer, or of a card that was merged into another one, is made inactive, with nothing personal left', async () => {
    const holder = await saved();
    const expire = (expires_at: string) =>
      holder.store.patch(`${holder.store.store}/cards/${holder.card.id}`, { card: { expires_at } });
    expect((await expire('2020-01-01T00:00:00Z')).status).toBe(200);
    await untilState(holder.uuid, 'EXPIRED');
    expect(findBalance(google, holder.uuid)).toBe('0 / 10');
    expect((await expire('2199-01-01T00:00:00Z')).status).toBe(200);
    await untilState(holder.uuid, 'ACTIVE');
    const { body: otherCustomer } = await holder.store.post<CreatedCustomerJson>(
      `${holder.store.store}/customers`,
      { customer: { first_name: 'Ben', email: 'ben@example.com' }, card_id: holder.card.id },
    );
    const merged = otherCustomer.customer_card?.uuid ?? '';
    await saveToGoogle(google, holder.store, merged);
    const path = `${holder.store.store}/customers/${holder.customer.id}/merge`;
    expect((await holder.store.post(path, { from_customer_id: otherCustomer.id })).status).toBe(
      200,
    );
    await untilState(merged, 'INACTIVE');
    expect(findObject(google, holder.uuid)).toMatchObject({ state: 'ACTIVE' });
    const { store, customer, uuid } = await saved({ card: { show_member_field: true } });
    expect(JSON.stringify(findObject(google, uuid))).toContain('Anna');
    await store.post(`${store.store}/customers/${customer.id}/erase`);
    const object = await untilState(uuid, 'INACTIVE');
    expect(JSON.stringify(object)).not.toContain('Anna');
  });

  it('GOOGLE-15 Archiving a card changes nothing about its passes: they stay active, are kept up to date, and can be saved', async () => {
    const { store, card, path, uuid } = await saved();
    const before = findObject(google, uuid);
    expect((await store.post(`${store.store}/cards/${card.id}/archive`)).status).toBe(200);
    expect(await openLink(store, uuid)).toContain(`${google.saveUrl}/`);
    expect(findObject(google, uuid)).toEqual(before);
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    expect(findObject(google, uuid)).toMatchObject({
      state: 'ACTIVE',
      barcode: { type: 'QR_CODE' },
    });
  });
});

describe('a card of a store with words and scanners of its own', () => {
  it('GOOGLE-16 With a `stamp_message` or `redemption_message` that text is a message, in place of what Google says of the balance', async () => {
    const { store, path, uuid, rewards } = await saved({
      card: { stamp_message: '{missing} more to your free coffee', redemption_message: 'Enjoy!' },
      rewards: [2],
    });
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    await eventually(
      () => listNotifications(google, uuid),
      ({ length }) => length === 1,
    );
    await stamp(store, path);
    await waitForBalance(google, uuid, '2 / 10');
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    await waitForBalance(google, uuid, '0 / 10');
    const notifications = await eventually(
      () => listNotifications(google, uuid),
      ({ length }) => length === 3,
    );
    expect(notifications.map(({ kind, text }) => [kind, text])).toEqual([
      ['message', '1 more to your free coffee'],
      ['message', 'Your reward is ready: Reward at 2.'],
      ['message', 'Enjoy!'],
    ]);
  });

  it("GOOGLE-17 The barcode has the card's `barcode_format`", async () => {
    for (const [barcode_format, type] of [
      ['aztec', 'AZTEC'],
      ['pdf417', 'PDF_417'],
      ['code128', 'CODE_128'],
    ] as const) {
      const { uuid, customerCard } = await saved({ card: { barcode_format } });
      const barcode = { type, value: customerCard.code };
      expect(findObject(google, uuid)).toMatchObject({ barcode });
    }
  });
});

describe('a callback from Google', () => {
  it("GOOGLE-10 `pass_installed` follows Google's callback", async () => {
    const { store, path, uuid } = await saved();
    expect(await isInstalled(store, path)).toBe(false);
    const { id: objectId } = findObject(google, uuid) ?? { id: '' };
    expect((await callBack({ objectId })).status).toBe(200);
    expect(await isInstalled(store, path)).toBe(true);
    expect((await callBack({ objectId, eventType: 'del' })).status).toBe(200);
    expect(await isInstalled(store, path)).toBe(false);
  });

  it('GOOGLE-11 A callback that Google has not signed for this issuer, or that has expired, is 422, and changes nothing', async () => {
    const { store, path, uuid } = await saved();
    const { id: objectId } = findObject(google, uuid) ?? { id: '' };
    for (const wrong of [
      { rootless: true },
      { recipientId: '3388000000022999999' },
      { keyExpiration: Date.now() - 1 },
      { protocolVersion: 'ECv1' },
    ]) {
      expectFailure(await callBack({ objectId }, wrong), 422, 'validation_failed');
    }
    expectFailure(
      await callBack({ objectId, expTimeMillis: Date.now() - 1 }),
      422,
      'validation_failed',
    );
    for (const body of ['{}', '[]', '"save"', 'null']) {
      expectFailure(await post(body), 422, 'validation_failed');
    }
    expectFailure(await post('{'), 400, 'malformed_json');
    expect(await isInstalled(store, path)).toBe(false);
  });

  it('GOOGLE-12 The same callback a second time changes nothing', async () => {
    const { store, path, uuid } = await saved();
    const { id: objectId } = findObject(google, uuid) ?? { id: '' };
    const body = google.envelope({ classId: 'any', objectId, eventType: 'save' });
    expect((await post(body)).status).toBe(200);
    expect((await callBack({ objectId, eventType: 'del' })).status).toBe(200);
    expect((await post(body)).status).toBe(200);
    expect(await isInstalled(store, path)).toBe(false);
  });

  it('GOOGLE-13 A callback for a pass of another installation with the same issuer is taken, and changes nothing', async () => {
    const objectId = `${google.issuerId}.cc_${randomUUID()}_staging`;
    expect((await callBack({ objectId })).status).toBe(200);
  });
});
