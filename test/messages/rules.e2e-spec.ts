import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import sharp from 'sharp';
import { computeContrast } from '#platform/kernel/contrast.js';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer, type ReceivedMail } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli } from '../support/services/service.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { CARD_LINKS } from '../support/database/card-links.js';

const service = useService();
let store: ContractClient;
let cardId: number;
let mails: MailServer;
let provider: SmsProvider;
let follower: MessageFollower;
let people = 0;

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

const follow = (settings: NodeJS.ProcessEnv = {}) =>
  new MessageFollower(service.running, {
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
    ...provider.settings,
    ...settings,
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

/** Finds the first contrast below 4.5 among the texts of a mail and what each stands on. */
function findUnreadable(html: string): string[] {
  const style = (tag: RegExp) => tag.exec(html)?.[0] ?? '';
  const find = (name: string, text: string) =>
    new RegExp(`(?<![-a-z])${name}:(#[0-9A-F]{6})`).exec(text)?.[1] ?? '';
  const dark = (name: string) =>
    new RegExp(`[.]${name}-(?:ground|ink) [{] (?:background|color): (#[0-9A-F]{6})`).exec(
      html,
    )?.[1] ?? '';
  const sheet = find('background', style(/<table[^>]*sheet-ground[^>]*>/));
  const ground = find('background', style(/<body[^>]*>/));
  const pairs = [
    [find('color', style(/<h1[^>]*>/)), sheet],
    [find('color', style(/<p class="soft-ink"[^>]*>/)), sheet],
    [find('color', style(/<p class="soft-ink"[^>]*>/)), ground],
    [
      find('color', style(/<a href[^>]*inline-block[^>]*>/)),
      find('background', style(/<td class="button-ground"[^>]*>/)),
    ],
    [dark('text'), dark('sheet')],
    [dark('soft'), dark('sheet')],
    [dark('soft'), dark('ground')],
  ] as const;
  return pairs.filter(([text, on]) => !(computeContrast(text, on) >= 4.5)).map(String);
}

describe('card links', () => {
  // Before the service, which it belongs to.
  afterAll(async () => {
    await follower.stop();
    await Promise.all([mails.goAway(), provider.stop()]);
  });

  it("MSG-01 Whoever is added with `card_id` and `send_card_links` gets one e-mail with the link of their card and no other link, but those of the store's contact details", async () => {
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

  it('MSG-02 A customer without an e-mail address gets one SMS, if their phone number begins with `+` and its country code', async () => {
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

  it('MSG-04 Nothing that the request says about the customer is in the message with the card link', async () => {
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

  it('MSG-09 One e-mail address or phone number gets ten card links a day, from all stores together', async () => {
    const number = '+33612345609';
    const stores = [];
    for (let i = 0; i < 11; i++) {
      const otherStore = await service.newStore({ locale: 'fr-FR' });
      const { body } = await otherStore.post<{ id: number }>(`${otherStore.store}/cards`, {
        card: { name: 'Coffee' },
      });
      for (const customer of [{ email: `Victim+${i}@mail.example` }, { phone: number }]) {
        await otherStore.post(`${otherStore.store}/customers`, {
          customer: { first_name: 'Ann', ...customer },
          card_id: body.id,
          send_card_links: true,
        });
      }
      stores.push(otherStore.accountId);
    }
    await follower.waitUntilSettled();
    expect(mails.received.filter(({ to }) => to.startsWith('Victim+'))).toHaveLength(10);
    expect(provider.to(number)).toHaveLength(10);
    const { rows } = await service.running.database.query<{ channel: string; reason: string }>(
      `select channel, reason from ${CARD_LINKS} where account_id = any ($1) and state = 'held'
       order by channel`,
      [stores],
    );
    const reason = 'too_many_to_address';
    expect(rows).toEqual([
      { channel: 'email', reason },
      { channel: 'sms', reason },
    ]);
  });

  it('MSG-10 A store sends as many SMS and e-mails to its customers in 24 hours as its quotas `sms_per_day` and `mails_per_day` allow, however many are on their way at once', async () => {
    await follower.stop();
    const otherStore = await service.newStore({ locale: 'fr-FR' });
    const { body } = await otherStore.post<{ id: number }>(`${otherStore.store}/cards`, {
      card: { name: 'Coffee' },
    });
    const limits = { STORE_QUOTAS: 'sms_per_day=3,mails_per_day=2' };
    for (let i = 10; i < 18; i++) {
      for (const customer of [{ email: `many${i}@mail.example` }, { phone: `+336123457${i}` }]) {
        const added = await otherStore.post(`${otherStore.store}/customers`, {
          customer: { first_name: 'Ann', ...customer },
          card_id: body.id,
          send_card_links: true,
        });
        expect(added.status).toBe(201);
      }
    }
    const own = follow(limits);
    await own.waitUntilSettled();
    await own.stop();
    follower = follow();
    expect(mails.received.filter(({ to }) => to.startsWith('many'))).toHaveLength(2);
    expect(provider.received.filter(({ to }) => to.startsWith('+336123457'))).toHaveLength(3);
    const { rows } = await service.running.database.query<{ reason: string; count: number }>(
      `select reason, count(*)::int as count from ${CARD_LINKS} where account_id = $1 and state = 'held'
       group by reason order by reason`,
      [otherStore.accountId],
    );
    expect(rows).toEqual([
      { reason: 'too_many_emails', count: 6 },
      { reason: 'too_many_sms', count: 5 },
    ]);
  });

  it('MSG-06 Whoever was erased before the message goes out gets nothing', async () => {
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

  it('MSG-05 The response to `send_card_links` does not wait for the message, and is the same when nothing can be sent', async () => {
    provider.outage = { status: 503, code: 20503 };
    const before = provider.requests;
    await add({ phone: '+33612345605' });
    await eventually(
      () => provider.requests,
      (requests) => requests > before,
    );
  });

  it("MAIL-01 The e-mail with a card link shows the card with its stamps, below the store's logo", async () => {
    const own = await service.newStore();
    const logo = await sharp({
      create: { width: 300, height: 100, channels: 3, background: '#C01020' },
    })
      .png()
      .toBuffer();
    await own.send('PUT', `${own.store}/logo`, new Uint8Array(logo), {
      'content-type': 'image/png',
    });
    const mail = await receiveMail(own, { card_color: '#3E2723', initial_stamps: 3 });
    expect(mail.html.match(/src="[^"]*"/g)).toEqual(['src="cid:logo"', 'src="cid:card"']);
    expect(mail.html).toContain('alt="Coffee, 3 of 10 stamps"');
    const sizes = await Promise.all(
      ['logo', 'card'].map(async (id) => {
        const { format, width, height } = await sharp(mail.pictures.get(id)).metadata();
        return `${format} ${width}x${height}`;
      }),
    );
    expect(sizes).toEqual(['png 750x156', 'png 750x288']);
  });

  it("MAIL-02 The e-mail with a card link ends with the store's address, phone number, e-mail address and website, as far as it has them", async () => {
    const own = await service.newStore();
    const account = {
      address: 'Main Street 1\n76133 Karlsruhe',
      phone: '+49 721 123456',
      email: 'hello@cafe.example',
      website: 'https://cafe.example/',
    };
    await own.patch(own.store, { account });
    const { text, html } = await receiveMail(own, {});
    const lines = Object.values(account).join('\n');
    expect(text.trimEnd().endsWith(`\n${lines}`)).toBe(true);
    for (const href of ['tel:+49721123456', 'mailto:hello@cafe.example', account.website]) {
      expect(html).toContain(`href="${href}"`);
    }
  });

  it("MAIL-03 The texts of the e-mail with a card link have a contrast of at least 4.5, whatever the card's colours, in the light and in the dark", async () => {
    const own = await service.newStore();
    for (const card_color of ['#FFFFFF', '#000000', '#FFD400', '#777777', '#0000FF']) {
      const { html } = await receiveMail(own, { card_color, text_color: card_color });
      expect([card_color, findUnreadable(html)]).toEqual([card_color, []]);
    }
  });
});

/** Enrols somebody with a new card, and returns their e-mail. */
async function receiveMail(own: ContractClient, card: object): Promise<ReceivedMail> {
  const customer = { email: `holder${++people}@mail.example` };
  await enrol(own, { card, customer, links: true });
  const [mail] = await eventually(
    () => mailsTo(customer.email),
    ({ length }) => length > 0,
  );
  if (!mail) throw new Error('no mail came');
  return mail;
}
