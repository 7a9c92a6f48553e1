import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DispatcherModule } from '../../apps/dispatcher/dispatcher.module.js';
import { AttemptResults } from '../../libs/outbound/dispatch/attempt-results.service.js';
import type { Delivery } from '../../libs/outbound/dispatch/delivery.js';
import { FINISH, type Result } from '../../libs/outbound/dispatch/finish-statement.js';
import { LOAD, toDelivery, type LoadedRow } from '../../libs/outbound/dispatch/load-statements.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import {
  decideAfterAttempt,
  decideAfterManualAttempt,
} from '#outbound/subscriptions/webhook-delivery.js';
import { testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Service } from '../support/services/service.js';

const TARGET_URL = 'http://127.0.0.1:9/';
const DAY_MS = 24 * 3_600_000;
const AT = new Date('2026-03-01T12:00:00.000Z');
const LONG_AGO = new Date(AT.getTime() - 4 * DAY_MS);
const YESTERDAY = new Date(AT.getTime() - DAY_MS);

let service: Service;
let dispatcher: INestApplicationContext;
let results: AttemptResults;
let patchSubscription: (id: number, changes: object) => Promise<unknown>;

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  dispatcher = await openDispatcher();
  results = dispatcher.get(AttemptResults, { strict: false });
});

afterAll(async () => {
  await dispatcher.close();
  await service.stop();
});

function openDispatcher(): Promise<INestApplicationContext> {
  const config = testConfig(service.database.url, service.environment);
  return NestFactory.createApplicationContext(DispatcherModule.forRoot(config), { logger: false });
}

const query = async <R>(text: string, ...values: unknown[]): Promise<R[]> =>
  (await service.database.query(text, values)).rows as R[];

/** Creates a subscription that has been failing since the given time, with pending deliveries. */
async function createDeliveries(
  failingSince: Date | null,
  count: number,
): Promise<[number, ...Delivery[]]> {
  const store = await service.newStore();
  const { body } = await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, {
    event: 'stamp.earned',
    target_url: TARGET_URL,
  });
  patchSubscription = (id, changes) =>
    store.send('PATCH', `${store.store}/webhook_subscriptions/${id}`, changes);
  await query(
    'update webhook_subscriptions set failing_since = $2 where id = $1',
    body.id,
    failingSince,
  );
  await enqueue(body.id, store.accountId, count);
  const dispatcherId = 1;
  await query(
    "insert into webhook_queues (subscription_id, dispatcher_id, due_at) values ($1, $2, 'infinity')",
    body.id,
    dispatcherId,
  );
  const rows = await query<LoadedRow>(LOAD.text, dispatcherId, [body.id], [0], [count], [0]);
  const deliveries = rows.flatMap((row) => (row.id === null ? [] : [toDelivery(row)]));
  expect(deliveries).toHaveLength(count);
  return [body.id, ...deliveries];
}

/** Enqueues deliveries and returns their ids. */
async function enqueue(
  subscriptionId: number,
  accountId: number,
  count: number,
): Promise<number[]> {
  const rows = await query<{ id: number }>(
    `insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream,
       type, payload_format, next_attempt_at, created_at)
     select webhook_next_id(), $1, webhook_next_id(), 'evt_' || i, $2, 1, 'customer_card-1', 'stamp.earned',
       'envelope', now(), now()
     from generate_series(1, $3::int) i
     returning id`,
    subscriptionId,
    accountId,
    count,
  );
  return rows.map(({ id }) => id);
}

/** Creates a result of an attempt that somebody has asked for. @param of records the result of that request again */
async function createManualResult(
  delivery: Delivery | undefined,
  status: number,
  at: Date,
  of?: Result,
): Promise<Result> {
  if (!delivery) throw new Error('one was enqueued');
  const [request] = of
    ? [{ id: of.delivery.redeliveryId }]
    : await query<{ id: number }>(
        `insert into webhook_redeliveries (subscription_id, delivery_id, created_at) values ($1, $2, now())
         returning id`,
        delivery.subscriptionId,
        delivery.id,
      );
  const { attempted } = createResult(delivery, status, null, at);
  const { delivered, subscription } = decideAfterManualAttempt(
    attempted.outcome,
    { failingSince: null },
    at,
  );
  return {
    delivery: { ...delivery, manual: true, redeliveryId: request?.id ?? 0 },
    attempted,
    next: { delivery: { status: delivered ? 'delivered' : 'failed' }, subscription },
  };
}

function createResult(
  delivery: Delivery | undefined,
  status: number | 'blocked',
  failingSince: Date | null,
  at = AT,
): Result {
  if (!delivery) throw new Error('one was enqueued');
  const attempted: Result['attempted'] = {
    outcome:
      status === 'blocked' ? { kind: status } : { kind: 'responded', status, retryAfter: null },
    url: TARGET_URL,
    at,
    durationMs: 0,
    excerpt: null,
  };
  const next = decideAfterAttempt(delivery, { failingSince }, attempted.outcome, at, 0.5, 1);
  return { delivery, attempted, next };
}

const readSubscription = async (id: number) => {
  const [row] = await query<{ failing_since: Date | null; enabled: boolean }>(
    'select failing_since, enabled from webhook_subscriptions where id = $1',
    id,
  );
  return row;
};

describe('delivery attempts', () => {
  it('count once, even when a failed one is recorded twice', async () => {
    const [id, delivery] = await createDeliveries(null, 1);
    const result = createResult(delivery, 500, null);
    await results.record(result);
    await results.record(result);
    expect(
      await query(
        'select tries, attempts_count from webhook_pending where subscription_id = $1',
        id,
      ),
    ).toEqual([{ tries: 1, attempts_count: 1 }]);
    expect(
      await query('select attempt from webhook_attempts where delivery_id = $1', delivery?.id),
    ).toEqual([{ attempt: 1 }]);
  });

  it('are all shown in order: the one that ended the delivery, earlier ones and those made by hand', async () => {
    const [id, delivery] = await createDeliveries(null, 1);
    if (!delivery) throw new Error('one was enqueued');
    await results.record(createResult(delivery, 500, null));
    await results.record(await createManualResult(delivery, 502, AT));
    await results.record(createResult({ ...delivery, tries: 1 }, 204, null));
    await results.record(await createManualResult(delivery, 503, AT));
    await results.record(await createManualResult(delivery, 200, AT));
    const columns = 'attempt, kind, status, error';
    const attempts = [
      { attempt: 1, kind: 'scheduled', status: 500, error: 'Responded with 500' },
      { attempt: 2, kind: 'manual', status: 502, error: 'Responded with 502' },
      { attempt: 3, kind: 'scheduled', status: 204, error: null },
      { attempt: 4, kind: 'manual', status: 503, error: 'Responded with 503' },
      { attempt: 5, kind: 'manual', status: 200, error: null },
    ];
    expect(
      await query(
        `select ${columns} from webhook_attempts where subscription_id = $1 order by attempt`,
        id,
      ),
    ).toEqual(attempts);
    expect(
      await query(
        'select status, attempts_count, attempt from webhook_finished where subscription_id = $1',
        id,
      ),
    ).toEqual([{ status: 'delivered', attempts_count: 5, attempt: 3 }]);
  });

  it.each([
    ['a success', 200, null, 'delivered'],
    ['a 410', 410, null, 'cancelled'],
    ['the last failure', 500, LONG_AGO, 'failed'],
  ] as const)('that end their delivery are in its row: %s', async (_what, code, since, status) => {
    const [id, delivery] = await createDeliveries(since, 1);
    await results.record(createResult(delivery, code, since));
    expect(
      await query(
        'select status, attempts_count, attempt, response_status from webhook_finished where subscription_id = $1',
        id,
      ),
    ).toEqual([{ status, attempts_count: 1, attempt: 1, response_status: code }]);
    expect(
      await query('select from webhook_other_attempts where subscription_id = $1', id),
    ).toEqual([]);
  });

  it('that were not made are not shown when they end their delivery', async () => {
    const [id, delivery] = await createDeliveries(null, 1);
    const result = createResult(delivery, 200, null);
    const outcome = { kind: 'missing' } as const;
    await results.record({
      ...result,
      attempted: { ...result.attempted, outcome, url: null },
      next: { ...result.next, delivery: { status: 'failed' } },
    });
    expect(
      await query(
        'select status, attempts_count from webhook_deliveries where subscription_id = $1',
        id,
      ),
    ).toEqual([{ status: 'failed', attempts_count: 0 }]);
    expect(await query('select from webhook_attempts where subscription_id = $1', id)).toEqual([]);
  });

  describe('that do not count', () => {
    const LATER = new Date(AT.getTime() + 60_000);
    const readState = async (id: number) => {
      const [row] = await query<Record<string, unknown>>(
        'select * from webhook_subscriptions where id = $1',
        id,
      );
      return row;
    };
    const readAttempts = (delivery: Delivery | undefined) =>
      query(
        'select attempt, kind, status from webhook_attempts where delivery_id = $1',
        delivery?.id,
      );
    const readMetrics = async () => {
      const registry = dispatcher.get(Registry, { strict: false });
      const metrics = await Promise.all(
        ['inkpad_webhook_subscriptions_ended_total', 'inkpad_webhook_deliveries_total'].map(
          (name) => registry.getSingleMetric(name)?.get(),
        ),
      );
      return metrics.map((metric) => metric?.values);
    };
    const readMails = () => query(`select uuid as id from outgoing_messages where kind = 'mail'`);

    it.each([
      ['a failure', 500, YESTERDAY, 200],
      ['the last failure', 500, LONG_AGO, 200],
      ['a 410', 410, null, 200],
      ['a blocked address', 'blocked', null, 200],
      ['a failure after another one', 500, YESTERDAY, 503],
      ['a 410 after a failure', 410, YESTERDAY, 503],
      ['a success after a success', 200, YESTERDAY, 200],
    ] as const)(
      'change nothing of their subscription, alone or with others: %s',
      async (_what, lateStatus, failingSince, status) => {
        const [id, first, second, third] = await createDeliveries(failingSince, 3);
        // Another dispatcher has sent it meanwhile.
        await results.record(createResult(first, status, null, LATER));
        const late = createResult(first, lateStatus, failingSince);
        const before = [await readState(id), await readAttempts(first), await readMetrics()];
        const mails = await readMails();
        expect(await results.record(late)).toBeUndefined();
        expect([await readState(id), await readAttempts(first), await readMetrics()]).toEqual(
          before,
        );
        expect(await readMails()).toEqual(mails);
        const [again, ...others] = await Promise.all([
          results.record(late),
          results.record(createResult(second, 200, null, LATER)),
          results.record(createResult(third, 200, null, LATER)),
        ]);
        expect(again).toBeUndefined();
        expect(others.map((next) => next?.delivery.status)).toEqual(['delivered', 'delivered']);
        expect(await readState(id)).toMatchObject({ enabled: true, failing_since: null });
        expect(await readAttempts(first)).toEqual(before[1]);
      },
    );

    it('change nothing when the delivery was sent again by hand meanwhile', async () => {
      const [id, delivery] = await createDeliveries(YESTERDAY, 1);
      const late = createResult(delivery, 500, YESTERDAY);
      await results.record(await createManualResult(delivery, 200, LATER));
      const before = await readState(id);
      expect(before).toMatchObject({ failing_since: null, last_delivery_at: LATER });
      expect(await results.record(late)).toBeUndefined();
      expect(await readState(id)).toEqual(before);
      expect(await readAttempts(delivery)).toEqual([{ attempt: 1, kind: 'manual', status: 200 }]);
    });

    it.each([200, 500, 410])(
      'change nothing when they were made by hand and are recorded twice: %s',
      async (status) => {
        const [id, delivery] = await createDeliveries(YESTERDAY, 1);
        const manual = await createManualResult(delivery, status, AT);
        await results.record(await createManualResult(delivery, 500, AT, manual));
        await query('update webhook_subscriptions set last_delivery_at = null where id = $1', id);
        const before = await readState(id);
        expect(await results.record(manual)).toBeUndefined();
        expect(await readState(id)).toEqual(before);
      },
    );

    it('change nothing when their subscription was deleted', async () => {
      const [id, delivery] = await createDeliveries(null, 1);
      await query('delete from webhook_pending where subscription_id = $1', id);
      await query('delete from webhook_subscriptions where id = $1', id);
      const before = await readMetrics();
      expect(await results.record(createResult(delivery, 410, null))).toBeUndefined();
      expect(await readMetrics()).toEqual(before);
    });
  });

  // Dispatchers record what they have sent at any time later, as long as they reach no database.
  describe('that come late and count', () => {
    const LATER = new Date(AT.getTime() + 60_000);
    const readState = async (id: number) => {
      const [row] = await query<Record<string, unknown>>(
        `select enabled, failing_since, last_delivery_at, last_delivery_status
         from webhook_subscriptions where id = $1`,
        id,
      );
      return row;
    };

    it('leave a subscription healthy when another delivery has succeeded since', async () => {
      const [id, first, second] = await createDeliveries(YESTERDAY, 2);
      await results.record(createResult(second, 200, YESTERDAY, LATER));
      const next = await results.record(createResult(first, 500, YESTERDAY));
      expect(next?.delivery.status).toBe('pending');
      expect(await readState(id)).toEqual({
        enabled: true,
        failing_since: null,
        last_delivery_at: LATER,
        last_delivery_status: 200,
      });
    });

    it.each([
      ['before the failure', AT, LATER, LATER, 503],
      ['after the failure', LATER, AT, null, 200],
    ] as const)(
      'let a success count for the delivery, and by its time for the subscription: %s',
      async (_what, succeededAt, failedAt, failingSince, lastStatus) => {
        const [id, delivery] = await createDeliveries(null, 1);
        await results.record(createResult(delivery, 503, null, failedAt));
        const next = await results.record(createResult(delivery, 200, null, succeededAt));
        expect(next?.delivery.status).toBe('delivered');
        expect(await readState(id)).toEqual({
          enabled: true,
          failing_since: failingSince,
          last_delivery_at: LATER,
          last_delivery_status: lastStatus,
        });
      },
    );

    it.each([
      ['a failure', 500, null],
      ['the last failure', 500, LONG_AGO],
      ['a 410', 410, null],
      ['a blocked address', 'blocked', null],
    ] as const)(
      'leave a subscription as it is when it was enabled again meanwhile: %s',
      async (_what, status, failingSince) => {
        const [id, delivery] = await createDeliveries(failingSince, 1);
        const result = createResult(delivery, status, failingSince);
        for (const enabled of [false, true]) await patchSubscription(id, { enabled });
        const next = await results.record(result);
        expect(next?.delivery.status).toBe('pending');
        expect(await readState(id)).toMatchObject({ enabled: true, failing_since: null });
      },
    );

    it('do not enable a subscription that was paused meanwhile, nor disable it once more', async () => {
      const [id, delivery] = await createDeliveries(LONG_AGO, 1);
      await query(
        `update webhook_subscriptions set enabled = false, disabled_at = $2, disabled_reason = 'disabled_by_user'
         where id = $1`,
        id,
        AT,
      );
      await results.record(createResult(delivery, 500, LONG_AGO));
      expect(
        await query('select enabled, disabled_reason from webhook_subscriptions where id = $1', id),
      ).toEqual([{ enabled: false, disabled_reason: 'disabled_by_user' }]);
    });
  });

  it.each([
    ['a failure, then a success', [500, 200], null],
    ['a success, then a failure', [200, 500], new Date(AT.getTime() + 1)],
    ['failures alone', [500, 503], YESTERDAY],
  ] as const)(
    'recorded in one group set failing_since of their subscription: %s',
    async (_what, statuses, since) => {
      const [id, ...deliveries] = await createDeliveries(YESTERDAY, 2);
      // Results of one turn of the event loop form one group.
      await Promise.all(
        statuses.map((status, i) =>
          results.record(
            createResult(deliveries[i], status, YESTERDAY, new Date(AT.getTime() + i)),
          ),
        ),
      );
      expect(await readSubscription(id)).toEqual({ failing_since: since, enabled: true });
    },
  );

  it.each([
    ['a 410, then a success', 410, null, 1, true],
    ['a blocked address, then a success', 'blocked', null, 1, true],
    ['a success, then a 410', 410, null, -1, false],
  ] as const)(
    'recorded in one group end a subscription only if no later one is a success: %s',
    async (_what, status, failingSince, successMs, isLeft) => {
      const [id, first, second] = await createDeliveries(failingSince, 2);
      const successAt = new Date(AT.getTime() + successMs);
      await Promise.all([
        results.record(createResult(first, status, failingSince)),
        results.record(createResult(second, 200, failingSince, successAt)),
      ]);
      const left = await query('select from webhook_subscriptions where id = $1 and enabled', id);
      expect(left).toHaveLength(isLeft ? 1 : 0);
    },
  );

  it('are recorded even when the database rejects another one of their group', async () => {
    const [, ...deliveries] = await createDeliveries(null, 9);
    const rejectedDelivery = deliveries[6];
    await query(`
      create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'refused'; end $$`);
    await query(`create trigger refuse before insert on webhook_finished for each row
      when (new.id = ${rejectedDelivery?.id}) execute function refuse()`);
    const outcomes = await Promise.allSettled(
      deliveries.map((delivery) => results.record(createResult(delivery, 200, null))),
    );
    await query('drop function refuse cascade');
    expect(outcomes.map(({ status }) => status)).toEqual(
      deliveries.map((delivery) => (delivery === rejectedDelivery ? 'rejected' : 'fulfilled')),
    );
    const pendingRows = await query(
      'select id from webhook_pending where subscription_id = $1',
      rejectedDelivery?.subscriptionId,
    );
    expect(pendingRows).toEqual([{ id: rejectedDelivery?.id }]);
  });

  it('are recorded without comparing each with all others of their group', async () => {
    // The statistics of tables that are nearly empty, with which a dispatcher must not plan for good.
    await query('analyze webhook_pending; analyze webhook_queues');
    const pool = dispatcher.get(Pool, { strict: false });
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
      `explain (generic_plan) ${FINISH.text}`,
    );
    const lines = rows.map((row) => row['QUERY PLAN']);
    expect(lines.filter((line) => line.includes('Join Filter'))).toEqual([]);
  });

  it('wait while their subscription is locked, without delaying other subscriptions', async () => {
    const [id, first] = await createDeliveries(null, 1);
    // In another queue: ids are consecutive.
    let [otherDelivery, delivery] = await createDeliveries(null, 1);
    while (otherDelivery % 4 === id % 4)
      [otherDelivery, delivery] = await createDeliveries(null, 1);
    const holder = createDatabaseClient(service.database.url, 'test');
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from webhook_subscriptions where id = $1 for update', [id]);
    const recording = results.record(createResult(first, 200, null));
    await results.record(createResult(delivery, 200, null));
    const readPending = () => query('select from webhook_pending where subscription_id = $1', id);
    expect(await readPending()).toHaveLength(1);
    await holder.query('rollback');
    await recording;
    await holder.end();
    expect(await readPending()).toEqual([]);
  });

  // the last attempt is under way | pause and resume | it fails, and would disable by the state that it began with
  it('that would disable a subscription leave it enabled when it was resumed meanwhile', async () => {
    const [id, ...deliveries] = await createDeliveries(LONG_AGO, 2);
    const [first, last] = deliveries.map((delivery) => createResult(delivery, 500, LONG_AGO));
    if (!first || !last) throw new Error('two were enqueued');
    expect(last.next.subscription).toMatchObject({ disabled: 'failing' });
    await query('update webhook_subscriptions set failing_since = null where id = $1', id);
    await results.record(first);
    expect(await readSubscription(id)).toEqual({ failing_since: AT, enabled: true });
    await query('update webhook_subscriptions set failing_since = $2 where id = $1', id, LONG_AGO);
    await results.record(last);
    expect(await readSubscription(id)).toEqual({ failing_since: LONG_AGO, enabled: false });
  });

  // A receiver has failed for three days | a redelivery succeeds | another delivery fails before the view is read again
  it.each([
    ['recorded before', false],
    ['recorded together with it', true],
  ])(
    'that would end a delivery by an old view of its subscription leave it its ten attempts: a success %s',
    async (_what, isTogether) => {
      const [id, first, second] = await createDeliveries(LONG_AGO, 2);
      const earlier = new Date(AT.getTime() - 500);
      const success = isTogether
        ? createResult(first, 200, LONG_AGO, earlier)
        : await createManualResult(first, 200, earlier);
      const failure = createResult(second, 500, LONG_AGO);
      expect(failure.next).toMatchObject({
        delivery: { status: 'failed' },
        subscription: { disabled: 'failing' },
      });
      const recording = results.record(success);
      if (!isTogether) await recording;
      const [next] = await Promise.all([results.record(failure), recording]);
      expect(next).toMatchObject({
        delivery: { status: 'pending' },
        subscription: { isKept: true, failingSince: AT },
      });
      expect(await readSubscription(id)).toEqual({ failing_since: AT, enabled: true });
      const [pending] = await query<{ tries: number; delay: number }>(
        `select tries, extract(epoch from next_attempt_at - $2::timestamptz)::float8 as delay
         from webhook_pending where subscription_id = $1`,
        id,
        AT,
      );
      expect(pending?.tries).toBe(1);
      expect(pending?.delay).toBeGreaterThan(4);
      expect(pending?.delay).toBeLessThanOrEqual(5);
    },
  );

  it.each([
    ['a 410', 410, null],
    ['the last failure', 500, LONG_AGO],
  ])(
    'that would disable a subscription leave it enabled when its URL has changed: %s',
    async (_what, status, failingSince) => {
      const [id, delivery] = await createDeliveries(failingSince, 1);
      const result = createResult(delivery, status, failingSince);
      await query(
        "update webhook_subscriptions set target_url = target_url || 'new' where id = $1",
        id,
      );
      const next = await results.record(result);
      expect(next?.delivery).toEqual({ status: 'pending', nextAttemptAt: AT });
      expect(await readSubscription(id)).toMatchObject({ enabled: true });
      expect(
        await query(
          'select tries, next_attempt_at from webhook_pending where subscription_id = $1',
          id,
        ),
      ).toEqual([{ tries: 1, next_attempt_at: AT }]);
    },
  );
});

// PostgreSQL may analyze the table at any moment, and at most moments a queue is empty.
describe('a delivery queue that has grown since its table was analyzed', () => {
  const MANY = 2_000;
  const GROUP = 100;

  /** Reads how many rows of pending deliveries were read, with and without an index. */
  const readRows = async () => {
    await query('select pg_stat_clear_snapshot()');
    const [counts] = await query<{ deleted: number; fetched: number; scanned: number }>(
      `select n_tup_del::int as deleted, (coalesce(sum(i.idx_tup_read), 0))::int as fetched, seq_tup_read::int as scanned
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
       where t.relname = 'webhook_pending' group by n_tup_del, seq_tup_read`,
    );
    if (!counts) throw new Error('webhook_pending has no statistics');
    return counts;
  };

  it.each([
    ['empty', 0, 'analyze'],
    ['short', 20, 'vacuum analyze'],
  ])('is not scanned for each group of results: it was %s', async (_what, length, maintenance) => {
    const own = await openDispatcher();
    const recordGroup = async (deliveries: Delivery[]) =>
      Promise.all(
        deliveries.map((delivery) =>
          own.get(AttemptResults, { strict: false }).record(createResult(delivery, 200, null)),
        ),
      );
    const [id, sample] = await createDeliveries(null, 1);
    if (!sample) throw new Error('one was enqueued');
    // Not read by a dispatcher: PostgreSQL might count its reads at any time later.
    const enqueueMany = async () =>
      (await enqueue(id, sample.accountId, MANY)).map((each) => ({ ...sample, id: each }));
    const firstDeliveries = (await enqueueMany()).slice(0, length);
    await query(
      `delete from webhook_pending where id <> all ($1)`,
      firstDeliveries.map((delivery) => delivery.id),
    );
    await query(`${maintenance} webhook_pending`);
    // From then on the server uses a generic plan.
    for (const delivery of firstDeliveries) await recordGroup([delivery]);
    const deliveries = await enqueueMany();
    await query('select pg_stat_force_next_flush()');
    const before = await readRows();
    for (let i = 0; i < GROUP * 3; i += GROUP) await recordGroup(deliveries.slice(i, i + GROUP));
    await own.close();
    const after = await eventually(
      readRows,
      ({ deleted }) => deleted - before.deleted >= GROUP * 3,
    );
    expect(after.fetched - before.fetched).toBeLessThan(MANY);
    expect(after.scanned - before.scanned).toBeLessThan(MANY);
  });
});
