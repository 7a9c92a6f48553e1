import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  FORGET_REDELIVERIES,
  TAKE_REDELIVERIES,
  type DeliveryRow,
} from '../../libs/outbound/dispatch/load-statements.js';
import { DeliveryRequests } from '#outbound/subscriptions/delivery-requests.service.js';
import { eventually } from '../support/jest/eventually.js';
import { setClockAhead } from '../support/services/clock.js';
import type { Program } from '../support/services/program.js';
import { isSigned } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  listReceivedBalances,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';

type Subscription = { id: number };

const SLOW = 300_000;
const DAY_MS = 24 * 3_600_000;

let service: LocalService;
const { receive, startDispatcher, queryRows, listStatuses } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);

afterAll(async () => {
  await service.stop();
}, SLOW);

const announceChange = ({ id }: Subscription) =>
  service.app.get(DeliveryRequests, { strict: false }).announceChange(id);

const countLines = ({ output }: Program, words: string): number =>
  output()
    .split('\n')
    .filter((line) => line.includes(words)).length;

/** Lists the statements like this that wait for a lock, and since when. */
const listWaits = (statement: string) =>
  queryRows<{ since: string; ms: number }>(
    `select query_start::text as since,
       (extract(epoch from clock_timestamp() - query_start) * 1000)::float8 as ms
     from pg_stat_activity where query like $1 and wait_event_type = 'Lock' order by query_start`,
    statement,
  );

/** Enqueues deliveries now, of events of so many days ago. */
async function enqueueOld(
  { id }: Subscription,
  accountId: number,
  { daysAgo, count = 1 }: { daysAgo: number; count?: number },
): Promise<void> {
  await queryRows(
    `insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream,
       type, payload_format, next_attempt_at, created_at)
     select webhook_next_id(), $1, webhook_first_id(now() - make_interval(days => $3)) + i, 'evt_old' || i, $2, 1,
       'customer_card-1', 'stamp.earned', 'envelope', now(), now() from generate_series(1, $4::int) i`,
    id,
    accountId,
    daysAgo,
    count,
  );
}

describe('an event whose partition was dropped', () => {
  it('fails its deliveries for good, and does not delay the delivery behind them', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    // More than the dispatcher keeps of a queue in memory: the delivery behind them must be loaded all the same.
    await enqueueOld(subscription, store.accountId, { daysAgo: 40, count: 200 });
    await announceChange(subscription);
    await stamp(store, path);
    const dispatcher = await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 1,
    );
    const statuses = await eventually(
      () => listStatuses(subscription),
      (all) => !all.includes('pending'),
    );
    expect(statuses.filter((status) => status === 'failed')).toHaveLength(200);
    expect(countLines(dispatcher, 'cannot be rendered')).toBe(0);
    // Nothing was sent, so the receiver does not count as failing.
    expect(
      await queryRows(
        'select failing_since, last_delivery_status from webhook_subscriptions where id = $1',
        subscription.id,
      ),
    ).toEqual([{ failing_since: null, last_delivery_status: 200 }]);
  });
});

describe('an event that cannot be rendered for a while', () => {
  it('is retried, while its queue sends the deliveries behind it', async () => {
    const store = await service.newStore();
    const receiver = await receive((_received, nth) => ({ status: nth === 1 ? 500 : 200 }));
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    const first = await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
    await stamp(store, path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 1,
    );
    await first.kill('SIGTERM');
    const [event] = await queryRows<{ seq: number; stream: string }>(
      `select e.seq, e.stream from webhook_events e join webhook_pending p on p.event_seq = e.seq
       where p.subscription_id = $1`,
      subscription.id,
    );
    await queryRows('delete from webhook_bodies where seq = $1', event?.seq);
    await queryRows(
      "update webhook_events set stream = 'customer_card-0' where seq = $1",
      event?.seq,
    );
    const second = await startDispatcher();
    await stamp(store, path);
    await eventually(
      () => receiver.received.length,
      (count) => count === 2,
    );
    await eventually(
      () =>
        queryRows<{ tries: number; attempts_count: number }>(
          'select tries, attempts_count from webhook_pending where subscription_id = $1',
          subscription.id,
        ),
      ([row]) => (row?.tries ?? 0) >= 4,
    );
    await queryRows(
      'update webhook_events set stream = $2 where seq = $1',
      event?.seq,
      event?.stream,
    );
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses.every((status) => status === 'delivered'),
    );
    expect(receiver.received).toHaveLength(3);
    expect(countLines(second, 'cannot be rendered')).toBeLessThan(10);
    // Only requests that were sent count as attempts.
    expect(
      await queryRows(
        'select attempts_count from webhook_deliveries where event_seq = $1',
        event?.seq,
      ),
    ).toEqual([{ attempts_count: 2 }]);
  });
});

describe('a signing secret that cannot be decrypted', () => {
  it('stops only its own subscription, which says so and is fixed by rotating the secret', async () => {
    const store = await service.newStore();
    const [near, far] = [await receive(), await receive()];
    const broken = await subscribe(store, near);
    const sound = await subscribe(store, far);
    await queryRows(
      'update webhook_subscriptions set secret = set_byte(secret, 20, (get_byte(secret, 20) + 1) % 256) where id = $1',
      broken.id,
    );
    const { path } = await enrol(store);
    await stamp(store, path);
    await startDispatcher();
    await eventually(
      () => far.events.length,
      (count) => count === 1,
    );
    await eventually(
      () =>
        queryRows<{ error: string | null }>(
          'select last_delivery_error as error from webhook_subscriptions where id = $1',
          broken.id,
        ),
      ([row]) => row?.error === 'The signing secret cannot be decrypted: rotate it',
    );
    expect(near.received).toEqual([]);
    const rotation = await store.post<{ secret: string }>(
      `${store.store}/webhook_subscriptions/${broken.id}/rotate_secret`,
      { grace_seconds: 60 },
    );
    expect(rotation.status).toBe(200);
    await eventually(
      () => listStatuses(broken),
      ([status]) => status === 'delivered',
    );
    const [received] = near.received;
    expect(received && isSigned(received, rotation.body.secret)).toBe(true);
    expect(await listStatuses(sound)).toEqual(['delivered']);
  });
});

// Events that fan-out has not enqueued: the dispatcher starts after all of them.
describe('events that are not enqueued yet', () => {
  const patch = async (store: Client, { id }: Subscription, enabled: boolean) => {
    const path = `${store.store}/webhook_subscriptions/${id}`;
    expect((await store.send('PATCH', path, { enabled })).status).toBe(200);
  };
  // stamp 1, stamp 2 | subscribe, replay | stamp 3 | the dispatcher enqueues 1, 2 and 3
  it('are counted by a replay at once, and sent once they are enqueued', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const { path } = await enrol(store);
    const from = new Date(0);
    await stamp(store, path);
    await stamp(store, path);
    const late = await subscribe(store, receiver);
    const response = await store.post(`${store.store}/webhook_subscriptions/${late.id}/replay`, {
      from,
    });
    expect(response.body).toEqual({ matched: 2 });
    await stamp(store, path);
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 3,
    );
    await eventually(
      () => listStatuses(late),
      (all) => all.length === 3 && all.every((status) => status === 'delivered'),
    );
    // The third is not part of the replay.
    expect(listReceivedBalances(receiver).sort()).toEqual([1, 2, 3]);
    expect(receiver.received).toHaveLength(3);
  });

  // stamp 1 | pause | stamp 2 | resume | stamp 3 | the dispatcher enqueues 1 and 3
  it('are sent after a pause if they were recorded before or after it, and not if during it', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await stamp(store, path);
    await patch(store, subscription, false);
    await stamp(store, path);
    await patch(store, subscription, true);
    await stamp(store, path);
    await startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 2,
    );
    await eventually(
      () => listStatuses(subscription),
      (all) => all.every((status) => status === 'delivered'),
    );
    expect(listReceivedBalances(receiver)).toEqual([1, 3]);
  });

  // stamp 1 | pause | stamp 2 | the dispatcher enqueues 1 | resume
  it('and are enqueued during a pause are sent after the resume', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await stamp(store, path);
    await patch(store, subscription, false);
    await stamp(store, path);
    await startDispatcher();
    await eventually(
      () => listStatuses(subscription),
      (all) => all.length === 1,
    );
    await eventually(
      () =>
        queryRows(
          "select 1 from webhook_events where account_id = $1 and type = 'stamp.earned'",
          store.accountId,
        ),
      (events) => events.length === 2,
    );
    expect(await listStatuses(subscription)).toEqual(['pending']);
    await patch(store, subscription, true);
    await eventually(
      () => listStatuses(subscription),
      ([status]) => status === 'delivered',
    );
    expect(listReceivedBalances(receiver)).toEqual([1]);
  });
});

describe('a replay', () => {
  /** Simulates events whose partition is dropped once they are enqueued: their deliveries fail when they come up. */
  beforeAll(() =>
    queryRows(
      `create function lose_event() returns trigger language plpgsql as $$
       begin new.event_seq := webhook_first_id(now() - interval '40 days'); return new; end $$;
       create trigger lose_event before insert on webhook_pending for each row
         when (new.event_id like 'evt\\_lost\\_%') execute function lose_event()`,
    ),
  );
  const addEvents = (accountId: number, count: number) =>
    queryRows(
      `insert into webhook_events (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
       select webhook_next_id(), 'evt_lost_' || $1::bigint || '_' || i, $1, 1, 'stamp.earned', 'customer_card-1', i,
         now() - interval '1 hour'
       from generate_series(1, $2::int) i`,
      accountId,
      count,
    );
  const replay = async (store: Client, { id }: Subscription) => {
    const path = `${store.store}/webhook_subscriptions/${id}/replay`;
    const response = await store.post<{ matched: number }>(path, { from: new Date(0) });
    expect(response.status).toBe(200);
    return response.body.matched;
  };

  it('keeps at most 1,000 deliveries of its subscription pending, and ends once all have failed', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    await addEvents(store.accountId, 3_000);
    expect(await replay(store, subscription)).toBe(3_000);
    // The number of pending deliveries never decreases while nobody may send them.
    await queryRows('insert into webhook_queues values ($1, 1, $2)', subscription.id, 'infinity');
    await queryRows(
      `create function hold_queue() returns trigger language plpgsql as $$
       begin new.due_at := 'infinity'; return new; end $$;
       create trigger hold_queue before update on webhook_queues for each row
         when (old.subscription_id = ${subscription.id}) execute function hold_queue()`,
    );
    const pending = async () => (await listStatuses(subscription)).length;
    await startDispatcher();
    await eventually(pending, (count) => count === 1_000);
    const readProgress = async () =>
      (
        await queryRows<{ after: number }>(
          'select after_seq as after from webhook_replays where subscription_id = $1',
          subscription.id,
        )
      ).map(({ after }) => after);
    const [before] = await readProgress();
    // Another store's replay proceeds meanwhile, so the replays have been continued more than once.
    const otherStore = await service.newStore();
    const sound = await subscribe(otherStore, receiver);
    await addEvents(otherStore.accountId, 700);
    expect(await replay(otherStore, sound)).toBe(700);
    await eventually(
      () => listStatuses(sound),
      (all) => all.length === 700 && all.every((status) => status === 'failed'),
    );
    expect([await pending(), await readProgress()]).toEqual([1_000, [before]]);
    await queryRows('drop trigger hold_queue on webhook_queues; drop function hold_queue');
    await announceChange(subscription);
    await eventually(
      () => listStatuses(subscription),
      (all) => all.length === 3_000 && all.every((status) => status === 'failed'),
    );
    expect(await readProgress()).toEqual([]);
  });

  it('proceeds, and so does upkeep, beside a hundred endless replays of another store', async () => {
    const flooding = await service.newStore();
    const receiver = await receive();
    await addEvents(flooding.accountId, 20_000);
    const model = await subscribe(flooding, receiver, { events: ['*'] });
    const many = await queryRows<Subscription>(
      `insert into webhook_subscriptions (id, account_id, events, target_url, payload_format, secret, enabled,
         active_from, created_at, updated_at)
       select nextval('webhook_subscriptions_id'), account_id, events, target_url, payload_format, secret, enabled,
         active_from, created_at, updated_at from webhook_subscriptions, generate_series(1, 100) where id = $1
       returning id`,
      model.id,
    );
    for (const { id } of many) {
      await queryRows(
        `insert into webhook_replays (subscription_id, account_id, recorded_from, recorded_to, after_seq, last_seq,
           log_head, request, created_at)
         values ($1, $2, '-infinity', 'infinity', 0, webhook_next_id(), '', gen_random_uuid(), now())`,
        id,
        flooding.accountId,
      );
    }
    const store = await service.newStore();
    const failing = await subscribe(store, await receive(() => ({ status: 500 })));
    await queryRows(
      "update webhook_subscriptions set failing_since = now() - interval '4 days' where id = $1",
      failing.id,
    );
    const sound = await subscribe(store, receiver);
    await addEvents(store.accountId, 2);
    expect(await replay(store, sound)).toBe(2);
    await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
    await eventually(
      () => listStatuses(sound),
      (all) => all.length === 2 && all.every((status) => status === 'failed'),
    );
    const [disabled] = await eventually(
      () =>
        queryRows<{ reason: string | null; open: number }>(
          `select disabled_reason as reason,
             (select count(*)::int from webhook_replays where account_id = $2) as open
           from webhook_subscriptions where id = $1`,
          failing.id,
          flooding.accountId,
        ),
      ([row]) => row?.reason === 'failing',
    );
    expect(disabled?.open).toBeGreaterThan(50);
    await queryRows('delete from webhook_replays where account_id = $1', flooding.accountId);
    await queryRows('delete from webhook_subscriptions where account_id = $1', flooding.accountId);
  });
});

describe('requested redeliveries', () => {
  it('are taken from every queue, at most 64 from one', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const [many, subscription] = [
      await subscribe(store, receiver),
      await subscribe(store, receiver),
    ];
    await enqueueOld(many, store.accountId, { daysAgo: 0, count: 70 });
    await enqueueOld(subscription, store.accountId, { daysAgo: 0 });
    await queryRows(
      `insert into webhook_redeliveries (subscription_id, delivery_id, created_at)
       select subscription_id, id, now() from webhook_pending where subscription_id in ($1, $2) order by id`,
      many.id,
      subscription.id,
    );
    // A delivery that no longer exists cannot be sent again.
    await queryRows(
      'insert into webhook_redeliveries (subscription_id, delivery_id, created_at) values ($1, 7, now())',
      subscription.id,
    );
    const pool = new pg.Pool({ connectionString: service.database.url });
    const values = [[many.id, subscription.id]];
    try {
      await pool.query({ ...FORGET_REDELIVERIES, values });
      const { rows } = await pool.query<DeliveryRow>({ ...TAKE_REDELIVERIES, values });
      const counts = [many, subscription].map(
        ({ id }) => rows.filter(({ subscriptionId }) => subscriptionId === id).length,
      );
      expect(counts).toEqual([64, 1]);
      expect(
        await queryRows('select delivery_id from webhook_redeliveries where delivery_id = 7'),
      ).toEqual([]);
    } finally {
      await pool.end();
      await queryRows('delete from webhook_redeliveries');
      await queryRows(
        'delete from webhook_pending where subscription_id in ($1, $2)',
        many.id,
        subscription.id,
      );
    }
  });
});

describe('the partition of a past day', () => {
  const listDays = async (table: string): Promise<string[]> =>
    (
      await queryRows<{ name: string }>(
        `select right(c.relname, 8) as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = $1::regclass order by 1`,
        table,
      )
    ).map(({ name }) => name);
  const formatDay = (daysAgo: number) =>
    new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '');

  it('is kept while a delivery needs it, paused or not, and dropped after the last', async () => {
    const store = await service.newStore();
    // Keeps the deliveries from being sent: they are never due.
    const later =
      "update webhook_pending set tries = 1, next_attempt_at = now() + interval '1 hour'";
    const receiver = await receive();
    const [waiting, paused] = [await subscribe(store, receiver), await subscribe(store, receiver)];
    await store.send('PATCH', `${store.store}/webhook_subscriptions/${paused.id}`, {
      enabled: false,
    });
    await queryRows(
      "select webhook_make_partitions(now() - interval '45 days', now() - interval '40 days')",
    );
    await enqueueOld(waiting, store.accountId, { daysAgo: 43 });
    await enqueueOld(paused, store.accountId, { daysAgo: 42 });
    await queryRows(`${later} where subscription_id in ($1, $2)`, waiting.id, paused.id);
    const runUpkeep = async () => {
      const dispatcher = await startDispatcher({ WEBHOOK_TIME_SCALE: '1' });
      await eventually(dispatcher.output, (text) => text.includes('dropped '));
      await dispatcher.kill('SIGTERM');
    };
    await runUpkeep();
    expect((await listDays('webhook_events')).includes(formatDay(44))).toBe(false);
    expect(await listDays('webhook_events')).toEqual(
      expect.arrayContaining([formatDay(43), formatDay(42), formatDay(41)]),
    );
    // Partitions of finished deliveries are not kept for pending ones.
    expect((await listDays('webhook_finished')).includes(formatDay(41))).toBe(false);
    await queryRows('delete from webhook_pending where subscription_id = $1', waiting.id);
    await runUpkeep();
    expect((await listDays('webhook_events')).includes(formatDay(43))).toBe(false);
    expect(await listDays('webhook_events')).toEqual(
      expect.arrayContaining([formatDay(42), formatDay(41)]),
    );
    // After four hours a resume would no longer send it.
    await queryRows(
      "update webhook_pending set created_at = now() - interval '5 hours' where subscription_id = $1",
      paused.id,
    );
    await runUpkeep();
    expect(await listStatuses(paused)).toEqual(['failed']);
    expect((await listDays('webhook_events')).includes(formatDay(42))).toBe(false);
  });

  it('is not dropped too early by a dispatcher whose clock is ahead, nor is a subscription disabled', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const [failing, longFailing] = [
      await subscribe(store, receiver),
      await subscribe(store, receiver),
    ];
    const { path } = await enrol(store);
    for (const [{ id }, hours] of [
      [failing, 1],
      [longFailing, 73],
    ] as const) {
      await queryRows(
        'update webhook_subscriptions set failing_since = now() - make_interval(hours => $2) where id = $1',
        id,
        hours,
      );
    }
    await queryRows(
      "select webhook_make_partitions(now() - interval '45 days', now() - interval '29 days')",
    );
    const dispatcher = await startDispatcher({
      WEBHOOK_TIME_SCALE: '1',
      ...setClockAhead(40 * DAY_MS),
    });
    await eventually(
      () => listDays('webhook_events'),
      (days) => !days.includes(formatDay(44)),
    );
    await eventually(
      () =>
        queryRows(
          'select 1 from webhook_subscriptions where id = $1 and not enabled',
          longFailing.id,
        ),
      (rows) => rows.length === 1,
    );
    for (const table of ['webhook_events', 'webhook_finished']) {
      expect(await listDays(table)).toEqual(
        expect.arrayContaining([formatDay(29), formatDay(0), formatDay(-7)]),
      );
    }
    expect(
      await queryRows('select 1 from webhook_subscriptions where id = $1 and enabled', failing.id),
    ).toHaveLength(1);
    await stamp(store, path);
    await eventually(
      () => receiver.events.length,
      (count) => count === 1,
    );
    await dispatcher.kill('SIGTERM');
  });

  // A long read of all days | the drop wants its lock | an attempt is recorded | the read ends | the day is dropped
  it('is dropped once no query reads it, and delays no delivery until then', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await queryRows(
      "select webhook_make_partitions(now() - interval '45 days', now() - interval '44 days')",
    );
    const reader = new pg.Client({ connectionString: service.database.url });
    await reader.connect();
    await reader.query('begin; select 1 from webhook_finished limit 1');
    try {
      await startDispatcher();
      await eventually(
        () => listWaits('select webhook_drop_partitions%'),
        (waiting) => waiting.length > 0,
      );
      await stamp(store, path);
      const waits: number[] = [];
      await eventually(
        async () => {
          waits.push(...(await listWaits('select webhook_drop_partitions%')).map(({ ms }) => ms));
          return listStatuses(subscription);
        },
        ([status]) => status === 'delivered',
      );
      // No wait of the drop was ended by a time limit of the session.
      expect(Math.max(0, ...waits)).toBeLessThan(5_000);
      expect(await listDays('webhook_finished')).toContain(formatDay(44));
    } finally {
      await reader.query('rollback');
      await reader.end();
    }
    await eventually(
      () => listDays('webhook_finished'),
      (days) => !days.includes(formatDay(44)),
    );
  });
});

describe('the backlog of a subscription', () => {
  // deleted, with many pending | its deliveries are removed batch by batch | another store's delivery
  it('that was deleted is removed without delaying other deliveries', async () => {
    const [store, otherStore] = [await service.newStore(), await service.newStore()];
    const receiver = await receive();
    const deletedSubscription = await subscribe(store, receiver);
    const sound = await subscribe(otherStore, receiver);
    let redeliveries = 0;
    const { path } = await enrol(otherStore);
    await stamp(otherStore, path);
    await startDispatcher();
    await eventually(
      () => listStatuses(sound),
      ([status]) => status === 'delivered',
    );
    await enqueueOld(deletedSubscription, store.accountId, { daysAgo: 0, count: 5_000 });
    // Keeps the batch with this delivery waiting while it is locked.
    const holder = new pg.Client({ connectionString: service.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query(
      `select 1 from webhook_pending where subscription_id = $1 order by id offset 600 limit 1 for update`,
      [deletedSubscription.id],
    );
    try {
      await store.send('DELETE', `${store.store}/webhook_subscriptions/${deletedSubscription.id}`);
      const hooks = `${otherStore.store}/webhook_subscriptions/${sound.id}/deliveries`;
      const [delivery] = (await otherStore.get<{ id: number }[]>(hooks)).body;
      // Until one is sent within one wait of the batch, which no time limit of a statement has ended.
      await eventually(
        async () => {
          const waiting = await eventually(
            () => listWaits('%delete from webhook_pending%'),
            ({ length }) => length > 0,
          );
          expect((await otherStore.post(`${hooks}/${delivery?.id}/redeliver`)).status).toBe(200);
          redeliveries += 1;
          await eventually(
            () => receiver.received.length,
            (count) => count === 1 + redeliveries,
          );
          const after = await listWaits('%delete from webhook_pending%');
          return after.some(({ since }) => since === waiting[0]?.since);
        },
        (isWithinOneWait) => isWithinOneWait,
      );
      expect((await listStatuses(deletedSubscription)).length).toBeGreaterThan(1_000);
    } finally {
      await holder.query('rollback');
      await holder.end();
    }
    await eventually(
      () =>
        queryRows(
          'select 1 from webhook_queues where subscription_id = $1',
          deletedSubscription.id,
        ),
      (queues) => queues.length === 0,
    );
    expect(await listStatuses(deletedSubscription)).toEqual([]);
    expect(receiver.received).toHaveLength(1 + redeliveries);
  });

  it('that was resumed too late fails, and a new delivery is sent', async () => {
    const store = await service.newStore();
    const receiver = await receive();
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    await enqueueOld(subscription, store.accountId, { daysAgo: 0, count: 3_000 });
    await queryRows(
      "update webhook_pending set created_at = now() - interval '1 hour' where subscription_id = $1",
      subscription.id,
    );
    await queryRows(
      "update webhook_subscriptions set give_up_before = now() - interval '1 minute' where id = $1",
      subscription.id,
    );
    await announceChange(subscription);
    await stamp(store, path);
    await startDispatcher();
    const statuses = await eventually(
      () => listStatuses(subscription),
      (all) => !all.includes('pending') && all.includes('delivered'),
    );
    expect(statuses.filter((status) => status === 'failed')).toHaveLength(3_000);
    expect(receiver.events).toHaveLength(1);
  });
});
