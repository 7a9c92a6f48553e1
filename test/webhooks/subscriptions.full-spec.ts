import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import type {
  WebhookSubscriptionJson,
  WebhookSubscriptionSecretJson,
  WebhookTestJson,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type ContractClient,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { isSigned, Receiver, type Reply } from '../support/emulators/webhook-receiver.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';
import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';

const TARGET = 'https://receiver.example/hooks';

/** As it runs in production: only public https targets. */
const service = useService();
/** Development: receivers on this machine. */
const insecure = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const receivers: Receiver[] = [];
const store = service.useStore();
let near: ContractClient;

beforeAll(async () => {
  near = await insecure.newStore();
});
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
});

const pathOf = (by: ContractClient) => `${by.store}/webhook_subscriptions`;

function create(
  body: object,
  by: ContractClient = store,
): Promise<ApiResponse<WebhookSubscriptionSecretJson>> {
  return by.post(pathOf(by), { target_url: TARGET, ...body });
}

async function createSubscription(body: object = {}, by: ContractClient = store) {
  const { status, body: subscription } = await create({ events: ['*'], ...body }, by);
  expect(status).toBe(201);
  return { ...subscription, path: `${pathOf(by)}/${subscription.id}` };
}

const readSubscription = async (path: string, by: ContractClient = store) =>
  (await by.get<WebhookSubscriptionSecretJson>(path)).body;

const change = (path: string, body: object, by: ContractClient = store) =>
  by.patch<WebhookSubscriptionJson>(path, body);

async function receive(reply?: Reply | ((nth: number) => Reply)): Promise<Receiver> {
  const receiver = await Receiver.start((_received, nth) =>
    typeof reply === 'function' ? reply(nth) : (reply ?? { status: 200 }),
  );
  receivers.push(receiver);
  return receiver;
}

/** A test of a subscription of its own to this receiver. */
async function tested(receiver: Receiver, body: object = {}) {
  const subscription = await createSubscription({ target_url: receiver.url, ...body }, near);
  const response = await near.post<WebhookTestJson>(`${subscription.path}/test`);
  expect(response.status).toBe(200);
  return { subscription, outcome: response.body, received: receiver.received };
}

const SHAPE = [
  'account_id',
  'card_ids',
  'created_at',
  'description',
  'disabled_at',
  'disabled_reason',
  'enabled',
  'event',
  'events',
  'headers',
  'id',
  'last_delivery_at',
  'last_delivery_error',
  'last_delivery_status',
  'location_ids',
  'payload_format',
  'personal_data',
  'public_key',
  'signature',
  'target_url',
  'updated_at',
];

describe('webhook subscriptions', () => {
  it('HOOK-01 A subscription can be created with `events` and `target_url`, and has the documented defaults', async () => {
    const { status, body } = await create({ events: ['stamp.earned', 'reward.redeemed'] });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(Number),
      account_id: store.accountId,
      events: ['stamp.earned', 'reward.redeemed'],
      event: null,
      target_url: TARGET,
      description: null,
      payload_format: 'envelope',
      headers: {},
      card_ids: null,
      location_ids: null,
      personal_data: true,
      signature: 'hmac',
      public_key: null,
      enabled: true,
      disabled_at: null,
      disabled_reason: null,
      last_delivery_at: null,
      last_delivery_status: null,
      last_delivery_error: null,
      created_at: expect.any(String),
      updated_at: body.created_at,
      secret: expect.any(String),
    });
  });

  it('HOOK-02 A subscription has exactly the documented fields', async () => {
    const { path, ...subscription } = await createSubscription();
    expect(Object.keys(subscription).sort()).toEqual([...SHAPE, 'secret'].sort());
    expect(Object.keys(await readSubscription(path)).sort()).toEqual([...SHAPE, 'secret'].sort());
    const { body } = await store.get<WebhookSubscriptionJson[]>(pathOf(store));
    expect(body.length).toBeGreaterThan(0);
    for (const listed of body) expect(Object.keys(listed).sort()).toEqual(SHAPE);
  });

  it('HOOK-03 `secret` is `whsec_` and 32 bytes in base64, different for each subscription', async () => {
    const secrets = [(await createSubscription()).secret, (await createSubscription()).secret];
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
    }
    expect(secrets[0]).not.toBe(secrets[1]);
  });

  it('HOOK-04 `secret` is in the responses of create, show and rotate_secret', async () => {
    const { path, secret } = await createSubscription();
    expect((await readSubscription(path)).secret).toBe(secret);
    const rotated = await store.post<WebhookSubscriptionSecretJson>(`${path}/rotate_secret`);
    expect(rotated.body.secret).toMatch(/^whsec_/);
  });

  it('HOOK-05 `secret` is not in the responses of list and PATCH', async () => {
    const { path } = await createSubscription();
    const changed = await change(path, { description: 'till' });
    const list = await store.get(pathOf(store));
    for (const { text } of [changed, list]) expect(text).not.toContain('whsec_');
  });

  it('HOOK-06 `secret` is stored encrypted', async () => {
    const { id, secret } = await createSubscription();
    const { rows } = await service.running.database.query<{ row: string; secret: Buffer }>(
      'select w::text as row, secret from webhook_subscriptions w where id = $1',
      [id],
    );
    const bytes = Buffer.from(secret.slice(6), 'base64');
    expect(rows[0]?.row).not.toContain(secret);
    expect(rows[0]?.secret.includes(bytes)).toBe(false);
    expect(rows[0]?.secret.includes(Buffer.from(secret))).toBe(false);
    expect(rows[0]?.secret.includes(createHash('sha256').update(secret).digest())).toBe(false);
  });

  it('HOOK-07 Each documented event and `*` is accepted', async () => {
    for (const event of [...PUBLIC_EVENTS, '*']) {
      expect((await create({ events: [event] })).status).toBe(201);
    }
    expect(PUBLIC_EVENTS).toHaveLength(21);
    expect((await create({ events: [...PUBLIC_EVENTS] })).status).toBe(201);
  });

  it('HOOK-08 `event` alone is the same as `events` with that one', async () => {
    expect(await createSubscription({ events: undefined, event: 'stamp.earned' })).toMatchObject({
      events: ['stamp.earned'],
      event: 'stamp.earned',
    });
  });

  it('HOOK-09 `event` of `*` is `events` of `*`', async () => {
    expect(await createSubscription({ events: undefined, event: '*' })).toMatchObject({
      events: ['*'],
      event: null,
    });
  });

  it('HOOK-10 Omitting `event` and `events` on create is 422 `events`', async () => {
    expectRefused(await create({}), 'events');
  });

  it('HOOK-11 `event` and `events` that differ are 422 `event`', async () => {
    expectRefused(await create({ events: ['stamp.earned'], event: 'stamp.removed' }), 'event');
    expectRefused(
      await create({ events: ['stamp.earned', 'stamp.removed'], event: 'stamp.earned' }),
      'event',
    );
  });

  it('HOOK-12 `event` and `events` that agree are accepted', async () => {
    const same = { events: ['stamp.earned'], event: 'stamp.earned' };
    expect((await create(same)).status).toBe(201);
  });

  it('HOOK-13 An unknown `event` is 422 `event`', async () => {
    for (const event of ['stamp.lost', 'webhook.test', 7, ['stamp.earned']]) {
      expectRefused(await create({ event }), 'event');
    }
  });

  it('HOOK-14 `events` that are not a list, empty, unknown or `*` beside others are 422 `events`', async () => {
    const unfit = ['stamp.earned', [], ['stamp.lost'], ['*', 'stamp.earned'], [7], {}, 7];
    for (const events of unfit) expectRefused(await create({ events }), 'events');
  });

  it('HOOK-15 Duplicates in `events` are dropped', async () => {
    const { events, event } = await createSubscription({
      events: ['stamp.earned', 'stamp.earned'],
    });
    expect([events, event]).toEqual([['stamp.earned'], 'stamp.earned']);
  });

  it('HOOK-16 `event` is returned if exactly one is named, and null for several or `*`', async () => {
    expect((await createSubscription({ events: ['stamp.earned'] })).event).toBe('stamp.earned');
    expect(
      (await createSubscription({ events: ['stamp.earned', 'stamp.removed'] })).event,
    ).toBeNull();
    expect((await createSubscription({ events: ['*'] })).event).toBeNull();
  });

  it('HOOK-17 A missing `target_url` is 422 `target_url`', async () => {
    expectRefused(await store.post(pathOf(store), { event: '*' }), 'target_url');
    expectRefused(await create({ event: '*', target_url: null }), 'target_url');
    expectRefused(await create({ event: '*', target_url: ' ' }), 'target_url');
  });

  it('HOOK-18 A `target_url` that is not https, or not a URL, is 422 `target_url`', async () => {
    for (const target_url of [
      'http://receiver.example',
      'ftp://receiver.example',
      'hooks',
      '//x',
      7,
    ]) {
      expectRefused(await create({ event: '*', target_url }), 'target_url');
    }
  });

  it('HOOK-19 A `target_url` with a user name or password is 422 `target_url`', async () => {
    for (const target_url of ['https://me@receiver.example', 'https://me:pw@receiver.example/x']) {
      expectRefused(await create({ event: '*', target_url }), 'target_url');
    }
  });

  it('HOOK-20 A `target_url` longer than 2,048 is 422 `target_url`', async () => {
    const long = (length: number) => `${TARGET}/`.padEnd(length, 'x');
    expect((await create({ event: '*', target_url: long(2048) })).status).toBe(201);
    expectRefused(await create({ event: '*', target_url: long(2049) }), 'target_url');
  });

  it('HOOK-21 A private, loopback, link-local, shared, multicast, documentation or metadata IPv4 address is 422 `target_url`', async () => {
    const unfit =
      '10.1.2.3 127.0.0.1 169.254.1.1 169.254.169.254 172.16.0.1 192.168.1.1 100.64.0.1 224.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 0.0.0.0 255.255.255.255 198.18.0.1';
    for (const address of unfit.split(' ')) {
      expectRefused(await create({ event: '*', target_url: `https://${address}/` }), 'target_url');
    }
    expect((await create({ event: '*', target_url: 'https://93.184.215.14/' })).status).toBe(201);
  });

  it('HOOK-22 An IPv4 address that is not public is 422 `target_url` in any other notation too: decimal, octal, hexadecimal, shortened', async () => {
    const unfit =
      '2130706433 0x7f000001 017700000001 127.1 0x7f.1 127.0.0.1. 0177.0.0.01 １２７.0.0.1';
    for (const address of unfit.split(' ')) {
      expectRefused(await create({ event: '*', target_url: `https://${address}/` }), 'target_url');
    }
  });

  it('HOOK-23 An IPv6 address that is not public, or embeds an IPv4 address that is not, is 422 `target_url`', async () => {
    const unfit =
      '::1 :: fe80::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::7f00:1 64:ff9b:1::a00:1 2002:7f00:1:: 2001:0:808:808::f5ff:fffe 2606:4700::5efe:a00:1';
    for (const address of unfit.split(' ')) {
      expectRefused(
        await create({ event: '*', target_url: `https://[${address}]/` }),
        'target_url',
      );
    }
    for (const address of ['2606:2800:21f:cb07::1', '64:ff9b::808:808']) {
      const open = await create({ event: '*', target_url: `https://[${address}]/` });
      expect(open.status).toBe(201);
    }
  });

  it('HOOK-24 `localhost` and everything under it is 422 `target_url`', async () => {
    for (const name of [
      'localhost',
      'LOCALHOST',
      'localhost.',
      'api.localhost',
      'a.b.localhost.',
    ]) {
      expectRefused(await create({ event: '*', target_url: `https://${name}/` }), 'target_url');
    }
  });

  it('HOOK-106 A name without a dot, or under a domain of inside networks such as `.internal`, `.local`, `.lan` and `.home.arpa`, is 422 `target_url`', async () => {
    for (const host of [
      'intranet',
      'POSTGRES.',
      'api:3000',
      'hooks.internal',
      'metadata.google.internal.',
      'printer.local',
      'localhost.localdomain',
      'router.LAN',
      'nas.home.arpa',
      'hooks。internal',
    ]) {
      expectRefused(await create({ event: '*', target_url: `https://${host}/` }), 'target_url');
    }
  });

  it('HOOK-25 A name that resolves only to addresses that are not public is 422 `target_url`', async () => {
    await whereNamesLeadTo(['10.0.0.7', '::1'], async () => {
      const target_url = 'https://inside.example/';
      expectRefused(await create({ event: '*', target_url }), 'target_url');
    });
    await whereNamesLeadTo(['10.0.0.7', '93.184.215.14'], async () => {
      const target_url = 'https://mixed.example/';
      expect((await create({ event: '*', target_url })).status).toBe(201);
    });
  });

  it('HOOK-26 The 422 of a `target_url` does not show the address that its name resolves to', async () => {
    await whereNamesLeadTo(['10.0.0.7'], async () => {
      const { text } = await create({ event: '*', target_url: 'https://inside.example/' });
      expect(text).not.toContain('10.0.0.7');
    });
  });

  it('HOOK-27 A `target_url` whose name does not resolve is accepted', async () => {
    const { status } = await create({ event: '*', target_url: 'https://nowhere.invalid/' });
    expect(status).toBe(201);
  });

  it('HOOK-28 A `description` longer than 255 is 422 `description`', async () => {
    expect((await create({ event: '*', description: 'é'.repeat(255) })).status).toBe(201);
    expectRefused(await create({ event: '*', description: 'é'.repeat(256) }), 'description');
  });

  it('HOOK-29 Any other `payload_format` is 422 `payload_format`', async () => {
    for (const payload_format of ['xml', 'FLAT', 7]) {
      expectRefused(await create({ event: '*', payload_format }), 'payload_format');
    }
  });

  it('HOOK-30 `flat` is accepted with one named event', async () => {
    const flat = { payload_format: 'flat' };
    expect((await create({ ...flat, event: 'stamp.earned' })).status).toBe(201);
    expect((await create({ ...flat, events: ['stamp.earned'] })).body.payload_format).toBe('flat');
  });

  it('HOOK-31 `flat` with several events or `*` is 422 `payload_format`', async () => {
    for (const events of [['stamp.earned', 'stamp.removed'], ['*']]) {
      expectRefused(await create({ events, payload_format: 'flat' }), 'payload_format');
    }
  });

  it('HOOK-32 A PATCH of `events` or `payload_format` is checked against the resulting values', async () => {
    const flat = await createSubscription({ events: ['stamp.earned'], payload_format: 'flat' });
    expectRefused(await change(flat.path, { events: ['*'] }), 'payload_format');
    const several = await createSubscription({ events: ['stamp.earned', 'stamp.removed'] });
    expectRefused(await change(several.path, { payload_format: 'flat' }), 'payload_format');
    const both = { events: ['stamp.removed'], payload_format: 'flat' };
    expect((await change(several.path, both)).body).toMatchObject(both);
    const back = { event: '*', payload_format: 'envelope' };
    expect((await change(flat.path, back)).body).toMatchObject({ events: ['*'], event: null });
  });

  it('HOOK-33 A subscription created with `enabled` false is disabled, with `disabled_by_user` and the time', async () => {
    const { enabled, disabled_at, disabled_reason, created_at } = await createSubscription({
      enabled: false,
    });
    expect([enabled, disabled_reason, disabled_at]).toEqual([
      false,
      'disabled_by_user',
      created_at,
    ]);
  });

  it('HOOK-34 The list of subscriptions is oldest first', async () => {
    const own = await service.newStore();
    const ids = [
      (await createSubscription({}, own)).id,
      (await createSubscription({}, own)).id,
      (await createSubscription({}, own)).id,
    ];
    const { body } = await own.get<WebhookSubscriptionJson[]>(pathOf(own));
    expect(body.map(({ id }) => id)).toEqual(ids);
  });

  it('HOOK-35 `event` lists the subscriptions to that event or to `*`', async () => {
    const own = await service.newStore();
    const [all, earned] = [
      await createSubscription({}, own),
      await createSubscription({ events: ['stamp.earned'] }, own),
    ];
    await createSubscription({ events: ['stamp.removed'] }, own);
    const path = `${pathOf(own)}?event=stamp.earned`;
    const { body } = await own.get<WebhookSubscriptionJson[]>(path);
    expect(body.map(({ id }) => id)).toEqual([all.id, earned.id]);
  });

  it("HOOK-36 An unknown `event` in the list's query is an empty list", async () => {
    await createSubscription();
    expect((await store.get(`${pathOf(store)}?event=stamp.lost`)).body).toEqual([]);
  });

  it('HOOK-37 A subscription of another store is 404, for every operation', async () => {
    const { id } = await createSubscription();
    const otherStore = await service.newStore();
    const path = `${pathOf(otherStore)}/${id}`;
    const responses = [
      await otherStore.get(path),
      await otherStore.patch(path, { description: 'mine' }),
      await otherStore.delete(path),
      await otherStore.post(`${path}/test`),
      await otherStore.post(`${path}/rotate_secret`),
    ];
    for (const response of responses) expectFailure(response, 404, 'not_found');
  });

  it('HOOK-38 PATCH changes only the fields it names', async () => {
    const {
      path,
      updated_at: _,
      ...before
    } = await createSubscription({ events: ['stamp.earned'] });
    const { updated_at: __, ...after } = (await change(path, { description: 'till' })).body;
    expect({ ...after, secret: before.secret }).toEqual({ ...before, description: 'till' });
  });

  it('HOOK-39 `events` in a PATCH replace the list', async () => {
    const { path } = await createSubscription({ events: ['stamp.earned', 'stamp.removed'] });
    const { body } = await change(path, { events: ['reward.redeemed'] });
    expect(body.events).toEqual(['reward.redeemed']);
    expect((await change(path, { event: 'stamp.removed' })).body.events).toEqual(['stamp.removed']);
  });

  it('HOOK-40 PATCH checks each field as create does', async () => {
    const { path } = await createSubscription();
    const invalid: [string, object][] = [
      ['events', { events: [] }],
      ['events', { events: null }],
      ['events', { events: ['*', 'stamp.earned'] }],
      ['event', { event: 'stamp.lost' }],
      ['event', { event: 'stamp.earned', events: ['*'] }],
      ['target_url', { target_url: 'https://10.0.0.1' }],
      ['target_url', { target_url: null }],
      ['description', { description: 'x'.repeat(256) }],
      ['payload_format', { payload_format: null }],
      ['enabled', { enabled: 'yes' }],
      ['enabled', { enabled: null }],
    ];
    for (const [field, body] of invalid) expectRefused(await change(path, body), field);
  });

  it('HOOK-41 `enabled` false disables the subscription, with `disabled_by_user` and the time', async () => {
    const { path } = await createSubscription();
    const { body } = await change(path, { enabled: false });
    expect(body).toMatchObject({
      enabled: false,
      disabled_reason: 'disabled_by_user',
      disabled_at: body.updated_at,
    });
  });

  it('HOOK-42 `enabled` false on a disabled subscription keeps the reason and the time', async () => {
    const { path, id } = await createSubscription();
    await service.running.database.query(
      `update webhook_subscriptions set enabled = false, disabled_reason = 'failing',
         disabled_at = '2026-01-01T00:00:00Z' where id = $1`,
      [id],
    );
    const before = await readSubscription(path);
    const { body } = await change(path, { enabled: false });
    expect([body.disabled_reason, body.disabled_at, body.updated_at]).toEqual([
      'failing',
      '2026-01-01T00:00:00.000Z',
      before.updated_at,
    ]);
  });

  it('HOOK-43 `enabled` true enables the subscription again and clears the reason and the time', async () => {
    const { path } = await createSubscription({ enabled: false });
    const { body } = await change(path, { enabled: true });
    expect([body.enabled, body.disabled_at, body.disabled_reason]).toEqual([true, null, null]);
  });

  it('HOOK-44 `enabled` true on an enabled subscription changes nothing, `updated_at` included', async () => {
    const { path } = await createSubscription();
    const before = await readSubscription(path);
    expect((await change(path, { enabled: true })).body.updated_at).toBe(before.updated_at);
    expect(await readSubscription(path)).toEqual(before);
  });

  it('HOOK-45 null in a PATCH clears `description`', async () => {
    const { path } = await createSubscription({ description: 'till' });
    expect((await change(path, { description: null })).body.description).toBeNull();
  });

  it('HOOK-46 A PATCH that is refused changes nothing', async () => {
    const { path } = await createSubscription();
    const before = await readSubscription(path);
    expectRefused(await change(path, { description: 'till', enabled: 'no' }), 'enabled');
    expect(await readSubscription(path)).toEqual(before);
  });

  it('HOOK-47 A change updates `updated_at`, not `created_at`', async () => {
    const { path, created_at } = await createSubscription();
    const { body } = await eventually(
      () => change(path, { description: String(Math.random()) }),
      (response) => response.body.updated_at > created_at,
    );
    expect(body.created_at).toBe(created_at);
    const same = await change(path, { description: body.description });
    expect(same.body.updated_at).toBe(body.updated_at);
  });

  it('HOOK-48 A deleted subscription is gone: 404, and in no list', async () => {
    const { path, id } = await createSubscription();
    expect((await store.delete(path)).status).toBe(204);
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await store.delete(path), 404, 'not_found');
    const { body } = await store.get<WebhookSubscriptionJson[]>(pathOf(store));
    expect(body.map((listed) => listed.id)).not.toContain(id);
  });

  it('HOOK-49 `test` sends a signed `webhook.test` immediately and returns `{delivered, status, event_id, error}`', async () => {
    const { subscription, outcome, received } = await tested(await receive({ status: 204 }));
    expect(outcome).toEqual({
      delivered: true,
      status: 204,
      event_id: expect.stringMatching(/^evt_[0-9A-HJKMNP-TV-Z]{26}$/),
      error: null,
    });
    const [delivery] = received;
    expect(delivery && isSigned(delivery, subscription.secret)).toBe(true);
    expect(delivery?.body).toEqual({
      id: outcome.event_id,
      type: 'webhook.test',
      timestamp: expect.stringMatching(/Z$/),
      account_id: near.accountId,
      data: { subscription_id: subscription.id, message: expect.any(String) },
    });
  });

  it('HOOK-50 `event_id` of a test is the `webhook-id` of what was sent', async () => {
    const { outcome, received } = await tested(await receive());
    expect(received[0]?.headers['webhook-id']).toBe(outcome.event_id);
  });

  it('HOOK-51 `delivered` of a test is true for any 2xx, and `error` null', async () => {
    for (const status of [200, 201, 202, 204, 299]) {
      const { outcome } = await tested(await receive({ status }));
      expect(outcome).toMatchObject({ delivered: true, status, error: null });
    }
  });

  it('HOOK-52 `delivered` of a test is false for any status but 2xx, with the status and an error', async () => {
    for (const status of [301, 400, 404, 500]) {
      const headers = { location: 'https://example.com/' };
      const { outcome } = await tested(await receive({ status, headers }));
      expect(outcome).toMatchObject({ delivered: false, status, error: expect.any(String) });
    }
  });

  it('HOOK-53 `status` of a test without a response is null', async () => {
    const gone = await Receiver.start();
    const { url } = gone;
    await gone.stop();
    const { path } = await createSubscription({ target_url: url }, near);
    const { body } = await near.post<WebhookTestJson>(`${path}/test`);
    expect(body).toMatchObject({ delivered: false, status: null, error: expect.any(String) });
  });

  it('HOOK-54 `test` works on a disabled subscription', async () => {
    const { subscription, outcome } = await tested(await receive(), { enabled: false });
    expect(outcome.delivered).toBe(true);
    expect((await readSubscription(subscription.path, near)).enabled).toBe(false);
  });

  it('HOOK-55 `test` sets the three `last_delivery` fields', async () => {
    const { subscription } = await tested(
      await receive((nth) => ({ status: nth === 1 ? 200 : 503 })),
    );
    const first = await readSubscription(subscription.path, near);
    expect(first).toMatchObject({
      last_delivery_at: expect.any(String),
      last_delivery_status: 200,
      last_delivery_error: null,
    });
    await near.post(`${subscription.path}/test`);
    expect(await readSubscription(subscription.path, near)).toMatchObject({
      last_delivery_status: 503,
      last_delivery_error: expect.any(String),
    });
  });

  it('HOOK-56 `test` does not change `updated_at`', async () => {
    const { subscription } = await tested(await receive({ status: 500 }));
    expect((await readSubscription(subscription.path, near)).updated_at).toBe(
      subscription.updated_at,
    );
  });

  it('HOOK-57 A 410 to a test is reported and deletes nothing', async () => {
    const { subscription, outcome } = await tested(await receive({ status: 410 }));
    expect(outcome).toMatchObject({ delivered: false, status: 410 });
    expect((await readSubscription(subscription.path, near)).enabled).toBe(true);
  });

  it('HOOK-58 `test` sends once, whatever the response', async () => {
    const receiver = await receive({ status: 503, headers: { 'retry-after': '0' } });
    const { subscription } = await tested(receiver);
    const otherReceiver = await receive();
    await change(subscription.path, { target_url: otherReceiver.url }, near);
    await near.post(`${subscription.path}/test`);
    expect([receiver.received.length, otherReceiver.received.length]).toEqual([1, 1]);
    const { rows } = await insecure.running.database.query(
      'select 1 from webhook_deliveries where subscription_id = $1',
      [subscription.id],
    );
    expect(rows).toEqual([]);
  });

  it("HOOK-59 `test` uses the subscription's own `payload_format`", async () => {
    const flat = { events: ['stamp.earned'], payload_format: 'flat' };
    const { subscription, outcome, received } = await tested(await receive(), flat);
    expect(received[0]?.headers).toMatchObject({
      'service-event': 'webhook.test',
      'webhook-id': outcome.event_id,
    });
    expect(received[0]?.body).toEqual({
      subscription_id: subscription.id,
      message: expect.any(String),
    });
  });

  it('HOOK-60 `rotate_secret` returns a new secret, and show agrees', async () => {
    const { path, secret } = await createSubscription();
    const { body } = await store.post<WebhookSubscriptionSecretJson>(`${path}/rotate_secret`);
    expect(body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(body.secret).not.toBe(secret);
    expect(await readSubscription(path)).toEqual(body);
  });

  it('HOOK-61 After `rotate_secret` deliveries are signed with the new secret only', async () => {
    const receiver = await receive();
    const { subscription } = await tested(receiver);
    const { body } = await near.post<WebhookSubscriptionSecretJson>(
      `${subscription.path}/rotate_secret`,
    );
    await near.post(`${subscription.path}/test`);
    const [, delivery] = receiver.received;
    expect(delivery && isSigned(delivery, body.secret)).toBe(true);
    expect(delivery && isSigned(delivery, subscription.secret)).toBe(false);
  });

  it('HOOK-62 With `grace_seconds` the old and the new secret sign until that time is over', async () => {
    const receiver = await receive();
    const { subscription } = await tested(receiver, { events: ['stamp.earned'] });
    const rotate = (grace_seconds: number) =>
      near.post<WebhookSubscriptionSecretJson>(`${subscription.path}/rotate_secret`, {
        grace_seconds,
      });
    const { secret } = (await rotate(3600)).body;
    await near.post(`${subscription.path}/test`);
    const ofTest = receiver.received.at(-1);
    expect(ofTest && isSigned(ofTest, secret)).toBe(true);
    expect(ofTest && isSigned(ofTest, subscription.secret)).toBe(true);
    const dispatcher = await startDispatcher(insecure.running);
    try {
      const { path } = await enrol(near);
      await near.stamp(path);
      const delivery = await eventually(
        () => receiver.received.find(({ body }) => body['type'] === 'stamp.earned'),
        (result) => result !== undefined,
      );
      expect(delivery && isSigned(delivery, secret)).toBe(true);
      expect(delivery && isSigned(delivery, subscription.secret)).toBe(true);
    } finally {
      await dispatcher.kill('SIGTERM');
    }
    await insecure.running.database.query(
      'update webhook_subscriptions set previous_secret_until = now() where id = $1',
      [subscription.id],
    );
    await near.post(`${subscription.path}/test`);
    const last = receiver.received.at(-1);
    expect(last && isSigned(last, secret)).toBe(true);
    expect(last && isSigned(last, subscription.secret)).toBe(false);
  });

  it('HOOK-63 `grace_seconds` that is not an integer from 0 to 604,800 (a week) is 422 `grace_seconds`', async () => {
    const { path } = await createSubscription();
    for (const grace_seconds of [-1, 1.5, 'long', 604_801]) {
      expectRefused(await store.post(`${path}/rotate_secret`, { grace_seconds }), 'grace_seconds');
    }
    expect((await store.post(`${path}/rotate_secret`, { grace_seconds: '60' })).status).toBe(200);
  });

  it('HOOK-66 A secret that can no longer be decrypted is empty in show, and deliveries fail with that error, as `last_delivery_error` says; `test` is 422 `base`', async () => {
    const { id, path } = await createSubscription();
    await service.running.database.query(
      `update webhook_subscriptions
       set secret = set_byte(secret, 20, (get_byte(secret, 20) + 1) % 256) where id = $1`,
      [id],
    );
    expect(await store.get(path)).toMatchObject({ status: 200, body: { id, secret: '' } });
    expectRefused(await store.post(`${path}/test`), 'base');
    const { body } = await store.post<WebhookSubscriptionSecretJson>(`${path}/rotate_secret`, {
      grace_seconds: 60,
    });
    expect((await store.get(path)).body).toMatchObject({ secret: body.secret });
    expect((await store.post(`${path}/test`)).status).toBe(200);
  });

  it('HOOK-67 `updated_at` moves when a subscription is disabled because of its receiver, and not with a delivery', async () => {
    const own = await insecure.newStore();
    const receiver = await receive();
    const subscription = await createSubscription({ target_url: receiver.url }, own);
    const { path } = await enrol(own);
    const now = () => readSubscription(subscription.path, own);
    for (const [allowed, isOver] of [
      [true, ({ last_delivery_status: status }: WebhookSubscriptionJson) => status === 200],
      [false, ({ enabled }: WebhookSubscriptionJson) => !enabled],
    ] as const) {
      const dispatcher = await startDispatcher(insecure.running, {
        WEBHOOK_ALLOW_INSECURE_TARGETS: String(allowed),
      });
      try {
        await own.stamp(path);
        const after = await eventually(now, isOver);
        expect(after.updated_at > subscription.updated_at).toBe(!allowed);
      } finally {
        await dispatcher.kill('SIGTERM');
      }
    }
    expect((await now()).disabled_reason).toBe('blocked_address');
  });

  it('HOOK-64 `WEBHOOK_ALLOW_INSECURE_TARGETS` allows http and loopback targets, for development, and no others', async () => {
    for (const target_url of [
      'http://127.0.0.1:9/hooks',
      'http://localhost:9/',
      'https://[::1]/',
    ]) {
      expectRefused(await create({ event: '*', target_url }), 'target_url');
      expect((await create({ event: '*', target_url }, near)).status).toBe(201);
    }
    for (const target_url of ['http://10.0.0.1/', 'https://192.168.1.1/', 'http://[fd00::1]/']) {
      expectRefused(await create({ event: '*', target_url }, near), 'target_url');
    }
  });
});

/** Another resolver than the machine's, for as long as the work goes on. */
async function whereNamesLeadTo(addresses: string[], work: () => Promise<void>): Promise<void> {
  const names = service.running.app.get(NameLookup);
  const own = names.resolveWithin.bind(names);
  names.resolveWithin = async () => addresses;
  try {
    await work();
  } finally {
    names.resolveWithin = own;
  }
}
