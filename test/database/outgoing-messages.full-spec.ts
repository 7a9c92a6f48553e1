import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { migrate } from '#platform/database/migrate.js';
import { OutgoingMessages } from '../../apps/schema/0003-outgoing-messages.js';
import { migrations } from '../../apps/schema/migrations.js';
import { CARD_LINKS } from '../support/database/card-links.js';
import { testConfig } from '../support/database/database.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
const BASELINE = new URL(
  '../../apps/schema/0001-baseline/8-messages-and-passes.sql',
  import.meta.url,
);
const { name: MIGRATION } = new OutgoingMessages();

let mails: MailServer;
let provider: SmsProvider;
let service: LocalService;
let store: Client;

beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  service = await startService({
    ...provider.settings,
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  store = await service.newStore({ locale: 'en-DE' });
  await store.send('PATCH', `${store.store}/message_settings`, {
    quiet_from: null,
    quiet_to: null,
  });
}, SLOW);
afterAll(async () => {
  await service.stop();
  await Promise.all([mails.goAway(), provider.stop()]);
}, SLOW);

const query = <R extends object>(text: string, values: unknown[] = []) =>
  service.database.query<R>(text, values);

/** Puts the three tables in the place of the one, as they were before the migration. */
async function revertMigration(): Promise<void> {
  const text = readFileSync(BASELINE, 'utf8');
  const tables = text.match(/create table (card_messages|customer_messages|mail_outbox) \([^;]*;/g);
  expect(tables).toHaveLength(3);
  await query(
    `drop table outgoing_messages; drop function announce_messages; ${(tables ?? []).join('\n')}`,
  );
  await query('delete from migrations where name = $1', [MIGRATION]);
}

type Person = { email: string; phone: string; customerId: number; cardId: number };

async function addPerson(n: number, on: CardJson): Promise<Person> {
  const [email, phone] = [`p${n}@people.example`, `+4915112347${String(n).padStart(3, '0')}`];
  const { customer, customerCard } = await enrol(store, {
    on,
    email,
    customer: { phone, marketing_consent: true },
  });
  return { email, phone, customerId: customer.id, cardId: customerCard.id };
}

const findMails = (email: string) => mails.received.filter(({ to }) => to === email);

it(
  'moves messages of every state into one table, where those that wait are sent, once each',
  async () => {
    const people: Person[] = [];
    const { card } = await enrol(store);
    for (let n = 0; n < 14; n++) people.push(await addPerson(n, card));
    const person = (n: number): Person => {
      const holder = people[n];
      if (!holder) throw new Error(`there is no person ${n}`);
      return holder;
    };
    const announcements = `${store.store}/announcements`;
    const draft = { title: 'Closed', text: 'Until Tuesday.', channels: ['email'] };
    const { id } = (await store.post<AnnouncementJson>(announcements, draft)).body;
    await revertMigration();

    const addLink = (n: number, columns: string, values: string) =>
      query(
        `insert into card_messages (id, account_id, customer_id, customer_card_id, requested_at, ${columns})
         values ($1, $2, $3, $4, now() - interval '1 minute', ${values})`,
        [randomUUID(), store.accountId, person(n).customerId, person(n).cardId],
      );
    const links = [
      ['channel, due_at', `'email', now()`],
      ['channel, due_at, reason, attempts', `'email', now(), 'responded with 450', 3`],
      ['channel, due_at, process', `'email', now() + interval '1 second', 999999999`],
      ['channel, due_at, mail_refused', `'sms', now(), true`],
      ['channel, state, reason, finished_at', `'email', 'held', 'mail_not_set_up', now()`],
      ['channel, state, finished_at', `'email', 'sent', now()`],
      ['channel, state, reason, finished_at', `'email', 'failed', 'responded with 550', now()`],
      ['channel, state, reason, finished_at', `'email', 'dropped', 'no_address', now()`],
    ] as const;
    for (const [n, [columns, values]] of links.entries()) await addLink(n, columns, values);

    const messages = [
      ['channel, state, due_at', `'email', 'queued', now()`],
      ['channel, state, due_at, handed_over_at', `'email', 'queued', now(), now()`],
      ['channel, state, due_at, finished_at', `'email', 'sent', now(), now()`],
      ['channel, state, finished_at', `'email', 'sent', now()`],
      ['channel, state, finished_at, reason', `'email', 'failed', now(), 'refused'`],
      ['channel, state, finished_at, reason', `null, 'skipped', now(), 'no_email'`],
    ] as const;
    for (const [n, [columns, values]] of messages.entries()) {
      await query(
        `insert into customer_messages (account_id, announcement_id, customer_id, ${columns}) values ($1, $2, $3, ${values})`,
        [store.accountId, id, person(8 + n).customerId],
      );
    }
    const { rows: before } = await query<{ id: number }>(
      'select id from customer_messages order by id',
    );
    await query(
      `update campaigns set state = 'sending', is_addressed = true, due_at = now() where kind = 'announcement' and id = $1`,
      [id],
    );

    const mailId = randomUUID();
    const mail = { to: 'owner@shop.example', subject: 'Hello', text: 'A link' };
    const sealed = service.app
      .get(MasterKeys, { strict: false })
      .seal('mails', Buffer.from(JSON.stringify(mail)), `mail ${mailId}`);
    await query(
      `insert into mail_outbox (id, sealed, due_at, created_at, give_up_at)
       values ($1, $2, now(), now(), now() + interval '1 day')`,
      [mailId, sealed],
    );

    const config = testConfig(service.database.url, {
      DATABASE_MIGRATION_URL: service.database.ownerUrl,
    });
    expect(await migrate(config, migrations)).toEqual([MIGRATION]);
    const listLinks = async () => {
      const { rows } = await query<{ state: string; reason: string | null; channel: string }>(
        `select state, reason, channel from ${CARD_LINKS} where account_id = $1 order by customer_id`,
        [store.accountId],
      );
      return rows.map(({ state, reason, channel }) => [state, channel, reason]);
    };
    const ended = [
      ['held', 'email', 'mail_not_set_up'],
      ['sent', 'email', null],
      ['failed', 'email', 'responded with 550'],
      ['dropped', 'email', 'no_address'],
    ];
    expect(await listLinks()).toEqual([
      ['queued', 'email', null],
      ['queued', 'email', 'responded with 450'],
      ['queued', 'email', null],
      ['queued', 'sms', null],
      ...ended,
    ]);

    await startDispatcher(service);
    const announcement = await eventually(
      async () => (await store.get<AnnouncementJson>(`${announcements}/${id}`)).body,
      ({ state }) => state === 'sent',
    );
    expect(announcement.counts).toMatchObject({ sent: 3, failed: 2, skipped: 1 });
    const outcomes = await eventually(listLinks, (rows) =>
      rows.every(([state]) => state !== 'queued'),
    );
    expect(outcomes).toEqual([
      ['sent', 'email', null],
      ['sent', 'email', null],
      ['sent', 'email', null],
      ['sent', 'sms', null],
      ...ended,
    ]);
    await eventually(
      async () =>
        (await query(`select from outgoing_messages where kind = 'mail' or due_at is not null`))
          .rowCount,
      (count) => count === 0,
    );
    const received = people.map(
      ({ email, phone }) => findMails(email).length + provider.to(phone).length,
    );
    expect(received).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    expect(provider.to(person(3).phone)).toHaveLength(1);
    expect(findMails(mail.to)).toHaveLength(1);

    const { body } = await store.get<MessageRecipientJson[]>(`${announcements}/${id}/recipients`);
    expect(body.map((recipient) => [recipient.id, recipient.state, recipient.reason])).toEqual([
      [before[0]?.id, 'sent', null],
      [before[1]?.id, 'failed', 'unknown'],
      [before[2]?.id, 'sent', null],
      [before[3]?.id, 'sent', null],
      [before[4]?.id, 'failed', 'refused'],
      [before[5]?.id, 'skipped', 'no_email'],
    ]);
    // One is sent now, and another one was sent before and not recorded yet.
    const recorded = (await service.history()).filter(({ type }) => type === 'CustomerMessaged');
    expect(recorded.map(({ stream }) => stream).sort()).toEqual(
      [8, 10].map((n) => `customer-${person(n).customerId}`).sort(),
    );
  },
  SLOW,
);
