import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { TEXT_CACHE_MS } from '#outbound/public-events/event-bodies.service.js';
import { DeliveryRequests } from '#outbound/subscriptions/delivery-requests.service.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { samples } from '../support/services/metrics.js';
import { findFreePort } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  listReceivedBalances,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';

type Subscription = { id: number };
type StampData = { customer_id: number; stamps_count: number };

const SLOW = 300_000;
const LOCK = 4_711;

let service: LocalService;
let holder: pg.Client;
const { receive, receiveHeld, startDispatcher, queryRows, listStatuses } = useWebhooks(
  () => service,
);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  holder = new pg.Client({ connectionString: service.database.url });
  await holder.connect();
}, SLOW);

afterAll(async () => {
  await holder.end();
  await service.stop();
}, SLOW);

const waitUntilDelivered = (subscription: Subscription, count: number) =>
  eventually(
    () => listStatuses(subscription),
    (all) => all.length === count && all.every((status) => status === 'delivered'),
  );

/** Starts a dispatcher that waits before each statement of this name while `LOCK` is held. */
const startHeld = (statement: string) =>
  startDispatcher({
    NODE_OPTIONS: `--import=${new URL('../support/database/hold-statement.mjs', import.meta.url).pathname}`,
    HOLD_STATEMENT: statement,
    HOLD_LOCK: String(LOCK),
  });

const hold = () => holder.query('select pg_advisory_lock($1)', [LOCK]);
const release = () => holder.query('select pg_advisory_unlock($1)', [LOCK]);
const waitUntilHeld = () =>
  eventually(
    () =>
      queryRows(
        "select 1 from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
        LOCK,
      ),
    (waiting) => waiting.length > 0,
  );

/** Creates a store with a customer's card, at `path`, and a receiver of its events. */
async function createStore() {
  const store = await service.newStore();
  const receiver = await receive();
  const subscription = await subscribe(store, receiver);
  const { path } = await enrol(store);
  return { store, receiver, subscription, path };
}

describe('the delivery queue of a deleted subscription', () => {
  // dispatcher: reads the queue | api: announces a change of the queue | dispatcher: deletes the queue as it was read
  it('is deleted although a change was announced while it was being deleted', async () => {
    const { store, subscription, path } = await createStore();
    await hold();
    try {
      await startHeld('webhook_queue_forget');
      await stamp(store, path);
      await waitUntilDelivered(subscription, 1);
      await store.send('DELETE', `${store.store}/webhook_subscriptions/${subscription.id}`);
      await waitUntilHeld();
      await service.app.get(DeliveryRequests, { strict: false }).announceChange(subscription.id);
    } finally {
      await release();
    }
    await eventually(
      () =>
        queryRows(
          'select dispatcher_id as owner from webhook_queues where subscription_id = $1',
          subscription.id,
        ),
      (updateQueue) => updateQueue.length === 0,
    );
  });
});

describe('an event that is enqueued while somebody else enqueues an earlier one in its queue', () => {
  // dispatcher: is about to enqueue | other: enqueues | dispatcher: enqueues, waits for the other | other: commits
  it('is sent after that one', async () => {
    const { store, receiver, subscription, path } = await createStore();
    await startHeld('webhook_enqueue');
    await stamp(store, path);
    await waitUntilDelivered(subscription, 1);
    await eventually(
      () =>
        queryRows(
          'select 1 from webhook_queues where subscription_id = $1 and dispatcher_id is null',
          subscription.id,
        ),
      (rows) => rows.length === 1,
    );
    const otherClient = new pg.Client({ connectionString: service.database.url });
    await otherClient.connect();
    await hold();
    try {
      await stamp(store, path);
      await waitUntilHeld();
      await otherClient.query('begin');
      await otherClient.query(
        'update webhook_queues set enqueued_count = enqueued_count + 1 where subscription_id = $1',
        [subscription.id],
      );
      await otherClient.query(
        `insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream, type,
           payload_format, next_attempt_at, created_at)
         select webhook_next_id(), subscription_id, event_seq, event_id, account_id, customer_id, 'copy', type,
           payload_format, now(), now()
         from webhook_finished where subscription_id = $1`,
        [subscription.id],
      );
    } finally {
      await release();
    }
    await eventually(
      () => queryRows("select 1 from pg_locks where locktype = 'transactionid' and not granted"),
      (rows) => rows.length > 0,
    );
    await otherClient.query('commit');
    await otherClient.end();
    await waitUntilDelivered(subscription, 3);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect(ids).toHaveLength(3);
    expect(ids[1]).toBe(ids[0]);
  });
});

describe('a subscription that was disabled for failing', () => {
  // dispatcher: is about to fail pending deliveries | enabled | an event is enqueued | dispatcher: fails those pending
  it('gets events from after it was enabled again, while its backlog is still being failed', async () => {
    const { store, subscription, path } = await createStore();
    await hold();
    try {
      await startHeld('webhook_give_up');
      await queryRows(
        `update webhook_subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'failing',
           give_up_before = now() where id = $1`,
        subscription.id,
      );
      await service.app.get(DeliveryRequests, { strict: false }).announceChange(subscription.id);
      await waitUntilHeld();
      const hook = `${store.store}/webhook_subscriptions/${subscription.id}`;
      expect((await store.send('PATCH', hook, { enabled: true })).status).toBe(200);
      await stamp(store, path);
      await eventually(
        () => listStatuses(subscription),
        (all) => all.length === 1,
      );
    } finally {
      await release();
    }
    await eventually(
      () => listStatuses(subscription),
      (all) => !all.includes('pending'),
    );
    expect(await listStatuses(subscription)).toEqual(['delivered']);
  });
});

describe('a delivery to a queue into which another process is enqueuing', () => {
  // leader: is about to enqueue | a replay: locks the queue, draws ids | leader: waits for the lock | the replay commits
  it('gets a higher id than the ids of that process, since owners read on from the last id', async () => {
    const { store, subscription, path } = await createStore();
    await startHeld('webhook_enqueue');
    await stamp(store, path);
    await waitUntilDelivered(subscription, 1);
    const replay = new pg.Client({ connectionString: service.database.url });
    await replay.connect();
    try {
      await hold();
      await stamp(store, path);
      await waitUntilHeld();
      await replay.query('begin');
      await replay.query('select 1 from webhook_queues where subscription_id = $1 for update', [
        subscription.id,
      ]);
      await release();
      await eventually(
        () =>
          queryRows(
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'with moved as'",
          ),
        (waiting) => waiting.length > 0,
      );
      const replayIds = await replay.query<{ id: string }>('select webhook_next_id() as id');
      await replay.query('commit');
      await waitUntilDelivered(subscription, 2);
      const [delivery] = await queryRows<{ id: number }>(
        'select max(id) as id from webhook_deliveries where subscription_id = $1',
        subscription.id,
      );
      expect(Number(delivery?.id)).toBeGreaterThan(Number(replayIds.rows[0]?.id));
    } finally {
      await replay.end();
      await release();
    }
  });
});

describe('a former leader', () => {
  // first: is about to enqueue | first loses its lock | second: leads, enqueues the same events | first: enqueues
  it('enqueues nothing', async () => {
    const { store, receiver, subscription, path } = await createStore();
    const first = await startHeld('webhook_enqueue');
    await hold();
    try {
      await stamp(store, path);
      await waitUntilHeld();
      await startDispatcher();
      await queryRows(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'inkpad dispatcher link %'",
      );
      await waitUntilDelivered(subscription, 1);
    } finally {
      await release();
    }
    await eventually(
      () =>
        queryRows(
          "select 1 from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
          LOCK,
        ),
      (waiting) => waiting.length === 0,
    );
    await first.kill('SIGTERM');
    await stamp(store, path);
    await waitUntilDelivered(subscription, 2);
    const events = await queryRows<{ seq: number }>(
      "select seq from webhook_events where account_id = $1 and type = 'stamp.earned'",
      store.accountId,
    );
    expect(events).toHaveLength(2);
    expect(receiver.received).toHaveLength(2);
  });
});

describe('the owner of a delivery queue', () => {
  it('sends nothing more once another process has leased the queue', async () => {
    const [store, otherStore] = [await service.newStore(), await service.newStore()];
    const { receiver, release: respond } = await receiveHeld();
    const subscription = await subscribe(store, receiver);
    const near = await receive();
    const sound = await subscribe(otherStore, near);
    const [one, another] = [await enrol(store), await enrol(otherStore)];
    await stamp(store, one.path, 10);
    const port = await findFreePort();
    await startDispatcher({ METRICS_PORT: String(port) });
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    const updateQueue = (set: string) =>
      queryRows(`update webhook_queues set ${set} where subscription_id = $1`, subscription.id);
    const rival = await holder.query<{ number: number }>(
      "select es.draw_process('dispatcher') as number",
    );
    await updateQueue(
      `dispatcher_id = ${rival.rows[0]?.number}, due_at = now() + interval '1 hour'`,
    );
    await eventually(
      async () => samples(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
      ({ value }) => (value('inkpad_webhook_queues_total', { change: 'lost' }) ?? 0) > 0,
    );
    respond();
    await eventually(
      () => listStatuses(subscription),
      (all) => all.includes('delivered'),
    );
    // Had it sent more, it would have done so before this later delivery.
    await stamp(otherStore, another.path);
    await waitUntilDelivered(sound, 1);
    expect(receiver.received).toHaveLength(1);
    await updateQueue('dispatcher_id = null, due_at = now()');
    await waitUntilDelivered(subscription, 10);
    expect(receiver.received).toHaveLength(10);
  });

  it(
    'sends nothing more when its lease ran out while it was paused',
    async () => {
      const [store, otherStore] = [await service.newStore(), await service.newStore()];
      let respond: () => void = () => undefined;
      const releaseSignal = new Promise<void>((resolve) => (respond = resolve));
      const receiver = await receive(async (_received, nth) => {
        if (nth === 1) await releaseSignal;
        return { status: 200 };
      });
      const subscription = await subscribe(store, receiver);
      const near = await receive();
      const sound = await subscribe(otherStore, near);
      const [one, another] = [await enrol(store), await enrol(otherStore)];
      await stamp(store, one.path, 10);
      const paused = await startDispatcher();
      await eventually(
        () => receiver.received.length,
        (count) => count === 1,
      );
      const second = await startDispatcher();
      paused.signal('SIGSTOP');
      try {
        await waitUntilDelivered(subscription, 10);
      } finally {
        paused.signal('SIGCONT');
      }
      await second.kill('SIGTERM');
      respond();
      // Had it sent more, it would have done so before this later delivery.
      await stamp(otherStore, another.path);
      await waitUntilDelivered(sound, 1);
      expect(receiver.received).toHaveLength(11);
      expect(
        await queryRows(
          'select attempts_count from webhook_deliveries where subscription_id = $1 and attempts_count <> 1',
          subscription.id,
        ),
      ).toEqual([]);
    },
    SLOW,
  );
});

describe('the owner of a delivery queue whose database connections stop responding', () => {
  // dispatcher: sends 1, has 2 to 10 cached | the cache expires | silence | 2 cannot be read | new connections work
  it(
    'sends the deliveries in order',
    async () => {
      const line = await DatabaseProxy.to(service.database.url);
      const store = await service.newStore();
      const receiver = await receive(async (_received, nth) => {
        if (nth === 1) {
          // The age of the dispatcher's cached bodies is the subject, and nothing shows it from outside.
          await wait(TEXT_CACHE_MS + 1_000);
          line.muteOpen();
        }
        return { status: 200 };
      });
      const subscription = await subscribe(store, receiver);
      const { path } = await enrol(store);
      await stamp(store, path, 10);
      const dispatcher = await startDispatcher({ DATABASE_URL: line.url });
      try {
        await waitUntilDelivered(subscription, 10);
        const counts = listReceivedBalances(receiver).filter(
          (count, i, all) => all.indexOf(count) === i,
        );
        expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      } finally {
        line.unmute();
        await dispatcher.kill('SIGTERM');
        await line.close();
      }
    },
    SLOW,
  );
});

describe('768 receivers that hang, which is the number of concurrent attempts', () => {
  it('do not delay a delivery to another receiver until they time out', async () => {
    const store = await service.newStore();
    const { receiver, release: respond } = await receiveHeld();
    const model = await subscribe(store, receiver);
    const near = await receive();
    const prompt = await subscribe(store, near);
    const { path } = await enrol(store);
    const secrets = service.app.get(WebhookSecrets, { strict: false });
    const ids = (
      await queryRows<Subscription>(
        "select nextval('webhook_subscriptions_id') as id from generate_series(1, 768)",
      )
    ).map(({ id }) => id);
    await queryRows(
      `insert into webhook_subscriptions (id, account_id, events, target_url, payload_format, secret, enabled,
         active_from, created_at, updated_at)
       select x.id, s.account_id, '{customer.erased}', s.target_url, s.payload_format, x.secret, true,
         s.active_from, now(), now()
       from webhook_subscriptions s, unnest($2::bigint[], $3::bytea[]) as x (id, secret) where s.id = $1`,
      model.id,
      ids,
      ids.map((id) => secrets.seal(id, secrets.generate('hmac').secret)),
    );
    await store.send('DELETE', `${store.store}/webhook_subscriptions/${model.id}`);
    await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
    await stamp(store, path);
    await waitUntilDelivered(prompt, 1);
    await queryRows(
      `with enqueued as (
         insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream,
           type, payload_format, next_attempt_at, created_at)
         select webhook_next_id(), x.id, e.seq, e.event_id, e.account_id, e.customer_id, e.stream, e.type, 'envelope',
           now(), now()
         from webhook_events e, unnest($2::bigint[]) as x (id)
         where e.account_id = $1 and e.type = 'stamp.earned'
       )
       insert into webhook_queues (subscription_id, due_at) select id, now() from unnest($2::bigint[]) as x (id)`,
      store.accountId,
      ids,
    );
    await eventually(
      () => receiver.received.length,
      (count) => count >= 768,
    );
    await stamp(store, path);
    await waitUntilDelivered(prompt, 2);
    respond();
    await eventually(
      () =>
        queryRows(
          "select 1 from webhook_deliveries where subscription_id = any ($1) and status <> 'delivered'",
          ids,
        ),
      (remaining) => remaining.length === 0,
    );
    const [times] = await queryRows<{ began: Date; first_end: Date }>(
      `select
         (select max(a.at) from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
          where d.subscription_id = $1) as began,
         (select min(a.at + make_interval(secs => a.duration_ms / 1000.0)) from webhook_attempts a
          join webhook_deliveries d on d.id = a.delivery_id where d.subscription_id = any ($2)) as first_end`,
      prompt.id,
      ids,
    );
    expect(times?.began.getTime()).toBeLessThan(times?.first_end.getTime() ?? 0);
  });
});

describe('a delivery queue that was leased in a lost response', () => {
  it('is sent by its owner once it renews its leases', async () => {
    const { store, receiver, subscription, path } = await createStore();
    await startDispatcher();
    await stamp(store, path);
    await waitUntilDelivered(subscription, 1);
    const readQueue = () =>
      queryRows<{ owner: string | null }>(
        'select dispatcher_id as owner from webhook_queues where subscription_id = $1',
        subscription.id,
      );
    await eventually(readQueue, ([queue]) => queue?.owner === null);
    await queryRows(
      // The newest process: connections of an earlier test's may still be open.
      `update webhook_queues q
       set due_at = now() + interval '1 hour', dispatcher_id = (select max(number) from es.processes)
       where q.subscription_id = $1`,
      subscription.id,
    );
    const [delivery] = await queryRows<{ id: number }>(
      'select id from webhook_deliveries where subscription_id = $1',
      subscription.id,
    );
    const deliveries = `${store.store}/webhook_subscriptions/${subscription.id}/deliveries`;
    expect((await store.post(`${deliveries}/${delivery?.id}/redeliver`)).status).toBe(200);
    await eventually(
      () => receiver.received.length,
      (received) => received === 2,
    );
  });
});

describe('killing a dispatcher', () => {
  it('loses no event, changes no body and keeps the order of each customer’s events', async () => {
    const store = await service.newStore();
    let killed: Promise<void> | undefined;
    const receiver = await receive(async (_received, nth) => {
      if (nth === 10) killed = dispatcher.kill('SIGKILL');
      await killed;
      return { status: 200 };
    });
    await subscribe(store, receiver);
    const dispatcher = await startDispatcher();
    const people = await Promise.all(Array.from({ length: 10 }, () => enrol(store)));
    await Promise.all(people.map(({ path }) => stamp(store, path, 5)));
    await eventually(
      () => killed !== undefined,
      (isKilled) => isKilled,
    );
    await killed;
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 50,
    );
    const bytes = new Map<unknown, string>();
    for (const { headers, text } of receiver.received) {
      expect(bytes.get(headers['webhook-id']) ?? text).toBe(text);
      bytes.set(headers['webhook-id'], text);
    }
    for (const { customer } of people) {
      const events = receiver.events.map(({ body }) => body['data'] as StampData);
      const ofCustomer = events.filter(({ customer_id }) => customer_id === customer.id);
      expect(ofCustomer.map(({ stamps_count }) => stamps_count)).toEqual([1, 2, 3, 4, 5]);
    }
  });
});
