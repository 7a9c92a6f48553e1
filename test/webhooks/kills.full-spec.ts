import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { WebhookSubscriptionJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { eventually } from '../support/jest/eventually.js';
import { isSigned, type Receiver } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  CUSTOMER_EVENTS,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';

type Data = {
  customer_id: number;
  stamps_count: number;
  stamps: number;
  source: string;
};

const SLOW = 300_000;

let service: Service;
const { receive, receiveHeld, shareDispatcher, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);

afterAll(async () => {
  await service.stop();
}, SLOW);

async function getSubscription(
  store: Client,
  { id }: { id: number },
): Promise<WebhookSubscriptionJson> {
  const path = `${store.store}/webhook_subscriptions/${id}`;
  return (await store.get<WebhookSubscriptionJson>(path)).body;
}

const listDeliveries = async (subscriptionId: number) =>
  (
    await service.database.query<{ customer_id: number; status: string }>(
      `select customer_id, status from webhook_deliveries where subscription_id = $1 order by id`,
      [subscriptionId],
    )
  ).rows.map(({ customer_id, status }) => ({ customer_id: Number(customer_id), status }));

const getData = ({ events }: Receiver) => events.map(({ body }) => body['data'] as Data);

describe('webhooks', () => {
  it('send a changed customer with previous_attributes, and the events of an enrolment in order', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
    await shareDispatcher();
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    const change = (changes: object) => store.send('PATCH', path, { customer: changes });
    await change({ last_name: 'King', metadata: { tier: 'gold' } });
    await change({ external_references: [{ source: 'pos', external_id: '1' }] });
    const { body: updated } = await change({ metadata: { tier: 'black' }, sms_consent: true });
    const card = { name: 'Tea', initial_stamps: 2 };
    const { id } = (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
    const reward = { card_id: id, name: 'Cookie', stamps_required: 2 };
    await store.post(`${store.store}/rewards`, { reward });
    await store.post(`${path}/customer_cards`, { card_id: id });
    const events = await eventually(
      () => receiver.events.map(({ body }) => body),
      ({ length }) => length >= 7,
    );
    expect(events.map(({ type }) => type)).toEqual([
      'customer.created',
      'customer_card.created',
      'customer.updated',
      'customer.updated',
      'customer_card.created',
      'stamp.earned',
      'reward.unlocked',
    ]);
    const [created, , first, second, , welcome] = events;
    expect(created).not.toHaveProperty('previous_attributes');
    expect(first).toMatchObject({ data: { last_name: 'King', metadata: { tier: 'gold' } } });
    expect(first?.['previous_attributes']).toEqual({ last_name: null, metadata: {} });
    expect(second?.['previous_attributes']).toEqual({
      metadata: { tier: 'gold' },
      sms_consent: false,
    });
    const { customer_cards: _, stamp_count: __, ...person } = updated as Record<string, unknown>;
    expect(second?.['data']).toMatchObject(person);
    expect(welcome).toMatchObject({ data: { source: 'welcome_bonus', stamps: 2 } });
  });
});

describe('webhook deliveries', () => {
  it('send each type of event of a card signed, in order, and with its documented fields', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const { secret } = await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
    await shareDispatcher();
    const {
      customer: owner,
      card,
      customerCard,
      rewards,
      path,
    } = await enrol(store, {
      card: { stamps_required: 10, initial_stamps: 2 },
      rewards: [3],
    });
    const reward = { id: rewards[0]?.id, name: 'Cake', description: 'Any slice' };
    await store.send('PATCH', `${store.store}/rewards/${reward.id}`, { reward });
    const till = { staff_ref: 'till 2', external_ref: 'R-1', source: 'pos', note: 'oat milk' };
    await stamp(store, path, 1, { stamps: 2, ...till });
    await store.post(`${path}/redeem`, { reward_id: reward.id });

    await eventually(
      () => receiver.events.length,
      (count) => count === 6,
    );
    expect(receiver.received.every((webhook) => isSigned(webhook, secret))).toBe(true);
    expect(receiver.received[0]?.headers['user-agent']).toMatch(/^Inkpad-Webhooks\//);

    const { customer_cards, stamp_count: _, customer_card: __, ...person } = owner;
    const { id, first_name, last_name, email, phone } = owner;
    const customer = { id, first_name, last_name, email, phone };
    const cardFields = {
      customer_id: id,
      customer_card_id: customerCard.id,
      card_id: card.id,
      card_name: 'Coffee',
    };
    const createCardJson = (stamps_count: number, stamps_remaining: number, progress: number) => ({
      ...customer_cards[0],
      status: 'active',
      stamps_count,
      stamps_remaining,
      progress_percentage: progress,
      updated_at: expect.any(String),
    });
    const emptyFields = { location_id: null, staff_ref: null, external_ref: null, note: null };
    const expected: [string, object][] = [
      ['customer.created', { ...person, stamp_count: 0, customer_cards: [], source: 'api' }],
      [
        'customer_card.created',
        {
          ...createCardJson(0, 10, 0),
          customer_id: id,
          account_id: store.accountId,
          available_rewards: [],
          customer,
        },
      ],
      [
        'stamp.earned',
        {
          ...cardFields,
          stamps: 2,
          stamps_count: 2,
          stamps_remaining: 8,
          source: 'welcome_bonus',
          occurred_at: expect.any(String),
          ...emptyFields,
          customer,
          customer_card: createCardJson(2, 8, 66),
        },
      ],
      [
        'stamp.earned',
        {
          ...cardFields,
          stamps: 2,
          stamps_count: 4,
          stamps_remaining: 6,
          source: 'pos',
          occurred_at: expect.any(String),
          location_id: null,
          staff_ref: 'till 2',
          external_ref: 'R-1',
          note: 'oat milk',
          customer,
          customer_card: createCardJson(4, 6, 40),
        },
      ],
      [
        'reward.unlocked',
        {
          ...cardFields,
          stamps_count: 4,
          reward: { ...reward, stamps_required: 3 },
          customer,
        },
      ],
      [
        'reward.redeemed',
        {
          ...cardFields,
          id: expect.any(Number),
          reward_id: reward.id,
          reward_name: 'Cake',
          stamps_spent: 3,
          stamps_remaining: 1,
          redeemed_at: expect.any(String),
          external_ref: null,
          staff_ref: null,
          location_id: null,
          note: null,
          occurred_at: expect.any(String),
          customer,
        },
      ],
    ];
    expect(receiver.events.map(({ body }) => body)).toEqual(
      expected.map(([type, data]) => ({
        id: expect.stringMatching(/^evt_[0-9A-Z]{26}$/),
        type,
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        sequence: expect.any(Number),
        account_id: store.accountId,
        data,
      })),
    );
    for (const { headers, body } of receiver.received) {
      expect(headers['webhook-id']).toBe(body['id']);
      expect(headers['service-event']).toBe(body['type']);
      expect(headers['content-type']).toBe('application/json');
    }
  });

  it('send flat subscriptions only the data, with the same event id', async () => {
    const store = await service.newStore();
    const enveloped = await receive();
    const flat = await receive();
    await subscribe(store, enveloped);
    const { secret } = await subscribe(store, flat, {
      event: 'stamp.earned',
      payload_format: 'flat',
    });
    await shareDispatcher();
    await stamp(store, (await enrol(store)).path);
    await eventually(
      () => [flat.events.length, enveloped.events.length],
      (counts) => counts.every((count) => count === 1),
    );
    const [flatWebhook] = flat.received;
    const [envelopedWebhook] = enveloped.received;
    expect(flatWebhook && isSigned(flatWebhook, secret)).toBe(true);
    expect(flatWebhook?.body).toEqual(envelopedWebhook?.body['data']);
    expect(flatWebhook?.headers).toMatchObject({
      'service-event': 'stamp.earned',
      'webhook-id': envelopedWebhook?.body['id'],
    });
  });

  it('are retried with the same id and body and a valid signature', async () => {
    const store = await service.newStore();
    const receiver = await receive((_received, nth) => ({ status: nth < 3 ? 500 : 202 }));
    const subscription = await subscribe(store, receiver);
    await shareDispatcher();
    await stamp(store, (await enrol(store)).path);
    const deliveredSubscription = await eventually(
      () => getSubscription(store, subscription),
      ({ last_delivery_status }) => last_delivery_status === 202,
    );
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.received.every((webhook) => isSigned(webhook, subscription.secret))).toBe(true);
    expect(deliveredSubscription.last_delivery_error).toBeNull();
    expect(deliveredSubscription.updated_at).toBe(subscription.updated_at);
    const { rows } = await service.database.query(
      `select a.attempt, a.status, a.error from webhook_attempts a
       join webhook_deliveries d on d.id = a.delivery_id where d.subscription_id = $1
       order by a.attempt`,
      [subscription.id],
    );
    expect(rows).toEqual([
      { attempt: 1, status: 500, error: 'Responded with 500' },
      { attempt: 2, status: 500, error: 'Responded with 500' },
      { attempt: 3, status: 202, error: null },
    ]);
  });

  it('that get 410 delete the subscription, which gets no other delivery', async () => {
    const store = await service.newStore();
    const receivers: Receiver[] = [];
    const ids: number[] = [];
    for (let i = 0; i < 10; i++) {
      const receiver = await receive(() => ({ status: 410 }));
      receivers.push(receiver);
      ids.push((await subscribe(store, receiver)).id);
    }
    const dispatcher = await shareDispatcher();
    const people = await Promise.all([1, 2, 3].map(() => enrol(store)));
    await eventually(
      async () => {
        await Promise.all(people.map(({ path }) => stamp(store, path)));
        return (await store.get<object[]>(`${store.store}/webhook_subscriptions`)).body;
      },
      (subscriptions) => subscriptions.length === 0,
    );
    expect(receivers.map(({ received }) => received.length)).toEqual(receivers.map(() => 1));
    const { rows } = await service.database.query(
      `select actor ->> 'type' as actor, channel from audit_log
       where type = 'webhook_subscription.deleted'
         and (subject ->> 'webhook_subscription_id')::bigint = any ($1)`,
      [ids],
    );
    expect(rows).toEqual(ids.map(() => ({ actor: 'system', channel: 'system' })));
    const lines = await eventually(
      () => dispatcher.output().match(/^.*deleted: its receiver responded with 410.*$/gm) ?? [],
      (lines) => lines.length >= ids.length,
    );
    const subscriptionIds = lines.map((line) =>
      Number(/"?subscription_id"?[:=] ?(\d+)/.exec(line)?.[1]),
    );
    expect(subscriptionIds.sort((one, other) => one - other)).toEqual(ids);
    expect(lines.filter((line) => !line.includes(`${store.accountId}`))).toEqual([]);
  });

  it('that get 410 from a former URL of the subscription go to its present one', async () => {
    const store = await service.newStore();
    let release: () => void = () => undefined;
    const releaseSignal = new Promise<void>((resolve) => (release = resolve));
    const formerReceiver = await receive(async () => {
      await releaseSignal;
      return { status: 410 };
    });
    const receiver = await receive();
    const subscription = await subscribe(store, formerReceiver);
    const { path } = await enrol(store);
    await shareDispatcher();
    await stamp(store, path);
    await eventually(
      () => formerReceiver.received.length,
      (count) => count === 1,
    );
    const hook = `${store.store}/webhook_subscriptions/${subscription.id}`;
    const response = await store.send('PATCH', hook, { target_url: receiver.url });
    expect(response.status).toBe(200);
    release();
    await eventually(
      () => listDeliveries(subscription.id),
      (all) => all.every(({ status }) => status === 'delivered'),
    );
    expect([formerReceiver.received.length, receiver.received.length]).toEqual([1, 1]);
    expect(await getSubscription(store, subscription)).toMatchObject({ enabled: true });
  });

  it('are not sent to a disabled subscription', async () => {
    const store = await service.newStore();
    const disabled = await receive();
    const enabled = await receive();
    await subscribe(store, disabled, { event: 'stamp.earned', enabled: false });
    await subscribe(store, enabled);
    await shareDispatcher();
    await stamp(store, (await enrol(store)).path);
    await eventually(
      () => enabled.received.length,
      (count) => count === 1,
    );
    expect(disabled.received).toHaveLength(0);
  });

  it('of one customer keep their order, and a slow receiver delays no other', async () => {
    const store = await service.newStore();
    const { receiver: stuck, release } = await receiveHeld();
    const prompt = await receive((_received, nth) => ({ status: nth % 5 === 0 ? 500 : 200 }));
    await subscribe(store, stuck);
    await subscribe(store, prompt);
    await shareDispatcher();
    const people = await Promise.all([1, 2, 3].map(() => enrol(store)));
    await Promise.all(
      people.map(async ({ path }) => {
        for (let i = 0; i < 10; i++) await stamp(store, path);
      }),
    );
    await eventually(
      () => prompt.events.length,
      (count) => count === 30,
    );
    // A subscription gets one delivery at a time until its receiver has responded.
    expect(stuck.events).toHaveLength(1);
    release();
    await eventually(
      () => stuck.events.length,
      (count) => count === 30,
    );
    for (const receiver of [prompt, stuck]) {
      for (const { customer } of people) {
        const counts = getData(receiver)
          .filter(({ customer_id }) => customer_id === customer.id)
          .map(({ stamps_count }) => stamps_count);
        expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      }
    }
  });

  it('that fail for three days disable the subscription', async () => {
    const store = await service.newStore();
    const receiver = await receive(() => ({ status: 503 }));
    const subscription = await subscribe(store, receiver);
    // Three days in two and a half seconds.
    await startDispatcher({ WEBHOOK_TIME_SCALE: '100000' });
    const { path } = await enrol(store);
    const disabled = await eventually(
      async () => {
        await stamp(store, path);
        return getSubscription(store, subscription);
      },
      ({ enabled }) => !enabled,
    );
    expect(disabled).toMatchObject({
      disabled_reason: 'failing',
      disabled_at: expect.any(String),
      last_delivery_status: 503,
    });
    expect(disabled.updated_at > subscription.updated_at).toBe(true);
    // Pending deliveries are discarded once the dispatcher sees that the subscription is disabled.
    await eventually(
      () =>
        service.database.query(
          `select 1 from webhook_deliveries where subscription_id = $1 and status = 'pending'`,
          [subscription.id],
        ),
      ({ rows }) => rows.length === 0,
    );
  });

  it('start with the first event after the subscription was created', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const { path } = await enrol(store);
    await stamp(store, path);
    await subscribe(store, receiver);
    await stamp(store, path, 1, { stamps: 5 });
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count > 0,
    );
    await stamp(store, path, 1, { stamps: 7 });
    await eventually(
      () => receiver.events.length,
      (count) => count === 2,
    );
    expect(getData(receiver).map(({ stamps }) => stamps)).toEqual([5, 7]);
  });

  it('show the card and customer as of each event, however late they are sent', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver, { events: ['stamp.earned', 'customer.updated'] });
    const dispatcher = await startDispatcher();
    const { customer, path } = await enrol(store, { card: { stamps_required: 10 } });
    await dispatcher.kill('SIGTERM');

    const update = (attributes: object) =>
      store.send('PATCH', `${store.store}/customers/${customer.id}`, { customer: attributes });
    const stampFive = async () => {
      for (let i = 0; i < 5; i++) await stamp(store, path);
    };
    await stampFive();
    await update({ last_name: 'King', metadata: { tier: 'gold' } });
    await stampFive();
    await update({ last_name: 'Lovelace', marketing_consent: true });

    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 12,
    );
    const stampEvents = receiver.events.filter(({ body }) => body['type'] === 'stamp.earned');
    const stampCounts = stampEvents.map(({ body }) => {
      const { stamps_count, customer_card } = body['data'] as Data & { customer_card: Data };
      return [stamps_count, customer_card.stamps_count];
    });
    expect(stampCounts).toEqual(Array.from({ length: 10 }, (_, i) => [i + 1, i + 1]));
    const sentEvents = receiver.events.filter(({ body }) => body['type'] === 'customer.updated');
    expect(sentEvents.map(({ body }) => [body['data'], body['previous_attributes']])).toEqual([
      [
        expect.objectContaining({ last_name: 'King', marketing_consent: false }),
        { last_name: customer.last_name, metadata: {} },
      ],
      [
        expect.objectContaining({ last_name: 'Lovelace', marketing_consent: true }),
        { last_name: 'King', marketing_consent: false },
      ],
    ]);
  });

  it('are sent once by two dispatchers', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver);
    await Promise.all([startDispatcher(), startDispatcher()]);
    const people = await Promise.all(Array.from({ length: 10 }, () => enrol(store)));
    await Promise.all(
      people.map(async ({ path }) => {
        for (let i = 0; i < 10; i++) await stamp(store, path);
      }),
    );
    await eventually(
      () => receiver.events.length,
      (count) => count === 100,
    );
    expect(receiver.received).toHaveLength(100);
  });

  it('in flight finish before the dispatcher stops', async () => {
    const store = await service.newStore();
    const { receiver, release } = await receiveHeld();
    const subscription = await subscribe(store, receiver);
    const dispatcher = await startDispatcher();
    await stamp(store, (await enrol(store)).path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    const stop = dispatcher.kill('SIGTERM');
    release();
    await stop;
    expect(await dispatcher.exitCode).toBe(0);
    expect((await getSubscription(store, subscription)).last_delivery_status).toBe(200);
  });
});

describe('a single event of an idle system', () => {
  let customers = 0;
  const createCustomer = (store: Client) =>
    store.post(`${store.store}/customers`, {
      customer: { first_name: 'Bea', email: `bea${customers++}@example.com` },
    });

  const renameCustomer = (store: Client, path: string) =>
    store.send('PATCH', path.replace(/[/]customer_cards.*$/, ''), {
      customer: { last_name: `Number ${customers++}` },
    });

  /** Starts a dispatcher that prints its statements, and waits until it has delivered an event and released the queue. */
  async function startIdle(
    event = 'stamp.earned',
    act: (store: Client, path: string) => Promise<unknown> = stamp,
  ) {
    const store = await service.newStore();
    const receiver = await receive();
    const { path } = await enrol(store);
    const { id } = await subscribe(store, receiver, { event });
    const preload = new URL('../support/database/print-statements.mjs', import.meta.url).pathname;
    const dispatcher = await startDispatcher({ NODE_OPTIONS: `--import=${preload}` });
    const waitForDeliveries = (count: number) =>
      eventually(
        async () => (await listDeliveries(id)).map(({ status }) => status),
        (all) => all.length === count && all.every((status) => status === 'delivered'),
      );
    // Before its release, a queue is loaded by a statement of its own.
    const waitForRelease = () =>
      eventually(
        () =>
          service.database.query(
            'select 1 from webhook_queues where subscription_id = $1 and dispatcher_id is null',
            [id],
          ),
        ({ rowCount }) => rowCount === 1,
      );
    await act(store, path);
    await waitForDeliveries(1);
    await waitForRelease();
    const before = dispatcher.output().length;
    const listStatements = () => {
      const output = dispatcher.output().slice(before);
      return [...output.matchAll(/^statement (\S+)$/gm)].map(([, name]) => name);
    };
    const actOnce = () => act(store, path);
    return { id, receiver, actOnce, waitForDeliveries, waitForRelease, listStatements };
  }

  it.each([
    ['stamp.earned', stamp, 'webhook_customer_cards'],
    ['customer.created', createCustomer, 'personal_keys_load'],
    ['customer.updated', renameCustomer, 'customer_cards_of_customers'],
  ] as const)(
    '%s takes four statements: the log, its rendering, all that sending needs, and the result',
    async (event, act, rendering) => {
      const { actOnce, waitForDeliveries, waitForRelease, listStatements } = await startIdle(
        event,
        act,
      );
      // Other statements run at intervals, or for something else.
      const own =
        /^webhook_(listeners|ids|enqueue|load|snapshots|customer|bodies|events|finish)|^(personal_keys|templates|customer_cards)_/;
      let count = 1;
      const deliver = async () => {
        const before = listStatements().length;
        await actOnce();
        await waitForDeliveries(++count);
        const statements = listStatements().slice(before);
        await waitForRelease();
        return statements.filter((name) => own.test(name ?? ''));
      };
      // What was cached has to be read again where a delivery takes that long.
      const delivery = await eventually(deliver, ({ length }) => length === 3);
      const usesLog = listStatements().includes('es_read_all');
      expect(usesLog).toBe(process.env['TEST_ENGINE'] !== 'eventstoredb');
      expect(delivery).toEqual([rendering, 'webhook_enqueue', 'webhook_finish']);
    },
  );

  it('is sent with the retries that are due in its queue, and with redeliveries', async () => {
    const { id, receiver, actOnce, waitForDeliveries } = await startIdle();
    await service.database.query(
      `insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream, type,
         payload_format, next_attempt_at, created_at, tries)
       select webhook_next_id(), subscription_id, event_seq, event_id, account_id, customer_id, 'copy', type,
         payload_format, now(), now(), 1
       from webhook_finished where subscription_id = $1`,
      [id],
    );
    await service.database.query(
      `insert into webhook_redeliveries (subscription_id, delivery_id, created_at)
       select subscription_id, id, now() from webhook_finished where subscription_id = $1`,
      [id],
    );
    await actOnce();
    await waitForDeliveries(3);
    await eventually(
      () => receiver.received.length,
      (count) => count === 4,
    );
  });

  it('goes to the subscriptions of its moment, whichever the dispatcher knew before', async () => {
    const store = await service.newStore();
    const [first, later] = [await receive(), await receive()];
    const subscription = await subscribe(store, first);
    const { path } = await enrol(store);
    await startDispatcher();
    const waitForStamps = (subscription: { id: number }, count: number) =>
      eventually(
        async () => (await listDeliveries(subscription.id)).map(({ status }) => status),
        (all) => all.length === count && all.every((status) => status === 'delivered'),
      );
    for (const count of [1, 2]) {
      await stamp(store, path);
      await waitForStamps(subscription, count);
    }
    const otherSubscription = await subscribe(store, later);
    await stamp(store, path);
    await waitForStamps(subscription, 3);
    await waitForStamps(otherSubscription, 1);
    await store.send('PATCH', `${store.store}/webhook_subscriptions/${subscription.id}`, {
      enabled: false,
    });
    await stamp(store, path);
    await waitForStamps(otherSubscription, 2);
    expect(first.received).toHaveLength(3);
    expect(later.received).toHaveLength(2);
  });
});
