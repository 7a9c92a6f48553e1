import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UpdateAccount } from '#accounts/account.commands.js';
import type { CreatedCustomerJson } from '#customers/customer.dto.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli } from '../support/services/service.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';

const service = useService();
let store: ContractClient;
let cardId: number;
let mails: MailServer;
let provider: SmsProvider;
let follower: MessageFollower;

beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  store = await service.newStore();
  await store.patch(store.store, {
    account: { store_name: 'Le Four', locale: 'fr-FR', country: 'FR' },
  });
  const { body } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  cardId = body.id;
  follower = follow();
});

const follow = () =>
  new MessageFollower(service.running, {
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
    MAX_MESSAGES_PER_ADDRESS_PER_DAY: '3',
    ...provider.settings,
  });

async function add(customer: object, more: object = { send_card_links: true }) {
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Win big at evil.example', ...customer },
    card_id: cardId,
    ...more,
  });
  expect(status).toBe(201);
  return `https://cards.example/passes/${body.customer_card?.uuid}`;
}

const mailsTo = (email: string) => mails.received.filter(({ to }) => to === email);

describe('card links', () => {
  // Before the service, which it belongs to.
  afterAll(async () => {
    await follower.stop();
    await Promise.all([mails.goAway(), provider.stop()]);
  });

  it('MSG-01 Whoever is added with `card_id` and `send_card_links` gets one e-mail with the link of their card and no other link', async () => {
    const link = await add({ email: 'anna@mail.example', phone: '+33612345678' });
    const [mail] = await eventually(
      () => mailsTo('anna@mail.example'),
      ({ length }) => length > 0,
    );
    await follower.waitUntilSettled();
    expect(mailsTo('anna@mail.example')).toHaveLength(1);
    expect(provider.to('+33612345678')).toEqual([]);
    expect(mail?.from).toBe('Le Four <inkpad@shop.example>');
    expect(mail?.subject).toBe('Votre carte de fidélité Le Four');
    expect(mail?.text).toContain(`\n${link}\n`);
    expect(mail?.html).toContain(`<a href="${link}"`);
    for (const text of [mail?.text, mail?.html]) {
      expect(new Set(text?.match(/https?:[^\s"<]+/g))).toEqual(new Set([link]));
    }
  });

  it('MSG-02 Without an e-mail address they get one SMS, if their phone number begins with `+` and its country code', async () => {
    const link = await add({ phone: '+33612345601' });
    await add({ phone: '061234' });
    await eventually(
      () => provider.to('+33612345601'),
      ({ length }) => length > 0,
    );
    await follower.waitUntilSettled();
    expect(provider.received.map(({ to, body }) => [to, body])).toEqual([
      ['+33612345601', `Votre carte de fidélité Le Four : ${link}`],
    ]);
  });

  it('MSG-03 Whoever is added without `send_card_links` gets nothing', async () => {
    await add({ email: 'nobody@mail.example' }, {});
    await add({ email: 'nobody2@mail.example' }, { send_card_links: false });
    await add({ email: 'somebody@mail.example' });
    await eventually(
      () => mailsTo('somebody@mail.example'),
      ({ length }) => length > 0,
    );
    await follower.waitUntilSettled();
    expect(mails.received.filter(({ to }) => to.startsWith('nobody'))).toEqual([]);
  });

  it('MSG-04 Nothing that the request says about the customer is in the message', async () => {
    await add({ email: 'quiet@mail.example', phone: null });
    await add({ phone: '+33612345604' });
    const [mail] = await eventually(
      () => mailsTo('quiet@mail.example'),
      ({ length }) => length > 0,
    );
    const [sms] = await eventually(
      () => provider.to('+33612345604'),
      ({ length }) => length > 0,
    );
    for (const text of [mail?.headers, mail?.text, mail?.html, sms?.body]) {
      expect(text).not.toContain('evil.example');
    }
  });

  it('MSG-07 SMS go to numbers in the country of the store, and in those that its owners have added in the console', async () => {
    const [near, far] = ['+33612345607', '+41791234567'];
    await add({ phone: far });
    await add({ phone: near });
    await eventually(
      () => provider.to(near),
      ({ length }) => length > 0,
    );
    await follower.waitUntilSettled();
    expect(provider.to(far)).toEqual([]);
    const context = { ...cli, accountId: store.accountId };
    await service.running.execute(new UpdateAccount(context, 0, { smsCountries: ['CH'] }));
    const added = '+41791234568';
    await add({ phone: added });
    await eventually(
      () => provider.to(added),
      ({ length }) => length > 0,
    );
  });

  it('MSG-08 No SMS goes to a number that costs more or that is no phone of a person', async () => {
    const refused = [
      '+870773111632',
      '+8816412345678',
      '+88216123456789',
      '+883510012345',
      '+979123456789',
      '+33892123456',
      '+33810123456',
      '+33799999999999',
      '+262612345',
    ];
    for (const phone of refused) await add({ phone });
    const last = '+33612345608';
    await add({ phone: last });
    await eventually(
      () => provider.to(last),
      ({ length }) => length > 0,
    );
    await follower.waitUntilSettled();
    expect(refused.filter((phone) => provider.to(phone).length > 0)).toEqual([]);
  });

  it('MSG-09 One e-mail address or phone number gets `MAX_MESSAGES_PER_ADDRESS_PER_DAY` card links a day, from all stores together', async () => {
    const number = '+33612345609';
    const stores = [];
    for (let i = 0; i < 4; i++) {
      const other = await service.newStore({ locale: 'fr-FR' });
      const { body } = await other.post<{ id: number }>(`${other.store}/cards`, {
        card: { name: 'Coffee' },
      });
      for (const customer of [{ email: `Victim+${i}@mail.example` }, { phone: number }]) {
        await other.post(`${other.store}/customers`, {
          customer: { first_name: 'Ann', ...customer },
          card_id: body.id,
          send_card_links: true,
        });
      }
      stores.push(other.accountId);
    }
    await follower.waitUntilSettled();
    expect(mails.received.filter(({ to }) => to.startsWith('Victim+'))).toHaveLength(3);
    expect(provider.to(number)).toHaveLength(3);
    const { rows } = await service.running.database.query<{ channel: string; reason: string }>(
      `select channel, reason from card_messages where account_id = any ($1) and state = 'held'
       order by channel`,
      [stores],
    );
    const reason = 'too many messages went to this address today';
    expect(rows).toEqual([
      { channel: 'email', reason },
      { channel: 'sms', reason },
    ]);
  });

  it('MSG-06 Whoever was erased by then gets nothing', async () => {
    await follower.stop();
    await add({ email: 'gone@mail.example' });
    const { body } = await store.get<{ customers: { id: number }[] }>(
      `${store.store}/customers?email=gone@mail.example`,
    );
    const { status } = await store.post(`${store.store}/customers/${body.customers[0]?.id}/erase`);
    expect(status).toBe(204);
    follower = follow();
    await follower.waitUntilSettled();
    expect(mailsTo('gone@mail.example')).toEqual([]);
  });

  it('MSG-05 The response does not wait for the message, and is the same when nothing can be sent', async () => {
    provider.outage = { status: 503, code: 20503 };
    const before = provider.requests;
    await add({ phone: '+33612345605' });
    await eventually(
      () => provider.requests,
      (requests) => requests > before,
    );
  });
});
