import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { deflateSync, gzipSync } from 'node:zlib';
import type {
  DeliveryDetailJson,
  DeliveryJson,
  ReplayJson,
} from '#outbound/subscriptions/webhook-delivery.dto.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { createId } from '#platform/kernel/randomness.js';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import type { WebhookSubscriptionSecretJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { isSigned, Receiver, type Reply } from '../support/emulators/webhook-receiver.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { CUSTOMER_EVENTS, startDispatcher } from '../support/services/webhook-dispatcher.js';
import { type EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';

const INSECURE = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' };
const NOWHERE = 'http://127.0.0.1:9/';
const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const AN_HOUR = '1 hour';

const service = useService(INSECURE);
const receivers: Receiver[] = [];
let dispatcher: Program;

beforeAll(async () => {
  dispatcher = await startDispatcher(service.running);
});
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
});
afterAll(() => dispatcher.kill('SIGTERM'));

type Replying = Reply | ((nth: number) => Reply | Promise<Reply>);

type Subscribed = { store: ContractClient; id: number; path: string; secret: string };

async function subscribe(store: ContractClient, body: object): Promise<Subscribed> {
  const response = await store.post<WebhookSubscriptionSecretJson>(
    `${store.store}/webhook_subscriptions`,
    { events: CUSTOMER_EVENTS, ...body },
  );
  expect(response.status).toBe(201);
  const { id, secret } = response.body;
  return { store, id, path: `${store.store}/webhook_subscriptions/${id}`, secret };
}

/** A store of its own, and a receiver of what happens in it. */
async function listening(reply: Replying = { status: 200 }, body: object = {}) {
  const store = await service.newStore();
  const receiver = await Receiver.start((_received, nth) =>
    typeof reply === 'function' ? reply(nth) : reply,
  );
  receivers.push(receiver);
  return { ...(await subscribe(store, { target_url: receiver.url, ...body })), receiver };
}

const listOf = async (
  { store, path }: Subscribed,
  query: Record<string, string> = {},
): Promise<DeliveryJson[]> => {
  const url = `${path}/deliveries?${new URLSearchParams(query)}`;
  const { status, body } = await store.get<DeliveryJson[]>(url);
  expect(status).toBe(200);
  return body;
};

const show = async ({ store, path }: Subscribed, id: number): Promise<DeliveryDetailJson> =>
  (await store.get<DeliveryDetailJson>(`${path}/deliveries/${id}`)).body;

const redeliver = ({ store, path }: Subscribed, id: number) =>
  store.post<DeliveryDetailJson>(`${path}/deliveries/${id}/redeliver`);

const replay = ({ store, path }: Subscribed, body: object) =>
  store.post<ReplayJson>(`${path}/replay`, body);

/** Once there are so many attempts. */
const attempted = (subscribed: Subscribed, id: number, attempts: number) =>
  eventually(
    () => show(subscribed, id),
    (delivery) => delivery.attempts.length >= attempts,
  );

/** The delivery of one stamp, after so many attempts. */
async function oneDelivery(subscribed: Subscribed, attempts = 1): Promise<DeliveryDetailJson> {
  const { store } = subscribed;
  const { path } = await enrol(store);
  expect((await store.stamp(path)).status).toBe(200);
  const [delivery] = await eventually(
    () => listOf(subscribed, { type: 'stamp.earned' }),
    (list) => list.length > 0,
  );
  return attempted(subscribed, delivery?.id ?? 0, attempts);
}

/** The next scheduled attempt is put off, so that nothing comes between. */
async function putOff({ id }: Subscribed): Promise<void> {
  await service.running.database.query(
    'update webhook_pending set next_attempt_at = now() + $2::interval where subscription_id = $1',
    [id, AN_HOUR],
  );
}

/** Everything up to now has been planned; as envelopes, oldest first. */
async function feedOf(store: ContractClient, types: string[]): Promise<EnvelopeJson[]> {
  const { body } = await eventually(
    () => store.get<EnvelopeJson[]>(`${store.store}/events`),
    (response) => response.body.length >= types.length,
  );
  expect(body.map(({ type }) => type)).toEqual(types);
  return body;
}

const ENROLLED = ['card.created', 'customer.created', 'customer_card.created'];

/** A store with a stamp in it, and what it came to, after the creation of its card. */
async function stamped() {
  const store = await service.newStore();
  const { path } = await enrol(store);
  await store.stamp(path);
  const [, ...events] = await feedOf(store, [...ENROLLED, 'stamp.earned']);
  return { store, path, events };
}

const pause = ({ store, path }: Subscribed) => store.patch(path, { enabled: false });

const idsOf = ({ received }: Receiver) => received.map(({ headers }) => headers['webhook-id']);

const receivedBy = (receiver: Receiver, count: number) =>
  eventually(
    () => idsOf(receiver),
    (ids) => ids.length >= count,
  );

/** @property began when its plan did, and so the day that its id carries; by default the same */
type Seed = { type: string; status: (typeof STATUSES)[number]; at: string; began?: string };

/** Deliveries as they would be after days; of a subscription that is disabled, so that none is sent. */
async function seeded(seeds: Seed[]): Promise<Subscribed> {
  const store = await service.newStore();
  const subscribed = await subscribe(store, { target_url: NOWHERE, enabled: false });
  const { query } = service.running.database;
  for (const { type, status, at, began = at } of seeds) {
    await query('select webhook_make_partitions($1, $1)', [began]);
    const [table, columns, values] =
      status === 'pending'
        ? ['webhook_pending', 'stream, next_attempt_at', "'customer_card-1', now()"]
        : ['webhook_finished', 'status, attempts_count', `'${status}', 1`];
    await query(
      `insert into ${table} (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
         payload_format, created_at, ${columns})
       select webhook_first_id($5) | nextval('webhook_seq'), $2, 1, 'evt_' || currval('webhook_seq'), $3, 1,
         $4, 'envelope', $1, ${values}`,
      [at, subscribed.id, store.accountId, type, began],
    );
  }
  return subscribed;
}

/** Noon, so many days ago. */
const noon = (daysAgo: number, milliseconds = 0) => {
  const day = new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);
  return new Date(Date.parse(`${day}T12:00:00Z`) + milliseconds).toISOString();
};

const linkOf = ({ headers }: ApiResponse): string | undefined =>
  /<https:\/\/cards\.example([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

/** Every page from this one on. */
async function pagesFrom<T>(store: ContractClient, path: string): Promise<T[][]> {
  const pages: T[][] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: ApiResponse<T[]> = await store.get<T[]>(next);
    expect(response.status).toBe(200);
    pages.push(response.body);
    next = linkOf(response);
  }
  return pages;
}

const SHAPE = [
  'attempts_count',
  'created_at',
  'delivered_at',
  'event_id',
  'id',
  'next_attempt_at',
  'status',
  'type',
];

describe('webhook deliveries', () => {
  it('DELIV-01 In the list a delivery has exactly the documented fields without `attempts`', async () => {
    const hook = await listening();
    await oneDelivery(hook);
    const list = await listOf(hook);
    expect(list).toHaveLength(3);
    for (const delivery of list) expect(Object.keys(delivery).sort()).toEqual(SHAPE);
  });

  it('DELIV-02 A single delivery also has `attempts`, each attempt with exactly the documented fields', async () => {
    const hook = await listening();
    const delivery = await oneDelivery(hook);
    expect(Object.keys(delivery).sort()).toEqual([...SHAPE, 'attempts'].sort());
    expect(delivery.attempts).toEqual([
      {
        attempt: 1,
        kind: 'scheduled',
        at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
        status: 200,
        duration_ms: expect.any(Number),
        error: null,
        response_excerpt: null,
      },
    ]);
  });

  it('DELIV-03 Any 2xx makes a delivery `delivered`, with the time and no next attempt', async () => {
    const hook = await listening({ status: 204 });
    const { delivered_at, ...delivery } = await oneDelivery(hook);
    expect(delivery).toMatchObject({
      status: 'delivered',
      attempts_count: 1,
      next_attempt_at: null,
      event_id: hook.receiver.received.at(-1)?.headers['webhook-id'],
    });
    expect(Date.parse(delivered_at ?? '')).toBeGreaterThanOrEqual(Date.parse(delivery.created_at));
  });

  it('DELIV-04 Between two attempts a delivery is `pending`, with the time of the next one', async () => {
    const hook = await listening({ status: 500 });
    const delivery = await oneDelivery(hook);
    expect(delivery).toMatchObject({ status: 'pending', delivered_at: null });
    const last = Date.parse(delivery.attempts.at(-1)?.at ?? '');
    expect(Date.parse(delivery.next_attempt_at ?? '')).toBeGreaterThan(last);
  });

  it('DELIV-05 The list of deliveries is newest first, whatever the status', async () => {
    const hook = await seeded([
      { type: 'stamp.earned', status: 'pending', at: noon(2) },
      { type: 'stamp.earned', status: 'failed', at: noon(3) },
      { type: 'stamp.earned', status: 'delivered', at: noon(1) },
      { type: 'stamp.earned', status: 'cancelled', at: noon(2, 1) },
    ]);
    const list = await listOf(hook);
    expect(list.map(({ created_at }) => created_at)).toEqual([
      noon(1),
      noon(2, 1),
      noon(2),
      noon(3),
    ]);
    const ids = list.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((a, b) => b - a));
  });

  it('DELIV-06 `status` lists the deliveries in that status', async () => {
    const hook = await seeded(
      STATUSES.flatMap((status) => [
        { type: 'stamp.earned', status, at: noon(2) },
        { type: 'stamp.removed', status, at: noon(1) },
      ]),
    );
    for (const status of STATUSES) {
      const list = await listOf(hook, { status });
      expect(list.map((delivery) => [delivery.status, delivery.type])).toEqual([
        [status, 'stamp.removed'],
        [status, 'stamp.earned'],
      ]);
    }
  });

  it('DELIV-07 `type` lists the deliveries of that type', async () => {
    const hook = await seeded([
      { type: 'stamp.earned', status: 'failed', at: noon(1) },
      { type: 'stamp.removed', status: 'failed', at: noon(1) },
      { type: 'stamp.earned', status: 'pending', at: noon(2) },
    ]);
    const list = await listOf(hook, { type: 'stamp.earned' });
    expect(list.map(({ status }) => status)).toEqual(['failed', 'pending']);
    expect(await listOf(hook, { type: 'reward.redeemed' })).toEqual([]);
  });

  it('DELIV-08 `from` (inclusive) and `to` (exclusive) filter by `created_at`', async () => {
    const times = [noon(3), noon(2, -1), noon(2), noon(2, 1), noon(1)];
    const hook = await seeded(
      times.map((at, i) => ({
        type: 'stamp.earned',
        status: i % 2 === 0 ? 'delivered' : 'pending',
        at,
      })),
    );
    const timesOf = async (query: Record<string, string>) =>
      (await listOf(hook, query)).map(({ created_at }) => created_at).reverse();
    expect(await timesOf({ from: noon(2) })).toEqual(times.slice(2));
    expect(await timesOf({ to: noon(2) })).toEqual(times.slice(0, 2));
    expect(await timesOf({ from: noon(2, -1), to: noon(2, 1) })).toEqual(times.slice(1, 3));
    expect(await timesOf({ from: noon(2), to: noon(2) })).toEqual([]);
    expect(await timesOf({ from: '0001-01-02', to: '9999-12-30' })).toEqual(times);
    // They were planned across midnight.
    const [midnight, began] = [noon(1, -43_200_000), noon(1, -43_200_001)];
    const seed = { type: 'stamp.earned', at: midnight, began } as const;
    const across = await seeded([
      { ...seed, status: 'delivered' },
      { ...seed, status: 'pending' },
    ]);
    expect(await listOf(across, { from: midnight })).toHaveLength(2);
  });

  it('DELIV-09 All filters of deliveries can be combined', async () => {
    const seeds = ['stamp.earned', 'stamp.removed'].flatMap((type) =>
      STATUSES.flatMap((status) => [1, 2, 3].map((day) => ({ type, status, at: noon(day) }))),
    );
    const hook = await seeded(seeds);
    for (const status of STATUSES) {
      const query = { status, type: 'stamp.removed', from: noon(2), to: noon(1) };
      const list = await listOf(hook, query);
      expect(list).toEqual([
        expect.objectContaining({ status, type: 'stamp.removed', created_at: noon(2) }),
      ]);
    }
    expect(await listOf(hook, { type: 'stamp.earned', from: noon(2) })).toHaveLength(8);
  });

  it('DELIV-10 An invalid filter is 422 on its name; all invalid ones are reported at once', async () => {
    const { store, path } = await seeded([]);
    const invalid = { status: 'lost', type: 'stamp.lost', from: 'monday', to: '2026-02-30' };
    for (const [name, value] of Object.entries(invalid)) {
      expectRefused(await store.get(`${path}/deliveries?${name}=${value}`), name);
    }
    const all = new URLSearchParams(invalid).toString();
    expectRefused(await store.get(`${path}/deliveries?${all}`), Object.keys(invalid));
  });

  it('DELIV-11 Without `limit` a page has a hundred deliveries, and a `Link` to the next page while there are more', async () => {
    const { store, path } = await seededMany(101);
    const first = await store.get<DeliveryJson[]>(`${path}/deliveries`);
    expect(first.body).toHaveLength(100);
    const pages = await pagesFrom<DeliveryJson>(store, `${path}/deliveries`);
    expect(pages.map(({ length }) => length)).toEqual([100, 1]);
    const exactly = await seededMany(100);
    expect(linkOf(await exactly.store.get(`${exactly.path}/deliveries`))).toBeUndefined();
  });

  it('DELIV-12 `limit` and `cursor` page through all deliveries, each once, with the filters kept, whatever is added in the meantime', async () => {
    const hook = await seededMany(30);
    const { store, path } = hook;
    const all = (await listOf(hook, { status: 'delivered' })).map(({ id }) => id);
    expect(all).toHaveLength(15);
    const url = `${path}/deliveries?status=delivered&limit=4`;
    const first = await store.get<DeliveryJson[]>(url);
    await seedMany(hook, 10);
    const later = await pagesFrom<DeliveryJson>(store, linkOf(first) ?? '');
    const paged = [first.body, ...later].map((page) => page.map(({ id }) => id));
    expect(paged.map(({ length }) => length)).toEqual([4, 4, 4, 3]);
    expect(paged.flat()).toEqual(all);
  });

  it('DELIV-13 A `limit` that is not an integer from 1 to 250, or a cursor of another list, is 422 on its name', async () => {
    const hook = await seededMany(2);
    const { store, path } = hook;
    for (const limit of ['0', '251', 'all', '1.5']) {
      expectRefused(await store.get(`${path}/deliveries?limit=${limit}`), 'limit');
    }
    const { store: otherStore, path: elsewhere } = await seededMany(2);
    const foreign = new URLSearchParams(
      linkOf(await otherStore.get(`${elsewhere}/deliveries?limit=1`))?.split('?')[1],
    ).get('cursor');
    for (const cursor of ['x', String(foreign)]) {
      expectRefused(await store.get(`${path}/deliveries?cursor=${cursor}`), 'cursor');
    }
  });

  it('DELIV-14 A subscription that the store does not have, or no longer has, is 404 for every operation, before anything else is checked', async () => {
    const hook = await seededMany(1);
    const [delivery] = await listOf(hook);
    const otherStore = await service.newStore();
    const gone = await seededMany(1);
    const [left] = await listOf(gone);
    expect((await gone.store.delete(gone.path)).status).toBe(204);
    const foreign = hook.path.replace(hook.store.store, otherStore.store);
    for (const [store, path, id] of [
      [otherStore, foreign, delivery?.id],
      [otherStore, `${otherStore.store}/webhook_subscriptions/999`, delivery?.id],
      [gone.store, gone.path, left?.id],
    ] as const) {
      const responses = [
        await store.get(`${path}/deliveries`),
        await store.get(`${path}/deliveries?status=lost&cursor=x`),
        await store.get(`${path}/deliveries/${id}`),
        await store.post(`${path}/deliveries/${id}/redeliver`),
        await store.post(`${path}/replay`, { from: noon(1) }),
        await store.post(`${path}/replay`, { from: 'monday' }),
      ];
      for (const response of responses) expectFailure(response, 404, 'not_found');
    }
  });

  it('DELIV-15 A delivery of another subscription is 404, for reading and for sending again', async () => {
    const hook = await seededMany(1);
    const [delivery] = await listOf(hook);
    const beside = await subscribe(hook.store, { target_url: NOWHERE });
    for (const id of [String(delivery?.id), '1', '9007199254740991', '99999999999999999999', 'x']) {
      const path = `${beside.path}/deliveries/${id}`;
      expectFailure(await hook.store.get(path), 404, 'not_found');
      expectFailure(await hook.store.post(`${path}/redeliver`), 404, 'not_found');
    }
  });

  it('DELIV-16 Attempts of both kinds are listed in order, each with its response', async () => {
    const statuses = [500, 301, 404];
    const hook = await listening((nth) => ({ status: statuses[nth - 1] ?? 200 }), {
      events: ['stamp.earned'],
    });
    const { id } = await oneDelivery(hook);
    await putOff(hook);
    for (const attempts of [2, 3, 4]) {
      await redeliver(hook, id);
      await attempted(hook, id, attempts);
    }
    const { attempts, attempts_count } = await show(hook, id);
    expect(attempts_count).toBe(4);
    expect(attempts.map(({ attempt, kind, status }) => [attempt, kind, status])).toEqual([
      [1, 'scheduled', 500],
      [2, 'manual', 301],
      [3, 'manual', 404],
      [4, 'manual', 200],
    ]);
    const times = attempts.map(({ at }) => at);
    expect(times).toEqual([...times].sort());
    expect(attempts.map(({ error }) => error !== null)).toEqual([true, true, true, false]);
    for (const { duration_ms } of attempts) expect(duration_ms).toBeGreaterThanOrEqual(0);
  });

  it('DELIV-17 A second attempt has the same id and the same bytes', async () => {
    const hook = await listening((nth) => ({ status: nth === 1 ? 503 : 200 }), {
      events: ['stamp.earned'],
    });
    const { attempts } = await oneDelivery(hook, 2);
    expect(attempts.map(({ kind, status }) => [kind, status])).toEqual([
      ['scheduled', 503],
      ['scheduled', 200],
    ]);
    const [first, second] = hook.receiver.received;
    expect(second?.text).toBe(first?.text);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  });

  it('DELIV-18 Without a response, `status` and `response_excerpt` are null and `error` says why', async () => {
    const store = await service.newStore();
    const gone = await Receiver.start();
    const hook = await subscribe(store, { target_url: gone.url, events: ['stamp.earned'] });
    await gone.stop();
    const { attempts } = await oneDelivery(hook);
    expect(attempts).toEqual([
      expect.objectContaining({
        status: null,
        error: 'The connection was refused',
        response_excerpt: null,
      }),
    ]);
  });

  it('DELIV-19 `response_excerpt` has at most 1 KiB, cut between characters', async () => {
    const whole = 'é'.repeat(512);
    const excerpts = { [whole]: whole, [`${whole}é`]: whole, [`x${whole}`]: `x${'é'.repeat(511)}` };
    for (const [body, expectedBody] of Object.entries(excerpts)) {
      const hook = await listening({ status: 500, body }, { events: ['stamp.earned'] });
      const { attempts } = await oneDelivery(hook);
      expect(attempts[0]?.response_excerpt).toBe(expectedBody);
      expect(Buffer.byteLength(expectedBody)).toBeLessThanOrEqual(1024);
    }
  });

  it('DELIV-20 NUL and anything that is not UTF-8 appear in `response_excerpt` as U+FFFD', async () => {
    const body = Buffer.from([0x61, 0x00, 0x62, 0xff, 0xfe, 0x63, 0xc3]);
    const hook = await listening({ status: 200, body }, { events: ['stamp.earned'] });
    const { attempts } = await oneDelivery(hook);
    expect(attempts[0]?.response_excerpt).toMatch(/^a�b��c�?$/);
  });

  it('DELIV-21 A 2xx counts even if its body is cut off; the part received is shown', async () => {
    const headers = { 'content-length': '100000', connection: 'close' };
    const hook = await listening({ status: 200, headers, body: 'halfway' });
    const { status, attempts } = await oneDelivery(hook);
    expect([status, attempts[0]?.status, attempts[0]?.error]).toEqual(['delivered', 200, null]);
    expect(attempts[0]?.response_excerpt).toBe('halfway');
  });

  it('DELIV-55 `response_excerpt` of a response in gzip or deflate is decoded, within the same limit', async () => {
    for (const [encoding, encode] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
    ] as const) {
      const headers = { 'content-encoding': encoding };
      const body = encode('é'.repeat(1_000_000));
      const hook = await listening({ status: 500, headers, body }, { events: ['stamp.earned'] });
      const { attempts } = await oneDelivery(hook);
      expect(attempts[0]?.response_excerpt).toBe('é'.repeat(512));
    }
  });
});

describe('sending a delivery again', () => {
  it('DELIV-22 `redeliver` returns 200 with the delivery as it is; the attempt follows immediately and is then listed, with kind `manual`', async () => {
    const hook = await listening();
    const before = await oneDelivery(hook);
    const { status, body } = await redeliver(hook, before.id);
    expect([status, body]).toEqual([200, before]);
    const after = await attempted(hook, before.id, 2);
    expect(after).toEqual({
      ...before,
      attempts_count: 2,
      attempts: [before.attempts[0], expect.objectContaining({ attempt: 2, kind: 'manual' })],
    });
  });

  it('DELIV-23 A redelivery has the same id and the same bytes, with its own signature', async () => {
    const hook = await listening({ status: 200 }, { events: ['stamp.earned'] });
    const { id } = await oneDelivery(hook);
    await redeliver(hook, id);
    await receivedBy(hook.receiver, 2);
    const [first, second] = hook.receiver.received;
    expect(second?.text).toBe(first?.text);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second && isSigned(second, hook.secret)).toBe(true);
  });

  it('DELIV-24 If a redelivery fails, status, next attempt and the number of scheduled attempts do not change', async () => {
    const hook = await listening({ status: 500 }, { events: ['stamp.earned'] });
    const { id } = await oneDelivery(hook);
    await putOff(hook);
    const before = await show(hook, id);
    await redeliver(hook, id);
    const after = await attempted(hook, id, 2);
    expect([after.status, after.next_attempt_at]).toEqual(['pending', before.next_attempt_at]);
    const { rows } = await service.running.database.query(
      'select tries, attempts_count from webhook_pending where id = $1',
      [id],
    );
    expect(rows).toEqual([{ tries: 1, attempts_count: 2 }]);
  });

  it('DELIV-25 If a redelivery succeeds, a pending delivery becomes `delivered`', async () => {
    const hook = await listening((nth) => ({ status: nth === 1 ? 500 : 200 }), {
      events: ['stamp.earned'],
    });
    const { id } = await oneDelivery(hook);
    await putOff(hook);
    await redeliver(hook, id);
    expect(await attempted(hook, id, 2)).toMatchObject({
      status: 'delivered',
      next_attempt_at: null,
      delivered_at: expect.any(String),
    });
  });

  it('DELIV-26 If a redelivery succeeds, a failed delivery becomes `delivered`; without a success it stays `failed`', async () => {
    const hook = await listening((nth) => ({ status: nth <= 2 ? 500 : 200 }), {
      events: ['stamp.earned'],
    });
    const { id } = await oneDelivery(hook);
    await failPending(hook);
    await redeliver(hook, id);
    expect(await attempted(hook, id, 2)).toMatchObject({ status: 'failed', delivered_at: null });
    await redeliver(hook, id);
    expect(await attempted(hook, id, 3)).toMatchObject({
      status: 'delivered',
      delivered_at: expect.any(String),
    });
  });

  it('DELIV-27 A redelivery leaves a successful delivery `delivered`, with its first `delivered_at`, whatever the response', async () => {
    const hook = await listening((nth) => ({ status: nth === 1 ? 200 : 500 }), {
      events: ['stamp.earned'],
    });
    const before = await oneDelivery(hook);
    await redeliver(hook, before.id);
    const after = await attempted(hook, before.id, 2);
    expect([after.status, after.delivered_at]).toEqual(['delivered', before.delivered_at]);
  });

  it('DELIV-28 A 410 to a redelivery deletes the subscription', async () => {
    const hook = await listening((nth) => ({ status: nth === 1 ? 200 : 410 }), {
      events: ['stamp.earned'],
    });
    const { id } = await oneDelivery(hook);
    await redeliver(hook, id);
    await eventually(
      () => hook.store.get(hook.path),
      ({ status }) => status === 404,
    );
    expect(hook.receiver.received).toHaveLength(2);
  });

  it('DELIV-29 `redeliver` on a disabled subscription is 422 `base`, and nothing is sent', async () => {
    const hook = await listening({ status: 200 }, { events: ['stamp.earned'] });
    const { id } = await oneDelivery(hook);
    await pause(hook);
    expectRefused(await redeliver(hook, id), 'base');
    expect((await show(hook, id)).attempts_count).toBe(1);
  });

  it('DELIV-30 A redelivery that is requested again before it has finished is made only once', async () => {
    let release: (reply: Reply) => void = () => undefined;
    const heldReply = new Promise<Reply>((resolve) => (release = resolve));
    const hook = await listening(
      (nth) => (nth === 2 ? heldReply : { status: nth === 1 ? 500 : 200 }),
      {
        events: ['stamp.earned'],
      },
    );
    const { id } = await oneDelivery(hook);
    await putOff(hook);
    const both = await Promise.all([redeliver(hook, id), redeliver(hook, id)]);
    await receivedBy(hook.receiver, 2);
    both.push(await redeliver(hook, id));
    expect(both.map(({ status }) => status)).toEqual([200, 200, 200]);
    release({ status: 500 });
    await attempted(hook, id, 2);
    const { rows } = await service.running.database.query(
      'select 1 from webhook_redeliveries where subscription_id = $1',
      [hook.id],
    );
    expect([rows.length, hook.receiver.received.length]).toEqual([0, 2]);
    await redeliver(hook, id);
    await attempted(hook, id, 3);
    expect(hook.receiver.received).toHaveLength(3);
  });

  it('DELIV-31 A redelivery uses the format in which the delivery was enqueued', async () => {
    const flat = { events: ['stamp.earned'], payload_format: 'flat' };
    const hook = await listening({ status: 200 }, flat);
    const { id } = await oneDelivery(hook);
    await hook.store.patch(hook.path, { payload_format: 'envelope' });
    await redeliver(hook, id);
    await receivedBy(hook.receiver, 2);
    const [first, second] = hook.receiver.received;
    expect(second?.text).toBe(first?.text);
    expect(second?.body).toHaveProperty('stamps_count', 1);
  });
});

describe('sending a delivery again whose event is gone', () => {
  it('DELIV-50 `redeliver` of an event that is no longer kept is 422 `base`, and nothing is sent', async () => {
    const hook = await listening({ status: 200 }, { events: ['stamp.earned'] });
    const { id } = await oneDelivery(hook);
    const { query } = service.running.database;
    const { rows } = await query('select event_seq as seq from webhook_deliveries where id = $1', [
      id,
    ]);
    const { seq } = rows[0] as { seq: number };
    await query('delete from webhook_events where seq = $1', [seq]);
    // Its body alone is enough.
    expect((await redeliver(hook, id)).status).toBe(200);
    await attempted(hook, id, 2);
    await query('delete from webhook_bodies where seq = $1', [seq]);
    expectRefused(await redeliver(hook, id), 'base');
    expect(
      await query('select 1 from webhook_redeliveries where subscription_id = $1', [hook.id]),
    ).toMatchObject({ rowCount: 0 });
  });
});

describe('a replay', () => {
  it('DELIV-32 `replay` sends the events recorded since `from` under their original ids, as new deliveries', async () => {
    const hook = await listening();
    await oneDelivery(hook);
    const before = await receivedBy(hook.receiver, 3);
    const { status, body } = await replay(hook, { from: noon(1) });
    expect([status, body]).toEqual([200, { matched: 3 }]);
    const ids = await receivedBy(hook.receiver, 6);
    expect(ids.slice(3).sort()).toEqual([...before].sort());
    const list = await eventually(
      () => listOf(hook, { status: 'delivered' }),
      (deliveries) => deliveries.length === 6,
    );
    expect(new Set(list.map(({ event_id }) => event_id))).toEqual(new Set(before));
  });

  it("DELIV-33 `from` of a replay is inclusive, `to` exclusive, by the envelope's `timestamp`", async () => {
    const { store, path } = await stamped();
    await store.stamp(path, 2);
    await store.stamp(path, 3);
    const earned = 'stamp.earned';
    const events = await feedOf(store, [...ENROLLED, earned, earned, earned]);
    const at = events.map(({ timestamp }) => timestamp);
    const hook = await subscribe(store, { target_url: NOWHERE });
    const matched = async (body: object) =>
      (
        await eventually(
          () => replay(hook, { types: [earned], ...body }),
          // The one before it may still be running.
          ({ status }) => status !== 422,
        )
      ).body.matched;
    const inSpan = (from: string, to = '9999') =>
      events.filter(({ type, timestamp: t }) => type === earned && t >= from && t < to).length;
    const [, , , first = '', second = '', third = ''] = at;
    expect(await matched({ from: first })).toBe(3);
    expect(await matched({ from: second })).toBe(inSpan(second));
    expect(await matched({ from: first, to: third })).toBe(inSpan(first, third));
    expect(await matched({ from: noon(1), to: first })).toBe(0);
    expect(await matched({ from: '0001-01-02', to: '9999-12-30' })).toBe(3);
  });

  it('DELIV-34 `types` limits a replay to those types', async () => {
    const hook = await listening();
    await oneDelivery(hook);
    await receivedBy(hook.receiver, 3);
    const types = ['stamp.earned', 'customer.created', 'stamp.earned'];
    expect((await replay(hook, { from: noon(1), types })).body).toEqual({ matched: 2 });
    await receivedBy(hook.receiver, 5);
    const sent = hook.receiver.received.slice(3).map(({ body }) => body['type']);
    expect(sent.sort()).toEqual(['customer.created', 'stamp.earned']);
  });

  it('DELIV-35 Types that the subscription is not for are neither matched nor sent, even if `types` names them', async () => {
    const hook = await listening({ status: 200 }, { events: ['stamp.earned'] });
    await oneDelivery(hook);
    expect((await replay(hook, { from: noon(1) })).body).toEqual({ matched: 1 });
    const none = { from: noon(1), types: ['customer.created'] };
    expect((await replay(hook, none)).body).toEqual({ matched: 0 });
    await receivedBy(hook.receiver, 2);
    expect(hook.receiver.received.map(({ body }) => body['type'])).toEqual([
      'stamp.earned',
      'stamp.earned',
    ]);
  });

  it('DELIV-36 A replay also covers events from before the subscription was created', async () => {
    const { store, events } = await stamped();
    const receiver = await Receiver.start();
    receivers.push(receiver);
    const hook = await subscribe(store, { target_url: receiver.url });
    expect((await replay(hook, { from: noon(1) })).body).toEqual({ matched: 3 });
    const ids = await receivedBy(receiver, 3);
    expect([...ids].sort()).toEqual(events.map(({ id }) => id).sort());
  });

  it('DELIV-37 A replay includes events that happened while the subscription was disabled; on a disabled one it is 422 `base`', async () => {
    const hook = await listening({ status: 200 }, { enabled: false });
    const { path } = await enrol(hook.store);
    await hook.store.stamp(path);
    await feedOf(hook.store, [...ENROLLED, 'stamp.earned']);
    expectRefused(await replay(hook, { from: noon(1) }), 'base');
    await hook.store.patch(hook.path, { enabled: true });
    expect((await replay(hook, { from: noon(1) })).body).toEqual({ matched: 3 });
    await receivedBy(hook.receiver, 3);
  });

  it("DELIV-38 A replay uses the subscription's own `payload_format`", async () => {
    const { store, events } = await stamped();
    const receiver = await Receiver.start();
    receivers.push(receiver);
    const flat = { target_url: receiver.url, events: ['stamp.earned'], payload_format: 'flat' };
    const hook = await subscribe(store, flat);
    await replay(hook, { from: noon(1) });
    await receivedBy(receiver, 1);
    const [sent] = receiver.received;
    expect(sent?.headers).toMatchObject({
      'webhook-id': events[2]?.id,
      'service-event': 'stamp.earned',
    });
    expect(sent?.text).toBe(JSON.stringify(events[2]?.data));
  });

  it('DELIV-39 If nothing matches a replay, `matched` is 0 and nothing is sent', async () => {
    const hook = await listening();
    await oneDelivery(hook);
    const later = new Date(Date.now() + 3_600_000).toISOString();
    for (const span of [{ from: noon(3), to: noon(2) }, { from: later }]) {
      expect((await replay(hook, span)).body).toEqual({ matched: 0 });
    }
    expect(await listOf(hook)).toHaveLength(3);
  });

  it('DELIV-40 `from` that is missing or not a time is 422 `from`; `to` that is not a time, or not after `from`, 422 `to`', async () => {
    const { store, path } = await listening();
    const send = (body?: unknown) => store.post(`${path}/replay`, body);
    for (const from of [undefined, null, '', 'monday', 7, '2026-02-30']) {
      expectRefused(await send({ from }), 'from');
    }
    expectRefused(await send(), 'from');
    expectRefused(await send({ from: noon(1), to: 'monday' }), 'to');
    expectRefused(await send({ from: noon(1), to: noon(1) }), 'to');
    expectRefused(await send({ from: noon(1), to: noon(2) }), 'to');
    expectRefused(await send([]), 'base');
  });

  it('DELIV-41 `types` that are not a list, empty or unknown are 422 `types`', async () => {
    const { store, path } = await listening();
    for (const types of [[], ['stamp.lost'], ['*'], 'stamp.earned', [7], {}]) {
      expectRefused(await store.post(`${path}/replay`, { from: noon(1), types }), 'types');
    }
  });

  it("DELIV-42 Another store's events never match a replay", async () => {
    await stamped();
    const hook = await listening();
    expect((await replay(hook, { from: noon(1) })).body).toEqual({ matched: 0 });
  });
});

describe('a replay while the dispatcher hangs', () => {
  afterEach(() => dispatcher.signal('SIGCONT'));

  it('DELIV-51 While another replay of the subscription is still being enqueued, `replay` is 422 `base`', async () => {
    const { store } = await stamped();
    const receiver = await Receiver.start();
    receivers.push(receiver);
    const hook = await subscribe(store, { target_url: receiver.url });
    dispatcher.signal('SIGSTOP');
    expect((await replay(hook, { from: noon(1) })).body).toEqual({ matched: 3 });
    expectRefused(await replay(hook, { from: noon(1) }), 'base');
    expect((await replay(hook, { from: noon(2), to: noon(1) })).body).toEqual({ matched: 0 });
    dispatcher.signal('SIGCONT');
    await receivedBy(receiver, 3);
    await eventually(
      () => replay(hook, { from: noon(1) }),
      ({ status }) => status === 200,
    );
    await receivedBy(receiver, 6);
  });

  it('DELIV-52 A replay counts and sends events from the moment they are recorded, also those not enqueued yet', async () => {
    const { store, path } = await stamped();
    dispatcher.signal('SIGSTOP');
    await store.stamp(path);
    const receiver = await Receiver.start();
    receivers.push(receiver);
    const hook = await subscribe(store, { target_url: receiver.url });
    const types = ['stamp.earned'];
    expect((await replay(hook, { from: noon(1), types })).body).toEqual({ matched: 2 });
    dispatcher.signal('SIGCONT');
    await receivedBy(receiver, 2);
  });
});

describe('the feed', () => {
  it('DELIV-43 The feed has all events of the store, oldest first, whether or not there is a subscription', async () => {
    const { store, path } = await stamped();
    await store.stamp(path, 2);
    const events = await feedOf(store, [...ENROLLED, 'stamp.earned', 'stamp.earned']);
    expect(events.map(({ account_id }) => account_id)).toEqual(
      Array.from({ length: 5 }, () => store.accountId),
    );
    expect(events.slice(3).map(({ data }) => data['stamps'])).toEqual([1, 2]);
    const times = events.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...times].sort());
  });

  it('DELIV-44 Each event of the feed is the envelope that webhooks carry, byte for byte', async () => {
    const hook = await listening({ status: 200 }, { events: ['*'] });
    await enrol(hook.store, { card: { name: 'Café ☕ </script> \u2028 "x"' } });
    await receivedBy(hook.receiver, 3);
    const { text } = await hook.store.get(`${hook.store.store}/events`);
    const sent = hook.receiver.events.map((received) => received.text);
    expect(text).toBe(`[${sent.join(',')}]`);
  });

  it('DELIV-54 `sequence` is the revision of the record that changed: of two envelopes about one record the higher is the later, in one request as well', async () => {
    const store = await service.newStore();
    const { card, customer, path } = await enrol(store, { rewards: [1, 2] });
    await store.stamp(path, 2);
    await store.patch(`${store.store}/customers/${customer.id}`, {
      customer: { phone: '1234567' },
    });
    await store.patch(`${store.store}/cards/${card.id}`, { card: { name: 'Tea' } });
    const events = await feedOf(store, [
      'card.created',
      'reward.created',
      'reward.created',
      'customer.created',
      'customer_card.created',
      'stamp.earned',
      'reward.unlocked',
      'reward.unlocked',
      'customer.updated',
      'card.updated',
    ]);
    expect(events.map(({ sequence }) => sequence)).toEqual([0, 0, 0, 0, 0, 1, 2, 3, 1, 1]);
    const [earned, ...unlocked] = events.slice(5);
    for (const { timestamp } of unlocked.slice(0, 2)) expect(timestamp).toBe(earned?.timestamp);
  });

  it('DELIV-45 `after` is the id of the last envelope seen; everything up to it is left out', async () => {
    const { store, events } = await stamped();
    const after = async (id?: string) =>
      (await store.get<EnvelopeJson[]>(`${store.store}/events?after=${id}`)).body;
    expect(await after(events[0]?.id)).toEqual(events.slice(1));
    expect(await after(events[2]?.id)).toEqual([]);
  });

  it('DELIV-46 `type` filters the feed by type; an unknown one is 422 `type`', async () => {
    const { store, events } = await stamped();
    const of = async (query: string) =>
      (await store.get<EnvelopeJson[]>(`${store.store}/events?${query}`)).body;
    expect(await of('type=customer_card.created')).toEqual([events[1]]);
    expect(await of(`type=stamp.earned&after=${events[0]?.id}`)).toEqual([events[2]]);
    expect(await of('type=reward.redeemed')).toEqual([]);
    expectRefused(await store.get(`${store.store}/events?type=stamp.lost`), 'type');
  });

  it('DELIV-47 While there are more events the feed has a `Link` to the next page, with the filters kept', async () => {
    const { store, path } = await stamped();
    for (const stamps of [1, 2]) await store.stamp(path, stamps);
    const earned = 'stamp.earned';
    const all = await feedOf(store, [...ENROLLED, earned, earned, earned]);
    const events = `${store.store}/events`;
    const byTwo = await pagesFrom<EnvelopeJson>(store, `${events}?limit=2`);
    expect(byTwo.map(({ length }) => length)).toEqual([2, 2, 2]);
    expect(byTwo.flat()).toEqual(all);
    const ofType = await pagesFrom<EnvelopeJson>(store, `${events}?limit=2&type=${earned}`);
    expect(ofType.map(({ length }) => length)).toEqual([2, 1]);
    expect(ofType.flat()).toEqual(all.slice(3));
    const exactly = await store.get(`${events}?limit=6`);
    expect(linkOf(exactly)).toBeUndefined();
  });

  it('DELIV-48 `limit` of the feed defaults to 100; anything that is not an integer from 1 to 250 is 422 `limit`', async () => {
    const { store, path } = await stamped();
    for (let i = 0; i < 97; i++) await store.stamp(path);
    const events = `${store.store}/events`;
    await eventually(
      () => store.get<EnvelopeJson[]>(`${events}?limit=250`),
      ({ body }) => body.length === 101,
    );
    const pages = await pagesFrom<EnvelopeJson>(store, events);
    expect(pages.map(({ length }) => length)).toEqual([100, 1]);
    for (const limit of ['0', '251', 'all']) {
      expectRefused(await store.get(`${events}?limit=${limit}`), 'limit');
    }
  });

  it('DELIV-49 `after` that is unknown, or of another store, is 422 `after`', async () => {
    const { store } = await stamped();
    const otherStamp = await stamped();
    const unknown = ['evt_00000000000000000000000000', 'x', otherStamp.events[0]?.id];
    for (const after of unknown) {
      expectRefused(await store.get(`${store.store}/events?after=${after}`), 'after');
    }
    const { body } = await store.get<EnvelopeJson[]>(`${store.store}/events`);
    expect(body.map(({ account_id }) => account_id)).not.toContain(otherStamp.store.accountId);
    // Nothing was restored since it was made.
    await recordRestore('-1 day');
    const madeUp = toPublicEventId(createId());
    const never = await store.get<Failure>(`${store.store}/events?after=${madeUp}`);
    expectRefused(never, 'after', 'validation_failed');
    expect(never.body).toMatchObject({
      errors: { after: ['was never an event of this store'] },
      resolution: `Start again from here: continue with after=${body.at(-1)?.id}.`,
    });
  });

  it('DELIV-70 `after` that was given out after the backup from which the service was restored is 422 `cursor_ahead`', async () => {
    type Ahead = Failure & { resume_after: string | null };
    const { store, path, events } = await stamped();
    const last = events.at(-1)?.id;
    // As of an event that a restored database does not have.
    const lost = toPublicEventId(createId());
    const feed = `${store.store}/events`;
    await recordRestore('1 minute');
    const response = await store.get<Ahead>(`${feed}?after=${lost}`);
    expectRefused(response, 'after', 'cursor_ahead');
    expect(response.body.resume_after).toBe(last);
    expect(response.body.resolution).toBe(`Start again from here: continue with after=${last}.`);
    await store.stamp(path);
    const { body: all } = await eventually(
      () => store.get<EnvelopeJson[]>(feed),
      ({ body }) => body.at(-1)?.id !== last,
    );
    // Later events do not change where to continue.
    const again = await store.get<Ahead>(`${feed}?after=${lost}`);
    expect(again.body.resume_after).toBe(last);
    const { body: next } = await store.get<EnvelopeJson[]>(`${feed}?after=${last}`);
    expect(next).toEqual(all.slice(all.findIndex(({ id }) => id === last) + 1));

    const empty = await service.newStore();
    const { body } = await empty.get<Ahead>(`${empty.store}/events?after=${lost}`);
    expect([body.code, body.resume_after]).toEqual(['cursor_ahead', null]);
    expect(body.resolution).toBe('Start again from here: leave after out.');
    // An id from next year is made up, and one from before the oldest event was deleted.
    for (const after of ['evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ', 'evt_0000000000000000000000000Z']) {
      expectRefused(await store.get(`${feed}?after=${after}`), 'after');
    }
  });

  it('DELIV-71 `after` may be the id of a `webhook.test` of this store: what was recorded since then follows', async () => {
    const { store, path, events } = await stamped();
    const feed = `${store.store}/events`;
    const hooks = `${store.store}/webhook_subscriptions`;
    const { body: hook } = await store.post<{ id: number }>(hooks, {
      events: ['stamp.earned'],
      target_url: 'http://127.0.0.1:9/',
    });
    const sendTest = async () => {
      const { status, body } = await store.post<{ event_id: string }>(`${hooks}/${hook.id}/test`);
      expect(status).toBe(200);
      return body.event_id;
    };
    const first = await sendTest();
    expect((await store.get<EnvelopeJson[]>(`${feed}?after=${first}`)).body).toEqual([]);
    await store.stamp(path);
    const { body: next } = await eventually(
      () => store.get<EnvelopeJson[]>(`${feed}?after=${first}`),
      ({ body }) => body.length > 0,
    );
    expect(next.map(({ type }) => type)).toEqual(['stamp.earned']);
    expect(events.map((event) => event.id)).not.toContain(next[0]?.id);
    // Nothing was restored, and no test of another store is a place in this one.
    const other = await stamped();
    expectRefused(await other.store.get(`${other.store.store}/events?after=${first}`), 'after');
    const second = await sendTest();
    expect((await store.get<EnvelopeJson[]>(`${feed}?after=${second}`)).body).toEqual([]);
  });
});

/** As `inkpad restore` does. */
async function recordRestore(later: string): Promise<void> {
  await service.running.database.query(
    `insert into es.identity (restored_at) values (now() + $1::interval)
     on conflict (singleton) do update set restored_at = excluded.restored_at`,
    [later],
  );
}

/** Finished by turns as delivered and failed. */
async function seedMany({ id, store }: Subscribed, count: number): Promise<void> {
  await service.running.database.query(
    `insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
       payload_format, status, attempts_count, created_at)
     select webhook_next_id(), $1, n, 'evt_' || n, $2, 1, 'stamp.earned', 'envelope',
       case n % 2 when 0 then 'delivered' else 'failed' end, 1, now()
     from generate_series(1, $3) n`,
    [id, store.accountId, count],
  );
}

async function seededMany(count: number): Promise<Subscribed> {
  const subscribed = await seeded([]);
  await seedMany(subscribed, count);
  return subscribed;
}

/** As if its ten attempts were over. */
async function failPending({ id }: Subscribed): Promise<void> {
  await service.running.database.query(
    `with gone as (delete from webhook_pending where subscription_id = $1 returning *)
     insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
       payload_format, status, attempts_count, created_at)
     select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
       'failed', attempts_count, created_at from gone`,
    [id],
  );
}

describe('what waits to be sent when its customer is erased', () => {
  // 1. Four deliveries are read and rendered; the first is under way, to a receiver that takes its time.
  // 2. The customer of three of them is erased. Then the receiver responds.
  it('DELIV-56 A delivery that is pending when its customer is erased is sent without their data, under the same id, after the response to the erasure', async () => {
    let release: () => void = () => undefined;
    const releaseSignal = new Promise<void>((resolve) => {
      release = resolve;
    });
    const subscribed = await listening(
      async () => {
        await releaseSignal;
        return { status: 200 };
      },
      { events: ['stamp.earned'] },
    );
    const { store, receiver } = subscribed;
    const [erased, otherHolder] = [await enrol(store), await enrol(store)];
    for (const { path } of [erased, erased, erased, otherHolder]) {
      expect((await store.stamp(path)).status).toBe(200);
    }
    await eventually(
      async () => [await renderedFor(subscribed), receiver.received.length],
      ([bodies = 0, sent = 0]) => bodies === 4 && sent > 0,
    );
    const erase = `${store.store}/customers/${erased.customer.id}/erase`;
    expect((await store.post(erase)).status).toBe(204);
    const before = receiver.received.length;
    release();
    await eventually(
      () => receiver.events.length,
      (count) => count === 4,
    );
    const receivedIds = receiver.received.map(
      ({ body }) => (body['data'] as { customer: { id: number } }).customer,
    );
    const { id } = erased.customer;
    const nobody = { id, first_name: 'Erased', last_name: null, email: null, phone: null };
    const later = receivedIds.slice(before).filter((customer) => customer.id === id);
    expect(later.length).toBeGreaterThanOrEqual(2);
    expect(later).toEqual(later.map(() => nobody));
    expect(receivedIds.find((customer) => customer.id === otherHolder.customer.id)).toMatchObject({
      first_name: 'Anna',
    });
  });
});

/** How many events that are to be delivered have their bodies. */
async function renderedFor({ id }: Subscribed): Promise<number> {
  const { rows } = await service.running.database.query<{ count: number }>(
    `select count(*)::int as count from webhook_deliveries d join webhook_bodies b on b.seq = d.event_seq
     where d.subscription_id = $1`,
    [id],
  );
  return rows[0]?.count ?? 0;
}

it('AUDIT-13 Tests, replays and redeliveries of a subscription are counted like reads: the 1st, 10th, 100th … is an entry', async () => {
  const hook = await listening();
  const { id } = await oneDelivery(hook);
  for (let i = 0; i < 10; i++) {
    expect((await hook.store.post(`${hook.path}/test`)).status).toBe(200);
    expect((await redeliver(hook, id)).status).toBe(200);
    // Nothing is to be planned, so none waits for the one before.
    const { body } = await replay(hook, { from: '2999-01-01T00:00:00Z' });
    expect(body).toEqual({ matched: 0 });
  }
  const { body: entries } = await hook.store.get<AuditEntryJson[]>(`${hook.store.store}/audit`);
  const auditCounts = ['subscription.tested', 'subscription.replayed', 'delivery.redelivered'].map(
    (what) =>
      entries
        .filter(({ type }) => type === `webhook_${what}`)
        .map(({ subject }) => (subject as { times: number }).times),
  );
  expect(auditCounts).toEqual([
    [10, 1],
    [10, 1],
    [10, 1],
  ]);
});
