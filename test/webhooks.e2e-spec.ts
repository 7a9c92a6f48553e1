import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { testEnvironment } from './support/database.js';
import { eventually } from './support/eventually.js';
import { isSigned, Receiver } from './support/receiver.js';
import { startService, type Client, type Service } from './support/service.js';

type Subscription = {
  id: number;
  events: string[];
  event: string | null;
  target_url: string;
  payload_format: string;
  enabled: boolean;
  disabled_at: string | null;
  disabled_reason: string | null;
  last_delivery_at: string | null;
  last_delivery_status: number | null;
  last_delivery_error: string | null;
  created_at: string;
  updated_at: string;
  secret: string;
};

type Data = {
  customer_id: number;
  stamps_count: number;
  stamps: number;
  source: string;
};

type Enrolled = { customerId: number; customerCardId: number; path: string };

const INSECURE = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' };
const SLOW = 60_000;

let service: Service;
const dispatchers = new Set<ChildProcess>();
const receivers: Receiver[] = [];

beforeAll(async () => {
  service = await startService(INSECURE);
}, SLOW);

afterEach(async () => {
  await Promise.all([...dispatchers].map((dispatcher) => end(dispatcher, 'SIGTERM')));
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
}, SLOW);

afterAll(async () => {
  await service.stop();
}, SLOW);

/** The dispatcher as it runs, a process of its own; waits until it can be told to stop. */
async function startDispatcher(timeScale = 100): Promise<ChildProcess> {
  const dispatcher = spawn(process.execPath, ['dist/apps/dispatcher/src/main.js'], {
    env: {
      ...process.env,
      ...testEnvironment(service.database.url, {
        ...service.environment,
        WEBHOOK_TIME_SCALE: String(timeScale),
        LOG_LEVEL: 'info',
      }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  dispatchers.add(dispatcher);
  let said = '';
  dispatcher.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await eventually(
    () => said,
    (text) => text.includes('started'),
  );
  return dispatcher;
}

async function end(dispatcher: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  dispatchers.delete(dispatcher);
  if (dispatcher.exitCode !== null) return dispatcher.exitCode;
  const exited = once(dispatcher, 'exit');
  dispatcher.kill(signal);
  const [code] = (await exited) as [number | null];
  return code;
}

async function receive(...[reply]: Parameters<typeof Receiver.start>): Promise<Receiver> {
  const receiver = await Receiver.start(reply);
  receivers.push(receiver);
  return receiver;
}

async function subscribe(
  store: Client,
  receiver: Receiver,
  body: object = { events: ['*'] },
): Promise<Subscription> {
  const answer = await store.post<Subscription>(`${store.store}/webhook_subscriptions`, {
    target_url: receiver.url,
    ...body,
  });
  expect(answer.status).toBe(201);
  return answer.body;
}

async function show(store: Client, { id }: { id: number }): Promise<Subscription> {
  const path = `${store.store}/webhook_subscriptions/${id}`;
  return (await store.get<Subscription>(path)).body;
}

async function makeCard(store: Client, attributes: object = {}): Promise<number> {
  const card = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee', ...attributes },
  });
  expect(card.status).toBe(201);
  return card.body.id;
}

let enrolments = 0;

async function enrol(store: Client, cardId: number): Promise<Enrolled> {
  const answer = await store.post<{ id: number; customer_card: { id: number } }>(
    `${store.store}/customers`,
    {
      customer: { first_name: 'Ada', email: `ada${++enrolments}@example.com` },
      card_id: cardId,
    },
  );
  expect(answer.status).toBe(201);
  const { id: customerId, customer_card: card } = answer.body;
  const path = `${store.store}/customers/${customerId}/customer_cards/${card.id}`;
  return { customerId, customerCardId: card.id, path };
}

async function stamp(store: Client, { path }: Enrolled, body: object = {}): Promise<void> {
  expect((await store.post(`${path}/stamp`, { stamps: 1, ...body })).status).toBe(200);
}

const dataOf = ({ events }: Receiver) => events.map(({ body }) => body['data'] as Data);

describe('webhook subscriptions', () => {
  it('show their secret when made and when shown, and never in a list', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const made = await subscribe(store, receiver, { event: 'stamp.earned', description: 'till' });
    expect(made).toEqual({
      id: expect.any(Number),
      account_id: store.accountId,
      events: ['stamp.earned'],
      event: 'stamp.earned',
      target_url: receiver.url,
      description: 'till',
      payload_format: 'envelope',
      enabled: true,
      disabled_at: null,
      disabled_reason: null,
      last_delivery_at: null,
      last_delivery_status: null,
      last_delivery_error: null,
      created_at: expect.any(String),
      updated_at: made.created_at,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    expect(await show(store, made)).toEqual(made);
    const { secret, ...listed } = made;
    const list = `${store.store}/webhook_subscriptions`;
    expect((await store.get(list)).body).toEqual([listed]);
    expect((await store.get(`${list}?event=stamp.earned`)).body).toEqual([listed]);
    expect((await store.get(`${list}?event=reward.redeemed`)).body).toEqual([]);
    expect((await store.get(`${list}?event=no.such`)).body).toEqual([]);
    const { rows } = await service.database.query<{ secret: Buffer }>(
      'select secret from webhook_subscriptions',
    );
    expect(rows.some((row) => row.secret.includes(secret))).toBe(false);
  });

  it('of every event are found under each, in the order in which they were made', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const first = await subscribe(store, receiver, { event: '*' });
    const second = await subscribe(store, receiver, { events: ['stamp.earned', 'stamp.earned'] });
    const found = await store.get<Subscription[]>(
      `${store.store}/webhook_subscriptions?event=stamp.earned`,
    );
    expect(found.body.map(({ id, events, event }) => ({ id, events, event }))).toEqual([
      { id: first.id, events: ['*'], event: null },
      { id: second.id, events: ['stamp.earned'], event: 'stamp.earned' },
    ]);
  });

  it.each([
    [{ events: ['*'] }, ['target_url']],
    [{ target_url: 'https://example.com' }, ['events']],
    [{ target_url: 'https://169.254.169.254/', event: '*' }, ['target_url']],
    [{ target_url: 'https://a:b@example.com', event: '*' }, ['target_url']],
    [{ target_url: 'ftp://example.com', events: [] }, ['events', 'target_url']],
    [{ target_url: 'https://example.com', event: '*', payload_format: 'flat' }, ['payload_format']],
  ])('refuse %j', async (body, fields) => {
    const store = await service.newStore();
    const answer = await store.post<{ code: string; errors: object }>(
      `${store.store}/webhook_subscriptions`,
      body,
    );
    expect(answer.status).toBe(422);
    expect(answer.body.code).toBe('validation_failed');
    expect(Object.keys(answer.body.errors).sort()).toEqual(fields);
    expect(answer.text).not.toContain('169.254');
  });

  it('are deleted once, and are nobody else’s', async () => {
    const store = await service.newStore();
    const stranger = await service.newStore();
    const { id } = await subscribe(store, await receive());
    const path = `/webhook_subscriptions/${id}`;
    expect((await stranger.send('DELETE', stranger.store + path)).status).toBe(404);
    expect((await stranger.get(stranger.store + path)).status).toBe(404);
    expect((await stranger.get(store.store + path)).status).toBe(404);
    const gone = await store.send('DELETE', store.store + path);
    expect(gone.status).toBe(204);
    expect(gone.text).toBe('');
    expect((await store.send('DELETE', store.store + path)).status).toBe(404);
    const { rows } = await service.database.query(
      `select type from audit_log where (subject ->> 'webhook_subscription_id')::bigint = $1
       order by id`,
      [id],
    );
    expect(rows).toEqual([
      { type: 'webhook_subscription.created' },
      { type: 'webhook_subscription.deleted' },
    ]);
  });

  it('made disabled say so and get nothing', async () => {
    const store = await service.newStore();
    const disabled = await receive();
    const enabled = await receive();
    const made = await subscribe(store, disabled, { event: 'stamp.earned', enabled: false });
    expect(made).toMatchObject({ enabled: false, disabled_reason: 'disabled_by_user' });
    expect(made.disabled_at).toEqual(expect.any(String));
    await subscribe(store, enabled, { event: 'stamp.earned' });
    await startDispatcher();
    await stamp(store, await enrol(store, await makeCard(store)));
    await eventually(
      () => enabled.received.length,
      (count) => count === 1,
    );
    expect(disabled.received).toHaveLength(0);
  });
});

describe('deliveries', () => {
  it('send every kind of event, signed, in order, as the contract shows it', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const { secret } = await subscribe(store, receiver);
    await startDispatcher();
    const cardId = await makeCard(store, { stamps_required: 10, initial_stamps: 2 });
    const reward = await store.post<{ id: number }>(`${store.store}/rewards`, {
      reward: { card_id: cardId, name: 'Cake', description: 'Any slice', stamps_required: 3 },
    });
    const ada = await enrol(store, cardId);
    const till = { staff_ref: 'till 2', external_ref: 'R-1', source: 'pos', note: 'a secret' };
    await stamp(store, ada, { stamps: 2, ...till });
    await store.post(`${ada.path}/redeem`, { reward_id: reward.body.id });

    await eventually(
      () => receiver.events.length,
      (count) => count === 6,
    );
    expect(receiver.received.every((one) => isSigned(one, secret))).toBe(true);
    expect(receiver.received[0]?.headers['user-agent']).toMatch(/^Inkpad-Webhooks\//);
    expect(receiver.received.map(({ text }) => text).join()).not.toContain('a secret');

    const shown = await store.get<Record<string, unknown>>(
      `${store.store}/customers/${ada.customerId}`,
    );
    const { customer_cards: cards, stamp_count: _count, ...person } = shown.body;
    const [card] = cards as Record<string, unknown>[];
    const email = person['email'];
    const customer = { id: ada.customerId, first_name: 'Ada', last_name: null, email, phone: null };
    const about = {
      customer_id: ada.customerId,
      customer_card_id: ada.customerCardId,
      card_id: cardId,
      card_name: 'Coffee',
    };
    const cardAt = (stamps_count: number, stamps_remaining: number, progress: number) => ({
      ...card,
      status: 'active',
      stamps_count,
      stamps_remaining,
      progress_percentage: progress,
      updated_at: expect.any(String),
    });
    const nowhere = { location_id: null, staff_ref: null, external_ref: null };
    const expected: [string, object][] = [
      ['customer.created', { ...person, stamp_count: 0, customer_cards: [], source: 'api' }],
      [
        'customer_card.created',
        {
          ...cardAt(0, 10, 0),
          customer_id: ada.customerId,
          account_id: store.accountId,
          available_rewards: [],
          customer,
        },
      ],
      [
        'stamp.earned',
        {
          ...about,
          stamps: 2,
          stamps_count: 2,
          stamps_remaining: 8,
          source: 'welcome_bonus',
          occurred_at: expect.any(String),
          ...nowhere,
          customer,
          customer_card: cardAt(2, 8, 66),
        },
      ],
      [
        'stamp.earned',
        {
          ...about,
          stamps: 2,
          stamps_count: 4,
          stamps_remaining: 6,
          source: 'pos',
          occurred_at: expect.any(String),
          location_id: null,
          staff_ref: 'till 2',
          external_ref: 'R-1',
          customer,
          customer_card: cardAt(4, 6, 40),
        },
      ],
      [
        'reward.unlocked',
        {
          ...about,
          stamps_count: 4,
          reward: {
            id: reward.body.id,
            name: 'Cake',
            description: 'Any slice',
            stamps_required: 3,
          },
          customer,
        },
      ],
      [
        'reward.redeemed',
        {
          ...about,
          id: expect.any(Number),
          reward_id: reward.body.id,
          reward_name: 'Cake',
          stamps_spent: 3,
          stamps_remaining: 1,
          redeemed_at: expect.any(String),
          customer,
        },
      ],
    ];
    expect(receiver.events.map(({ body }) => body)).toEqual(
      expected.map(([type, data]) => ({
        id: expect.stringMatching(/^evt_[0-9A-Z]{26}$/),
        type,
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        account_id: store.accountId,
        data,
      })),
    );
    for (const { headers, body } of receiver.received) {
      expect(headers['webhook-id']).toBe(body['id']);
      expect(headers['service-event']).toBe(body['type']);
      expect(headers['content-type']).toBe('application/json');
    }
  }, 30_000);

  it('send flat subscriptions the data alone, under the same id', async () => {
    const store = await service.newStore();
    const enveloped = await receive();
    const flat = await receive();
    await subscribe(store, enveloped, { event: 'stamp.earned' });
    const { secret } = await subscribe(store, flat, {
      event: 'stamp.earned',
      payload_format: 'flat',
    });
    await startDispatcher();
    await stamp(store, await enrol(store, await makeCard(store)));
    await eventually(
      () => [flat.events.length, enveloped.events.length],
      (counts) => counts.every((count) => count === 1),
    );
    const [one] = flat.received;
    const [other] = enveloped.received;
    expect(one && isSigned(one, secret)).toBe(true);
    expect(one?.body).toEqual(other?.body['data']);
    expect(one?.headers).toMatchObject({
      'service-event': 'stamp.earned',
      'webhook-id': other?.body['id'],
    });
  });

  it('are tried again with the same id and the same bytes, signed anew', async () => {
    const store = await service.newStore();
    const receiver = await receive((_received, nth) => ({ status: nth < 3 ? 500 : 202 }));
    const subscription = await subscribe(store, receiver, { event: 'stamp.earned' });
    await startDispatcher();
    await stamp(store, await enrol(store, await makeCard(store)));
    const done = await eventually(
      () => show(store, subscription),
      ({ last_delivery_status }) => last_delivery_status === 202,
    );
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.received.every((one) => isSigned(one, subscription.secret))).toBe(true);
    expect(done.last_delivery_error).toBeNull();
    expect(done.updated_at).toBe(subscription.updated_at);
    const { rows } = await service.database.query(
      `select a.attempt, a.status, a.error from webhook_attempts a
       join webhook_deliveries d on d.id = a.delivery_id where d.subscription_id = $1
       order by a.attempt`,
      [subscription.id],
    );
    expect(rows).toEqual([
      { attempt: 1, status: 500, error: 'Answered 500' },
      { attempt: 2, status: 500, error: 'Answered 500' },
      { attempt: 3, status: 202, error: null },
    ]);
  });

  it('answered with 410 delete the subscription', async () => {
    const store = await service.newStore();
    const receiver = await receive(() => ({ status: 410 }));
    const { id } = await subscribe(store, receiver, { event: 'stamp.earned' });
    await startDispatcher();
    const ada = await enrol(store, await makeCard(store));
    await stamp(store, ada);
    await stamp(store, ada);
    const path = `${store.store}/webhook_subscriptions/${id}`;
    await eventually(
      async () => (await store.get(path)).status,
      (status) => status === 404,
    );
    expect(receiver.received).toHaveLength(1);
    const { rows } = await service.database.query(
      `select actor ->> 'type' as actor, channel from audit_log
       where type = 'webhook_subscription.deleted'
         and (subject ->> 'webhook_subscription_id')::bigint = $1`,
      [id],
    );
    expect(rows).toEqual([{ actor: 'system', channel: 'system' }]);
  });

  it('that go on failing for three days disable the subscription', async () => {
    const store = await service.newStore();
    const receiver = await receive(() => ({ status: 503 }));
    const subscription = await subscribe(store, receiver, { event: 'stamp.earned' });
    // Three days in two and a half seconds.
    await startDispatcher(100_000);
    const ada = await enrol(store, await makeCard(store));
    const disabled = await eventually(
      async () => {
        await stamp(store, ada);
        return show(store, subscription);
      },
      ({ enabled }) => !enabled,
    );
    expect(disabled).toMatchObject({
      disabled_reason: 'failing',
      disabled_at: expect.any(String),
      last_delivery_status: 503,
    });
    const pending = await service.database.query(
      `select 1 from webhook_deliveries where subscription_id = $1 and status = 'pending'`,
      [subscription.id],
    );
    expect(pending.rows).toEqual([]);
  }, 30_000);

  it('begin with what is recorded after the subscription was made', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const ada = await enrol(store, await makeCard(store));
    await stamp(store, ada);
    await subscribe(store, receiver, { event: 'stamp.earned' });
    await stamp(store, ada, { stamps: 5 });
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count > 0,
    );
    await stamp(store, ada, { stamps: 7 });
    await eventually(
      () => receiver.events.length,
      (count) => count === 2,
    );
    expect(dataOf(receiver).map(({ stamps }) => stamps)).toEqual([5, 7]);
  });

  it('show the card as each event left it, however late they run', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver, { event: 'stamp.earned' });
    const ada = await enrol(store, await makeCard(store));
    for (let i = 0; i < 20; i++) await stamp(store, ada);
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 20,
    );
    const counts = dataOf(receiver).map(({ stamps_count }) => stamps_count);
    expect(counts).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  it('about one customer keep their order, and one slow receiver holds up nobody else', async () => {
    const store = await service.newStore();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const stuck = await receive(async () => {
      await held;
      return { status: 200 };
    });
    const prompt = await receive((_received, nth) => ({ status: nth % 5 === 0 ? 500 : 200 }));
    await subscribe(store, stuck, { event: 'stamp.earned' });
    await subscribe(store, prompt, { event: 'stamp.earned' });
    await startDispatcher();
    const cardId = await makeCard(store);
    const people = await Promise.all([1, 2, 3].map(() => enrol(store, cardId)));
    await Promise.all(
      people.map(async (person) => {
        for (let i = 0; i < 10; i++) await stamp(store, person);
      }),
    );
    await eventually(
      () => prompt.events.length,
      (count) => count === 30,
    );
    // One at a time until something was answered.
    expect(stuck.received).toHaveLength(1);
    release();
    await eventually(
      () => stuck.events.length,
      (count) => count === 30,
    );
    for (const receiver of [prompt, stuck]) {
      for (const { customerId } of people) {
        const counts = dataOf(receiver)
          .filter(({ customer_id }) => customer_id === customerId)
          .map(({ stamps_count }) => stamps_count);
        expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      }
    }
  }, 30_000);

  it('come once from two dispatchers', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver, { event: 'stamp.earned' });
    await Promise.all([startDispatcher(), startDispatcher()]);
    const cardId = await makeCard(store);
    const people = await Promise.all(Array.from({ length: 10 }, () => enrol(store, cardId)));
    await Promise.all(
      people.map(async (person) => {
        for (let i = 0; i < 10; i++) await stamp(store, person);
      }),
    );
    await eventually(
      () => receiver.events.length,
      (count) => count === 100,
    );
    expect(receiver.received).toHaveLength(100);
  }, 30_000);

  it('survive a dispatcher that is killed in the middle, with nothing lost or changed', async () => {
    const store = await service.newStore();
    let killed: Promise<unknown> = Promise.resolve();
    const receiver = await receive(async (_received, nth) => {
      if (nth === 10) killed = end(dispatcher, 'SIGKILL');
      await killed;
      return { status: 200 };
    });
    await subscribe(store, receiver, { event: 'stamp.earned' });
    let dispatcher = await startDispatcher();
    const cardId = await makeCard(store);
    const people = await Promise.all(Array.from({ length: 10 }, () => enrol(store, cardId)));
    await Promise.all(
      people.map(async (person) => {
        for (let i = 0; i < 5; i++) await stamp(store, person);
      }),
    );
    // Leases of the dead end after 30 s; until then what it held waits.
    await eventually(
      async () => {
        if (dispatcher.signalCode !== null) dispatcher = await startDispatcher();
        return receiver.events.length;
      },
      (count) => count === 50,
      120_000,
    );
    const bytes = new Map<unknown, string>();
    for (const { headers, text } of receiver.received) {
      expect(bytes.get(headers['webhook-id']) ?? text).toBe(text);
      bytes.set(headers['webhook-id'], text);
    }
    for (const { customerId } of people) {
      const counts = dataOf(receiver)
        .filter(({ customer_id }) => customer_id === customerId)
        .map(({ stamps_count }) => stamps_count);
      expect(counts).toEqual([1, 2, 3, 4, 5]);
    }
  }, 150_000);

  it('in flight are finished before the dispatcher stops', async () => {
    const store = await service.newStore();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const receiver = await receive(async () => {
      await held;
      return { status: 200 };
    });
    const subscription = await subscribe(store, receiver, { event: 'stamp.earned' });
    const dispatcher = await startDispatcher();
    await stamp(store, await enrol(store, await makeCard(store)));
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    const code = end(dispatcher, 'SIGTERM');
    release();
    expect(await code).toBe(0);
    expect((await show(store, subscription)).last_delivery_status).toBe(200);
  }, 30_000);
});

describe('a change of a customer', () => {
  it('is told with the old values, and an enrolment in its order', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    await subscribe(store, receiver);
    await startDispatcher();
    const { customerId } = await enrol(store, await makeCard(store));
    const path = `${store.store}/customers/${customerId}`;
    const change = (customer: object) => store.send('PATCH', path, { customer });
    await change({ last_name: 'King', metadata: { tier: 'gold' } });
    await change({ external_references: [{ source: 'pos', external_id: '1' }] });
    const { body: left } = await change({ metadata: { tier: 'black' }, sms_consent: true });
    const cardId = await makeCard(store, { initial_stamps: 2 });
    const reward = { card_id: cardId, name: 'Cookie', stamps_required: 2 };
    await store.post(`${store.store}/rewards`, { reward });
    await store.post(`${path}/customer_cards`, { card_id: cardId });
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
    const { customer_cards: _, stamp_count: __, ...person } = left as Record<string, unknown>;
    expect(second?.['data']).toMatchObject(person);
    expect(welcome).toMatchObject({ data: { source: 'welcome_bonus', stamps: 2 } });
  }, 30_000);
});
