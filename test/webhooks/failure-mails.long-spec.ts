import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer, type ReceivedMail } from '../support/emulators/mail-server.js';
import { startProgram, type Program } from '../support/services/program.js';
import { Receiver, type Reply } from '../support/emulators/webhook-receiver.js';
import { cli, startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Store = Client & { email: string };
type Subscription = { id: number; path: string; store: Store; secret: string; receiver: Receiver };

const SLOW = 300_000;
const DAY = 24 * 3600;
const SCALE = 100;

let service: Service;
let mails: MailServer;
const dispatchers = new Set<Program>();
const receivers: Receiver[] = [];

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);
beforeEach(async () => {
  mails = await MailServer.start();
});
afterEach(async () => {
  await Promise.all([...dispatchers].map((dispatcher) => stop(dispatcher, 'SIGTERM')));
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
  await mails.goAway();
  // Subscriptions of one test would go on failing in the next.
  await service.database.query(
    'truncate outgoing_messages, webhook_subscriptions, webhook_queues cascade',
  );
}, SLOW);
afterAll(() => service.stop(), SLOW);

async function startDispatcher(settings: NodeJS.ProcessEnv = {}): Promise<Program> {
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, {
      ...service.environment,
      WEBHOOK_TIME_SCALE: String(SCALE),
      SMTP_URL: mails.url,
      MAIL_FROM: 'Inkpad <inkpad@shop.example>',
      LOG_LEVEL: 'info',
      ...settings,
    }),
  );
  dispatchers.add(dispatcher);
  await eventually(dispatcher.output, (text) => text.includes('started'));
  return dispatcher;
}

async function stop(dispatcher: Program, signal: NodeJS.Signals): Promise<void> {
  dispatchers.delete(dispatcher);
  await dispatcher.kill(signal);
}

async function subscribe(
  store: Store,
  reply: () => Reply = () => ({ status: 500 }),
): Promise<Subscription> {
  const receiver = await Receiver.start(reply);
  receivers.push(receiver);
  const { status, body } = await store.post<{ id: number; secret: string }>(
    `${store.store}/webhook_subscriptions`,
    { events: ['stamp.earned'], target_url: `${receiver.url}?token=sesame`, description: 'till' },
  );
  expect(status).toBe(201);
  const path = `${store.store}/webhook_subscriptions/${body.id}`;
  return { id: body.id, secret: body.secret, path, store, receiver };
}

/** Creates a subscription that has been failing for so long, before scaling. */
async function createFailing(
  store: Store,
  seconds: number,
  reply?: () => Reply,
): Promise<Subscription> {
  const subscription = await subscribe(store, reply);
  await (await enrol(store)).stamp(1);
  await waitUntilFailing(subscription);
  await setFailingFor(subscription, seconds);
  return subscription;
}

async function waitUntilFailing({ id }: Subscription): Promise<void> {
  await eventually(
    () =>
      service.database.query('select failing_since from webhook_subscriptions where id = $1', [id]),
    ({ rows }) => rows[0]?.failing_since !== null,
  );
}

async function setFailingFor({ id }: Subscription, seconds: number): Promise<void> {
  await service.database.query(
    'update webhook_subscriptions set failing_since = now() - make_interval(secs => $2) where id = $1',
    [id, seconds / SCALE],
  );
}

const show = async ({ store, path }: Subscription) =>
  (await store.get<{ enabled: boolean; disabled_reason: string | null }>(path)).body;

const waitUntilDisabled = (subscription: Subscription) =>
  eventually(
    () => show(subscription),
    ({ enabled }) => !enabled,
  );

const findMailsTo = ({ email }: Store): ReceivedMail[] =>
  mails.received.filter(({ to }) => to === email);

const waitForMails = (store: Store, count: number) =>
  eventually(
    () => findMailsTo(store),
    (result) => result.length >= count,
  );

/** Waits until every mail was sent. */
const waitUntilOutboxEmpty = () =>
  eventually(
    () => service.database.query(`select 1 from outgoing_messages where kind = 'mail'`),
    ({ rows }) => rows.length === 0,
  );

async function createOwner(store: Store): Promise<string> {
  const email = `${randomUUID()}@owner.example`;
  await service.execute(new CreateUser(cli, email, 'Second', 'correct horse'));
  await service.execute(new AddMember(cli, store.accountId, email, 'owner'));
  return email;
}

describe('a failing webhook subscription', () => {
  it(
    'is reported to every owner by one mail before it is disabled and one afterwards, with two dispatchers',
    async () => {
      const store = await service.newStore();
      const second = await createOwner(store);
      const removedOwner = await createOwner(store);
      await service.execute(new RemoveUser(cli, removedOwner));
      // Three days take thirteen seconds.
      const settings = { WEBHOOK_TIME_SCALE: '20000' };
      const both = [await startDispatcher(settings), await startDispatcher(settings)];
      const subscription = await subscribe(store);
      await (await enrol(store)).stamp(1);
      await waitUntilDisabled(subscription);
      await waitForMails(store, 2);
      await waitUntilOutboxEmpty();
      const subjects = findMailsTo(store).map(({ subject }) => subject);
      const host = new URL(subscription.receiver.url).host;
      expect(subjects).toEqual([
        `Corner Café: webhooks to ${host} are failing`,
        `Corner Café: webhooks to ${host} were disabled`,
      ]);
      expect(mails.received.map(({ to }) => to).sort()).toEqual(
        [store.email, store.email, second, second].sort(),
      );
      const [warning, disabled] = findMailsTo(store);
      expect(warning?.text).toContain('Last response: HTTP 500\nLast error: Responded with 500\n');
      expect(warning?.text).toContain(`Webhook subscription: ${subscription.id} (till)`);
      expect(disabled?.text).toContain(`PATCH ${subscription.path} {"enabled": true}`);
      expect(warning?.headers).toMatch(/^From: Inkpad <inkpad@shop\.example>$/m);
      expect(warning?.headers).toMatch(/^Message-ID: <[0-9a-f-]{36}@shop\.example>$/m);
      const logs = both.map((dispatcher) => dispatcher.output()).join('');
      expect(findLines(logs, 'is failing and will be disabled')).toEqual([
        expect.stringMatching(
          new RegExp(
            `subscription_id\\W+${subscription.id}\\b.*account_id\\W+${store.accountId}\\b`,
          ),
        ),
      ]);
      expect(findLines(logs, 'was disabled: failing')).toHaveLength(1);
      for (const text of [logs, ...mails.received.map((mail) => mail.headers + mail.text)]) {
        expect(text).not.toMatch(/sesame|whsec_/);
        expect(text).not.toContain(subscription.secret);
      }
    },
    SLOW,
  );

  it(
    'is reported in the language and the time zone of the store',
    async () => {
      const store = await service.newStore({ timeZone: 'Europe/Berlin' });
      await store.send('PATCH', store.store, { account: { locale: 'de-AT' } });
      await startDispatcher();
      const subscription = await createFailing(store, 2.1 * DAY);
      const [mail] = await waitForMails(store, 1);
      expect(mail?.subject).toMatch(/^Corner Café: Webhooks an 127\.0\.0\.1:\d+ kommen nicht an$/);
      expect(mail?.text).toMatch(/seit \d+\. \w+ \d{4} um \d\d:\d\d (MEZ|MESZ) angenommen/);
      // Well past the limit: a sweep that has just begun would still send the warning.
      await setFailingFor(subscription, 3.1 * DAY);
      const [, disabled] = await waitForMails(store, 2);
      expect(disabled?.subject).toMatch(/ wurden abgeschaltet$/);
    },
    SLOW,
  );

  it(
    'is reported again when it fails again, after two days and not before',
    async () => {
      const store = await service.newStore();
      let status = 500;
      await startDispatcher();
      const subscription = await createFailing(store, 2.1 * DAY, () => ({ status }));
      await waitForMails(store, 1);
      status = 200;
      await (await enrol(store)).stamp(1);
      await eventually(
        () =>
          service.database.query(
            'select 1 from webhook_subscriptions where id = $1 and failing_since is null',
            [subscription.id],
          ),
        ({ rows }) => rows.length === 1,
      );
      status = 500;
      await (await enrol(store)).stamp(1);
      await waitUntilFailing(subscription);
      await setFailingFor(subscription, 1.9 * DAY);
      // The warning for another store comes from a sweep that has seen this one too.
      const otherStore = await service.newStore();
      await createFailing(otherStore, 2.1 * DAY);
      await waitForMails(otherStore, 1);
      expect(findMailsTo(store)).toHaveLength(1);
      await setFailingFor(subscription, 2.1 * DAY);
      await waitForMails(store, 2);
      await waitUntilOutboxEmpty();
      expect(findMailsTo(store).map(({ subject }) => subject.endsWith('are failing'))).toEqual([
        true,
        true,
      ]);
    },
    SLOW,
  );

  it(
    'is reported in the log only when no mail server is configured',
    async () => {
      const store = await service.newStore();
      const dispatcher = await startDispatcher({ SMTP_URL: '', MAIL_FROM: '' });
      const subscription = await createFailing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('is failing and will be'));
      await setFailingFor(subscription, 3.1 * DAY);
      await waitUntilDisabled(subscription);
      const { rows } = await service.database.query(
        `select 1 from outgoing_messages where kind = 'mail'`,
      );
      expect(rows).toEqual([]);
    },
    SLOW,
  );

  it(
    'is reported as disabled when an attempt finds its address blocked',
    async () => {
      const store = await service.newStore();
      const subscription = await subscribe(store);
      await service.database.query(
        `update webhook_subscriptions set target_url = 'https://127.0.0.1/hooks?token=sesame' where id = $1`,
        [subscription.id],
      );
      const dispatcher = await startDispatcher({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'false' });
      await (await enrol(store)).stamp(1);
      const [mail] = await waitForMails(store, 1);
      expect((await show(subscription)).disabled_reason).toBe('blocked_address');
      expect(mail?.subject).toBe('Corner Café: webhooks to 127.0.0.1 were disabled');
      expect(mail?.text).toContain('does not resolve to a public address');
      await waitUntilOutboxEmpty();
      expect(findMailsTo(store)).toHaveLength(1);
      expect(findLines(dispatcher.output(), 'was disabled: blocked_address')).toHaveLength(1);
    },
    SLOW,
  );
});

describe('a mail to an owner', () => {
  it(
    'is sent by another dispatcher when the mail server is back and the first dispatcher was killed',
    async () => {
      const store = await service.newStore();
      await mails.goAway();
      const first = await startDispatcher();
      await createFailing(store, 2.1 * DAY);
      await eventually(first.output, (text) => text.includes('could not be sent'));
      expect(first.output()).not.toContain(store.email);
      await stop(first, 'SIGKILL');
      await mails.comeBack();
      await startDispatcher();
      await waitForMails(store, 1);
      await waitUntilOutboxEmpty();
      expect(mails.received).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'is sent by another dispatcher when the first is killed while sending it',
    async () => {
      const store = await service.newStore();
      mails.hang(true);
      const first = await startDispatcher();
      await createFailing(store, 2.1 * DAY);
      await eventually(
        () => mails.startedCount,
        (count) => count === 1,
      );
      await stop(first, 'SIGKILL');
      mails.hang(false);
      const { rows } = await service.database.query<{ leased: boolean }>(
        `select due_at > now() as leased from outgoing_messages where kind = 'mail'`,
      );
      expect(rows).toEqual([{ leased: true }]);
      await startDispatcher();
      // Expires the killed dispatcher's lease.
      await service.database.query(
        `update outgoing_messages set due_at = now() where kind = 'mail'`,
      );
      await waitForMails(store, 1);
      await waitUntilOutboxEmpty();
      expect(mails.received).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'that the mail server does not accept delays neither webhooks nor the dispatcher’s shutdown',
    async () => {
      const store = await service.newStore();
      mails.hang(true);
      const dispatcher = await startDispatcher();
      await createFailing(store, 2.1 * DAY);
      await eventually(
        () => mails.startedCount,
        (count) => count === 1,
      );
      const otherStore = await service.newStore();
      const { receiver } = await subscribe(otherStore, () => ({ status: 200 }));
      await (await enrol(otherStore)).stamp(1);
      await eventually(
        () => receiver.received.length,
        (count) => count === 1,
      );
      dispatchers.delete(dispatcher);
      await dispatcher.kill('SIGTERM');
      expect(await dispatcher.exitCode).toBe(0);
      const { rows } = await service.database.query(
        `select attempts from outgoing_messages where kind = 'mail'`,
      );
      expect(rows).toEqual([{ attempts: 1 }]);
    },
    SLOW,
  );

  it(
    'is not sent when the SMTP password would be transmitted in clear',
    async () => {
      const store = await service.newStore();
      const dispatcher = await startDispatcher({
        SMTP_URL: mails.url.replace('//', '//me:s3same@'),
      });
      await createFailing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('could not be sent'));
      expect(mails.startedCount).toBe(0);
      expect(dispatcher.output()).not.toContain('s3same');
    },
    SLOW,
  );

  it(
    'is not retried for a recipient that the server refuses, and reaches the other owners',
    async () => {
      const store = await service.newStore();
      const second = await createOwner(store);
      mails.refuse(store.email);
      const dispatcher = await startDispatcher();
      await createFailing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('is not tried again'));
      await waitUntilOutboxEmpty();
      expect(mails.received.map(({ to }) => to)).toEqual([second]);
      expect(dispatcher.output()).toContain(
        '(responded with 550 at RCPT TO), and is not tried again',
      );
      expect(dispatcher.output()).not.toContain(store.email);
    },
    SLOW,
  );
});

function findLines(log: string, what: string): string[] {
  return log.split('\n').filter((line) => line.includes(what));
}
