import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { ConsentTexts } from '#loyalty/accounts/account.events.js';
import { toCustomerInput } from '#loyalty/customers/customer-input.dto.js';
import { CreateCustomer, UpdateCustomer } from '#loyalty/customers/customer.commands.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { CustomerExportJson } from '#loyalty/customers/customer-export.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import type { ReachJson } from '#outbound/campaigns/message-fields.dto.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli } from '../support/services/service.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';

const ORIGIN = 'https://cards.example';
const TEXTS: ConsentTexts = {
  marketing: 'You may write to me.',
  sms: 'You may send me text messages.',
  privacy: null,
  privacyUrl: null,
};
/** The user id of a settings change whose result no test reads. */
const NOBODY = 0;
const BOTH = { marketing_consent: 'yes', sms_consent: 'yes' };

const service = useService({
  PUBLIC_URL: ORIGIN,
  TRUST_PROXY_HOPS: '1',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  SMS_URL: 'http://127.0.0.1:1/',
  SMS_ACCOUNT: 'account',
  SMS_TOKEN: 'token',
  SMS_FROM: '+15005550006',
});
let mails: MailServer;
let provider: SmsProvider;
let follower: MessageFollower;
let addresses = 0;
let people = 0;

beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  follower = new MessageFollower(service.running, {
    PUBLIC_URL: ORIGIN,
    SMTP_URL: mails.url,
    MAIL_FROM: 'inkpad@shop.example',
    ...provider.settings,
  });
});
afterAll(async () => {
  await follower.stop();
  await Promise.all([mails.goAway(), provider.stop()]);
});

type Person = { email: string; phone: string };

const newPerson = (): Person => {
  const digits = String(++people).padStart(3, '0');
  return { email: `guest${digits}@mail.example`, phone: `+4915112346${digits}` };
};

async function openStore(): Promise<{ store: ContractClient; poster: PosterJson }> {
  const store = await service.newStore({ country: 'DE', locale: 'en-DE' });
  await change(store, { consentTexts: TEXTS });
  return { store, poster: await newPoster(store, { require_email: false }) };
}

const change = (
  { accountId }: ContractClient,
  changes: ConstructorParameters<typeof UpdateAccount>[2],
) => service.running.execute(new UpdateAccount({ ...cli, accountId }, NOBODY, changes));

async function signUp(poster: PosterJson, fields: Record<string, string>): Promise<void> {
  const form = await SignupForm.open(service.running.baseUrl, ORIGIN, poster);
  const from = { 'x-forwarded-for': `2001:db8:${(++addresses).toString(16)}::1` };
  const { status } = await form.send({ first_name: 'Ada', ...fields }, from);
  expect(status).toBe(303);
}

async function findCustomer(store: ContractClient, search: string): Promise<CustomerJson> {
  const { body } = await store.get<CustomerListJson>(
    `${store.store}/customers?search=${encodeURIComponent(search)}`,
  );
  const [customer] = body.customers;
  expect(customer).toBeDefined();
  return customer as CustomerJson;
}

const unconfirmedOf = async (store: ContractClient, search: string) =>
  (await findCustomer(store, search)).unconfirmed_consents;

const preview = async (store: ContractClient, channels: string[]) =>
  (await store.post<ReachJson>(`${store.store}/announcements/preview`, { channels })).body;

const LINK = /https:\/\/cards\.example(\/passes\/[0-9a-f-]{36})(\?c=[\w-]+)?/;

/** Finds the link in the last message to an address or number. */
async function findLink(to: string): Promise<{ path: string; token: string; text: string }> {
  await follower.waitUntilSettled();
  const text =
    mails.received.findLast((mail) => mail.to === to)?.text ?? provider.to(to).at(-1)?.body ?? '';
  const [, path = '', token = ''] = LINK.exec(text) ?? [];
  expect([to, path]).not.toEqual([to, '']);
  return { path, token, text };
}

async function open(path: string, init: RequestInit = {}) {
  const response = await fetch(service.running.baseUrl + path, { redirect: 'manual', ...init });
  const text = await response.text();
  return { status: response.status, location: response.headers.get('location'), text };
}

/** Presses the button on the page of a link. */
const confirm = ({ path, token }: { path: string; token: string }) =>
  open(path, { method: 'POST', body: new URLSearchParams(token.slice(1)) });

it('JOIN-45 A consent from a signup page holds once it was confirmed on the page of the link that went to the address or number', async () => {
  const { store, poster } = await openStore();
  const person = newPerson();
  await signUp(poster, { ...person, ...BOTH });
  const customer = await findCustomer(store, person.email);
  expect(customer).toMatchObject({
    marketing_consent: true,
    sms_consent: true,
    unconfirmed_consents: ['marketing', 'sms'],
  });
  const mail = await findLink(person.email);
  const sms = await findLink(person.phone);
  expect(mail.path).toBe(`/passes/${customer.customer_cards[0]?.uuid}`);
  expect([mail.token, sms.token, mail.token === sms.token]).toEqual([
    expect.stringMatching(/^\?c=[\w-]{22}$/),
    expect.stringMatching(/^\?c=[\w-]{22}$/),
    false,
  ]);
  expect(mail.text).toContain('may send you news by e-mail');
  expect(sms.text).toContain('agree to our texts');

  // Opening the link confirms nothing, and no other token does.
  const question = await open(mail.path + mail.token);
  expect(question.text).toContain('send you news and offers by e-mail?');
  expect((await open(sms.path + sms.token)).text).toContain('news and offers by text message?');
  await open(mail.path + mail.token, { method: 'HEAD' });
  for (const token of ['', `${mail.token}A`, '?c=', `?c=${'A'.repeat(22)}`]) {
    const plain = await open(mail.path + token);
    expect([plain.status, plain.text.includes('id="news"')]).toEqual([200, false]);
    const { status, location } = await confirm({ path: mail.path, token });
    expect([status, location]).toEqual([303, mail.path]);
  }
  const unknown = '/passes/00000000-0000-4000-8000-000000000000';
  expect((await confirm({ path: unknown, token: mail.token })).status).toBe(404);
  expect(await unconfirmedOf(store, person.email)).toEqual(['marketing', 'sms']);

  // Each confirms what went there, once, and says so from then on.
  const confirmed = await confirm(mail);
  expect(confirmed).toMatchObject({ status: 303, location: mail.path + mail.token });
  expect(await unconfirmedOf(store, person.email)).toEqual(['sms']);
  const on = await open(mail.path + mail.token);
  expect([on.text.includes('by e-mail.'), on.text.includes('<form')]).toEqual([true, false]);
  const tell = (action: string) =>
    open(`${mail.path}/messages`, { method: 'POST', body: new URLSearchParams({ action }) });
  await tell('stop');
  expect((await open(mail.path + mail.token)).text).not.toContain('id="news"');
  await tell('allow');
  await confirm(mail);
  await confirm(sms);
  expect(await findCustomer(store, person.email)).toMatchObject({
    marketing_consent: true,
    sms_consent: true,
    unconfirmed_consents: [],
  });
  const events = (await service.running.history()).filter(
    ({ stream }) => stream === `customer-${customer.id}`,
  );
  expect(events.slice(1)).toMatchObject([
    {
      type: 'CustomerConsentConfirmed',
      data: { consent: 'marketing' },
      meta: { channel: 'web_card', actor: { type: 'customer', id: customer.id } },
    },
    { type: 'CustomerConsentConfirmed', data: { consent: 'sms' } },
  ]);
});

it('JOIN-46 Until then nobody is written to by that channel: the reason is `unconfirmed`', async () => {
  const { store, poster } = await openStore();
  const [byMail, byPhone, without] = [newPerson(), newPerson(), newPerson()];
  await signUp(poster, { email: byMail.email, ...BOTH });
  await signUp(poster, { phone: byPhone.phone, ...BOTH });
  await signUp(poster, { email: without.email });
  const before = await preview(store, ['email']);
  const byEmail = (reason: string) => ({ channel: 'email', reason, people: 1 });
  expect(before.reached).toBe(0);
  expect(new Set(before.reasons)).toEqual(
    new Set(['no_email', 'unconfirmed', 'no_consent'].map(byEmail)),
  );
  expect((await preview(store, ['sms'])).reasons).toContainEqual({
    channel: 'sms',
    reason: 'unconfirmed',
    people: 1,
  });
  const mail = await findLink(byMail.email);
  await confirm(mail);
  expect((await preview(store, ['email'])).reached).toBe(1);
  expect((await preview(store, ['sms'])).reached).toBe(0);
  const sms = await findLink(byPhone.phone);
  await confirm(sms);
  expect((await preview(store, ['sms'])).reached).toBe(1);
  // One message each: nobody without an e-mail address is sent a second SMS.
  expect(provider.to(byPhone.phone)).toHaveLength(1);
});

it('JOIN-47 With `confirms_counter_consents` of the store, consents that staff enter on pages hold from then on too', async () => {
  const { store, poster } = await openStore();
  const { accountId } = store;
  const cardId = poster.card_id;
  const create = async (channel: string) => {
    const { email, phone } = newPerson();
    const input = toCustomerInput({
      first_name: 'Ada',
      last_name: null,
      email,
      phone,
      birthday: null,
      metadata: {},
      external_references: [],
      marketing_consent: true,
      sms_consent: true,
    });
    const context = { ...cli, accountId, channel };
    await service.running.execute(new CreateCustomer(context, input, cardId, false));
    return email;
  };
  for (const channel of ['staff', 'owner', 'api', 'pos', 'import']) {
    expect(await unconfirmedOf(store, await create(channel))).toEqual([]);
  }
  expect((await store.get<object>(store.store)).body).toMatchObject({
    confirms_counter_consents: false,
  });
  const { status } = await store.patch(store.store, {
    account: { confirms_counter_consents: true },
  });
  expect(status).toBe(200);
  for (const channel of ['api', 'pos', 'import']) {
    expect(await unconfirmedOf(store, await create(channel))).toEqual([]);
  }
  for (const channel of ['staff', 'owner']) {
    const email = await create(channel);
    expect(await unconfirmedOf(store, email)).toEqual(['marketing', 'sms']);
    await confirm(await findLink(email));
    expect(await unconfirmedOf(store, email)).toEqual(['sms']);
  }
  // Consents of before stay as they are, and the link goes out when one is given.
  const { email } = newPerson();
  const { body: customer } = await store.post<CustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Bob', email },
    card_id: cardId,
  });
  const context = { ...cli, accountId, channel: 'owner' };
  const update = (changes: object) =>
    service.running.execute(new UpdateCustomer(context, customer.id, changes));
  await update({ marketingConsent: true });
  expect(await unconfirmedOf(store, email)).toEqual(['marketing']);
  const link = await findLink(email);
  await update({ lastName: 'Berg' });
  expect(await unconfirmedOf(store, email)).toEqual(['marketing']);
  await confirm(link);
  await update({ lastName: 'Busch', marketingConsent: true });
  expect(await unconfirmedOf(store, email)).toEqual([]);
});

it('JOIN-48 A link confirms nothing for another address or number, nor a consent that was withdrawn', async () => {
  const { store, poster } = await openStore();
  const path = ({ id }: CustomerJson) => `${store.store}/customers/${id}`;
  const moved = newPerson();
  await signUp(poster, { ...moved, ...BOTH });
  const link = await findLink(moved.email);
  const customer = await findCustomer(store, moved.phone);
  const other = newPerson();
  await store.patch(path(customer), { customer: { email: other.email } });
  await confirm(link);
  expect(await unconfirmedOf(store, moved.phone)).toEqual(['marketing', 'sms']);
  // The link to the new address does, in whatever spelling it stands there by then.
  await service.running.database.query(
    `update outgoing_messages set created_at = created_at - interval '1 hour' where customer_id = $1`,
    [customer.id],
  );
  await signUp(poster, { email: other.email });
  const next = await findLink(other.email);
  await store.patch(path(customer), { customer: { email: other.email.toUpperCase() } });
  await store.patch(path(customer), { customer: { sms_consent: false } });
  expect(await unconfirmedOf(store, moved.phone)).toEqual(['marketing']);
  await confirm(next);
  expect(await findCustomer(store, moved.phone)).toMatchObject({
    marketing_consent: true,
    sms_consent: false,
    unconfirmed_consents: [],
  });
  await confirm(await findLink(moved.phone));
  expect(await findCustomer(store, moved.phone)).toMatchObject({ sms_consent: false });
  // The program of the store vouches for what it records.
  await store.patch(path(customer), { customer: { sms_consent: true } });
  expect(await unconfirmedOf(store, moved.phone)).toEqual([]);
});

it('JOIN-49 Merging, exporting and erasing keep what is confirmed: an export leaves unconfirmed consents blank', async () => {
  const { store, poster } = await openStore();
  const [one, other] = [newPerson(), newPerson()];
  await signUp(poster, { email: one.email, ...BOTH });
  await signUp(poster, { phone: other.phone, ...BOTH });
  const survivor = await findCustomer(store, other.phone);
  const merged = await findCustomer(store, one.email);
  const exported = async () => (await store.get(`${store.store}/exports/customers.csv`)).text;
  const path = `${store.store}/customers/${survivor.id}`;
  const link = await findLink(one.email);
  expect((await store.post(`${path}/merge`, { from_customer_id: merged.id })).status).toBe(200);
  expect(await unconfirmedOf(store, one.email)).toEqual(['marketing', 'sms']);
  // The link of the card that was merged leads to the one that goes on.
  const opened = await open(link.path + link.token);
  const survivorLink = `/passes/${survivor.customer_cards[0]?.uuid}${link.token}`;
  expect(opened).toMatchObject({ status: 302, location: ORIGIN + survivorLink });
  expect((await open(survivorLink)).text).toContain('news and offers by e-mail?');
  await confirm(link);
  expect(await unconfirmedOf(store, one.email)).toEqual(['sms']);
  const [head = '', ...lines] = (await exported()).trim().split(/\r?\n/);
  const at = (line: string, name: string) => line.split(',')[head.split(',').indexOf(name)];
  expect(lines.map((line) => [at(line, 'marketing_consent'), at(line, 'sms_consent')])).toEqual([
    ['true', ''],
  ]);
  const { body } = await store.get<CustomerExportJson>(`${path}/export`);
  expect(body.consents.map(({ name, confirmed }) => [name, confirmed])).toEqual(
    expect.arrayContaining([
      ['marketing_consent', false],
      ['sms_consent', false],
      ['marketing_consent', true],
    ]),
  );
  await store.post(`${path}/erase`);
  expect((await store.get<CustomerJson>(path)).body).toMatchObject({
    marketing_consent: false,
    unconfirmed_consents: [],
  });
  const sms = await findLink(other.phone);
  expect((await confirm(sms)).status).toBe(404);
  expect((await open(sms.path + sms.token)).status).toBe(404);
});
