import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { DeliveryRequests } from '#outbound/subscriptions/delivery-requests.service.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  CUSTOMER_EVENTS,
  listReceivedBalances,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';

type Subscription = { id: number; secret: string };

const SLOW = 300_000;

let service: LocalService;
const { receive, receiveHeld, startDispatcher, queryRows, listStatuses } = useWebhooks(
  () => service,
);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);

afterAll(async () => {
  await service.stop();
}, SLOW);

type DeliveryJson = { id: number; status: string; attempts_count: number; event_id: string };

const listDeliveries = ({ id }: Subscription): Promise<DeliveryJson[]> =>
  queryRows(
    `select id, status, attempts_count, event_id from webhook_deliveries
     where subscription_id = $1 order by id`,
    id,
  );

const getDeliveryRequests = () => service.app.get(DeliveryRequests, { strict: false });

/** Starts a replay, once the one before it has ended. @returns the number of matching events */
const startReplay = async (
  store: Client,
  { id }: Subscription,
  options: { from: Date; types?: string[] },
): Promise<number> => {
  const path = `${store.store}/webhook_subscriptions/${id}/replay`;
  const { status, body } = await eventually(
    () => store.post<{ matched: number }>(path, options),
    (response) => response.status !== 422,
  );
  expect(status).toBe(200);
  return body.matched;
};

const pause = (subscription: Subscription) =>
  queryRows(
    `update webhook_subscriptions set enabled = false, disabled_at = now(),
       disabled_reason = 'disabled_by_user' where id = $1`,
    subscription.id,
  ).then(() => getDeliveryRequests().announceChange(subscription.id));

const resume = (subscription: Subscription, giveUpBefore: Date) =>
  queryRows(
    `update webhook_subscriptions set enabled = true, disabled_at = null, disabled_reason = null,
       failing_since = null, give_up_before = greatest(give_up_before, $2) where id = $1`,
    subscription.id,
    giveUpBefore,
  ).then(() => getDeliveryRequests().announceChange(subscription.id));

describe('delivery queues', () => {
  it('keep a receiver that hangs from delaying others, and send it everything once it responds', async () => {
    const store = await service.newStore();
    const otherStore = await service.newStore();
    const { receiver: stuck, release } = await receiveHeld();
    const prompt = await receive();
    const heldSubscription = await subscribe(store, stuck);
    await subscribe(otherStore, prompt);
    const { path } = await enrol(store);
    const { path: otherPath } = await enrol(otherStore);
    await Promise.all([stamp(store, path, 60), stamp(otherStore, otherPath, 60)]);
    await startDispatcher();
    await eventually(
      () => prompt.events.length,
      (count) => count === 60,
    );
    expect(new Set(await listStatuses(heldSubscription))).toEqual(new Set(['pending']));
    expect(stuck.events).toHaveLength(1);
    release();
    await eventually(
      () => stuck.events.length,
      (count) => count === 60,
    );
    expect(listReceivedBalances(stuck)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  });

  it('send the few events of one store before the flood of another', async () => {
    const flood = await service.newStore();
    const few = await service.newStore();
    let release: () => void = () => undefined;
    const fewArrived = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Responds to requests after the tenth only once the other store's events have arrived.
    const floodedReceiver = await receive(async (_received, nth) => {
      if (nth > 10) await fewArrived;
      return { status: 200 };
    });
    const quiet = await receive();
    const flooding = await subscribe(flood, floodedReceiver);
    await subscribe(few, quiet);
    const people = await Promise.all(Array.from({ length: 30 }, () => enrol(flood)));
    for (const { path } of people) await stamp(flood, path, 10);
    const { path } = await enrol(few);
    await stamp(few, path, 3);
    await startDispatcher();
    await eventually(
      () => quiet.events.length,
      (count) => count === 3,
    );
    expect(
      (await listStatuses(flooding)).filter((status) => status === 'pending').length,
    ).toBeGreaterThan(200);
    release();
    await eventually(
      () => floodedReceiver.events.length,
      (count) => count === 300,
    );
  });

  it('stop sending while attempts cannot be recorded, and send every event exactly once', async () => {
    const [listeners, stamps] = [20, 250];
    const store = await service.newStore();
    const receiver = await receive();
    for (let i = 0; i < listeners; i++) await subscribe(store, receiver);
    const people = await Promise.all(Array.from({ length: 10 }, () => enrol(store)));
    await Promise.all(people.map(({ path }) => stamp(store, path, stamps / people.length)));
    const blocker = new pg.Client({ connectionString: service.database.url });
    await blocker.connect();
    try {
      await blocker.query('set idle_in_transaction_session_timeout = 0');
      await blocker.query('begin; lock table webhook_finished in share row exclusive mode');
      await startDispatcher();
      await eventually(
        () => receiver.received.length,
        (count) => count >= 128,
      );
      const [before] = await queryRows<{ at: Date }>(
        'select max(due_at) as at from webhook_queues where dispatcher_id is not null',
      );
      // Until it has renewed its leases.
      await eventually(
        () =>
          queryRows(
            'select 1 from webhook_queues where dispatcher_id is not null and due_at > $1::timestamptz',
            before?.at,
          ),
        (renewed) => renewed.length > 0,
      );
      // Attempts in flight at the limit are sent too, and each of four groups may hold what came meanwhile.
      expect(receiver.received.length).toBeLessThan(2_048);
    } finally {
      await blocker.query('rollback');
      await blocker.end();
    }
    await eventually(
      () => receiver.received.length,
      (count) => count >= listeners * stamps,
    );
    await eventually(
      () => queryRows('select 1 from webhook_pending where account_id = $1', store.accountId),
      (rows) => rows.length === 0,
    );
    expect(receiver.received).toHaveLength(listeners * stamps);
  });

  it('of a killed dispatcher are taken over, and those of a stopped one are released at once', async () => {
    const store = await service.newStore();
    const { receiver, release } = await receiveHeld();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    const first = await startDispatcher();
    await stamp(store, path, 3);
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    await first.kill('SIGKILL');
    const [queue] = await queryRows<{ owned: boolean; rest: number }>(
      `select dispatcher_id is not null as owned, extract(epoch from due_at - now())::float8 as rest
       from webhook_queues where subscription_id = $1`,
      subscription.id,
    );
    expect(queue?.owned).toBe(true);
    expect(queue?.rest).toBeLessThanOrEqual(30);
    release();
    const second = await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 3,
    );
    expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(3);
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses.every((status) => status === 'delivered'),
    );
    await second.kill('SIGTERM');
    expect(await second.exitCode).toBe(0);
    expect(await queryRows('select 1 from webhook_queues where dispatcher_id is not null')).toEqual(
      [],
    );
    await eventually(
      () => queryRows('select 1 from es.processes'),
      (rows) => rows.length === 0,
    );
  });

  it('are filled by another dispatcher when the leader is killed', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    const isLeader = ({ output }: Program) => output().includes('follows the log');
    const first = await startDispatcher();
    await eventually(() => isLeader(first), Boolean);
    const second = await startDispatcher();
    await stamp(store, path, 3);
    await eventually(
      () => receiver.events.length,
      (count) => count === 3,
    );
    expect(isLeader(second)).toBe(false);
    await eventually(
      () =>
        queryRows(
          'select 1 from webhook_queues where subscription_id = $1 and dispatcher_id is not null',
          subscription.id,
        ),
      (owned) => owned.length === 0,
    );
    await first.kill('SIGKILL');
    await stamp(store, path, 3);
    await eventually(
      () => new Set(receiver.events.map(({ text }) => text)).size,
      (count) => count === 6,
    );
    expect(isLeader(second)).toBe(true);
    expect(new Set(listReceivedBalances(receiver))).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  });

  it('are shared by two dispatchers', async () => {
    const stores = await Promise.all(Array.from({ length: 24 }, () => service.newStore()));
    // Holds responses until twelve newer requests wait too, so that queues stay leased.
    let areShared = false;
    const waitingResponses: (() => void)[] = [];
    const receiver = await receive(async () => {
      if (!areShared) {
        await new Promise<void>((resolve) => {
          waitingResponses.push(resolve);
          if (waitingResponses.length > 12) waitingResponses.shift()?.();
        });
      }
      return { status: 200 };
    });
    const paths: string[] = [];
    for (const store of stores) {
      await subscribe(store, receiver);
      paths.push((await enrol(store)).path);
    }
    await Promise.all([startDispatcher(), startDispatcher()]);
    // Adds stamps until both have a share, however late one of them begins on a busy machine.
    let stamps = 0;
    const stamping = Promise.all(
      stores.map(async (store, i) => {
        while (!areShared) {
          stamps += 1;
          await stamp(store, paths[i] ?? '');
          await eventually(
            () => stamps - receiver.events.length,
            (waiting) => areShared || waiting < 120,
          );
        }
      }),
    );
    try {
      await eventually(
        () =>
          queryRows<{ queues: number }>(
            `select count(*)::int as queues from webhook_queues where dispatcher_id is not null group by dispatcher_id`,
          ),
        (owners) => owners.length === 2 && owners.every(({ queues }) => queues >= 4),
      );
    } finally {
      areShared = true;
      for (const respond of waitingResponses) respond();
    }
    await stamping;
    await eventually(
      () => receiver.events.length,
      (count) => count >= stamps,
    );
    expect(receiver.received).toHaveLength(stamps);
  });
});

describe('a subscription', () => {
  it('keeps its pending deliveries while paused, and sends them when resumed, without events from the pause', async () => {
    const store = await service.newStore();
    // The pause comes before the second attempt.
    let fail: () => void = () => undefined;
    const isPaused = new Promise<void>((resolve) => (fail = resolve));
    const receiver = await receive(async (_received, nth) => {
      if (nth > 1) return { status: 200 };
      await isPaused;
      return { status: 500 };
    });
    const subscription = await subscribe(store, receiver);
    const otherReceiver = await receive();
    await subscribe(store, otherReceiver);
    const { path } = await enrol(store);
    await startDispatcher({ WEBHOOK_TIME_SCALE: '2' });
    await stamp(store, path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    await pause(subscription);
    fail();
    await stamp(store, path);
    await eventually(
      () => otherReceiver.received.length,
      (count) => count === 2,
    );
    await eventually(
      () =>
        queryRows(
          `select 1 from webhook_queues where subscription_id = $1 and due_at = 'infinity'`,
          subscription.id,
        ),
      (rows) => rows.length === 1,
    );
    // Fan-out has passed the event of the pause.
    await eventually(
      () =>
        queryRows(
          "select 1 from webhook_events where account_id = $1 and type = 'stamp.earned'",
          store.accountId,
        ),
      (events) => events.length === 2,
    );
    expect(await listStatuses(subscription)).toEqual(['pending']);
    await resume(subscription, new Date(0));
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses[0] === 'delivered',
    );
    // The event during the pause was never enqueued.
    expect(receiver.events).toHaveLength(1);
  });

  it('fails pending deliveries at the resume that are too old by then', async () => {
    const store = await service.newStore();
    let fail: () => void = () => undefined;
    const isPaused = new Promise<void>((resolve) => (fail = resolve));
    const receiver = await receive(async () => {
      await isPaused;
      return { status: 500 };
    });
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
    await stamp(store, path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    await pause(subscription);
    fail();
    await eventually(
      () => listDeliveries(subscription),
      ([delivery]) => delivery?.attempts_count === 1,
    );
    await resume(subscription, new Date(Date.now() + 60_000));
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses[0] === 'failed',
    );
    expect(receiver.received).toHaveLength(1);
    expect(await listDeliveries(subscription)).toMatchObject([{ attempts_count: 1 }]);
  });

  it('is disabled after three days of failing without new events, and not when it is idle', async () => {
    const store = await service.newStore();
    const failing = await subscribe(store, await receive(() => ({ status: 500 })));
    const idle = await subscribe(store, await receive());
    const { path } = await enrol(store);
    // Four hours take half a second, and three days 8.6 s: the last attempt is over long before.
    await startDispatcher({ WEBHOOK_TIME_SCALE: '30000' });
    await stamp(store, path);
    await eventually(
      () => listStatuses(failing),
      (statuses) => statuses[0] === 'failed',
    );
    expect(await listDeliveries(failing)).toMatchObject([{ attempts_count: 10 }]);
    const [disabled] = await eventually(
      () =>
        queryRows<{ enabled: boolean; disabled_reason: string; failed: number; moved: boolean }>(
          `select enabled, disabled_reason, updated_at >= disabled_at as moved, extract(epoch from disabled_at - failing_since)::float8 as failed
           from webhook_subscriptions where id = $1`,
          failing.id,
        ),
      ([row]) => row?.enabled === false,
    );
    expect(disabled?.disabled_reason).toBe('failing');
    expect(disabled?.moved).toBe(true);
    expect(disabled?.failed).toBeGreaterThanOrEqual(8.6);
    const [idleSubscription] = await queryRows<{ enabled: boolean }>(
      'select enabled from webhook_subscriptions where id = $1',
      idle.id,
    );
    expect(idleSubscription?.enabled).toBe(true);
  });

  it('is disabled at once when its address turns out to be blocked', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await stamp(store, path, 3);
    await startDispatcher({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'false' });
    const delivery = await eventually(
      async () =>
        (
          await store.get<Record<string, unknown>>(
            `${store.store}/webhook_subscriptions/${subscription.id}`,
          )
        ).body,
      ({ enabled }) => enabled === false,
    );
    expect(delivery).toMatchObject({
      disabled_reason: 'blocked_address',
      disabled_at: expect.any(String),
      last_delivery_status: null,
      last_delivery_error: expect.stringContaining('address'),
    });
    expect(delivery['last_delivery_error']).not.toContain('127.0.0.1');
    expect(String(delivery['updated_at']) > subscription.updated_at).toBe(true);
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses.every((status) => status === 'failed'),
    );
    const attempts = (await listDeliveries(subscription)).map(
      (listedDelivery) => listedDelivery.attempts_count,
    );
    expect(attempts.toSorted()).toEqual([0, 0, 1]);
    expect(receiver.received).toEqual([]);
    expect(
      await queryRows(
        `select type, actor, subject from audit_log
         where subject @> jsonb_build_object('webhook_subscription_id', $1::bigint)
           and type = 'webhook_subscription.disabled'`,
        subscription.id,
      ),
    ).toEqual([
      {
        type: 'webhook_subscription.disabled',
        actor: { type: 'system', id: 0 },
        subject: {
          webhook_subscription_id: subscription.id,
          reason: 'blocked_address',
          event_id: expect.any(String),
        },
      },
    ]);
  });

  it('is deleted with its pending deliveries', async () => {
    const store = await service.newStore();
    const receiver = await receive(() => ({ status: 500 }));
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await stamp(store, path, 5);
    await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
    await eventually(
      () => receiver.received.length,
      (count) => count >= 5,
    );
    await store.send('DELETE', `${store.store}/webhook_subscriptions/${subscription.id}`);
    await eventually(
      () => queryRows('select 1 from webhook_pending where subscription_id = $1', subscription.id),
      (rows) => rows.length === 0,
    );
    await eventually(
      () => queryRows('select 1 from webhook_queues where subscription_id = $1', subscription.id),
      (rows) => rows.length === 0,
    );
  });
});

describe('a replay', () => {
  it('sends events from before the subscription was created, with the same bodies', async () => {
    const store = await service.newStore();
    const early = await receive();
    await subscribe(store, early);
    const { path } = await enrol(store);
    const from = new Date();
    await stamp(store, path, 4);
    await startDispatcher();
    await eventually(
      () => early.events.length,
      (count) => count === 4,
    );
    const receiver = await receive();
    const late = await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
    expect(await startReplay(store, late, { from, types: ['stamp.earned'] })).toBe(4);
    await eventually(
      () => receiver.events.length,
      (count) => count === 4,
    );
    expect(receiver.events.map(({ text }) => text)).toEqual(early.events.map(({ text }) => text));
    expect(await startReplay(store, late, { from, types: ['reward.redeemed'] })).toBe(0);
    expect(await startReplay(store, late, { from: new Date(0) })).toBe(6);
    await eventually(
      () => receiver.events.length,
      (count) => count === 6,
    );
    await eventually(
      () => queryRows('select 1 from webhook_replays'),
      (open) => open.length === 0,
    );
  });
});

describe('daily partitions', () => {
  it('are created where one is missing, and dropped when their retention is over', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    const names = async () =>
      (
        await queryRows<{ name: string }>(
          `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
           where i.inhparent = 'webhook_finished'::regclass order by 1`,
        )
      ).map(({ name }) => name);
    await queryRows(
      `select webhook_make_partitions(now() - interval '33 days', now() - interval '28 days')`,
    );
    const old = await names();
    for (const table of [
      'webhook_events',
      'webhook_bodies',
      'webhook_finished',
      'webhook_other_attempts',
    ]) {
      const drop = () =>
        queryRows(
          `select webhook_drop_partitions(array['${table}'], webhook_first_id(now() + interval '30 days'))`,
        );
      await eventually(drop, (dropped) => dropped.length === 0);
    }
    expect(await names()).toEqual([]);
    await queryRows(
      `select webhook_make_partitions(now() - interval '33 days', now() - interval '28 days')`,
    );
    await stamp(store, path);
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 1,
    );
    await eventually(
      () => listStatuses(subscription),
      ([status]) => status === 'delivered',
    );
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
    // A partition in use is dropped a moment later.
    const deliveries = await eventually(
      names,
      (all) =>
        all.includes(`webhook_finished_${today}`) &&
        !old.slice(0, 3).some((name) => all.includes(name)),
    );
    expect(deliveries).toContain(old[4]);
  });
});
