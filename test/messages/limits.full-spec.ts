import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import { Quotas } from '#loyalty/accounts/quotas.service.js';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { cli, Client, startService, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';
import { CARD_LINKS } from '../support/database/card-links.js';

const SLOW = 300_000;
const MAX_SMS = 5;
const MAX_MAILS = 7;

let mails: MailServer;
let provider: SmsProvider;
let service: LocalService;
let dispatchers: Program[];
let people = 0;

/** Two dispatchers, each of which sends sixteen e-mails and four SMS at a time. */
beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  service = await startService({
    ...provider.settings,
    PUBLIC_URL: 'https://cards.example',
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
    STORE_QUOTAS: `sms_per_day=${MAX_SMS},mails_per_day=${MAX_MAILS}`,
  });
  dispatchers = await Promise.all([startDispatcher(service), startDispatcher(service)]);
}, SLOW);
afterAll(async () => {
  await service.stop();
  await Promise.all([mails.goAway(), provider.stop()]);
}, SLOW);

type Shop = { store: Client; cardId: number };
type Contact = { email?: string; phone?: string };

async function openShop(): Promise<Shop> {
  return openStore(await service.newStore({ locale: 'en-DE' }));
}

/** Opens another store of the same owner, as the console does. */
async function openSecondShop({ store }: Shop): Promise<Shop> {
  const { rows } = await service.database.query<{ user_id: string }>(
    'select user_id from memberships where account_id = $1',
    [store.accountId],
  );
  const attributes = { name: 'Second', storeName: null, personal: false };
  const place = { timeZone: 'UTC', locale: 'en-DE', country: 'DE' };
  const { id } = await service.execute(
    new CreateAccount(cli, { ...attributes, ...place }, Number(rows[0]?.user_id), true),
  );
  return openStore(new Client(store.baseUrl, id, store.token));
}

async function openStore(store: Client): Promise<Shop> {
  const { body } = await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } });
  const quiet = { quiet_from: null, quiet_to: null };
  expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
  return { store, cardId: body.id };
}

const createEmail = (): Contact => ({ email: `p${++people}@people.example` });
const createPhone = (): Contact => ({ phone: `+4915112346${String(++people).padStart(3, '0')}` });

async function addHolder({ store, cardId }: Shop, contact: Contact, more: object = {}) {
  const customer = { first_name: 'Anna', marketing_consent: true, sms_consent: true, ...contact };
  const { status } = await store.post(`${store.store}/customers`, {
    customer,
    card_id: cardId,
    ...more,
  });
  expect(status).toBe(201);
  return contact;
}

const addHolders = (shop: Shop, contacts: Contact[], more: object = {}) =>
  Promise.all(contacts.map((contact) => addHolder(shop, contact, more)));

/** Sends an announcement, and waits until each message has its outcome or waits for a place. @returns its path */
async function announce({ store }: Shop, channels: string[], people: number): Promise<string> {
  const path = `${store.store}/announcements`;
  const draft = { title: 'Closed', text: 'We are back on Tuesday.', channels };
  const { id } = (await store.post<AnnouncementJson>(path, draft)).body;
  expect((await store.post(`${path}/${id}/send`, {})).status).toBe(200);
  await eventually(
    () => listRecipients(store, `${path}/${id}`),
    (rows) =>
      rows.length === people &&
      rows.every(({ state, reason }) => state !== 'queued' || reason !== null),
  );
  return `${path}/${id}`;
}

const listRecipients = async (store: Client, path: string) =>
  (await store.get<MessageRecipientJson[]>(`${path}/recipients?limit=100`)).body;

const findWaiting = async ({ store }: Shop, path: string) =>
  (await listRecipients(store, path)).filter(({ state }) => state === 'queued');

/** Lets the messages that wait be tried again at once, until the announcement ends. */
async function finish({ store }: Shop, path: string): Promise<AnnouncementJson> {
  return eventually(
    async () => {
      await service.database.query(
        `update outgoing_messages set due_at = now()
         where kind = 'campaign' and account_id = $1 and state = 'queued' and reason is not null and process is null`,
        [store.accountId],
      );
      await service.database.query(
        `update campaigns set due_at = now()
         where account_id = $1 and state = 'sending' and process is null`,
        [store.accountId],
      );
      return (await store.get<AnnouncementJson>(path)).body;
    },
    ({ state }) => state === 'sent',
  );
}

const countReceived = (contacts: Contact[]) =>
  contacts.filter(
    ({ email, phone }) =>
      mails.received.some(({ to }) => to === email) ||
      provider.received.some(({ to }) => to === phone),
  ).length;

async function readUsage({ store }: Shop): Promise<Record<string, number>> {
  const quotas = await service.app.get(Quotas, { strict: false }).list(store.accountId);
  return Object.fromEntries(quotas.map(({ name, used }) => [name, used]));
}

const waitForLinks = ({ store }: Shop, count: number) =>
  eventually(
    async () =>
      (
        await service.database.query<{ state: string }>(
          `select state from ${CARD_LINKS} where account_id = $1 and state <> 'queued'`,
          [store.accountId],
        )
      ).rows,
    ({ length }) => length === count,
  );

it(
  'a store sends no more than its limits although several processes send at once, and shows what it counts',
  async () => {
    const shop = await openShop();
    const contacts = [
      ...Array.from({ length: 12 }, createPhone),
      ...Array.from({ length: 12 }, createEmail),
    ];
    await addHolders(shop, contacts);
    const path = await announce(shop, ['sms', 'email'], 24);
    const { body } = await shop.store.get<AnnouncementJson>(path);
    expect(body.counts).toMatchObject({ sent: MAX_SMS + MAX_MAILS, failed: 0, skipped: 0 });
    expect(countReceived(contacts)).toBe(MAX_SMS + MAX_MAILS);
    const reasons = (await findWaiting(shop, path)).map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'sms_limit')).toHaveLength(12 - MAX_SMS);
    expect(reasons.filter((reason) => reason === 'email_limit')).toHaveLength(12 - MAX_MAILS);
    expect(await readUsage(shop)).toMatchObject({ sms_per_day: MAX_SMS, mails_per_day: MAX_MAILS });

    // Links count with them, whichever come first.
    const late = [createPhone(), createEmail()];
    await addHolders(shop, late, { send_card_links: true });
    expect((await waitForLinks(shop, 2)).map(({ state }) => state)).toEqual(['held', 'held']);
    expect(countReceived(late)).toBe(0);
  },
  SLOW,
);

it(
  'stores that their owner created in the console share the limits of one store, whichever sends',
  async () => {
    const first = await openShop();
    const shops = [first, await openSecondShop(first)];
    const contacts = await Promise.all(
      shops.map((shop) =>
        addHolders(shop, [
          ...Array.from({ length: 6 }, createPhone),
          ...Array.from({ length: 8 }, createEmail),
        ]),
      ),
    );
    await Promise.all(shops.map((shop) => announce(shop, ['sms', 'email'], 14)));
    expect(countReceived(contacts.flat())).toBe(MAX_SMS + MAX_MAILS);
    const used = { sms_per_day: MAX_SMS, mails_per_day: MAX_MAILS };
    for (const shop of shops) expect(await readUsage(shop)).toMatchObject(used);
  },
  SLOW,
);

it(
  'card links share the limits, and a message beyond one goes by no other channel',
  async () => {
    const shop = await openShop();
    const linked = Array.from({ length: 10 }, createPhone);
    await addHolders(shop, linked, { send_card_links: true });
    const links = await waitForLinks(shop, 10);
    expect(links.filter(({ state }) => state === 'sent')).toHaveLength(MAX_SMS);
    expect(countReceived(linked)).toBe(MAX_SMS);
    expect(await readUsage(shop)).toMatchObject({ sms_per_day: MAX_SMS, mails_per_day: 0 });
    const both = await addHolders(shop, createBoth(2));
    const path = await announce(shop, ['sms', 'email'], 12);
    const waiting = await findWaiting(shop, path);
    expect(waiting.map(({ reason }) => reason)).toEqual(Array(12).fill('sms_limit'));
    expect(countReceived(both)).toBe(0);
    expect(await readUsage(shop)).toMatchObject({ sms_per_day: MAX_SMS, mails_per_day: 0 });
  },
  SLOW,
);

const createBoth = (length: number): Contact[] =>
  Array.from({ length }, () => ({ ...createPhone(), ...createEmail() }));

it(
  'what a server refuses gives its place back, to the store and to the address',
  async () => {
    const shop = await openShop();
    const refused = Array.from({ length: 8 }, createPhone);
    for (const { phone = '' } of refused) provider.refused.set(phone, 21211);
    await addHolders(shop, refused);
    const unknown = Array.from({ length: 9 }, createEmail);
    for (const { email = '' } of unknown) mails.refuse(email);
    await addHolders(shop, unknown);
    // Some of them wait for the places of others, which are given back.
    const { counts } = await finish(shop, await announce(shop, ['sms', 'email'], 17));
    expect(counts).toMatchObject({ sent: 0, failed: 17 });
    expect(await readUsage(shop)).toMatchObject({ sms_per_day: 0, mails_per_day: 0 });
    const reached = [createPhone(), createEmail()];
    await addHolders(shop, reached, { send_card_links: true });
    await waitForLinks(shop, 2);
    expect(countReceived(reached)).toBe(2);
    const { rows } = await service.database.query<{ total: number }>(
      `select coalesce(sum(count), 0)::int as total from counts
       where count > 1 and until > now() + interval '1 hour'`,
    );
    expect(rows[0]?.total).toBe(0);
  },
  SLOW,
);

it(
  'an attempt that fails gives its place back, whatever becomes of the message',
  async () => {
    const shop = await openShop();
    const [contact] = await addHolders(shop, createBoth(1));
    const read = (kind: string, to = '') =>
      service.app
        .get(WindowCounts, { strict: false })
        .get(service.app.get(Pool, { strict: false }), [kind, to]);
    await mails.goAway();
    const { store } = shop;
    const path = `${store.store}/announcements`;
    const draft = { title: 'Closed', text: 'We are back.', channels: ['email', 'sms'] };
    const { id } = (await store.post<AnnouncementJson>(path, draft)).body;
    await store.post(`${path}/${id}/send`, {});
    const readMessages = async () =>
      (
        await service.database.query<{ attempts: number; customer_id: number }>(
          `select attempts, customer_id from outgoing_messages where announcement_id = $1 and process is null`,
          [id],
        )
      ).rows;
    const [message] = await eventually(readMessages, ([row]) => (row?.attempts ?? 0) > 0);
    expect(await readUsage(shop)).toMatchObject({ mails_per_day: 0 });
    expect(await read('messages to', contact?.email)).toBe(0);
    const customer = `${store.store}/customers/${message?.customer_id}`;
    expect((await store.send('PATCH', customer, { customer: { email: null } })).status).toBe(200);
    await service.database.query(
      'update outgoing_messages set due_at = now() where announcement_id = $1 and process is null',
      [id],
    );
    expect((await finish(shop, `${path}/${id}`)).counts.sent_by).toMatchObject({
      email: 0,
      sms: 1,
    });
    expect(await readUsage(shop)).toMatchObject({ mails_per_day: 0, sms_per_day: 1 });
    expect(await read('messages to', contact?.email)).toBe(0);
    expect(await read('messages to', contact?.phone)).toBe(1);
    await mails.comeBack();
  },
  SLOW,
);

it(
  'a message beyond a limit waits for a place, and is given up after two days',
  async () => {
    const shop = await openShop();
    const contacts = await addHolders(shop, createBoth(MAX_MAILS + 2));
    const first = await announce(shop, ['email', 'sms'], contacts.length);
    const isLater = (at: string | null) => Date.parse(at ?? '') > Date.now() + 30 * 60_000;
    expect(
      (await findWaiting(shop, first)).map((recipient) => [
        recipient.reason,
        isLater(recipient.due_at),
      ]),
    ).toEqual([
      ['email_limit', true],
      ['email_limit', true],
    ]);
    const change = (set: string) =>
      service.database.query(
        `update outgoing_messages set ${set} where kind = 'campaign' and account_id = $1`,
        [shop.store.accountId],
      );
    await change(`counted_at = counted_at - interval '1 day'`);
    const sent = await finish(shop, first);
    expect(sent.counts).toMatchObject({ sent: contacts.length, skipped: 0 });
    expect(sent.counts.sent_by).toMatchObject({ email: contacts.length, sms: 0 });

    const second = await announce(shop, ['email', 'sms'], contacts.length);
    expect(await findWaiting(shop, second)).toHaveLength(4);
    await change(`give_up_at = give_up_at - interval '2 days'`);
    const ended = await finish(shop, second);
    expect(ended.counts).toMatchObject({ sent: MAX_MAILS - 2, skipped: 4 });
    const reasons = (await listRecipients(shop.store, second)).map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'email_limit')).toHaveLength(4);
    expect(provider.received.some(({ to }) => contacts.some(({ phone }) => phone === to))).toBe(
      false,
    );
  },
  SLOW,
);

it(
  'attempts that fail count once, also for a process that is killed meanwhile',
  async () => {
    const shop = await openShop();
    provider.outage = { status: 503, code: 20503 };
    const contacts = Array.from({ length: 12 }, createPhone);
    await addHolders(shop, contacts, { send_card_links: true });
    const { requests } = provider;
    await eventually(
      () => provider.requests,
      (count) => count >= requests + MAX_SMS + 2,
    );
    for (const dispatcher of dispatchers.splice(0)) await dispatcher.kill('SIGKILL');
    provider.outage = null;
    dispatchers = [await startDispatcher(service), await startDispatcher(service)];
    await service.database.query(
      `update outgoing_messages set due_at = now() where kind = 'card_link' and due_at is not null`,
    );
    const links = await waitForLinks(shop, 12);
    expect(links.filter(({ state }) => state === 'sent')).toHaveLength(MAX_SMS);
    expect(countReceived(contacts)).toBe(MAX_SMS);
    expect(await readUsage(shop)).toMatchObject({ sms_per_day: MAX_SMS });
  },
  SLOW,
);

it('a counter of a day counts no more than its limit, and takes back what did not happen', async () => {
  const counts = service.app.get(WindowCounts, { strict: false });
  const pool = service.app.get(Pool, { strict: false });
  const subject = ['test', 'once'];
  const results = await Promise.all([1, 2, 3, 4].map(() => counts.addUpTo(pool, subject, 2)));
  expect(results.filter((seconds) => seconds === null)).toHaveLength(2);
  expect(await counts.get(pool, subject)).toBe(2);
  await counts.release(pool, subject);
  expect(await counts.addUpTo(pool, subject, 2)).toBeNull();
  for (const _ of [1, 2, 3, 4]) await counts.release(pool, subject);
  expect(await counts.get(pool, subject)).toBe(0);
  const otherSubject = ['test', 'other'];
  const seconds = await counts.addEachUpTo(pool, [subject, otherSubject, subject, subject], 2);
  expect(seconds).toEqual([null, null, null, expect.any(Number)]);
  expect(await counts.get(pool, subject)).toBe(2);
  expect(await counts.get(pool, otherSubject)).toBe(1);
});
