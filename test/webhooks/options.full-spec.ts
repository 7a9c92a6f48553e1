import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createPublicKey, verify } from 'node:crypto';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type {
  DeliveryDetailJson,
  DeliveryJson,
  ReplayJson,
} from '#outbound/subscriptions/webhook-delivery.dto.js';
import type {
  WebhookSubscriptionJson,
  WebhookSubscriptionSecretJson,
  WebhookTestJson,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import {
  isSigned,
  Receiver,
  type Received,
  type Reply,
} from '../support/emulators/webhook-receiver.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { FEED } from '#outbound/dispatch/replays.service.js';
import type { Program } from '../support/services/program.js';
import {
  CUSTOMER_EVENTS,
  listReceivedBalances,
  stamp,
  startDispatcher,
} from '../support/services/webhook-dispatcher.js';

const HEADERS = { 'X-Api-Key': 'k3y-of-the-till', Authorization: 'Bearer abcdef-123456' };
const HIDDEN = '•••';
const HIDDEN_HEADERS = { 'X-Api-Key': HIDDEN, Authorization: HIDDEN };
const FAR_PAST = '2020-01-01T00:00:00Z';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const receivers: Receiver[] = [];
let dispatcher: Program;

beforeAll(async () => {
  dispatcher = await startDispatcher(service.running);
});
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
});
afterAll(() => dispatcher.kill('SIGTERM'));

type Hook = WebhookSubscriptionSecretJson & {
  store: ContractClient;
  path: string;
  receiver: Receiver;
};

const pathOf = ({ store }: ContractClient) => `${store}/webhook_subscriptions`;

const create = (store: ContractClient, body: object) =>
  store.post<WebhookSubscriptionSecretJson>(pathOf(store), {
    events: CUSTOMER_EVENTS,
    target_url: 'http://127.0.0.1:9/',
    ...body,
  });

/** A subscription to a receiver of its own, in a store of its own unless another is passed. */
async function listening(
  body: object = {},
  reply: Reply | ((received: Received) => Reply) = { status: 200 },
  own?: ContractClient,
): Promise<Hook> {
  const store = own ?? (await service.newStore());
  const receiver = await Receiver.start((received) =>
    typeof reply === 'function' ? reply(received) : reply,
  );
  receivers.push(receiver);
  const response = await create(store, { target_url: receiver.url, ...body });
  expect(response.status).toBe(201);
  const path = `${pathOf(store)}/${response.body.id}`;
  return { ...response.body, store, path, receiver };
}

const change = ({ store, path }: Hook, body: object) =>
  store.patch<WebhookSubscriptionJson>(path, body);

const show = async ({ store, path }: Hook) =>
  (await store.get<WebhookSubscriptionSecretJson>(path)).body;

async function sendTest({ store, path, receiver }: Hook): Promise<Received | undefined> {
  const response = await store.post<WebhookTestJson>(`${path}/test`);
  expect(response.status).toBe(200);
  return receiver.received.find(({ headers }) => headers['webhook-id'] === response.body.event_id);
}

const listDeliveries = async ({ store, path }: Hook): Promise<DeliveryJson[]> =>
  (await store.get<DeliveryJson[]>(`${path}/deliveries`)).body;

const listTypes = ({ receiver }: Hook) => receiver.events.map(({ body }) => body['type']);

/** Waits until so many events have arrived. */
const received = (hook: Hook, count: number): Promise<Received[]> =>
  eventually(
    () => hook.receiver.events,
    (events) => events.length >= count,
  );

async function createLocation(store: ContractClient, name: string): Promise<number> {
  const location = { name, address: 'Main Street 1' };
  return (await store.post<LocationJson>(`${store.store}/locations`, { location })).body.id;
}

/** Adds a card of a second template to a customer. */
async function addCard(store: ContractClient, customer: CreatedCustomerJson) {
  const card = (await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Tea' } })).body;
  const path = `${store.store}/customers/${customer.id}/customer_cards`;
  const response = await store.post<{ id: number }>(path, { card_id: card.id });
  expect(response.status).toBe(201);
  return { card, path: `${path}/${response.body.id}` };
}

/** Breaks a sealed column, as a lost master key would. */
const breakColumn = (column: string, { id }: { id: number }) =>
  service.running.database.query(
    `update webhook_subscriptions
     set ${column} = set_byte(${column}, 20, (get_byte(${column}, 20) + 1) % 256) where id = $1`,
    [id],
  );

function isSignedWithKey({ headers, text }: Received, publicKey: string | null): boolean {
  const x = Buffer.from((publicKey ?? '').replace('whpk_', ''), 'base64').toString('base64url');
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
  const message = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  return `${headers['webhook-signature']}`.split(' ').some((part) => {
    const [version, signature = ''] = part.split(',');
    const bytes = Buffer.from(signature, 'base64');
    return version === 'v1a' && verify(null, Buffer.from(message), key, bytes);
  });
}

describe('headers of a webhook subscription', () => {
  it('HOOK-68 `headers` are sent with every delivery, redelivery and test', async () => {
    const hook = await listening({
      headers: HEADERS,
      event: 'customer.created',
      events: undefined,
    });
    await sendTest(hook);
    await enrol(hook.store);
    await received(hook, 2);
    const [delivery] = await eventually(
      () => listDeliveries(hook),
      ([first]) => first?.status === 'delivered',
    );
    await hook.store.post(`${hook.path}/deliveries/${delivery?.id}/redeliver`);
    const all = await eventually(
      () => hook.receiver.received,
      (requests) => requests.length === 3,
    );
    for (const { headers } of all) {
      expect(headers).toMatchObject({
        'x-api-key': HEADERS['X-Api-Key'],
        authorization: HEADERS.Authorization,
        'content-type': 'application/json',
      });
    }
  });

  it('HOOK-69 Each value of `headers` is shown as `•••`, in every response', async () => {
    const hook = await listening({ headers: HEADERS });
    expect(hook.headers).toEqual(HIDDEN_HEADERS);
    const responses = [
      await hook.store.get<WebhookSubscriptionJson>(hook.path),
      await change(hook, { description: 'till' }),
      await change(hook, { headers: { ...HEADERS, 'X-Api-Key': 'k3y-of-another-till' } }),
      await hook.store.post<WebhookSubscriptionJson>(`${hook.path}/rotate_secret`),
    ];
    for (const { body, text } of responses) {
      expect(body.headers).toEqual(HIDDEN_HEADERS);
      expect(text).not.toMatch(/k3y-of|abcdef/);
    }
    const list = await hook.store.get<WebhookSubscriptionJson[]>(pathOf(hook.store));
    expect(list.body.map(({ headers }) => headers)).toEqual([HIDDEN_HEADERS]);
    expect(list.text).not.toMatch(/k3y-of|abcdef/);
  });

  it('HOOK-70 The values of `headers` are stored encrypted, and are in no log, audit entry or excerpt of a response', async () => {
    const hook = await listening({ headers: HEADERS }, ({ headers }) => ({
      status: 500,
      body: JSON.stringify(headers),
    }));
    await change(hook, { headers: { ...HEADERS, 'X-Api-Key': 'k3y-of-another-till' } });
    await enrol(hook.store);
    const [delivery] = await eventually(
      () => listDeliveries(hook),
      ([first]) => (first?.attempts_count ?? 0) > 0,
    );
    const detail = await hook.store.get<DeliveryDetailJson>(
      `${hook.path}/deliveries/${delivery?.id}`,
    );
    expect(detail.body.attempts[0]?.response_excerpt).toContain(`"x-api-key":"${HIDDEN}"`);
    const entries = await hook.store.get<AuditEntryJson[]>(`${hook.store.store}/audit`);
    const updated = entries.body.find(({ type }) => type === 'webhook_subscription.updated');
    const names = Object.keys(HEADERS);
    expect(updated?.subject).toMatchObject({ changes: { headers: { from: names, to: names } } });
    const { rows } = await service.running.database.query<{ row: string; headers: Buffer }>(
      'select w::text as row, headers from webhook_subscriptions w where id = $1',
      [hook.id],
    );
    const texts = [
      detail.text,
      entries.text,
      rows[0]?.row,
      rows[0]?.headers.toString('latin1'),
      dispatcher.output(),
    ];
    for (const text of texts) expect(text).not.toMatch(/k3y-of|abcdef/);
  });

  it('HOOK-71 More than 10 headers, a name of other characters than letters, digits, `-` and `_`, or longer than 64, or two names that differ in case alone are 422 `headers`', async () => {
    const store = await service.newStore();
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'v']));
    expect((await create(store, { headers: many(10) })).status).toBe(201);
    const long = 'x'.repeat(64);
    expect((await create(store, { headers: { [long]: 'v', X_y: 'v' } })).status).toBe(201);
    const unfit = [many(11), { 'X A': 'v' }, { 'X:': 'v' }, { 'X\r\nY': 'v' }, { ü: 'v' }];
    for (const headers of [
      ...unfit,
      { '': 'v' },
      { [`${long}x`]: 'v' },
      { 'X-A': 'v', 'x-a': 'v' },
    ]) {
      expectRefused(await create(store, { headers }), 'headers');
    }
    for (const headers of [[], 'X-A: v', 7]) {
      expectRefused(await create(store, { headers }), 'headers');
    }
  });

  it('HOOK-72 Host, User-Agent, Service-Event, `Content-…`, `webhook-…`, `Proxy-…` and the headers of a connection are 422 `headers`', async () => {
    const store = await service.newStore();
    const unfit =
      'Host User-Agent service-event Content-Type content-length Webhook-Id webhook-x Proxy-Authorization Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade';
    for (const name of unfit.split(' ')) {
      expectRefused(await create(store, { headers: { [name]: 'v' } }), 'headers');
    }
  });

  it('HOOK-73 A value of `headers` that is not a string of 1 to 1,024 visible ASCII characters, with spaces only between them, is 422 `headers`', async () => {
    const store = await service.newStore();
    const fit = ['a', 'x'.repeat(1024), 'Bearer a b'];
    for (const value of fit) {
      expect((await create(store, { headers: { 'X-A': value } })).status).toBe(201);
    }
    const unfit = [
      '',
      ' a',
      'a ',
      'a\r\nX-B: b',
      'a\n',
      'a\0',
      'ä',
      'a\tb',
      'x'.repeat(1025),
      7,
      null,
    ];
    for (const value of [...unfit, [], HIDDEN]) {
      expectRefused(await create(store, { headers: { 'X-A': value } }), 'headers');
    }
  });

  it('HOOK-74 `headers` in a PATCH replace all of them, and null removes them', async () => {
    const hook = await listening({ headers: HEADERS });
    const replaced = await change(hook, { headers: { 'X-Other': 'other' } });
    expect(replaced.body.headers).toEqual({ 'X-Other': HIDDEN });
    const first = await sendTest(hook);
    expect(first?.headers['x-other']).toBe('other');
    expect(first?.headers).not.toHaveProperty('authorization');
    expect((await change(hook, { headers: null })).body.headers).toEqual({});
    expect((await sendTest(hook))?.headers).not.toHaveProperty('x-other');
  });

  it('HOOK-75 The value `•••` of a header in a PATCH keeps its value; for a header without one it is 422 `headers`', async () => {
    const hook = await listening({ headers: HEADERS });
    const { updated_at, headers } = await show(hook);
    expect((await change(hook, { headers })).body.updated_at).toBe(updated_at);
    await change(hook, { headers: { ...headers, 'X-Api-Key': 'new' } });
    expect((await sendTest(hook))?.headers).toMatchObject({
      'x-api-key': 'new',
      authorization: HEADERS.Authorization,
    });
    expectRefused(await change(hook, { headers: { 'X-Other': HIDDEN } }), 'headers');
  });

  it('HOOK-76 Headers that can no longer be decrypted fail deliveries with that error, and `test` is 422 `base`', async () => {
    const hook = await listening({ headers: HEADERS });
    await breakColumn('headers', hook);
    expect((await show(hook)).headers).toEqual(HIDDEN_HEADERS);
    await enrol(hook.store);
    const failed = await eventually(
      () => show(hook),
      ({ last_delivery_error: error }) => error !== null,
    );
    expect(failed.last_delivery_error).toBe('The headers cannot be decrypted: set them again');
    expect(hook.receiver.received).toEqual([]);
    expectRefused(await hook.store.post(`${hook.path}/test`), 'base');
    expectRefused(await change(hook, { headers: HIDDEN_HEADERS }), 'headers');
    expect((await change(hook, { headers: HEADERS })).status).toBe(200);
    expect((await sendTest(hook))?.headers['x-api-key']).toBe(HEADERS['X-Api-Key']);
  });
});

describe('a webhook subscription to some events', () => {
  it('HOOK-77 With `card_ids` only events about these cards are sent, and events about no card', async () => {
    const store = await service.newStore();
    const { customer, path } = await enrol(store);
    const tea = await addCard(store, customer);
    const hook = await listening({ card_ids: [tea.card.id] }, { status: 200 }, store);
    expect(hook.card_ids).toEqual([tea.card.id]);
    await stamp(store, path);
    await stamp(store, tea.path);
    await store.patch(`${store.store}/customers/${customer.id}`, { customer: { last_name: 'B' } });
    const events = await received(hook, 2);
    expect(events.map(({ body }) => body['type'])).toEqual(['stamp.earned', 'customer.updated']);
    expect(events[0]?.body['data']).toMatchObject({ card_id: tea.card.id });
  });

  it('HOOK-78 With `location_ids` only events at these locations are sent, and events at no location', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const [here, there] = [
      await createLocation(store, 'Here'),
      await createLocation(store, 'There'),
    ];
    const body = { location_ids: [here], event: 'stamp.earned', events: undefined };
    const hook = await listening(body, { status: 200 }, store);
    await stamp(store, path, 1, { location_id: there });
    await stamp(store, path, 1, { location_id: here });
    await stamp(store, path);
    const events = await received(hook, 2);
    expect(
      events.map(({ body: { data } }) => (data as { location_id: number | null }).location_id),
    ).toEqual([here, null]);
  });

  it('HOOK-79 Events outside `card_ids` and `location_ids` take no delivery, and what is sent keeps its order', async () => {
    const store = await service.newStore();
    const { customer, path } = await enrol(store);
    const tea = await addCard(store, customer);
    const body = { card_ids: [tea.card.id], event: 'stamp.earned', events: undefined };
    const hook = await listening(body, { status: 200 }, store);
    for (let i = 0; i < 5; i++) {
      await stamp(store, path);
      await stamp(store, tea.path);
    }
    const events = await received(hook, 5);
    expect(
      events.map(({ body: { data } }) => (data as { stamps_count: number }).stamps_count),
    ).toEqual([1, 2, 3, 4, 5]);
    expect(await listDeliveries(hook)).toHaveLength(5);
  });

  it('HOOK-80 A replay too sends and counts only the events that `card_ids` and `location_ids` allow', async () => {
    const store = await service.newStore();
    const { customer, path } = await enrol(store);
    const tea = await addCard(store, customer);
    const [here, there] = [
      await createLocation(store, 'Here'),
      await createLocation(store, 'There'),
    ];
    for (const location_id of [here, there, null]) {
      await stamp(store, path, 1, { location_id });
      await stamp(store, tea.path, 1, { location_id });
    }
    const limits = { card_ids: [tea.card.id], location_ids: [here] };
    const hook = await listening({ ...limits, events: ['stamp.earned'] }, { status: 200 }, store);
    const { body } = await store.post<ReplayJson>(`${hook.path}/replay`, { from: FAR_PAST });
    expect(body).toEqual({ matched: 2 });
    const events = await received(hook, 2);
    expect(events.map(({ body: { data } }) => data)).toMatchObject([
      { card_id: tea.card.id, location_id: here },
      { card_id: tea.card.id, location_id: null },
    ]);
    expect(await listDeliveries(hook)).toHaveLength(2);
  });

  it('HOOK-81 `card_ids` and `location_ids` that are not a list of 1 to 100 ids are 422 on their name', async () => {
    const store = await service.newStore();
    const tooMany = Array.from({ length: 101 }, (_, i) => i + 1);
    for (const ids of [[], 7, {}, ['x'], [0], [-1], [1.5], [null], [[1]], [2 ** 53], tooMany]) {
      expectRefused(await create(store, { card_ids: ids }), 'card_ids');
      expectRefused(await create(store, { location_ids: ids }), 'location_ids');
    }
  });

  it('HOOK-82 Ids of another store, and of a deleted location, are 422 on `card_ids` and `location_ids`', async () => {
    const store = await service.newStore();
    const otherStore = await service.newStore();
    const [{ card: own }, { card: foreign }] = [await enrol(store), await enrol(otherStore)];
    const [ownPlace, foreignPlace] = [
      await createLocation(store, 'Here'),
      await createLocation(otherStore, 'There'),
    ];
    const hook = await listening(
      { card_ids: [`${own.id}`, own.id], location_ids: [ownPlace] },
      { status: 200 },
      store,
    );
    expect(hook).toMatchObject({ card_ids: [own.id], location_ids: [ownPlace] });
    expectRefused(await create(store, { card_ids: [own.id, foreign.id] }), 'card_ids');
    expectRefused(await create(store, { location_ids: [foreignPlace] }), 'location_ids');
    expectRefused(await change(hook, { card_ids: [foreign.id] }), 'card_ids');
    await store.delete(`${store.store}/locations/${ownPlace}`);
    expectRefused(await change(hook, { location_ids: [ownPlace] }), 'location_ids');
    expect((await change(hook, { description: 'till' })).status).toBe(200);
  });

  it('HOOK-83 null in a PATCH ends the limit of `card_ids` and `location_ids`', async () => {
    const store = await service.newStore();
    const { customer, path } = await enrol(store);
    const tea = await addCard(store, customer);
    const limits = { card_ids: [tea.card.id], location_ids: [await createLocation(store, 'Here')] };
    const hook = await listening({ ...limits, events: ['stamp.earned'] }, { status: 200 }, store);
    const unlimited = { card_ids: null, location_ids: null };
    expect((await change(hook, unlimited)).body).toMatchObject(unlimited);
    await stamp(store, path, 1, { location_id: await createLocation(store, 'There') });
    expect(await received(hook, 1)).toHaveLength(1);
  });
});

/** A customer with every personal field, and a stamp with a note. */
async function enrolPerson(store: ContractClient) {
  const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  const { body: customer } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: {
      first_name: 'Annabella',
      last_name: 'Bergfrau',
      email: `annabella${card.id}@example.com`,
      birthday: '1990-05-31',
      metadata: { shoe: 'sneaker' },
      external_references: [{ source: 'pos', external_id: `ext-annabella-${card.id}` }],
      marketing_consent: true,
    },
    card_id: card.id,
  });
  const path = `${store.store}/customers/${customer.id}`;
  await stamp(store, `${path}/customer_cards/${customer.customer_card?.id}`, 1, {
    note: 'oat latte for Annabella',
  });
  await store.patch(path, { customer: { last_name: 'Bergmann', sms_consent: true } });
  return { customer, path };
}

const PERSONAL = /annabella|berg|1990|sneaker|latte/i;
const NOBODY = {
  first_name: null,
  last_name: null,
  email: null,
  phone: null,
};
const NOTHING_PERSONAL = { ...NOBODY, birthday: null, metadata: null, external_references: null };

describe('a webhook subscription without personal data', () => {
  it('HOOK-84 With `personal_data` false, `first_name`, `last_name`, `email`, `phone`, `birthday`, `metadata`, `external_references` and `note` are null', async () => {
    const hook = await listening({ personal_data: false });
    expect(hook.personal_data).toBe(false);
    const { customer } = await enrolPerson(hook.store);
    const events = await received(hook, 4);
    expect(listTypes(hook)).toEqual([
      'customer.created',
      'customer_card.created',
      'stamp.earned',
      'customer.updated',
    ]);
    const [created, , earned] = events;
    expect(created?.body['data']).toMatchObject({
      id: customer.id,
      ...NOTHING_PERSONAL,
      marketing_consent: true,
      source: 'api',
    });
    expect(earned?.body['data']).toMatchObject({ stamps: 1, note: null });
    for (const event of events) {
      expect(event.text).not.toMatch(PERSONAL);
      expect(isSigned(event, hook.secret)).toBe(true);
    }
  });

  it('HOOK-85 Personal fields are null in `customer` and `previous_attributes` too, in both formats, and in replays and redeliveries', async () => {
    const store = await service.newStore();
    const { customer } = await enrolPerson(store);
    const flat = { personal_data: false, payload_format: 'flat', events: ['stamp.earned'] };
    const hooks = [
      await listening({ personal_data: false }, { status: 200 }, store),
      await listening(flat, { status: 200 }, store),
    ] as const;
    for (const { path } of hooks) await store.post(`${path}/replay`, { from: FAR_PAST });
    const [, issued, earned, updated] = await received(hooks[0], 4);
    for (const event of [issued, earned]) {
      expect(event?.body['data']).toMatchObject({ customer: { id: customer.id, ...NOBODY } });
    }
    expect(updated?.body['previous_attributes']).toEqual({ last_name: null, sms_consent: false });
    const [flatEvent] = await received(hooks[1], 1);
    expect(flatEvent?.body).toMatchObject({
      note: null,
      stamps: 1,
      customer: { id: customer.id, ...NOBODY },
    });
    const [delivery] = await eventually(
      () => listDeliveries(hooks[1]),
      ([first]) => first?.status === 'delivered',
    );
    await store.post(`${hooks[1].path}/deliveries/${delivery?.id}/redeliver`);
    const [first, second] = await eventually(
      () => hooks[1].receiver.received,
      (requests) => requests.length === 2,
    );
    expect(second?.text).toBe(first?.text);
    for (const { receiver } of hooks) {
      for (const { text } of receiver.received) expect(text).not.toMatch(PERSONAL);
    }
  });

  it('HOOK-86 A change of `personal_data` counts from the next attempt on', async () => {
    const hook = await listening({ events: ['customer.created'] });
    const { customer } = await enrolPerson(hook.store);
    const [event] = await received(hook, 1);
    expect(event?.body['data']).toMatchObject({ id: customer.id, first_name: 'Annabella' });
    expect((await change(hook, { personal_data: false })).body.personal_data).toBe(false);
    const [delivery] = await eventually(
      () => listDeliveries(hook),
      ([first]) => first?.status === 'delivered',
    );
    await hook.store.post(`${hook.path}/deliveries/${delivery?.id}/redeliver`);
    const [, again] = await eventually(
      () => hook.receiver.received,
      (requests) => requests.length === 2,
    );
    expect(again?.body['data']).toMatchObject({ id: customer.id, ...NOTHING_PERSONAL });
  });
});

describe('the signature of a webhook subscription', () => {
  const rotate = ({ store, path }: Hook, body: object = {}) =>
    store.post<WebhookSubscriptionSecretJson>(`${path}/rotate_secret`, body);

  it('HOOK-87 With `signature` `ed25519` deliveries have the signature `v1a` of Standard Webhooks, which `public_key` verifies', async () => {
    const hook = await listening({ signature: 'ed25519', events: ['customer.created'] });
    expect(hook.signature).toBe('ed25519');
    const ofTest = await sendTest(hook);
    await enrol(hook.store);
    const [, delivery] = await received(hook, 2);
    const otherHook = await listening({ signature: 'ed25519' });
    for (const webhook of [ofTest, delivery]) {
      expect(webhook?.headers['webhook-signature']).toMatch(/^v1a,[A-Za-z0-9+/]{86}==$/);
      expect(webhook && isSignedWithKey(webhook, hook.public_key)).toBe(true);
      expect(webhook && isSignedWithKey(webhook, otherHook.public_key)).toBe(false);
    }
  });

  it('HOOK-88 `public_key` is `whpk_` and 32 bytes in base64, in every response, and null for `hmac`', async () => {
    const hook = await listening({ signature: 'ed25519' });
    expect(hook.public_key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    const list = await hook.store.get<WebhookSubscriptionJson[]>(pathOf(hook.store));
    const bodies = [
      await show(hook),
      (await change(hook, { description: 'a' })).body,
      ...list.body,
    ];
    for (const { public_key } of bodies) expect(public_key).toBe(hook.public_key);
    expect((await listening()).public_key).toBeNull();
  });

  it('HOOK-89 The private key for `ed25519` is stored encrypted and never shown: `secret` is empty', async () => {
    const hook = await listening({ signature: 'ed25519' });
    const rotated = await rotate(hook);
    for (const { secret } of [hook, await show(hook), rotated.body]) expect(secret).toBe('');
    expect(rotated.text).not.toContain('whsk_');
    const { rows } = await service.running.database.query<{ row: string; secret: Buffer }>(
      'select w::text as row, secret from webhook_subscriptions w where id = $1',
      [hook.id],
    );
    expect(rows[0]?.row).not.toContain('whsk_');
    expect(rows[0]?.secret.toString('latin1')).not.toContain('whsk_');
  });

  it('HOOK-90 `rotate_secret` replaces the key, and with `grace_seconds` both keys sign', async () => {
    const hook = await listening({ signature: 'ed25519' });
    const { body: second } = await rotate(hook, { grace_seconds: 3600 });
    expect(second.public_key).not.toBe(hook.public_key);
    const both = await sendTest(hook);
    expect(both && isSignedWithKey(both, hook.public_key)).toBe(true);
    expect(both && isSignedWithKey(both, second.public_key)).toBe(true);
    const { body: third } = await rotate(hook);
    const webhook = await sendTest(hook);
    expect(webhook && isSignedWithKey(webhook, second.public_key)).toBe(false);
    expect(webhook && isSignedWithKey(webhook, third.public_key)).toBe(true);
  });

  it('HOOK-91 `rotate_secret` with another `signature` changes to it, and with `grace_seconds` both sign', async () => {
    const hook = await listening();
    const { body: withKey } = await rotate(hook, { signature: 'ed25519', grace_seconds: 3600 });
    expect(withKey).toMatchObject({ signature: 'ed25519', secret: '' });
    const both = await sendTest(hook);
    expect(both && isSignedWithKey(both, withKey.public_key)).toBe(true);
    expect(both && isSigned(both, hook.secret)).toBe(true);
    const { body: back } = await rotate(hook, { signature: 'hmac' });
    expect(back).toMatchObject({ signature: 'hmac', public_key: null });
    const webhook = await sendTest(hook);
    expect(webhook && isSigned(webhook, back.secret)).toBe(true);
    expect(webhook && isSignedWithKey(webhook, withKey.public_key)).toBe(false);
  });

  it('HOOK-92 Any other `signature` is 422 `signature`, and so is a change of it in a PATCH', async () => {
    const hook = await listening();
    for (const signature of ['rsa', 'ED25519', 7, []]) {
      expectRefused(await create(hook.store, { signature }), 'signature');
      expectRefused(await rotate(hook, { signature }), 'signature');
    }
    expectRefused(await change(hook, { signature: 'ed25519' }), 'signature');
    expect((await change(hook, { signature: 'hmac' })).status).toBe(200);
  });
});

describe('resuming a webhook subscription', () => {
  it('HOOK-93 `enabled` true also sends, once, what was recorded since the subscription was disabled, unless `replay_missed` is false', async () => {
    const hook = await listening({ events: ['stamp.earned'] });
    const { path } = await enrol(hook.store);
    const resume = (body: object = {}) => change(hook, { enabled: true, ...body });
    await stamp(hook.store, path);
    await received(hook, 1);
    await change(hook, { enabled: false });
    await stamp(hook.store, path);
    await stamp(hook.store, path);
    expect((await resume()).body.enabled).toBe(true);
    await stamp(hook.store, path);
    await received(hook, 4);

    await service.running.database.query(
      `update webhook_subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'failing'
       where id = $1`,
      [hook.id],
    );
    await stamp(hook.store, path);
    await resume({ replay_missed: true });
    await received(hook, 5);

    await change(hook, { enabled: false });
    await stamp(hook.store, path);
    await resume({ replay_missed: false });
    await stamp(hook.store, path);
    await received(hook, 6);
    expect(await listDeliveries(hook)).toHaveLength(6);
    const balances = listReceivedBalances(hook.receiver).map(Number);
    expect(balances.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 7]);
  });

  it('HOOK-94 `replay_missed` true without `enabled` true is 422 `replay_missed`; on an enabled subscription it changes nothing', async () => {
    const hook = await listening({ enabled: false });
    expectRefused(await change(hook, { replay_missed: true }), 'replay_missed');
    const pausing = { enabled: false, replay_missed: true };
    expectRefused(await change(hook, pausing), 'replay_missed');
    const { body } = await change(hook, { enabled: true, replay_missed: false });
    const again = await change(hook, { enabled: true, replay_missed: true });
    expect(again.body).toEqual(body);
    const { rows } = await service.running.database.query(
      'select from webhook_replays where subscription_id = $1',
      [hook.id],
    );
    expect(rows).toHaveLength(0);
  });

  it('HOOK-95 `enabled` true also sends what was missed while a replay of the subscription, or of what an earlier pause missed, is still being enqueued', async () => {
    for (const fillsGap of [false, true]) {
      const hook = await listening({ events: ['stamp.earned'] });
      const { path } = await enrol(hook.store);
      await change(hook, { enabled: false });
      // Waits for a position that the log does not reach.
      await service.running.database.query(
        `insert into webhook_replays (subscription_id, account_id, recorded_from, recorded_to, types, after_seq,
           created_at, log_head, request, fills_gap)
         values ($1, $2, now(), now(), '{stamp.earned}', 0, now(), $4, gen_random_uuid(), $3)`,
        [hook.id, hook.account_id, fillsGap, formatPosition({ commit: 9n ** 18n, prepare: 0n })],
      );
      await stamp(hook.store, path);
      await stamp(hook.store, path);
      expect((await change(hook, { enabled: true })).body.enabled).toBe(true);
      await received(hook, 2);
      const balances = listReceivedBalances(hook.receiver).map(Number);
      expect(balances.toSorted((a, b) => a - b)).toEqual([1, 2]);
    }
    // A replay that was extended after a dispatcher had listed it as started is not removed as complete.
    const hook = await listening({ events: ['stamp.earned'] });
    const { database } = service.running;
    // Waits for a position that the log does not reach, so that the dispatcher leaves it alone.
    const values = [hook.id, hook.account_id, formatPosition({ commit: 9n ** 18n, prepare: 0n })];
    const { rows } = await database.query<{ id: number }>(
      `insert into webhook_replays (subscription_id, account_id, recorded_from, recorded_to, after_seq, created_at,
         log_head, request, fills_gap)
       values ($1, $2, now(), now(), 0, now(), $3, gen_random_uuid(), true) returning id`,
      values,
    );
    const fed = await database.query(FEED.text, [rows[0]?.id]);
    expect(fed.rows).toEqual([]);
    const existing = await database.query(
      'select from webhook_replays where subscription_id = $1',
      [hook.id],
    );
    expect(existing.rows).toHaveLength(1);
  });
});

describe('a webhook', () => {
  it('DELIV-57 The `User-Agent` of a delivery is `Inkpad-Webhooks/` and the version', async () => {
    const hook = await listening();
    const request = await sendTest(hook);
    expect(request?.headers['user-agent']).toMatch(/^Inkpad-Webhooks\/\d+\.\d+\.\d+$/);
  });
});
