import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { type EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type { DeliveryJson, ReplayJson } from '#outbound/subscriptions/webhook-delivery.dto.js';
import type { WebhookSubscriptionSecretJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { GeocoderEmulator } from '../support/emulators/geocoders/server.js';
import { Receiver, type Received, type Reply } from '../support/emulators/webhook-receiver.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { quarters } from '../support/fixtures/pictures.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const FAR_PAST = '2020-01-01T00:00:00Z';
const KNOWN_ADDRESS = 'Marktplatz 1, Hamburg';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const receivers: Receiver[] = [];
let geocoder: GeocoderEmulator;
let dispatcher: Program;

beforeAll(async () => {
  geocoder = await GeocoderEmulator.start('nominatim');
  geocoder.places.set(KNOWN_ADDRESS, { latitude: 53.5503, longitude: 9.9929, as: 'house' });
  dispatcher = await startDispatcher(service.running, geocoder.settings);
});
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
});
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await geocoder.stop();
});

type Hook = WebhookSubscriptionSecretJson & {
  store: ContractClient;
  path: string;
  receiver: Receiver;
};

/** A subscription to a receiver of its own, in a store of its own unless another is passed. */
async function listening(
  body: object = {},
  own?: ContractClient,
  reply: (received: Received) => Reply | Promise<Reply> = () => ({ status: 200 }),
): Promise<Hook> {
  const store = own ?? (await service.newStore());
  const receiver = await Receiver.start(reply);
  receivers.push(receiver);
  const response = await store.post<WebhookSubscriptionSecretJson>(
    `${store.store}/webhook_subscriptions`,
    { events: ['*'], target_url: receiver.url, ...body },
  );
  expect(response.status).toBe(201);
  const path = `${store.store}/webhook_subscriptions/${response.body.id}`;
  return { ...response.body, store, path, receiver };
}

type Sent = { type: unknown; data: unknown };

const listSent = ({ receiver }: Hook): Sent[] =>
  receiver.events.map(({ body: { type, data } }) => ({ type, data }));

/** Waits until so many events have arrived. */
const received = (hook: Hook, count: number): Promise<Sent[]> =>
  eventually(
    () => listSent(hook),
    ({ length }) => length >= count,
  );

/** Waits until the feed has as many events as there are types. */
async function readFeed(store: ContractClient, types: string[]): Promise<EnvelopeJson[]> {
  const { body } = await eventually(
    () => store.get<EnvelopeJson[]>(`${store.store}/events`),
    ({ body: events }) => events.length >= types.length,
  );
  expect(body.map(({ type }) => type)).toEqual(types);
  return body;
}

const createCard = async (store: ContractClient, card: object = { name: 'Coffee' }) =>
  (await store.post<CardJson>(`${store.store}/cards`, { card })).body;

const createReward = async (store: ContractClient, { id }: CardJson, reward: object = {}) =>
  (
    await store.post<RewardJson>(`${store.store}/rewards`, {
      reward: { card_id: id, name: 'Cake', stamps_required: 5, ...reward },
    })
  ).body;

const createLocation = async (store: ContractClient, location: object = {}) =>
  (
    await store.post<LocationJson>(`${store.store}/locations`, {
      location: { name: 'Old Town', address: 'Nowhere 7', ...location },
    })
  ).body;

const createPoster = async (store: ContractClient, { id }: CardJson) =>
  (await store.post<PosterJson>(`${store.store}/posters`, { poster: { card_id: id } })).body;

const expectTypes = (sent: Sent[], types: string[]) =>
  expect(sent.map(({ type }) => type)).toEqual(types);

/** The record as it was last shown, with the time of its deletion. */
const asDeleted = (record: object) => ({ ...record, updated_at: expect.any(String) });

describe('events about the records of a store', () => {
  it('HOOK-96 A card sends `card.created`, `card.updated`, `card.archived` and `card.unarchived`; a new picture is `card.updated`', async () => {
    const hook = await listening({
      events: ['card.created', 'card.updated', 'card.archived', 'card.unarchived'],
    });
    const { store } = hook;
    const created = await createCard(store);
    await createReward(store, created);
    const path = `${store.store}/cards/${created.id}`;
    const responses = [
      await store.patch<CardJson>(path, { card: { name: 'Tea', header_text: 'Hello' } }),
      await store.send<CardJson>(
        'PUT',
        `${path}/strip_image`,
        new Uint8Array(await quarters(100, 60).png().toBuffer()),
        { 'content-type': 'image/png' },
      ),
      await store.post<CardJson>(`${path}/archive`),
      await store.post<CardJson>(`${path}/unarchive`),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const [updated, pictured, archived, unarchived] = responses.map(({ body }) => body);
    expect(await received(hook, 5)).toEqual([
      { type: 'card.created', data: created },
      { type: 'card.updated', data: updated },
      { type: 'card.updated', data: pictured },
      { type: 'card.archived', data: archived },
      { type: 'card.unarchived', data: unarchived },
    ]);
    expect([created.rewards_count, updated?.rewards_count]).toEqual([0, 1]);
  });

  it('HOOK-97 A reward sends `reward.created`, `reward.updated` and `reward.deleted`', async () => {
    const hook = await listening({
      events: ['reward.created', 'reward.updated', 'reward.deleted'],
    });
    const { store } = hook;
    const created = await createReward(store, await createCard(store));
    const path = `${store.store}/rewards/${created.id}`;
    const { body: updated } = await store.patch<RewardJson>(path, {
      reward: { description: 'Any slice', stamps_required: 6, active: false },
    });
    expect((await store.delete(path)).status).toBe(204);
    expect(await received(hook, 3)).toEqual([
      { type: 'reward.created', data: created },
      { type: 'reward.updated', data: updated },
      { type: 'reward.deleted', data: asDeleted(updated) },
    ]);
  });

  it('HOOK-98 A location sends `location.created`, `location.updated` and `location.deleted`; a pin and the result of geocoding are `location.updated`', async () => {
    const hook = await listening();
    const { store } = hook;
    const created = await createLocation(store, { address: KNOWN_ADDRESS });
    const path = `${store.store}/locations/${created.id}`;
    expect(await received(hook, 2)).toEqual([
      { type: 'location.created', data: created },
      { type: 'location.updated', data: (await store.get(path)).body },
    ]);
    expect(listSent(hook)[1]).toMatchObject({
      data: { geocode_status: 'ok', latitude: 53.5503, precision: 'rooftop' },
    });
    const pin = { latitude: 53.5, longitude: 10 };
    const { body: pinned } = await store.patch<LocationJson>(path, { location: { pin } });
    const { body: renamed } = await store.patch<LocationJson>(path, { location: { name: 'B' } });
    expect((await store.delete(path)).status).toBe(204);
    expect((await received(hook, 5)).slice(2)).toEqual([
      { type: 'location.updated', data: pinned },
      { type: 'location.updated', data: renamed },
      { type: 'location.deleted', data: asDeleted(renamed) },
    ]);
    const pinnedAtOnce = await createLocation(store, { address: 'Elsewhere 1', pin });
    expect((await received(hook, 7)).slice(5)).toEqual([
      {
        type: 'location.created',
        data: {
          ...pinnedAtOnce,
          latitude: null,
          longitude: null,
          precision: null,
          geocode_status: 'pending',
          warnings: created.warnings,
        },
      },
      { type: 'location.updated', data: pinnedAtOnce },
    ]);
    const unknown = await createLocation(store);
    expect((await received(hook, 9)).slice(7)).toEqual([
      { type: 'location.created', data: unknown },
      {
        type: 'location.updated',
        data: { ...asDeleted(unknown), geocode_status: 'not_found' },
      },
    ]);
  });

  it('HOOK-99 A poster sends `poster.created`, `poster.updated` and `poster.deleted`', async () => {
    const hook = await listening({
      events: ['poster.created', 'poster.updated', 'poster.deleted'],
    });
    const { store } = hook;
    const created = await createPoster(store, await createCard(store));
    const path = `${store.store}/posters/${created.id}`;
    const { body: updated } = await store.patch<PosterJson>(path, {
      poster: { title: 'Collect', active: false },
    });
    expect((await store.delete(path)).status).toBe(204);
    expect(await received(hook, 3)).toEqual([
      { type: 'poster.created', data: created },
      { type: 'poster.updated', data: updated },
      { type: 'poster.deleted', data: asDeleted(updated) },
    ]);
  });

  it("HOOK-100 A store sends `store.updated`; its `personal` says whether the store was made as somebody's own", async () => {
    const hook = await listening();
    const { store } = hook;
    const { body: updated } = await store.patch<AccountJson>(store.store, {
      account: { store_name: 'Corner Café', time_zone: 'Europe/Berlin' },
    });
    const sent = await received(hook, 1);
    expect(sent).toEqual([{ type: 'store.updated', data: { ...updated, personal: false } }]);
    expect(hook.receiver.events[0]?.body).toMatchObject({ account_id: store.accountId });
    await createCard(store);
    await store.patch(store.store, { account: { store_name: null } });
    expect((await received(hook, 3))[2]).toMatchObject({
      data: { store_name: null, cards_count: 1 },
    });
  });

  it('LOGO-06 Each change of the logo sends `store.updated`', async () => {
    const hook = await listening({ personal_data: false });
    const { store } = hook;
    const path = `${store.store}/logo`;
    const picture = new Uint8Array(await quarters(100, 60).png().toBuffer());
    const bodies = [
      await store.patch<AccountJson>(store.store, { account: { email: 'hello@cafe.example' } }),
      await store.send<AccountJson>('PUT', path, picture, { 'content-type': 'image/png' }),
      await store.send<AccountJson>('DELETE', path),
    ].map(({ body }) => body);
    // What the store shows to its customers is no personal data of one.
    expect(await received(hook, 3)).toEqual(
      bodies.map((data) => ({ type: 'store.updated', data: { ...data, personal: false } })),
    );
  });

  it('HOOK-101 A request that changes nothing sends nothing, and neither does one that is refused or repeated', async () => {
    const store = await service.newStore();
    const card = await createCard(store);
    const reward = await createReward(store, card);
    const location = await createLocation(store, { pin: { latitude: 1, longitude: 2 } });
    const poster = await createPoster(store, card);
    const account = (await store.get<AccountJson>(store.store)).body;
    const at = (name: string, { id }: { id: number }) => `${store.store}/${name}/${id}`;
    const unchanged = [
      await store.patch(at('cards', card), { card: { name: card.name } }),
      await store.patch(at('rewards', reward), { reward: { active: true } }),
      await store.patch(at('locations', location), {
        location: { name: location.name, pin: { latitude: 1, longitude: 2 } },
      }),
      await store.patch(at('posters', poster), { poster: { title: poster.title } }),
      await store.patch(store.store, { account: { name: account.name } }),
      await store.post(`${at('cards', card)}/unarchive`),
    ];
    expect(unchanged.map(({ status }) => status)).toEqual(unchanged.map(() => 200));
    expectRefused(await store.patch(at('cards', card), { card: { name: '' } }), 'name');
    expectRefused(
      await store.post(`${store.store}/rewards`, { reward: { card_id: card.id, name: 'x' } }),
      'stamps_required',
    );
    const again = (path: string, body: object) =>
      store.send('POST', path, body, { 'idempotency-key': `of ${path}` });
    for (let i = 0; i < 2; i++) await again(`${store.store}/cards`, { card: { name: 'Tea' } });
    for (let i = 0; i < 2; i++) await again(`${at('cards', card)}/archive`, {});
    await readFeed(store, [
      'card.created',
      'reward.created',
      'location.created',
      'location.updated',
      'poster.created',
      'card.created',
      'card.archived',
    ]);
  });

  it("HOOK-102 `*` includes events about the store's records, and a `flat` subscription can be for one of them: its body is the record", async () => {
    const all = await listening();
    const { store } = all;
    const flat = await listening({ events: ['card.created'], payload_format: 'flat' }, store);
    const card = await createCard(store);
    await createReward(store, card);
    expectTypes(await received(all, 2), ['card.created', 'reward.created']);
    const [first] = await eventually(
      () => flat.receiver.received,
      ({ length }) => length > 0,
    );
    expect(first?.body).toEqual(card);
    expect(first?.headers).toMatchObject({
      'service-event': 'card.created',
      'webhook-id': all.receiver.events[0]?.body['id'],
    });
  });

  it('HOOK-103 `card_ids` limits events about a card, its rewards and its posters, `location_ids` those about a location', async () => {
    const store = await service.newStore();
    const [coffee, tea] = [await createCard(store), await createCard(store, { name: 'Tea' })];
    const pin = { latitude: 1, longitude: 2 };
    const [here, there] = [
      await createLocation(store, { pin }),
      await createLocation(store, { pin }),
    ];
    const rewards = [await createReward(store, coffee), await createReward(store, tea)];
    const posters = [await createPoster(store, coffee), await createPoster(store, tea)];
    const changeAll = async (word: string) => {
      for (const { id } of [coffee, tea])
        await store.patch(`${store.store}/cards/${id}`, { card: { name: word } });
      for (const { id } of rewards)
        await store.patch(`${store.store}/rewards/${id}`, { reward: { name: word } });
      for (const { id } of posters)
        await store.patch(`${store.store}/posters/${id}`, { poster: { title: word } });
      for (const { id } of [here, there])
        await store.patch(`${store.store}/locations/${id}`, { location: { name: word } });
      await store.patch(store.store, { account: { store_name: word } });
    };
    const types = [
      'card.updated',
      'reward.updated',
      'poster.updated',
      'location.updated',
      'store.updated',
    ];
    const limits = { card_ids: [tea.id], location_ids: [here.id] };
    const hook = await listening({ ...limits, events: types }, store);
    await changeAll('A');
    const idsOf = (sent: Sent[]) => sent.map(({ type, data }) => [type, (data as CardJson).id]);
    const matching = [
      ['card.updated', tea.id],
      ['reward.updated', rewards[1]?.id],
      ['poster.updated', posters[1]?.id],
      ['location.updated', here.id],
      ['store.updated', store.accountId],
    ];
    const first = await eventually(
      () => listSent(hook),
      (sent) => sent.some(({ type }) => type === 'store.updated'),
    );
    expect(idsOf(first)).toEqual(matching);
    // From the log, before a dispatcher has enqueued anything of it; then from the table.
    const late = await listening({ ...limits, events: types }, store);
    const replay = async ({ path }: Hook) =>
      (await store.post<ReplayJson>(`${path}/replay`, { from: FAR_PAST })).body;
    dispatcher.signal('SIGSTOP');
    try {
      await changeAll('B');
      // Both locations were pinned when they were created, which is an update too.
      expect(await replay(late)).toEqual({ matched: 2 * matching.length + 1 });
    } finally {
      dispatcher.signal('SIGCONT');
    }
    const updates = await eventually(
      () => listSent(late),
      ({ length }) => length >= 2 * matching.length + 1,
    );
    const ids = new Set(updates.map(({ type, data }) => `${type} ${(data as CardJson).id}`));
    expect(ids).toEqual(new Set(matching.map((pair) => pair.join(' '))));
  });

  it("HOOK-104 The first attempts of events about the store's records are made one after the other, in the order of the changes in the whole store", async () => {
    let open = 0;
    let mostOpen = 0;
    const hook = await listening({}, undefined, async () => {
      mostOpen = Math.max(mostOpen, ++open);
      await new Promise((resolve) => setTimeout(resolve, 20));
      open--;
      return { status: 200 };
    });
    const { store } = hook;
    const cards = await Promise.all([1, 2, 3].map(() => createCard(store)));
    const path = `${store.store}/cards/${cards[0]?.id}`;
    // Two parallel changes of one record, and of others meanwhile.
    await Promise.all([
      ...[1, 2, 3, 4].map((n) => store.patch(path, { card: { name: `Coffee ${n}` } })),
      ...cards.map((card) => createReward(store, card)),
      ...cards.map((card) => createPoster(store, card)),
      store.patch(store.store, { account: { store_name: 'Café' } }),
    ]);
    const count = 3 + 4 + 3 + 3 + 1;
    await received(hook, count);
    const feed = (await store.get<EnvelopeJson[]>(`${store.store}/events`)).body;
    expect(feed).toHaveLength(count);
    expect(hook.receiver.events.map(({ body }) => body)).toEqual(feed);
    expect(mostOpen).toBe(1);
    const sequences = feed.filter(
      ({ type, data }) => type.startsWith('card.') && data['id'] === cards[0]?.id,
    );
    expect(sequences.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4]);
  });

  it("HOOK-105 Events about the store's records hold no data of customers: `personal_data` false and erasures leave them as they are", async () => {
    const all = await listening();
    const { store } = all;
    const anonymous = await listening({ personal_data: false }, store);
    const { card, customer } = await enrol(store, { rewards: [5] });
    await createPoster(store, card);
    await createLocation(store, { pin: { latitude: 1, longitude: 2 } });
    await store.patch(`${store.store}/cards/${card.id}`, { card: { name: 'Tea' } });
    await store.patch(store.store, { account: { store_name: 'Café' } });
    const isOfRecord = ({ type }: Sent) => !String(type).startsWith('customer');
    const readRecords = (hook: Hook) =>
      eventually(
        () => listSent(hook).filter(isOfRecord),
        ({ length }) => length === 7,
      );
    const before = await readRecords(all);
    expect(await readRecords(anonymous)).toEqual(before);
    expect(before.find(({ type }) => type === 'card.updated')).toMatchObject({
      data: { customer_cards_count: 1 },
    });
    const { text } = await store.get(`${store.store}/events`);
    expect((await store.post(`${store.store}/customers/${customer.id}/erase`)).status).toBe(204);
    const feed = (await store.get<EnvelopeJson[]>(`${store.store}/events`)).body;
    for (const envelope of feed.filter(isOfRecord))
      expect(text).toContain(JSON.stringify(envelope));
    await store.post<ReplayJson>(`${all.path}/replay`, { from: FAR_PAST, types: ['card.updated'] });
    const copies = await eventually(
      () => all.receiver.received.filter(({ body }) => body['type'] === 'card.updated'),
      ({ length }) => length === 2,
    );
    expect(copies[1]?.text).toBe(copies[0]?.text);
  });
});

describe('the feed and events about the records of a store', () => {
  it('DELIV-58 Events about cards, rewards, locations, posters and the store are in the feed too, in one order with those about customers', async () => {
    const store = await service.newStore();
    const { card } = await enrol(store, { rewards: [5] });
    const { body: archived } = await store.post<CardJson>(
      `${store.store}/cards/${card.id}/archive`,
    );
    const events = await readFeed(store, [
      'card.created',
      'reward.created',
      'customer.created',
      'customer_card.created',
      'card.archived',
    ]);
    expect(events[4]).toMatchObject({ sequence: 1, account_id: store.accountId, data: archived });
    const path = `${store.store}/events?type=card.archived`;
    expect((await store.get<EnvelopeJson[]>(path)).body).toEqual([events[4]]);

    const hook = await listening({ events: ['card.created', 'card.archived'] }, store);
    const replay = await store.post<ReplayJson>(`${hook.path}/replay`, { from: FAR_PAST });
    expect(replay.body).toEqual({ matched: 2 });
    await received(hook, 2);
    expect(hook.receiver.events.map(({ text }) => text)).toEqual(
      [events[0], events[4]].map((envelope) => JSON.stringify(envelope)),
    );
    const [newest] = await eventually(
      async () => (await store.get<DeliveryJson[]>(`${hook.path}/deliveries`)).body,
      ([first]) => first?.status === 'delivered',
    );
    expect((await store.post(`${hook.path}/deliveries/${newest?.id}/redeliver`)).status).toBe(200);
    const requests = await eventually(
      () => hook.receiver.received,
      ({ length }) => length === 3,
    );
    expect(requests[2]?.text).toBe(JSON.stringify(events[4]));
  });
});
