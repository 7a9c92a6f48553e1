import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TEXT_CACHE_MS } from '#outbound/public-events/event-bodies.service.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { DeliveryJson } from '#outbound/subscriptions/webhook-delivery.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findValues } from '../support/database/personal-data.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import type { Received, Receiver } from '../support/emulators/webhook-receiver.js';
import {
  Client,
  startService,
  type ApiResponse,
  type Service,
} from '../support/services/service.js';
import { CUSTOMER_EVENTS, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;

/** Outlasts the caches of keys, of texts made with them, and of deliveries with these texts. They cannot be observed. */
const CACHED_MS = 3 * TEXT_CACHE_MS + 500;

let service: Service;
let environment: NodeJS.ProcessEnv;
/** An api in a process of its own, with the most verbose log. */
let api: Program;
let apiUrl: string;
const { receive, receiveHeld, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  environment = createTestEnvironment(service.database.url, {
    ...service.environment,
    LOG_LEVEL: 'debug',
    LOG_FORMAT: 'json',
  });
  const port = await findFreePort();
  apiUrl = `http://127.0.0.1:${port}`;
  api = startProgram('dist/apps/api/main.js', { ...environment, PORT: String(port) });
  await eventually(
    () =>
      fetch(`${apiUrl}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    (ready) => ready,
  );
}, SLOW);

afterAll(async () => {
  await api.kill('SIGTERM');
  await service.stop();
}, SLOW);

/** Values that occur nowhere by chance, in every field that may hold personal data. */
const PERSON = {
  first_name: 'Xanthippe7Q',
  last_name: 'Vandersloot8R',
  email: 'xanthippe9s@vandersloot.example',
  phone: '+4915199988877',
  birthday: '1931-02-03',
  metadata: { allergy6T: 'pistachio5U', nested: { deep: 'marzipan4V' } },
  external_references: [
    { source: 'till', external_id: 'till-3W-77', metadata: { tier: 'platinum2X' } },
  ],
};
const CHANGES = { last_name: 'Remarried1Y', metadata: { pet: 'budgerigar0Z' } };
const VALUES = [
  'Xanthippe7Q',
  'Vandersloot8R',
  'xanthippe9s',
  '15199988877',
  '1931-02-03',
  'allergy6T',
  'pistachio5U',
  'marzipan4V',
  'till-3W-77',
  'platinum2X',
  'Remarried1Y',
  'budgerigar0Z',
  'kangaroo11',
  'wallaby22',
];

const findShown = (text: string) =>
  VALUES.filter((value) => text.toLowerCase().includes(value.toLowerCase()));

/** Responds with the request's body, as some receivers do. */
const echo = (status: number) => (received: Received) => ({ status, body: received.text });

const everything = { events: CUSTOMER_EVENTS };

describe('an erased customer', () => {
  it(
    'is in no table, event, stored response, later webhook or log, and inkpad verify still succeeds',
    async () => {
      const { accountId, token } = await service.newStore();
      const store = new Client(apiUrl, accountId, token);
      const keyed = <T>(method: string, path: string, body: unknown, key: string) =>
        store.send<T>(method, path, body, { 'idempotency-key': key });

      const { card, reward } = await createTemplates(store);
      const good = await receive(echo(200));
      const failing = await receive(echo(500));
      const { receiver: stuck, release } = await receiveHeld();
      const subscription = await subscribe(store, good, everything);
      await subscribe(store, failing, everything);
      await subscribe(store, stuck, everything);
      const dispatchers = [
        await startDispatcher({ LOG_LEVEL: 'debug' }),
        await startDispatcher({ LOG_LEVEL: 'debug' }),
      ];

      const customer = expectSuccess(
        await keyed<CreatedCustomerJson>(
          'POST',
          `${store.store}/customers`,
          { customer: PERSON, card_id: card },
          'create',
        ),
      );
      const path = `${store.store}/customers/${customer.id}`;
      const cardPath = `${path}/customer_cards/${customer.customer_card?.id}`;
      expectSuccess(await keyed('PATCH', path, { customer: CHANGES }, 'change'));
      expectSuccess(await keyed('PATCH', path, { customer: CHANGES }, 'change nothing'));
      const stamping = { stamps: 5, note: 'kangaroo11', external_ref: 'R-1' };
      expectSuccess(await keyed('POST', `${cardPath}/stamp`, stamping, 'stamp'));
      const redeeming = { reward_id: reward, note: 'wallaby22' };
      expectSuccess(await keyed('POST', `${cardPath}/redeem`, redeeming, 'redeem'));
      const double = { customer: { ...PERSON, first_name: 'Xanthippe7Q' } };
      expect((await keyed('POST', `${store.store}/customers`, double, 'double')).status).toBe(422);

      await eventually(
        () => [good.events.length, failing.received.length, stuck.received.length],
        ([delivered = 0, failed = 0, pending]) => delivered === 6 && failed >= 6 && pending === 1,
      );
      const deliveries = `${store.store}/webhook_subscriptions/${subscription.id}/deliveries`;
      const delivered = await eventually(
        async () => (await store.get<DeliveryJson[]>(deliveries)).body,
        (list) => list.filter(({ status }) => status === 'delivered').length === 6,
      );
      const again = `${deliveries}/${delivered[0]?.id}/redeliver`;
      expectSuccess(await keyed('POST', again, undefined, 'redeliver'));
      await eventually(
        () => good.received.length,
        (count) => count === 7,
      );
      await service.database.query('analyze customers');

      const before = await find();
      for (const value of VALUES) {
        expect(before.filter((where) => where.endsWith(`: ${value}`))).not.toEqual([]);
      }
      for (const place of ['customers', 'es.stored_responses', 'events', 'pg_catalog.pg_stats']) {
        expect([place, before.some((where) => where.startsWith(`${place}: `))]).toEqual([
          place,
          true,
        ]);
      }
      const ids = good.events.map(({ headers }) => headers['webhook-id']);

      expect((await store.post(`${path}/erase`)).status).toBe(204);
      const uncachedAt = performance.now() + CACHED_MS;
      await eventually(
        () => performance.now(),
        (now) => now > uncachedAt,
      );
      const seen = [stuck, good, failing].map(({ received }) => received.length);
      // Deliveries that waited, a replay, a redelivery, and the feed.
      release();
      expectSuccess(
        await store.post(`${store.store}/webhook_subscriptions/${subscription.id}/replay`, {
          from: '2020-01-01T00:00:00Z',
        }),
      );
      expectSuccess(await store.post(again));
      await eventually(
        () => [stuck, good, failing].map(({ received }, i) => received.length - (seen[i] ?? 0)),
        ([waited = 0, repeated = 0, retried = 0]) => waited >= 6 && repeated === 11 && retried > 0,
      );
      const feed = await store.get<{ id: string }[]>(`${store.store}/events`);
      expect([feed.body.length, findShown(feed.text)]).toEqual([12, []]);
      [stuck, good, failing].forEach(({ received }, i) => {
        for (const { text } of received.slice(seen[i])) expect(findShown(text)).toEqual([]);
      });
      // The ids stay, and all receivers get the same redacted bytes.
      const redacted = mapTexts(good, seen[1]);
      expect([...redacted.keys()]).toEqual(expect.arrayContaining(ids));
      for (const [id, text] of mapTexts(stuck, seen[0])) expect(redacted.get(id)).toBe(text);
      expect(JSON.parse(redacted.get(feed.body.at(-1)?.id) ?? '')).toMatchObject({
        type: 'customer.updated',
        data: { id: customer.id, first_name: 'Erased', erased_at: expect.any(String) },
        previous_attributes: {},
      });

      await eventually(
        () => find(),
        (places) => places.length === 0,
      );
      expect(await find()).toEqual([]);
      for (const { output } of [api, ...dispatchers]) expect(findShown(output())).toEqual([]);
      const verify = startProgram('dist/apps/cli/verify.js', environment);
      expect([await verify.exitCode, verify.output()]).toEqual([
        0,
        expect.stringContaining('every read model matches'),
      ]);
    },
    SLOW,
  );
});

const find = () => findValues(environment, service.database, VALUES);

async function createTemplates(store: Client): Promise<{ card: number; reward: number }> {
  const { body: card } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  const { body: reward } = await store.post<{ id: number }>(`${store.store}/rewards`, {
    reward: { card_id: card.id, name: 'Espresso', stamps_required: 3 },
  });
  // The planner keeps statistics of a column only from a few values on.
  for (const n of [1, 2, 3]) {
    const customer = { first_name: `Ann${n}`, email: `ann${n}@example.com`, phone: `+4915111${n}` };
    expectSuccess(await store.post(`${store.store}/customers`, { customer }));
  }
  return { card: card.id, reward: reward.id };
}

function expectSuccess<T>({ status, text, body }: ApiResponse<T>): T {
  expect([status, status < 300 ? '' : text]).toEqual([status, '']);
  return body;
}

const mapTexts = ({ received }: Receiver, from = 0) =>
  new Map(received.slice(from).map(({ headers, text }) => [headers['webhook-id'], text]));
