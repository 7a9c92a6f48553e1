import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { Browser } from '../support/browser/browser.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const mails = await MailServer.start();
const service = useService({ SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' });
let people = 0;

beforeAll(async () => {
  await startDispatcher(service.running);
});
afterAll(() => mails.goAway());

type Person = { id: number; email: string };

async function openShop(quiet: { quiet_from: string | null; quiet_to: string | null }) {
  const store = await service.newStore({ locale: 'en-DE' });
  expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
  return store;
}

async function addCard(store: ContractClient, name: string, stamps: number): Promise<number> {
  const card = { name, stamps_required: stamps };
  return (await store.post<{ id: number }>(`${store.store}/cards`, { card })).body.id;
}

/** Adds somebody with these stamps on each card. */
async function add(
  store: ContractClient,
  stamps: [cardId: number, count: number][],
  fields: object = { marketing_consent: true },
): Promise<Person> {
  const email = `p${++people}@people.example`;
  const { body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email, ...fields },
  });
  for (const [cardId, count] of stamps) {
    const cards = `${store.store}/customers/${body.id}/customer_cards`;
    const { body: card } = await store.post<{ id: number }>(cards, { card_id: cardId });
    if (count > 0) await store.post(`${cards}/${card.id}/stamp`, { stamps: count });
  }
  return { id: body.id, email };
}

async function announce(store: ContractClient, fields: object): Promise<string> {
  const { body } = await store.post<AnnouncementJson>(`${store.store}/announcements`, {
    title: 'Closed on Monday',
    text: 'We are back on Tuesday.',
    ...fields,
  });
  const path = `${store.store}/announcements/${body.id}`;
  expect((await store.post(`${path}/send`, {})).status).toBe(200);
  return path;
}

const waitUntilSent = (store: ContractClient, path: string) =>
  eventually(
    async () => (await store.get<AnnouncementJson>(path)).body,
    ({ state }) => state === 'sent',
  );
const findMail = ({ email }: Person) => mails.received.find(({ to }) => to === email);
const ANY_TIME = { quiet_from: null, quiet_to: null };
/** A time of day, some hours from now. */
const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
const quietNow = () => ({ quiet_from: at(-2), quiet_to: at(2) });

it('ANNOUNCE-24 A message shows the card of its occasion or of its audience, else one that has the `min_stamps`, else the fullest', async () => {
  const store = await openShop(ANY_TIME);
  const coffee = await addCard(store, 'Coffee', 20);
  const lunch = await addCard(store, 'Lunch', 8);
  const ice = await addCard(store, 'Ice', 5);
  const anna = await add(store, [
    [coffee, 12],
    [lunch, 6],
    [ice, 5],
  ]);
  const otto = await add(store, [[ice, 4]]);
  await store.post(`${store.store}/cards/${ice}/archive`, {});
  for (const [filter, progress] of [
    [{ min_stamps: 10 }, '12 of 20'],
    [{}, '6 of 8'],
    [{ card_id: coffee }, '12 of 20'],
  ] as const) {
    mails.received.length = 0;
    await waitUntilSent(store, await announce(store, { ...filter, channels: ['email'] }));
    expect(findMail(anna)?.text).toContain(progress);
  }
  mails.received.length = 0;
  await waitUntilSent(store, await announce(store, { channels: ['email'] }));
  expect(findMail(otto)?.text).toContain('4 of 5');

  // The pages show it to one of its recipients before.
  const browser = await Browser.signedIn(service.running, store.email);
  const pages = `/app/stores/${store.accountId}/messages/announcements`;
  const form = await browser.get(`${pages}/new`);
  expect(form.text).toContain('6 of 8');
  expect(form.text).toContain('This is how one of the recipients gets it.');
  expect(form.text).toContain('with any card, on all cards together');
});

it("ANNOUNCE-25 What waits for the end of the quiet hours goes out as soon as these or the store's time zone are changed, if it is outside of them", async () => {
  const store = await openShop(quietNow());
  const coffee = await addCard(store, 'Coffee', 10);
  const anna = await add(store, [[coffee, 1]]);
  await add(store, [[coffee, 1]], {});
  const browser = await Browser.signedIn(service.running, store.email);
  const draft = await store.post<AnnouncementJson>(`${store.store}/announcements`, {
    title: 'Closed',
    text: 'Until Tuesday.',
    channels: ['email'],
  });
  const pages = `/app/stores/${store.accountId}/messages/announcements`;
  const question = (await browser.get(`${pages}/${draft.body.id}/send`)).text;
  expect(question).toMatch(/It is \d\d:\d\d\. Your quiet hours end at \d\d:\d\d/);
  const path = await announce(store, { channels: ['email'] });
  const page = `${pages}/${path.split('/').at(-1)}`;
  const { text } = await eventually(
    () => browser.get(page),
    (response) => response.text.includes('quiet hours, '),
  );
  expect(text).toMatch(/class="tag[^"]*">Waits until /);
  expect(text).toContain('0 of 1 are done');
  expect(text).toContain('1: did not agree to get messages');
  expect(text).not.toContain('Being sent');
  const list = (await browser.get(pages)).text;
  expect(list).toMatch(/class="tag[^"]*">Waits until /);
  expect(list).not.toContain('Being sent');
  expect(text).toContain('Cancel the message');
  expect(findMail(anna)).toBeUndefined();
  await store.send('PATCH', `${store.store}/message_settings`, {
    quiet_from: at(3),
    quiet_to: at(5),
  });
  await waitUntilSent(store, path);
  expect(findMail(anna)).toBeDefined();

  await store.send('PATCH', `${store.store}/message_settings`, quietNow());
  const second = await announce(store, { channels: ['email'] });
  await eventually(
    () => browser.get(`${pages}/${second.split('/').at(-1)}`),
    (response) => response.text.includes('quiet hours, '),
  );
  await store.send('PATCH', store.store, { account: { time_zone: 'Asia/Dhaka' } });
  await waitUntilSent(store, second);
  expect(mails.received.filter(({ to }) => to === anna.email)).toHaveLength(2);
});

it('ANNOUNCE-26 Of a message that was not sent, the `reason` is the one of all its channels that tells most', async () => {
  const store = await openShop(ANY_TIME);
  const coffee = await addCard(store, 'Coffee', 10);
  const disagreed = await add(store, [[coffee, 1]], {});
  const unaddressed = await add(store, [[coffee, 1]], { email: null, phone: '+4915112345678' });
  const path = await announce(store, { channels: ['web_push', 'email'] });
  await waitUntilSent(store, path);
  const { body } = await store.get<MessageRecipientJson[]>(`${path}/recipients`);
  const reasons = new Map(body.map((row) => [row.customer_id, row.reason]));
  expect(reasons.get(disagreed.id)).toBe('no_consent');
  expect(reasons.get(unaddressed.id)).toBe('no_email');
});

it('ANNOUNCE-27 Whoever has not got an announcement that is cancelled does not get it: the reason is `cancelled`', async () => {
  const store = await openShop(quietNow());
  const coffee = await addCard(store, 'Coffee', 10);
  const anna = await add(store, [[coffee, 1]]);
  const path = await announce(store, { channels: ['email'] });
  await eventually(
    async () => (await store.get<MessageRecipientJson[]>(`${path}/recipients`)).body,
    ([row]) => row?.state === 'queued' && Date.parse(row.due_at ?? '') > Date.now() + 60_000,
  );
  const cancelled = await store.post<AnnouncementJson>(`${path}/cancel`, {});
  expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
  const { body } = await store.get<MessageRecipientJson[]>(`${path}/recipients`);
  expect(body).toMatchObject([{ state: 'skipped', reason: 'cancelled', due_at: null }]);
  await store.send('PATCH', `${store.store}/message_settings`, ANY_TIME);
  await waitUntilSent(store, await announce(store, { channels: ['email'] }));
  expect(mails.received.filter(({ to }) => to === anna.email)).toHaveLength(1);
});
