import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { testEnvironment } from '../support/database/database.js';
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
  await Promise.all([...dispatchers].map((dispatcher) => end(dispatcher, 'SIGTERM')));
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
  await mails.goAway();
  // What one test leaves behind would go on failing in the next.
  await service.database.query(
    'truncate mail_outbox, webhook_subscriptions, webhook_queues cascade',
  );
}, SLOW);
afterAll(() => service.stop(), SLOW);

async function startDispatcher(settings: NodeJS.ProcessEnv = {}): Promise<Program> {
  const dispatcher = startProgram(
    'dist/apps/dispatcher/src/main.js',
    testEnvironment(service.database.url, {
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

async function end(dispatcher: Program, signal: NodeJS.Signals): Promise<void> {
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

async function stamp(store: Store): Promise<void> {
  const { path } = await enrol(store);
  expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
}

/** One that has failed, the first time so long ago (at the usual pace). */
async function failing(store: Store, seconds: number, reply?: () => Reply): Promise<Subscription> {
  const subscription = await subscribe(store, reply);
  await stamp(store);
  await fails(subscription);
  await failsFor(subscription, seconds);
  return subscription;
}

async function fails({ id }: Subscription): Promise<void> {
  await eventually(
    () =>
      service.database.query('select failing_since from webhook_subscriptions where id = $1', [id]),
    ({ rows }) => rows[0]?.failing_since !== null,
  );
}

async function failsFor({ id }: Subscription, seconds: number): Promise<void> {
  await service.database.query(
    'update webhook_subscriptions set failing_since = now() - make_interval(secs => $2) where id = $1',
    [id, seconds / SCALE],
  );
}

const show = async ({ store, path }: Subscription) =>
  (await store.get<{ enabled: boolean; disabled_reason: string | null }>(path)).body;

const isDisabled = (subscription: Subscription) =>
  eventually(
    () => show(subscription),
    ({ enabled }) => !enabled,
  );

const mailsTo = ({ email }: Store): ReceivedMail[] =>
  mails.received.filter(({ to }) => to === email);

const receivedBy = (store: Store, count: number) =>
  eventually(
    () => mailsTo(store),
    (result) => result.length >= count,
  );

/** Nothing is left to be sent. */
const outboxIsEmpty = () =>
  eventually(
    () => service.database.query('select 1 from mail_outbox'),
    ({ rows }) => rows.length === 0,
  );

async function newUser(store: Store): Promise<string> {
  const email = `${randomUUID()}@owner.example`;
  await service.execute(new CreateUser(cli, email, 'Second', 'correct horse'));
  await service.execute(new AddMember(cli, store.accountId, email, 'owner'));
  return email;
}

describe('a subscription that goes on failing', () => {
  it(
    'is announced a day before it is disabled and when it was, once each, by two dispatchers',
    async () => {
      const store = await service.newStore();
      const second = await newUser(store);
      const removed = await newUser(store);
      await service.execute(new RemoveUser(cli, removed));
      // Three days in thirteen seconds.
      const hurry = { WEBHOOK_TIME_SCALE: '20000' };
      const both = [await startDispatcher(hurry), await startDispatcher(hurry)];
      const subscription = await subscribe(store);
      await stamp(store);
      await isDisabled(subscription);
      await receivedBy(store, 2);
      await outboxIsEmpty();
      const subjects = mailsTo(store).map(({ subject }) => subject);
      const host = new URL(subscription.receiver.url).host;
      expect(subjects).toEqual([
        `Corner Café: webhooks to ${host} are failing`,
        `Corner Café: webhooks to ${host} were disabled`,
      ]);
      expect(mails.received.map(({ to }) => to).sort()).toEqual(
        [store.email, store.email, second, second].sort(),
      );
      const [warning, disabled] = mailsTo(store);
      expect(warning?.text).toContain('Last response: HTTP 500\nLast error: Responded with 500\n');
      expect(warning?.text).toContain(`Webhook subscription: ${subscription.id} (till)`);
      expect(disabled?.text).toContain(`PATCH ${subscription.path} {"enabled": true}`);
      expect(warning?.headers).toMatch(/^From: Inkpad <inkpad@shop\.example>$/m);
      expect(warning?.headers).toMatch(/^Message-ID: <[0-9a-f-]{36}@shop\.example>$/m);
      const logs = both.map((dispatcher) => dispatcher.output()).join('');
      expect(linesAbout(logs, 'is failing and will be disabled')).toEqual([
        expect.stringMatching(
          new RegExp(
            `subscription_id\\W+${subscription.id}\\b.*account_id\\W+${store.accountId}\\b`,
          ),
        ),
      ]);
      expect(linesAbout(logs, 'was disabled: failing')).toHaveLength(1);
      for (const text of [logs, ...mails.received.map((mail) => mail.headers + mail.text)]) {
        expect(text).not.toMatch(/sesame|whsec_/);
        expect(text).not.toContain(subscription.secret);
      }
    },
    SLOW,
  );

  it(
    'is announced in the language and the time zone of the store',
    async () => {
      const store = await service.newStore({ timeZone: 'Europe/Berlin' });
      await store.send('PATCH', store.store, { account: { locale: 'de-AT' } });
      await startDispatcher();
      const subscription = await failing(store, 2.1 * DAY);
      const [mail] = await receivedBy(store, 1);
      expect(mail?.subject).toMatch(/^Corner Café: Webhooks an 127\.0\.0\.1:\d+ kommen nicht an$/);
      expect(mail?.text).toMatch(/seit \d+\. \w+ \d{4} um \d\d:\d\d (MEZ|MESZ) angenommen/);
      // Well past the bound: a sweep that has just begun would still find it in the window of the warning.
      await failsFor(subscription, 3.1 * DAY);
      const [, disabled] = await receivedBy(store, 2);
      expect(disabled?.subject).toMatch(/ wurden abgeschaltet$/);
    },
    SLOW,
  );

  it(
    'is announced anew when it fails anew, and not before two days',
    async () => {
      const store = await service.newStore();
      let status = 500;
      await startDispatcher();
      const subscription = await failing(store, 2.1 * DAY, () => ({ status }));
      await receivedBy(store, 1);
      status = 200;
      await stamp(store);
      await eventually(
        () =>
          service.database.query(
            'select 1 from webhook_subscriptions where id = $1 and failing_since is null',
            [subscription.id],
          ),
        ({ rows }) => rows.length === 1,
      );
      status = 500;
      await stamp(store);
      await fails(subscription);
      await failsFor(subscription, 1.9 * DAY);
      // Another one, warned later than a sweep that has seen the first one.
      const other = await service.newStore();
      await failing(other, 2.1 * DAY);
      await receivedBy(other, 1);
      expect(mailsTo(store)).toHaveLength(1);
      await failsFor(subscription, 2.1 * DAY);
      await receivedBy(store, 2);
      await outboxIsEmpty();
      expect(mailsTo(store).map(({ subject }) => subject.endsWith('are failing'))).toEqual([
        true,
        true,
      ]);
    },
    SLOW,
  );

  it(
    'is in the log alone where no mail server is set',
    async () => {
      const store = await service.newStore();
      const dispatcher = await startDispatcher({ SMTP_URL: '', MAIL_FROM: '' });
      const subscription = await failing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('is failing and will be'));
      await failsFor(subscription, 3.1 * DAY);
      await isDisabled(subscription);
      const { rows } = await service.database.query('select 1 from mail_outbox');
      expect(rows).toEqual([]);
    },
    SLOW,
  );

  it(
    'is announced when an attempt finds its name blocked',
    async () => {
      const store = await service.newStore();
      const subscription = await subscribe(store);
      await service.database.query(
        `update webhook_subscriptions set target_url = 'https://127.0.0.1/hooks?token=sesame' where id = $1`,
        [subscription.id],
      );
      const dispatcher = await startDispatcher({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'false' });
      await stamp(store);
      const [mail] = await receivedBy(store, 1);
      expect((await show(subscription)).disabled_reason).toBe('blocked_address');
      expect(mail?.subject).toBe('Corner Café: webhooks to 127.0.0.1 were disabled');
      expect(mail?.text).toContain('leads to no public address');
      await outboxIsEmpty();
      expect(mailsTo(store)).toHaveLength(1);
      expect(linesAbout(dispatcher.output(), 'was disabled: blocked_address')).toHaveLength(1);
    },
    SLOW,
  );
});

describe('a mail', () => {
  it(
    'waits for an unavailable server, and outlives the dispatcher that wrote it',
    async () => {
      const store = await service.newStore();
      await mails.goAway();
      const first = await startDispatcher();
      await failing(store, 2.1 * DAY);
      await eventually(first.output, (text) => text.includes('could not be sent'));
      expect(first.output()).not.toContain(store.email);
      await end(first, 'SIGKILL');
      await mails.comeBack();
      await startDispatcher();
      await receivedBy(store, 1);
      await outboxIsEmpty();
      expect(mails.received).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'is sent again when its dispatcher is killed while the server takes it',
    async () => {
      const store = await service.newStore();
      mails.hang(true);
      const first = await startDispatcher();
      await failing(store, 2.1 * DAY);
      await eventually(
        () => mails.startedCount,
        (count) => count === 1,
      );
      await end(first, 'SIGKILL');
      mails.hang(false);
      await startDispatcher();
      const { rows } = await service.database.query<{ leased: boolean }>(
        'select due_at > now() as leased from mail_outbox',
      );
      expect(rows).toEqual([{ leased: true }]);
      // The lease of whoever was killed ends.
      await service.database.query('update mail_outbox set due_at = now()');
      await receivedBy(store, 1);
      await outboxIsEmpty();
      expect(mails.received).toHaveLength(1);
    },
    SLOW,
  );

  it(
    'that a server does not answer holds up no delivery, nor the end of the dispatcher',
    async () => {
      const store = await service.newStore();
      mails.hang(true);
      const dispatcher = await startDispatcher();
      await failing(store, 2.1 * DAY);
      await eventually(
        () => mails.startedCount,
        (count) => count === 1,
      );
      const other = await service.newStore();
      const { receiver } = await subscribe(other, () => ({ status: 200 }));
      await stamp(other);
      await eventually(
        () => receiver.received.length,
        (count) => count === 1,
      );
      dispatchers.delete(dispatcher);
      await dispatcher.kill('SIGTERM');
      expect(await dispatcher.exitCode).toBe(0);
      const { rows } = await service.database.query('select attempts from mail_outbox');
      expect(rows).toEqual([{ attempts: 1 }]);
    },
    SLOW,
  );

  it(
    'is not sent when the password would have to go out in the clear',
    async () => {
      const store = await service.newStore();
      const dispatcher = await startDispatcher({
        SMTP_URL: mails.url.replace('//', '//me:s3same@'),
      });
      await failing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('could not be sent'));
      expect(mails.startedCount).toBe(0);
      expect(dispatcher.output()).not.toContain('s3same');
    },
    SLOW,
  );

  it(
    'is not tried again for a recipient that the server does not know, and reaches the others',
    async () => {
      const store = await service.newStore();
      const second = await newUser(store);
      mails.refuse(store.email);
      const dispatcher = await startDispatcher();
      await failing(store, 2.1 * DAY);
      await eventually(dispatcher.output, (text) => text.includes('is not tried again'));
      await outboxIsEmpty();
      expect(mails.received.map(({ to }) => to)).toEqual([second]);
      expect(dispatcher.output()).toContain(
        '(responded with 550 at RCPT TO), and is not tried again',
      );
      expect(dispatcher.output()).not.toContain(store.email);
    },
    SLOW,
  );
});

function linesAbout(log: string, what: string): string[] {
  return log.split('\n').filter((line) => line.includes(what));
}
