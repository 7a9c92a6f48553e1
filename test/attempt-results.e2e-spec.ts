import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DispatcherModule } from '../apps/dispatcher/src/dispatcher.module.js';
import { AttemptResults } from '../libs/outbound/dispatch/src/attempt-results.service.js';
import type { Delivery } from '../libs/outbound/dispatch/src/delivery.js';
import type { Result } from '../libs/outbound/dispatch/src/finish-statement.js';
import { PendingDeliveries } from '../libs/outbound/dispatch/src/pending-deliveries.service.js';
import { createDatabaseClient } from '#database/database-client.js';
import { decideAfterAttempt } from '#subscriptions/webhook-delivery.js';
import { testConfig } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { startService, type Service } from './support/services/service.js';

const TARGET_URL = 'http://127.0.0.1:9/';
const DAY_MS = 24 * 3_600_000;
const AT = new Date('2026-03-01T12:00:00.000Z');
const LONG_AGO = new Date(AT.getTime() - 4 * DAY_MS);
const YESTERDAY = new Date(AT.getTime() - DAY_MS);

let service: Service;
let dispatcher: INestApplicationContext;
let results: AttemptResults;

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

const ask = async <R>(text: string, ...values: unknown[]): Promise<R[]> =>
  (await service.database.query(text, values)).rows as R[];

/** A subscription that has failed since then, and so many deliveries of it. */
async function createDeliveries(
  failingSince: Date | null,
  count: number,
): Promise<[number, ...Delivery[]]> {
  const store = await service.newStore();
  const { body } = await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, {
    event: 'stamp.earned',
    target_url: TARGET_URL,
  });
  await ask(
    'update webhook_subscriptions set failing_since = $2 where id = $1',
    body.id,
    failingSince,
  );
  await plan(body.id, store.accountId, count);
  const request = { subscriptionId: body.id, after: 0, room: count, skip: 0 };
  const deliveries = await dispatcher.get(PendingDeliveries, { strict: false }).take([request]);
  expect(deliveries).toHaveLength(count);
  return [body.id, ...deliveries];
}

/** @returns the ids of as many deliveries more */
async function plan(subscriptionId: number, accountId: number, count: number): Promise<number[]> {
  const planned = await ask<{ id: number }>(
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
  return planned.map(({ id }) => id);
}

function resultOf(
  delivery: Delivery | undefined,
  status: number,
  failingSince: Date | null,
  at = AT,
): Result {
  if (!delivery) throw new Error('one was planned');
  const attempted: Result['attempted'] = {
    outcome: { kind: 'answered', status, retryAfter: null },
    url: TARGET_URL,
    at,
    durationMs: 0,
    excerpt: null,
  };
  const next = decideAfterAttempt(delivery, { failingSince }, attempted.outcome, at, 0.5, 1);
  return { delivery, attempted, next };
}

const subscriptionOf = async (id: number) => {
  const [row] = await ask<{ failing_since: Date | null; enabled: boolean }>(
    'select failing_since, enabled from webhook_subscriptions where id = $1',
    id,
  );
  return row;
};

describe('attempts', () => {
  it('that failed count once, although they are recorded twice', async () => {
    const [id, delivery] = await createDeliveries(null, 1);
    const result = resultOf(delivery, 500, null);
    await results.record(result);
    await results.record(result);
    expect(
      await ask('select tries, attempts_count from webhook_pending where subscription_id = $1', id),
    ).toEqual([{ tries: 1, attempts_count: 1 }]);
    expect(
      await ask('select attempt from webhook_attempts where delivery_id = $1', delivery?.id),
    ).toEqual([{ attempt: 1 }]);
  });

  it.each([
    ['a failure, then a success', [500, 200], null],
    ['a success, then a failure', [200, 500], new Date(AT.getTime() + 1)],
    ['failures alone', [500, 503], YESTERDAY],
  ] as const)(
    'recorded together decide since when it fails: %s',
    async (_what, statuses, since) => {
      const [id, ...deliveries] = await createDeliveries(YESTERDAY, 2);
      // Results of one turn of the event loop form one group.
      await Promise.all(
        statuses.map((status, i) =>
          results.record(resultOf(deliveries[i], status, YESTERDAY, new Date(AT.getTime() + i))),
        ),
      );
      expect(await subscriptionOf(id)).toEqual({ failing_since: since, enabled: true });
    },
  );

  it('that the database refuses do not keep others from being recorded with them', async () => {
    const [, ...deliveries] = await createDeliveries(null, 9);
    const refused = deliveries[6];
    await ask(`
      create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'refused'; end $$`);
    await ask(`create trigger refuse before insert on webhook_attempts for each row
      when (new.delivery_id = ${refused?.id}) execute function refuse()`);
    const recorded = await Promise.allSettled(
      deliveries.map((delivery) => results.record(resultOf(delivery, 200, null))),
    );
    await ask('drop function refuse cascade');
    expect(recorded.map(({ status }) => status)).toEqual(
      deliveries.map((delivery) => (delivery === refused ? 'rejected' : 'fulfilled')),
    );
    const pending = await ask(
      'select id from webhook_pending where subscription_id = $1',
      refused?.subscriptionId,
    );
    expect(pending).toEqual([{ id: refused?.id }]);
  });

  it('wait while their subscription changes, without delaying others', async () => {
    const [id, first] = await createDeliveries(null, 1);
    // In another queue; ids are given in order.
    let [other, delivery] = await createDeliveries(null, 1);
    while (other % 4 === id % 4) [other, delivery] = await createDeliveries(null, 1);
    const somebody = createDatabaseClient(service.database.url, 'test');
    await somebody.connect();
    await somebody.query('begin');
    await somebody.query('select from webhook_subscriptions where id = $1 for update', [id]);
    const waiting = results.record(resultOf(first, 200, null));
    await results.record(resultOf(delivery, 200, null));
    const pending = () => ask('select from webhook_pending where subscription_id = $1', id);
    expect(await pending()).toHaveLength(1);
    await somebody.query('rollback');
    await waiting;
    await somebody.end();
    expect(await pending()).toEqual([]);
  });

  // the last attempt is under way | pause and resume | it fails, and by what was known would be the end
  it('that would end a subscription leave one enabled that was resumed meanwhile', async () => {
    const [id, ...deliveries] = await createDeliveries(LONG_AGO, 2);
    const [first, last] = deliveries.map((delivery) => resultOf(delivery, 500, LONG_AGO));
    if (!first || !last) throw new Error('two were planned');
    expect(last.next.subscription).toMatchObject({ disabled: 'failing' });
    await ask('update webhook_subscriptions set failing_since = null where id = $1', id);
    await results.record(first);
    expect(await subscriptionOf(id)).toEqual({ failing_since: AT, enabled: true });
    await ask('update webhook_subscriptions set failing_since = $2 where id = $1', id, LONG_AGO);
    await results.record(last);
    expect(await subscriptionOf(id)).toEqual({ failing_since: LONG_AGO, enabled: false });
  });

  it.each([
    ['410', 410, null],
    ['the last failure', 500, LONG_AGO],
  ])(
    'that would end a subscription leave one that got another URL meanwhile: %s',
    async (_what, status, failingSince) => {
      const [id, delivery] = await createDeliveries(failingSince, 1);
      const result = resultOf(delivery, status, failingSince);
      await ask(
        "update webhook_subscriptions set target_url = target_url || 'new' where id = $1",
        id,
      );
      const next = await results.record(result);
      expect(next.delivery).toEqual({ status: 'pending', nextAttemptAt: AT });
      expect(await subscriptionOf(id)).toMatchObject({ enabled: true });
      expect(
        await ask(
          'select tries, next_attempt_at from webhook_pending where subscription_id = $1',
          id,
        ),
      ).toEqual([{ tries: 1, next_attempt_at: AT }]);
    },
  );
});

// Statistics are taken at any moment, and a queue is empty at most of them.
describe('a queue that has become long since statistics were taken of it', () => {
  const MANY = 2_000;
  const GROUP = 100;

  /** Rows of the pending deliveries that were read, with and without an index. */
  const readRows = async () => {
    await ask('select pg_stat_clear_snapshot()');
    const [read] = await ask<{ deleted: number; fetched: number; scanned: number }>(
      `select n_tup_del::int as deleted, (coalesce(sum(i.idx_tup_read), 0))::int as fetched, seq_tup_read::int as scanned
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
       where t.relname = 'webhook_pending' group by n_tup_del, seq_tup_read`,
    );
    if (!read) throw new Error('the table is there');
    return read;
  };

  it.each([
    ['empty', 0, 'analyze'],
    ['short', 20, 'vacuum analyze'],
  ])('is not read as a whole for each group of results: it was %s', async (_what, before, look) => {
    const own = await openDispatcher();
    const group = async (deliveries: Delivery[]) =>
      Promise.all(
        deliveries.map((one) =>
          own.get(AttemptResults, { strict: false }).record(resultOf(one, 200, null)),
        ),
      );
    const [id, sample] = await createDeliveries(null, 1);
    if (!sample) throw new Error('one was planned');
    // Not taken by a dispatcher: its reading would be counted at any time later.
    const more = async () =>
      (await plan(id, sample.accountId, MANY)).map((each) => ({ ...sample, id: each }));
    const remaining = (await more()).slice(0, before);
    await ask(
      `delete from webhook_pending where id <> all ($1)`,
      remaining.map((one) => one.id),
    );
    await ask(`${look} webhook_pending`);
    // By then the server has a plan for any values.
    for (const one of remaining) await group([one]);
    const deliveries = await more();
    await ask('select pg_stat_force_next_flush()');
    const read = await readRows();
    for (let i = 0; i < GROUP * 3; i += GROUP) await group(deliveries.slice(i, i + GROUP));
    await own.close();
    const after = await eventually(readRows, ({ deleted }) => deleted - read.deleted >= GROUP * 3);
    expect(after.fetched - read.fetched).toBeLessThan(MANY);
    expect(after.scanned - read.scanned).toBeLessThan(MANY);
  });
});
