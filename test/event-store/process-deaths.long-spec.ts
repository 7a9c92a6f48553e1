import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { LOCKS } from '#platform/database/locks.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  listReceivedBalances,
  stamp,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';
import { CARD_LINKS } from '../support/database/card-links.js';

/**
 * Kills processes (SIGKILL) while they hold leases of an hour. Somebody goes on within the test only because their
 * sessions end with them.
 */

const SLOW = 300_000;

let service: LocalService;
let mails: MailServer;
const { receive, startDispatcher, queryRows, listStatuses } = useWebhooks(() => service);

beforeAll(async () => {
  [service, mails] = await Promise.all([
    startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' }),
    MailServer.start(),
  ]);
}, SLOW);
afterAll(async () => {
  await service.stop();
  await mails.goAway();
}, SLOW);

/** Stops a process so that it renews nothing, prolongs what it leases, and kills it. */
async function killWithLongLeases(
  program: Program,
  table: string,
  endsAt = 'due_at',
): Promise<void> {
  program.signal('SIGSTOP');
  const prolonged = await queryRows(
    `update ${table} set ${endsAt} = now() + interval '1 hour'
     where ${endsAt} > now() and ${endsAt} < 'infinity' returning 1`,
  );
  expect(prolonged.length).toBeGreaterThan(0);
  await program.kill('SIGKILL');
}

describe('killing a dispatcher in mid-delivery', () => {
  /** Creates a store of which ten events are to be sent, and kills the dispatcher during the fourth attempt. */
  async function killInMidDelivery(startOther: () => Promise<Program | undefined>) {
    const store = await service.newStore();
    let killed: Promise<void> | undefined;
    let recordedCount = 0;
    const receiver = await receive(async (_received, nth) => {
      if (nth === 4) {
        await startOther();
        const statuses = await listStatuses(subscription);
        recordedCount = statuses.filter((status) => status === 'delivered').length;
        killed = killWithLongLeases(dispatcher, 'webhook_queues');
      }
      await killed;
      return { status: 200 };
    });
    const subscription = await subscribe(store, receiver);
    const { path } = await enrol(store);
    const dispatcher = await startDispatcher();
    await stamp(store, path, 10);
    await eventually(
      () => killed !== undefined,
      (isKilled) => isKilled,
    );
    await killed;
    return { receiver, subscription, unrecordedCount: 4 - recordedCount };
  }

  async function expectAllInOrder({
    receiver,
    subscription,
    unrecordedCount,
  }: Awaited<ReturnType<typeof killInMidDelivery>>): Promise<void> {
    await eventually(
      () => listStatuses(subscription),
      (statuses) => statuses.every((status) => status === 'delivered'),
    );
    const balances = Array.from({ length: 10 }, (_, i) => i + 1);
    expect(listReceivedBalances(receiver)).toEqual(balances);
    // Only what was sent and not recorded is sent again: the fourth, and earlier ones on a busy machine.
    expect(receiver.received.length - balances.length).toBeLessThanOrEqual(unrecordedCount);
  }

  it(
    'lets another one go on at once, in the order of the events',
    async () => {
      await expectAllInOrder(await killInMidDelivery(startDispatcher));
    },
    SLOW,
  );

  it(
    'lets it go on at once when it is started again',
    async () => {
      const killed = await killInMidDelivery(() => Promise.resolve(undefined));
      await startDispatcher();
      await expectAllInOrder(killed);
    },
    SLOW,
  );
});

describe('cutting the session of a dispatcher that goes on', () => {
  it(
    'sends nothing twice and moves no queue, though another dispatcher is there',
    async () => {
      const store = await service.newStore();
      let respond: () => void = () => undefined;
      const isReleased = new Promise<void>((resolve) => (respond = resolve));
      const receiver = await receive(async () => {
        await isReleased;
        return { status: 200 };
      });
      const subscription = await subscribe(store, receiver);
      const { path } = await enrol(store);
      await startDispatcher();
      await stamp(store, path, 5);
      await eventually(
        () => receiver.received.length,
        (count) => count === 1,
      );
      const otherProgram = await startDispatcher();
      const readQueue = () =>
        queryRows<{ dispatcher_id: number; due_at: Date }>(
          'select dispatcher_id, due_at from webhook_queues where subscription_id = $1',
          subscription.id,
        );
      const [before] = await readQueue();
      await queryRows(
        'select pg_terminate_backend(pid) from es.processes where number = $1',
        before?.dispatcher_id,
      );
      await eventually(
        () => queryRows('select 1 from es.processes where number = $1', before?.dispatcher_id),
        (rows) => rows.length === 1,
      );
      // It renews its leases in the new session before it sends again.
      const [renewed] = await eventually(
        readQueue,
        ([queue]) => queue !== undefined && before !== undefined && queue.due_at > before.due_at,
      );
      expect(renewed?.dispatcher_id).toBe(before?.dispatcher_id);
      respond();
      await eventually(
        () => listStatuses(subscription),
        (statuses) => statuses.every((status) => status === 'delivered'),
      );
      expect(receiver.received).toHaveLength(5);
      expect(otherProgram.output()).not.toContain('have died');
    },
    SLOW,
  );
});

describe('killing a leader', () => {
  const LEADERS = `
    select l.pid, l.objid::int as lock from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and a.datname = current_database()
    order by lock`;
  const readLeaders = () => queryRows<{ pid: number; lock: number }>(LEADERS);

  it(
    'passes every leadership to another dispatcher',
    async () => {
      const leader = await startDispatcher();
      await eventually(
        () => leader.output(),
        (output) => output.includes('follows the log'),
      );
      let before = await readLeaders();
      await eventually(readLeaders, (now) => {
        const isSame = isDeepStrictEqual(now, before);
        before = now;
        return isSame && now.length > 5;
      });
      await startDispatcher();
      await leader.kill('SIGKILL');
      const pids = new Set(before.map(({ pid }) => pid));
      // Some are held for the time of a task only, so never all at the same moment.
      const seenLocks = new Set<number>();
      const findMissing = async () => {
        for (const { pid, lock } of await readLeaders()) if (!pids.has(pid)) seenLocks.add(lock);
        return before.map(({ lock }) => lock).filter((lock) => !seenLocks.has(lock));
      };
      expect(await eventually(findMissing, (missing) => missing.length === 0)).toEqual([]);
    },
    SLOW,
  );
});

describe('freezing a leader', () => {
  const readFanOut = async () =>
    (
      await queryRows<{ pid: number }>(
        `select l.pid from pg_locks l join pg_stat_activity a using (pid)
         where l.locktype = 'advisory' and l.objsubid = 1 and l.objid = $1 and l.granted
           and a.datname = current_database()`,
        LOCKS.fanOut,
      )
    )[0]?.pid;
  const listNumbers = async () =>
    (
      await queryRows<{ number: number }>(
        `select distinct number from es.processes where kind = 'dispatcher' order by number`,
      )
    ).map(({ number }) => number);

  it(
    'passes what it leads to another dispatcher and ends its session, which it has again when it thaws',
    async () => {
      const leader = await startDispatcher();
      const frozenPid = await eventually(readFanOut, (pid) => pid !== undefined);
      const [frozen] = await eventually(listNumbers, ({ length }) => length === 1);
      await startDispatcher();
      await eventually(listNumbers, ({ length }) => length === 2);
      leader.signal('SIGSTOP');
      try {
        await eventually(readFanOut, (pid) => pid !== undefined && pid !== frozenPid);
        expect(await listNumbers()).not.toContain(frozen);
      } finally {
        leader.signal('SIGCONT');
      }
      await eventually(listNumbers, (numbers) => numbers.includes(frozen ?? NaN));
      expect(await readFanOut()).not.toBe(frozenPid);
    },
    SLOW,
  );
});

describe('killing a dispatcher that does jobs', () => {
  it(
    'lets another one send the e-mail that it was sending',
    async () => {
      const settings = { SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' };
      const email = 'berta@mail.example';
      mails.hang(true);
      const { startedCount } = mails;
      const dispatcher = await startDispatcher(settings);
      const { customer } = await enrol(await service.newStore(), {
        customer: { email },
        links: true,
      });
      await eventually(
        () => mails.startedCount,
        (count) => count > startedCount,
      );
      await killWithLongLeases(dispatcher, 'outgoing_messages');
      mails.hang(false);
      await startDispatcher(settings);
      const messages = await eventually(
        () =>
          queryRows<{ state: string; attempts: number }>(
            `select state, attempts from ${CARD_LINKS} where customer_id = $1`,
            customer.id,
          ),
        ([message]) => message?.state === 'sent',
      );
      expect(messages).toEqual([{ state: 'sent', attempts: 2 }]);
      expect(mails.received.filter(({ to }) => to === email)).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'lets another one go on with the import, row by row',
    async () => {
      const rowCount = 1_000;
      const store = await service.newStore();
      const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
        card: { name: 'Coffee' },
      });
      const lines = Array.from({ length: rowCount }, (_, i) => `P${i},p${i}@example.com,3`);
      const { body } = await store.send<ImportJson>(
        'POST',
        `${store.store}/imports?card_id=${card.id}`,
        ['first_name,email,stamps', ...lines].join('\n'),
        { 'content-type': 'text/csv' },
      );
      const waitFor = (isReached: (current: ImportJson) => boolean) =>
        eventually(
          () => store.get<ImportJson>(`${store.store}/imports/${body.id}`),
          (response) => isReached(response.body),
        );
      const dispatcher = await startDispatcher();
      await waitFor(({ state, rows_done }) => state === 'running' && rows_done > 0);
      await killWithLongLeases(dispatcher, 'imports');
      await startDispatcher();
      const done = await waitFor(({ state }) => state === 'done');
      expect(done.body).toMatchObject({ rows_done: rowCount, created: rowCount, failed: 0 });
      const events = await queryRows(
        `select type, count(*)::int as count from es.events
         where account_id = $1 and meta ->> 'channel' = 'import' group by type order by type`,
        store.accountId,
      );
      expect(events).toEqual([
        { type: 'CustomerCardIssued', count: rowCount },
        { type: 'CustomerCreated', count: rowCount },
        { type: 'StampsEarned', count: rowCount },
      ]);
    },
    SLOW,
  );
});

describe('killing an api during a request with an Idempotency-Key', () => {
  const stampUnder = (client: Client, key: string, path: string) =>
    client.send<CustomerCardDetailJson>(
      'POST',
      `${path}/stamp`,
      { stamps: 1 },
      { 'idempotency-key': key },
    );

  it.each([
    ['before its commit began', false],
    ['while its commit was waiting', true],
  ])(
    'lets the repeated request have the key at once, and stamps once, %s',
    async (_when, isCommitting) => {
      const store = await service.newStore();
      const { path } = await enrol(store);
      const { program, second } = await startSecondApi(service, store);
      const key = `killed ${isCommitting}`;
      const blocker = new pg.Client({ connectionString: service.database.ownerUrl });
      await blocker.connect();
      try {
        await blocker.query('begin');
        await blocker.query(
          isCommitting
            ? 'lock table es.events, es.intents in exclusive mode'
            : 'lock table customer_cards in access exclusive mode',
        );
        const lost = stampUnder(second, key, path).then(
          () => 'a response',
          () => 'no response',
        );
        await eventually(
          () => queryRows('select 1 from es.stored_responses where status is null'),
          (rows) => rows.length === 1,
        );
        if (isCommitting) {
          await eventually(
            () => queryRows('select 1 from pg_locks where not granted'),
            (rows) => rows.length > 0,
          );
        }
        await queryRows(
          `update es.stored_responses set leased_until = now() + interval '1 hour' where status is null`,
        );
        await program.kill('SIGKILL');
        expect(await lost).toBe('no response');
        await eventually(
          () => queryRows(`select 1 from es.processes where kind = 'api'`),
          (rows) => rows.length === 0,
        );
        const repeated = stampUnder(store, key, path);
        await eventually(
          () => queryRows('select 1 from pg_locks where not granted'),
          (rows) => rows.length > 0,
        );
        await blocker.query('rollback');
        expect(await repeated).toMatchObject({ status: 200, body: { stamps_count: 1 } });
      } finally {
        await blocker.end();
      }
      expect(await store.readBalance(path)).toBe(1);
    },
    SLOW,
  );
});
