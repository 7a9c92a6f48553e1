import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import { RequestCardLinks } from '#loyalty/customers/card-links.commands.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { startMessages } from '#outbound/messages/card-link-requests.service.js';
import { OutgoingMessages } from '#outbound/messages/outgoing-messages.service.js';
import { Outbox } from '#outbound/messages/outbox.service.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { CARD_LINKS } from '../support/database/card-links.js';

type Row = {
  state: string;
  channel: string;
  attempts: number;
  reason: string | null;
  provider_id: string | null;
};
type Person = { customerId: number; cardId: number; uuid: string };

const SLOW = 300_000;
let service: LocalService;
let store: Client;
let template: number;
let mails: MailServer;
let provider: SmsProvider;
let follower: MessageFollower | undefined;
let people = 0;

beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  service = await startService(provider.settings);
  store = await service.newStore({ locale: 'en-DE' });
  const { body } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  template = body.id;
}, SLOW);
afterEach(async () => {
  await follower?.stop();
  follower = undefined;
  provider.outage = null;
});
afterAll(async () => {
  await Promise.all([mails.goAway(), provider.stop(), service.stop()]);
}, SLOW);

const settings = () => ({
  SMTP_URL: mails.url,
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  ...provider.settings,
});

function follow(environment: NodeJS.ProcessEnv = settings()): MessageFollower {
  follower = new MessageFollower(service, environment);
  return follower;
}

async function enrolCustomer(contact: object, client = store, cardId = template): Promise<Person> {
  const { status, body } = await client.post<CreatedCustomerJson>(`${client.store}/customers`, {
    customer: { first_name: 'Anna', ...contact },
    card_id: cardId,
    send_card_links: true,
  });
  expect(status).toBe(201);
  const { customer_card: card } = body;
  if (!card) throw new Error('the customer has no card');
  return { customerId: body.id, cardId: card.id, uuid: card.uuid };
}

const newAddress = () => `anna${++people}@mail.example`;
const newNumber = () => `+4915112345${String(++people).padStart(3, '0')}`;

async function readMessages({ customerId }: Person): Promise<Row[]> {
  const { rows } = await service.database.query<Row>(
    `select state, channel, attempts, reason, provider_id from ${CARD_LINKS}
     where customer_id = $1 order by requested_at`,
    [customerId],
  );
  return rows;
}

/** Requests card links as signup does for an existing customer. */
async function requestLinks({ customerId, cardId: id }: Person): Promise<void> {
  const context: CommandContext = {
    accountId: store.accountId,
    actor: { type: 'customer', id: customerId },
    channel: 'poster',
    requestId: 'test',
  };
  await service.execute(new RequestCardLinks(context, { customerId, id }));
}

const findMails = (email: string) => mails.received.filter(({ to }) => to === email);

describe('a card link', () => {
  it('sent by e-mail opens the page of the card', async () => {
    const email = newAddress();
    const person = await enrolCustomer({ email });
    await follow().waitUntilSettled();
    const [mail] = findMails(email);
    const [, link = ''] = /<a href="https:\/\/cards[.]example([^"]+)"/.exec(mail?.html ?? '') ?? [];
    expect(link).toBe(`/passes/${person.uuid}`);
    const page = await fetch(service.baseUrl + link);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Coffee')]);
    expect(await readMessages(person)).toMatchObject([{ state: 'sent', channel: 'email' }]);
  });

  it('has a From header of one line when the name of the store has line breaks and quotes', async () => {
    const otherStore = await service.newStore();
    const { body } = await otherStore.post<{ id: number }>(`${otherStore.store}/cards`, {
      card: { name: 'Coffee' },
    });
    const name = 'Bob "The Bean"\r\nBcc: all@victim.example\r\n\r\n<b>Hi</b>';
    const renaming = await otherStore.send('PATCH', otherStore.store, {
      account: { store_name: name },
    });
    expect(renaming.status).toBe(200);
    const email = newAddress();
    await enrolCustomer({ email }, otherStore, body.id);
    await follow().waitUntilSettled();
    const [mail] = findMails(email);
    expect(mail?.from).toBe('"Bob \\"The Bean\\" Bcc: <b>Hi</b>" <inkpad@shop.example>');
    expect(mail?.headers).not.toMatch(/^bcc:/im);
    expect(mail?.html).not.toContain('<b>Hi</b>');
  });

  it('is sent by SMS when the mail server rejects the address', async () => {
    const [email, phone] = [newAddress(), newNumber()];
    mails.refuse(email);
    const person = await enrolCustomer({ email, phone });
    await follow().waitUntilSettled();
    expect(provider.to(phone).map(({ from, body }) => [from, body])).toEqual([
      ['+15005550006', expect.stringContaining(`https://cards.example/passes/${person.uuid}`)],
    ]);
    expect(await readMessages(person)).toMatchObject([
      { state: 'sent', channel: 'sms', provider_id: expect.stringMatching(/^SM/) },
    ]);
  });

  it('fails after one attempt when the provider rejects the number, with a reason that does not name it', async () => {
    const phone = newNumber();
    provider.refused.set(phone, 21610);
    const person = await enrolCustomer({ phone });
    await follow().waitUntilSettled();
    expect(await readMessages(person)).toEqual([
      {
        state: 'failed',
        channel: 'sms',
        attempts: 1,
        reason: 'responded with 400 (21610)',
        provider_id: null,
      },
    ]);
  });

  it('sent by SMS is delivered or undelivered as the provider reports with a valid signature', async () => {
    const people = [
      await enrolCustomer({ phone: newNumber() }),
      await enrolCustomer({ phone: newNumber() }),
    ];
    await follow().waitUntilSettled();
    const [one, two] = provider.received.slice(-2);
    if (!one || !two) throw new Error('two messages were sent');
    const { baseUrl } = service;
    const readArrivals = async () =>
      (
        await service.database.query(
          `select arrival, arrival_code from ${CARD_LINKS} where customer_id = any ($1)
           order by arrival`,
          [people.map(({ customerId }) => customerId)],
        )
      ).rows;
    const forgery = { baseUrl, token: 'a guess' };
    expect(await provider.report(one, { MessageStatus: 'delivered' }, forgery)).toBe(404);
    expect(await provider.report(one, { MessageStatus: 'sent' }, { baseUrl })).toBe(204);
    const noReport = { arrival: null, arrival_code: null };
    expect(await readArrivals()).toEqual([noReport, noReport]);
    expect(await provider.report(one, { MessageStatus: 'delivered' }, { baseUrl })).toBe(204);
    const failure = { MessageStatus: 'undelivered', ErrorCode: '30003' };
    expect(await provider.report(two, failure, { baseUrl })).toBe(204);
    // Late reports, and reports of another attempt, are ignored.
    expect(await provider.report(one, failure, { baseUrl })).toBe(204);
    await provider.report({ ...two, sid: 'SM2' }, { MessageStatus: 'delivered' }, { baseUrl });
    expect(await readArrivals()).toEqual([
      { arrival: 'delivered', arrival_code: null },
      { arrival: 'undelivered', arrival_code: 30003 },
    ]);
  });

  it('sent again by SMS takes a delivery report that comes before the provider’s response, but none of the first attempt', async () => {
    const { customerId } = await enrolCustomer({ phone: newNumber() });
    await follow().waitUntilSettled();
    const sms = provider.received.at(-1);
    if (!sms) throw new Error('a message was sent');
    const { baseUrl, app } = service;
    await provider.report(sms, { MessageStatus: 'undelivered', ErrorCode: '30003' }, { baseUrl });
    const readMessages = async () => {
      const { rows } = await service.database.query<{ id: string; arrival: string | null }>(
        `select id, arrival from ${CARD_LINKS} where customer_id = $1 order by place`,
        [customerId],
      );
      return rows;
    };
    const [message] = await readMessages();
    expect(message?.arrival).toBe('undelivered');
    // Nothing sends the message meanwhile, whose response would name another one.
    await follower?.stop();
    const outbox = app.get(Outbox, { strict: false });
    expect(await outbox.send({ ...cli, accountId: store.accountId }, message?.id ?? '')).toBe(true);
    const failure = { MessageStatus: 'failed', ErrorCode: '30005' };
    await provider.report(sms, failure, { baseUrl });
    // The new attempt is not the one that the late report is about.
    expect((await readMessages()).map(({ arrival }) => arrival)).toEqual([null, 'undelivered']);
    const again = { ...sms, sid: `SM${'9'.repeat(32)}` };
    await provider.report(again, { MessageStatus: 'delivered' }, { baseUrl });
    // It has cost the store its place in the limits of the day.
    const { rows } = await service.database.query<{ count: number }>(
      `select count(*)::int as count from outgoing_messages where customer_id = $1 and counted_at is not null`,
      [customerId],
    );
    expect(rows[0]?.count).toBe(1);
    // The one that was not delivered stays in the list.
    expect((await readMessages()).map(({ arrival }) => arrival)).toEqual([
      'delivered',
      'undelivered',
    ]);
  });

  it('requested during an outage of an hour is sent once after the provider has recovered', async () => {
    provider.outage = { status: 503, code: 20503 };
    const phones = [newNumber(), newNumber(), newNumber()];
    const persons = await Promise.all(phones.map((phone) => enrolCustomer({ phone })));
    const ownFollower = follow();
    await eventually(
      async () => (await Promise.all(persons.map(readMessages))).flat(),
      (rows) => rows.length === 3 && rows.every(({ reason }) => reason !== null),
    );
    // An hour passes.
    await service.database.query(
      `update outgoing_messages set give_up_at = give_up_at - interval '1 hour', due_at = now()
       where kind = 'card_link' and state = 'queued'`,
    );
    provider.outage = null;
    await ownFollower.waitUntilSettled();
    for (const phone of phones) expect(provider.to(phone)).toHaveLength(1);
  });

  it('that waited through an outage of the dispatcher of more than a day is tried again like any other', async () => {
    provider.outage = { status: 503, code: 20503 };
    const phone = newNumber();
    const { customerId } = await enrolCustomer({ phone });
    const ownFollower = follow();
    const readTried = (attempts: number) =>
      eventually(
        async () =>
          (
            await service.database.query<{ state: string; attempts: number }>(
              `select state, attempts from outgoing_messages where customer_id = $1 and process is null`,
              [customerId],
            )
          ).rows,
        ([row]) => row !== undefined && (row.attempts >= attempts || row.state === 'failed'),
      );
    await readTried(1);
    await service.database.query(
      `update outgoing_messages set give_up_at = now() - interval '1 day', due_at = now() where customer_id = $1`,
      [customerId],
    );
    expect(await readTried(2)).toMatchObject([{ state: 'queued' }]);
    provider.outage = null;
    await service.database.query(
      `update outgoing_messages set due_at = now() where customer_id = $1 and process is null`,
      [customerId],
    );
    await ownFollower.waitUntilSettled();
    expect(provider.to(phone)).toHaveLength(1);
  });

  it('is sent again when the provider’s response is lost', async () => {
    const phone = newNumber();
    provider.losesResponses = true;
    const person = await enrolCustomer({ phone });
    const ownFollower = follow();
    await eventually(
      () => readMessages(person),
      ([row]) => row?.reason?.startsWith('no response') === true,
    );
    provider.losesResponses = false;
    await service.database.query(
      `update outgoing_messages set due_at = now() where kind = 'card_link' and due_at is not null`,
    );
    await ownFollower.waitUntilSettled();
    expect(provider.to(phone)).toHaveLength(2);
  });

  it('is sent once for several concurrent requests', async () => {
    const email = newAddress();
    const person = await enrolCustomer({ email });
    await Promise.all([requestLinks(person), requestLinks(person), requestLinks(person)]);
    await requestLinks(person);
    await follow().waitUntilSettled();
    expect(findMails(email)).toHaveLength(1);
    const requests = (await service.history()).filter(
      ({ type, stream }) =>
        type === 'CardLinksRequested' && stream === `customer-${person.customerId}`,
    );
    expect(requests).toHaveLength(1);
    const { body } = await store.get<{ type: string; channel: string; customer_card_id: number }[]>(
      `${store.store}/history?type=customer.card_links_requested&customer_id=${person.customerId}`,
    );
    expect(body).toMatchObject([{ channel: 'poster', customer_card_id: person.cardId }]);
  });

  it('is dropped when the customer is erased while it waits for a retry', async () => {
    provider.outage = { status: 429, code: 20429, headers: { 'retry-after': '1' } };
    const phone = newNumber();
    const person = await enrolCustomer({ phone });
    const ownFollower = follow();
    await eventually(
      () => readMessages(person),
      ([row]) => row?.reason === 'responded with 429 (20429)',
    );
    const erasure = await store.post(`${store.store}/customers/${person.customerId}/erase`);
    expect(erasure.status).toBe(204);
    provider.outage = null;
    await service.database.query(
      `update outgoing_messages set due_at = now() where kind = 'card_link' and due_at is not null`,
    );
    await ownFollower.waitUntilSettled();
    expect(provider.to(phone)).toEqual([]);
    expect(await readMessages(person)).toMatchObject([{ state: 'dropped', reason: 'erased' }]);
  });

  it('is held while no mail server or SMS provider is configured', async () => {
    const [byMail, bySms] = [
      await enrolCustomer({ email: newAddress() }),
      await enrolCustomer({ phone: newNumber() }),
    ];
    const emptySettings = ['SMS_URL', 'SMS_ACCOUNT', 'SMS_TOKEN', 'SMS_FROM'].map((name) => [
      name,
      '',
    ]);
    await follow(Object.fromEntries(emptySettings) as NodeJS.ProcessEnv).waitUntilSettled();
    expect(await readMessages(byMail)).toMatchObject([{ state: 'held', channel: 'email' }]);
    expect(await readMessages(bySms)).toMatchObject([{ state: 'held', channel: 'sms' }]);
  });

  it('by SMS is held once the store has reached its daily limit', async () => {
    const otherStore = await service.newStore({ locale: 'en-DE' });
    const { body } = await otherStore.post<{ id: number }>(`${otherStore.store}/cards`, {
      card: { name: 'Coffee' },
    });
    const [first, second] = [newNumber(), newNumber()];
    await enrolCustomer({ phone: first }, otherStore, body.id);
    const ownFollower = follow({ ...settings(), STORE_QUOTAS: 'sms_per_day=1' });
    await ownFollower.waitUntilSettled();
    const again = await enrolCustomer({ phone: second }, otherStore, body.id);
    await ownFollower.waitUntilSettled();
    expect([first, second].map((phone) => provider.to(phone).length)).toEqual([1, 0]);
    expect(await readMessages(again)).toMatchObject([
      { state: 'held', channel: 'sms', reason: 'too_many_sms' },
    ]);
  });

  it('by SMS to another country is held until the store’s settings allow that country', async () => {
    const abroad = `+43664123${String(++people).padStart(4, '0')}`;
    const person = await enrolCustomer({ phone: abroad });
    const satellite = await enrolCustomer({ phone: '+8816412345678' });
    const ownFollower = follow();
    await ownFollower.waitUntilSettled();
    const reason = 'country_not_allowed AT';
    expect(await readMessages(person)).toMatchObject([{ state: 'held', channel: 'sms', reason }]);
    expect(await readMessages(satellite)).toMatchObject([
      { state: 'dropped', reason: 'number_without_sms' },
    ]);
    const [message] = (
      await service.database.query<{ id: string }>(
        `select id from ${CARD_LINKS} where customer_id = $1`,
        [person.customerId],
      )
    ).rows;
    const outbox = service.app.get(Outbox, { strict: false });
    const context = { ...cli, accountId: store.accountId };
    const send = () => outbox.send(context, message?.id ?? '');
    expect(await send()).toBe(false);
    await service.execute(new UpdateAccount(context, 0, { smsCountries: ['AT'] }));
    expect(await send()).toBe(true);
    await ownFollower.waitUntilSettled();
    expect(provider.to(abroad)).toHaveLength(1);
    expect(provider.to('+8816412345678')).toEqual([]);
  });

  it('requested before a store was moved to this instance is not sent', async () => {
    const [movedAddress, otherAddress] = [newAddress(), newAddress()];
    const otherStore = await service.newStore();
    const { body } = await otherStore.post<{ id: number }>(`${otherStore.store}/cards`, {
      card: { name: 'Coffee' },
    });
    const person = await enrolCustomer({ email: movedAddress }, otherStore, body.id);
    await startMessages(service.app.get(Pool, { strict: false }), otherStore.accountId);
    await enrolCustomer({ email: otherAddress });
    await follow().waitUntilSettled();
    expect([await readMessages(person), findMails(movedAddress)]).toEqual([[], []]);
    expect(findMails(otherAddress)).toHaveLength(1);
  });

  it('is claimed within two batches when five other stores have four older ones each', async () => {
    const enqueue = (accountId: number, messages: number, minutesAgo: number) =>
      service.database.query(
        `insert into outgoing_messages (kind, give_up_at, account_id, customer_id, customer_card_id, channel, due_at)
         select 'card_link', now() + interval '1 day', $1, 0, 0, 'sms', now() - make_interval(mins => $3)
         from generate_series(1, $2)`,
        [accountId, messages, minutesAgo],
      );
    for (let accountId = 9001; accountId <= 9005; accountId++) await enqueue(accountId, 4, 2);
    await enqueue(9006, 1, 1);
    const messages = service.app.get(OutgoingMessages, { strict: false });
    const claim = () => messages.claim(4, 'card_link', 'sms');
    const batches = [...(await claim()), ...(await claim())];
    expect(batches.map(({ accountId }) => accountId)).toContain(9006);
    await service.database.query('delete from outgoing_messages where account_id > 9000');
  });
});
