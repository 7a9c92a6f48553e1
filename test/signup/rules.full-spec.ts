import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { AccountSettings, ConsentTexts } from '#loyalty/accounts/account.events.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { Outbox } from '#outbound/messages/outbox.service.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { EventStream } from '../support/http/event-stream.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli } from '../support/services/service.js';
import {
  findFieldError,
  newPoster,
  findFieldValue,
  SignupForm,
  type Sent,
} from '../support/browser/signup.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';
import { CARD_LINKS } from '../support/database/card-links.js';

type Envelope = { data: { id: number; source: string } };

/** The user id of a settings change whose result no test reads. */
const NOBODY = 0;

const ORIGIN = 'https://cards.example';
const service = useService({
  PUBLIC_URL: ORIGIN,
  TRUST_PROXY_HOPS: '1',
  SIGNUPS_PER_ADDRESS: '4',
  STORE_QUOTAS: 'sms_per_day=20,signup_mails_per_day=5',
  SMS_URL: 'https://sms.example',
  SMS_ACCOUNT: 'AC1',
  SMS_TOKEN: 'token',
  SMS_FROM: '+15005550006',
});
const store = service.useStore();
let addresses = 0;
let people = 0;

const open = (poster: PosterJson, query?: string) =>
  SignupForm.open(service.running.baseUrl, ORIGIN, poster, query);

/** Each from an address of their own, unless one is given. */
async function send(
  poster: PosterJson,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Sent> {
  const form = await open(poster);
  return form.send(fields, { 'x-forwarded-for': newAddress(), ...headers });
}

const newAddress = () => `2001:db8:${(++addresses).toString(16)}::1`;
const newEmail = () => `guest${++people}@mail.example`;

const get = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(service.running.baseUrl + path, { headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const customers = async (search = '') =>
  (await store.get<CustomerListJson>(`${store.store}/customers?items=100&search=${search}`)).body
    .customers;

async function customerWith(email: string): Promise<CustomerJson> {
  const matches = (await customers(encodeURIComponent(email))).filter(
    (customer) => customer.email === email,
  );
  expect(matches).toHaveLength(1);
  return matches[0] as CustomerJson;
}

const eventsOf = async (stream: string) =>
  (await service.running.history()).filter((event) => event.stream === stream);

async function set(at: ContractClient, changes: Partial<AccountSettings>): Promise<void> {
  const context = { ...cli, accountId: at.accountId };
  await service.running.execute(new UpdateAccount(context, NOBODY, changes));
}

const TEXTS: ConsentTexts = {
  marketing: 'The café may write to me about <offers>.',
  sms: 'The café may send me text messages.',
  privacy: 'We keep what you enter for your card.\nNobody else gets it.',
  privacyUrl: 'https://cafe.example/privacy',
};

/** The page of a card without what no two cards have in common. */
function alike({ text }: { text: string }): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')
    .replaceAll(/<path[^>]*>/g, '')
    .replaceAll(/viewBox="[^"]*"/g, '')
    .replaceAll(/\b[2-9A-HJ-NP-Z]{8}\b/g, 'CODE');
}

const uuidIn = ({ location }: Sent) => /\/passes\/([0-9a-f-]{36})/.exec(location)?.[1] ?? '';

describe('the signup page', () => {
  it('JOIN-01 The signup page is a form that works without JavaScript, cookies or a token, with `?src=qr` as without', async () => {
    const poster = await newPoster(store);
    for (const query of ['', '?src=qr']) {
      const { page } = await open(poster, query);
      expect(page.status).toBe(200);
      expect(page.headers.get('set-cookie')).toBeNull();
      expect(page.headers.get('cache-control')).toBe('no-store, no-transform');
      expect(page.headers.get('x-robots-tag')).toContain('noindex');
      expect(page.headers.get('content-security-policy')).toMatch(/form-action 'self'/);
      expect(page.headers.get('content-security-policy')).not.toMatch(/script-src|unsafe/);
      expect(page.text).toMatch(/<form[^>]* method="post"/);
      expect(page.text).not.toContain('<script');
    }
  });

  it('JOIN-02 The signup form asks for a first name, a last name (optional), what `contact_collection_mode` collects, and with `require_birthday` for the birthday', async () => {
    const fieldsOf = async (settings: object) => {
      const { page } = await open(await newPoster(store, settings));
      return ['first_name', 'last_name', 'email', 'phone', 'birthday_day'].filter(
        (name) => findFieldValue(page.text, name) !== undefined,
      );
    };
    const requiredOf = async (settings: object) => {
      const { page } = await open(await newPoster(store, settings));
      return [...page.text.matchAll(/name="(\w+)" required/g)].map(([, name]) => name);
    };
    const names = ['first_name', 'last_name'];
    expect(await fieldsOf({})).toEqual([...names, 'email', 'phone']);
    expect(await fieldsOf({ contact_collection_mode: 'email_only' })).toEqual([...names, 'email']);
    expect(
      await fieldsOf({ contact_collection_mode: 'phone_only', require_birthday: true }),
    ).toEqual([...names, 'phone', 'birthday_day']);
    expect(await requiredOf({})).toEqual(['first_name', 'email']);
    expect(await requiredOf({ require_email: false, require_phone: true })).toEqual([
      'first_name',
      'phone',
    ]);
    expect(await requiredOf({ require_email: false })).toEqual(['first_name']);
  });

  it('JOIN-03 The signup page speaks the language of its store (`locale`), or English where there are no texts in that, and has the colours of its poster', async () => {
    const otherStore = await service.newStore();
    await set(otherStore, { locale: 'de-AT', storeName: 'Café <Mitte>' });
    const poster = await newPoster(otherStore, { primary_color: '#FFE0B2', text_color: '#FFFFFF' });
    const { page } = await open(poster);
    expect(page.text).toContain('<html lang="de-AT">');
    expect(page.text).toContain('Vorname');
    expect(page.text).toContain('Café &lt;Mitte&gt;');
    // White cannot be read on it.
    expect(page.text).toContain(':root{--brand:#FFE0B2;--on-brand:#000000}');
    for (const [locale, word] of [
      ['fr', 'Prénom'],
      ['es-MX', 'Nombre'],
      ['ja', 'First name'],
    ] as const) {
      await set(otherStore, { locale });
      expect((await open(poster)).page.text).toContain(word);
    }
  });

  it('JOIN-04 The signup page takes less than 30 KB, with everything that it loads but pictures', async () => {
    await set(store, { consentTexts: TEXTS });
    const poster = await newPoster(store, { require_birthday: true, minimum_age: 16 });
    const { page } = await open(poster);
    const loaded = [...page.text.matchAll(/ (?:src|href)="(\/[^"]*)"/g)]
      .map(([, path]) => String(path))
      .filter((path) => !path.startsWith('/img/'));
    expect(loaded.length).toBeGreaterThan(0);
    let bytes = Buffer.byteLength(page.text);
    for (const path of loaded) {
      const { status, text } = await get(String(path));
      expect(status).toBe(200);
      bytes += Buffer.byteLength(text);
    }
    await set(store, {
      consentTexts: { marketing: null, sms: null, privacy: null, privacyUrl: null },
    });
    expect(bytes).toBeLessThan(30_000);
  });

  it('JOIN-05 The signup page of a deleted poster, and of one that never existed, is a 404 with a page that says so', async () => {
    const poster = await newPoster(store);
    await store.delete(`${store.store}/posters/${poster.id}`);
    const { page } = await open(poster);
    const none = await get('/join/0123456789abcdefgh', { 'accept-language': 'fr, en;q=0.5' });
    expect([page.status, none.status]).toEqual([404, 404]);
    expect(page.text).toContain('This poster is no longer in use');
    expect(none.text).toContain('Cette affiche n’est plus valable');
    expect((await send(poster, { first_name: 'Ada', email: newEmail() })).status).toBe(404);
  });

  it('JOIN-06 The signup page of an inactive poster, and of one whose card is archived or expired, is a 410 with a page that says so, for `POST` too', async () => {
    const inactive = await newPoster(store, { active: false });
    const expired = await newPoster(store, {}, { expires_at: '2020-01-01T00:00:00Z' });
    const archived = await newPoster(store);
    await store.post(`${store.store}/cards/${archived.card_id}/archive`);
    for (const poster of [inactive, expired, archived]) {
      const { page } = await open(poster);
      expect(page.status).toBe(410);
      expect(page.text).toContain('Sign-up is closed right now');
      const email = newEmail();
      expect((await send(poster, { first_name: 'Ada', email })).status).toBe(410);
      expect(await customers(email)).toEqual([]);
    }
  });
});

describe('signing up', () => {
  it('JOIN-07 Signing up makes a customer with the card, initial stamps included, and redirects with 303 to the web card', async () => {
    const poster = await newPoster(store, {}, { initial_stamps: 2, stamps_required: 8 });
    const email = newEmail();
    const sent = await send(poster, {
      first_name: ' Grace ',
      last_name: 'Hopper',
      email,
      phone: '+49 30 1234567',
    });
    expect([sent.status, sent.text]).toEqual([303, '']);
    const customer = await customerWith(email);
    expect(customer).toMatchObject({
      first_name: 'Grace',
      last_name: 'Hopper',
      phone: '+49301234567',
      marketing_consent: false,
      sms_consent: false,
      stamp_count: 2,
    });
    const [card] = customer.customer_cards;
    expect(uuidIn(sent)).toBe(card?.uuid);
    const page = await get(sent.location);
    expect([page.status, page.text.includes('Grace Hopper')]).toEqual([200, true]);
    expect(page.text).toContain('2 / 8');
  });

  it('JOIN-08 `customer.created` has the `source` `poster`', async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    await send(poster, { first_name: 'Ada', email });
    const { id } = await customerWith(email);
    const [created] = await eventsOf(`customer-${id}`);
    expect(created?.data).toMatchObject({ source: 'poster', sendCardLinks: true });
    const dispatcher = await startDispatcher(service.running);
    try {
      const sent = await eventually(
        async () =>
          (await store.get<Envelope[]>(`${store.store}/events?type=customer.created`)).body.find(
            ({ data }) => data.id === id,
          ),
        (result) => result !== undefined,
      );
      expect(sent?.data.source).toBe('poster');
      const { body: history } = await eventually(
        () => store.get<object[]>(`${store.store}/history?customer_id=${id}`),
        ({ body }) => body.length > 0,
      );
      const signedUp = { channel: 'poster', actor: { type: 'customer', id, name: 'Ada' } };
      expect(history).toMatchObject(history.map(() => signedUp));
    } finally {
      await dispatcher.kill('SIGTERM');
    }
  });

  it('JOIN-09 An invalid form is a 422 with the form again', async () => {
    const poster = await newPoster(store, { require_phone: true });
    const before = await customers();
    const { status, text, headers } = await send(poster, {
      first_name: '',
      last_name: 'O"Hara <b>',
      email: 'grace@',
      phone: '12',
    });
    expect([status, headers.get('cache-control')]).toEqual([422, 'no-store, no-transform']);
    expect(findFieldValue(text, 'last_name')).toBe('O&quot;Hara &lt;b&gt;');
    expect(findFieldValue(text, 'email')).toBe('grace@');
    expect(findFieldValue(text, 'phone')).toBe('12');
    expect(findFieldError(text, 'first_name')).toBe('Please enter your first name.');
    expect(findFieldError(text, 'last_name')).toBe(
      'Please enter a name without links or addresses.',
    );
    expect(findFieldError(text, 'email')).toBe(
      'Please enter a valid e-mail address, such as anna@example.com.',
    );
    expect(findFieldError(text, 'phone')).toBe('Please begin with the country code, such as +44.');
    expect(await customers()).toEqual(before);
  });

  it('JOIN-10 Where neither contact is required, one of them must be given', async () => {
    const poster = await newPoster(store, { require_email: false });
    const nobody = await send(poster, { first_name: 'Ada' });
    expect(nobody.status).toBe(422);
    expect(nobody.text).toContain('Please enter an e-mail address or a phone number.');
    expect((await send(poster, { first_name: 'Ada', phone: '+4930999001' })).status).toBe(303);
    expect((await send(poster, { first_name: 'Ada', email: newEmail() })).status).toBe(303);
  });

  it("JOIN-11 A phone number without its country is read as one of the store's `country`", async () => {
    const berlin = await service.newStore({ country: 'DE' });
    const poster = await newPoster(berlin, { contact_collection_mode: 'phone_only' });
    await send(poster, { first_name: 'Ada', phone: '0151 / 123 456 78' });
    const { body } = await berlin.get<CustomerListJson>(`${berlin.store}/customers`);
    expect(body.customers.map(({ phone }) => phone)).toEqual(['+4915112345678']);
  });

  it('JOIN-28 Where the store has no `country`, a phone number is read as one of the country of its `time_zone`', async () => {
    const poster = await newPoster(store, { require_phone: true });
    const signUp = (phone: string) => send(poster, { first_name: 'Ada', email: newEmail(), phone });
    const { status, text } = await signUp('0151 / 123 456 78');
    expect([status, findFieldError(text, 'phone')]).toEqual([
      422,
      'Please begin with the country code, such as +44.',
    ]);
    expect((await signUp('0049 151 / 28 282 828')).status).toBe(303);
    await set(store, { timeZone: 'Europe/Berlin' });
    expect((await signUp('0151 / 123 456 78')).status).toBe(303);
    await set(store, { timeZone: 'UTC' });
  });

  it('JOIN-29 A phone number that is not possible is a 422 with the request to check its digits, in the language of the page', async () => {
    const berlin = await service.newStore({ country: 'DE' });
    const poster = await newPoster(berlin, { require_email: false });
    const findError = async (phone: string) => {
      const { status, text } = await send(poster, { first_name: 'Ada', phone });
      return status === 422 ? findFieldError(text, 'phone') : undefined;
    };
    const check = 'That doesn’t look like a phone number. Please check it.';
    for (const phone of ['0151 12', '123', '+49 151 12', '0151 1234567812345678']) {
      expect([phone, await findError(phone)]).toEqual([phone, check]);
    }
    await set(berlin, { locale: 'de' });
    expect(await findError('0151 12')).toMatch(/Bitte die Ziffern prüfen/);
    const { body } = await berlin.get<CustomerListJson>(`${berlin.store}/customers`);
    expect(body.customers).toEqual([]);
  });

  it('JOIN-12 A birthday is a real day that is not in the future', async () => {
    const far = await service.newStore({ timeZone: 'Pacific/Kiritimati' });
    const poster = await newPoster(far, { require_birthday: true, minimum_age: 16 });
    const today = new Intl.DateTimeFormat('en-CA', { timeZone: 'Pacific/Kiritimati' }).format();
    const [year = '', ...rest] = today.split('-');
    const sixteen = [Number(year) - 16, ...rest].join('-');
    const dayAfter = new Date(Date.parse(sixteen) + 24 * 60 * 60_000).toISOString().slice(0, 10);
    const findError = async (birthday: string) =>
      findFieldError(
        (await send(poster, { first_name: 'Ada', email: newEmail(), birthday })).text,
        'birthday',
      );
    expect(await findError('')).toBe('Please enter your birthday.');
    expect(await findError('2001-02-29')).toMatch(/in numbers/);
    expect(await findError('2999-01-01')).toMatch(/still to come/);
    expect(await findError(dayAfter)).toBe('You need to be 16 or older.');
    const email = newEmail();
    expect((await send(poster, { first_name: 'Ada', email, birthday: sixteen })).status).toBe(303);
    const { body } = await far.get<CustomerListJson>(`${far.store}/customers`);
    expect(body.customers.map(({ birthday }) => birthday)).toEqual([sixteen]);
  });
});

describe('consents', () => {
  it('JOIN-13 Consents are asked for by boxes that are not ticked, each with the text of the store; without a text there is no box', async () => {
    const otherStore = await service.newStore();
    const poster = await newPoster(otherStore);
    expect((await open(poster)).page.text).not.toContain('type="checkbox"');
    await set(otherStore, { consentTexts: TEXTS });
    const { page } = await open(poster);
    const boxes = [...page.text.matchAll(/<input type="checkbox"[^>]*>/g)].map(([box]) => box);
    expect(boxes.map((box) => / name="(\w+)"/.exec(box)?.[1])).toEqual([
      'marketing_consent',
      'sms_consent',
    ]);
    expect(boxes.some((box) => box.includes('checked'))).toBe(false);
    expect(page.text).toContain('The café may write to me about &lt;offers&gt;.');
    expect(page.text).toContain('<p>Nobody else gets it.</p>');
    expect(page.text).toContain('href="https://cafe.example/privacy"');
    const mail = await newPoster(otherStore, { contact_collection_mode: 'email_only' });
    expect((await open(mail)).page.text).not.toContain('sms_consent');
  });

  it('JOIN-14 The words that were agreed to are recorded with the consent', async () => {
    const otherStore = await service.newStore();
    await set(otherStore, { consentTexts: TEXTS });
    const poster = await newPoster(otherStore);
    await send(poster, { first_name: 'Ada', email: newEmail(), marketing_consent: 'yes' });
    const { body } = await otherStore.get<CustomerListJson>(`${otherStore.store}/customers`);
    const [customer] = body.customers;
    expect(customer).toMatchObject({ marketing_consent: true, sms_consent: false });
    const { body: all } = await otherStore.get<{ history: { data: object }[] }>(
      `${otherStore.store}/customers/${customer?.id}/export`,
    );
    expect(all.history[0]?.data).toMatchObject({
      agreed: { marketing: TEXTS.marketing, sms: null },
    });
  });

  it('JOIN-15 When the words of a consent have changed since the page was loaded, they are shown again before anything is recorded', async () => {
    const otherStore = await service.newStore();
    await set(otherStore, { consentTexts: TEXTS });
    const poster = await newPoster(otherStore);
    const form = await open(poster);
    await set(otherStore, { consentTexts: { ...TEXTS, marketing: 'Something else.' } });
    const fields = { first_name: 'Ada', email: newEmail(), marketing_consent: 'yes' };
    const { status, text } = await form.send(fields, { 'x-forwarded-for': newAddress() });
    expect(status).toBe(422);
    expect(text).toContain('The texts beside the boxes have just changed.');
    expect(text).toContain('Something else.');
    expect(text).not.toContain('checked');
  });
});

describe('somebody who is known', () => {
  it('JOIN-16 If customers of the store already have all contacts of a form, the response is the same as for somebody new', async () => {
    const poster = await newPoster(store, {}, { initial_stamps: 1 });
    const { baseUrl } = service.running;
    const email = newEmail();
    const fields = { first_name: 'Grace', last_name: 'Hopper', email };
    const first = await send(poster, fields);
    const customer = await customerWith(email);
    const again = await send(poster, { ...fields, email: email.toUpperCase() });
    const named = ({ headers }: Sent) =>
      [...headers]
        .filter(([name]) => !['date', 'x-request-id', 'location'].includes(name))
        .map(([name, value]) => [name, value.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')])
        .sort();
    expect([again.status, again.text, named(again)]).toEqual([
      first.status,
      first.text,
      named(first),
    ]);
    expect(again.location.replace(uuidIn(again), '')).toBe(
      first.location.replace(uuidIn(first), ''),
    );
    expect(uuidIn(again)).not.toBe(uuidIn(first));
    const below = ['', '/manifest.webmanifest', '/icon.svg', '/apple', '/google'];
    for (const path of below) {
      const [one, other] = await Promise.all(
        [first, again].map((sent) => get(`/passes/${uuidIn(sent)}${path}`)),
      );
      expect([path, other?.status, alike(other ?? { text: '' })]).toEqual([
        path,
        one?.status,
        alike(one ?? { text: '?' }),
      ]);
    }
    const streams = await Promise.all(
      [first, again].map((sent) => EventStream.open(`${baseUrl}/passes/${uuidIn(sent)}/events`)),
    );
    for (const stream of streams) stream.close();
    expect(streams.map((stream) => stream.status)).toEqual([200, 200]);
    // Nothing about the customer has changed.
    expect(await customerWith(email)).toEqual(customer);
  });

  it('JOIN-17 A customer who signs up again is sent the links of their own card, at the address on file', async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    const first = await send(poster, { first_name: 'Ada', email });
    const { id } = await customerWith(email);
    await send(poster, { first_name: 'Mallory', email });
    const wishes = (await eventsOf(`customer-${id}`)).slice(1);
    expect(wishes).toMatchObject([
      {
        type: 'CardLinksRequested',
        meta: { channel: 'poster', actor: { type: 'customer', id: 0, name: 'signup' } },
      },
    ]);
    const { body } = await store.get<CustomerJson>(`${store.store}/customers/${id}`);
    expect(wishes[0]?.data).toMatchObject({ customerCardId: body.customer_cards[0]?.id });
    expect(body.customer_cards.map(({ uuid }) => uuid)).toEqual([uuidIn(first)]);
    expect(body.first_name).toBe('Ada');
  });

  it("JOIN-18 A customer's phone number is recognised however it is written", async () => {
    const otherStore = await service.newStore({ country: 'DE' });
    const poster = await newPoster(otherStore, { require_email: false });
    await otherStore.post(`${otherStore.store}/customers`, {
      customer: { first_name: 'Ada', phone: '0151 98765432' },
    });
    await otherStore.post(`${otherStore.store}/customers`, {
      customer: { first_name: 'Bob', phone: '+4915155555555' },
    });
    for (const phone of [
      '\u202A0151/98765432\u202C',
      '٠١٥١ ٩٨٧٦٥٤٣٢',
      '+49 151 98765432',
      '49 151 98765432',
      '0049 151 55555555',
      '(+49) 151 55555555',
    ]) {
      expect((await send(poster, { first_name: 'X', phone })).status).toBe(303);
    }
    const { body } = await otherStore.get<CustomerListJson>(`${otherStore.store}/customers`);
    expect(body.customers.map(({ first_name: name }) => name)).toEqual(['Bob', 'Ada']);
  });

  it('JOIN-19 A customer who signs up and does not have the card yet is enrolled on it', async () => {
    const email = newEmail();
    await store.post(`${store.store}/customers`, { customer: { first_name: 'Ada', email } });
    const poster = await newPoster(store);
    const sent = await send(poster, { first_name: 'Ada', email });
    const { customer_cards: cards } = await customerWith(email);
    expect(cards.map(({ card_id: id }) => id)).toEqual([poster.card_id]);
    expect(cards[0]?.uuid).not.toBe(uuidIn(sent));
  });

  it('JOIN-35 The contacts of a customer who was merged lead to the customer who goes on', async () => {
    const email = newEmail();
    const create = async (customer: object) =>
      (await store.post<{ id: number }>(`${store.store}/customers`, { customer })).body.id;
    const other = await create({ first_name: 'Ada', email });
    const survivor = await create({ first_name: 'Ada', email: newEmail() });
    const path = `${store.store}/customers/${survivor}`;
    expect((await store.post(`${path}/merge`, { from_customer_id: other })).status).toBe(200);
    const poster = await newPoster(store);
    expect((await send(poster, { first_name: 'Ada', email })).status).toBe(303);
    const { body } = await store.get<CustomerJson>(path);
    expect(body.customer_cards.map(({ card_id: id }) => id)).toContain(poster.card_id);
  });

  it("JOIN-20 The card that is shown instead of a customer's own has a code of its own, which finds no customer in a search", async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    await send(poster, { first_name: 'Ada', email });
    const sent = await send(poster, { first_name: 'Mallory', email });
    const { text } = await get(`/passes/${uuidIn(sent)}`);
    const [, code = ''] = /<span class="code">(\w{8})</.exec(text) ?? [];
    expect(code).toMatch(/^\w{8}$/);
    expect(text).toContain('Mallory');
    expect(await customers(code)).toEqual([]);
    expect(await customers(uuidIn(sent))).toEqual([]);
  });

  it('JOIN-21 Whoever was erased can sign up anew', async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    const first = await send(poster, { first_name: 'Ada', email });
    const again = await send(poster, { first_name: 'Ada', email });
    const { id } = await customerWith(email);
    await store.post(`${store.store}/customers/${id}/erase`);
    for (const sent of [first, again]) {
      expect((await get(`/passes/${uuidIn(sent)}`)).status).toBe(404);
    }
    const anew = await send(poster, { first_name: 'Ada', email });
    const customer = await customerWith(email);
    expect(customer.id).not.toBe(id);
    expect(customer.customer_cards[0]?.uuid).toBe(uuidIn(anew));
  });
});

describe('the card after signing up', () => {
  it('JOIN-30 When no message can be sent to the contacts that were entered, such as a phone number in a country that the store sends no SMS to, the card says so', async () => {
    const words = [
      [
        'de-DE',
        'Ein Link zur Karte wird gerade gesendet',
        'Ein Link zu dieser Karte lässt sich nicht senden',
      ],
      ['en-DE', 'We’re sending you a link to your card', 'We can’t send you a link'],
      ['fr-DE', 'Nous vous envoyons un lien vers votre carte', 'Nous ne pouvons pas vous envoyer'],
      ['es-DE', 'Le estamos enviando un enlace', 'No podemos enviarle un enlace'],
    ] as const;
    const inLanguage = async ([locale, sent, unsent]: (typeof words)[number]) => {
      const otherStore = await service.newStore({ locale });
      const poster = await newPoster(otherStore, { contact_collection_mode: 'phone_only' });
      const cardOf = async (phone: string) => {
        const { status, location } = await send(poster, { first_name: 'Ada', phone });
        expect(status).toBe(303);
        return (await get(location)).text;
      };
      expect(await cardOf('+4915112345678')).toContain(sent);
      // The second time the number is that of a customer.
      for (const phone of ['+18762101234', '+18762101234', '+8816412345678']) {
        const text = await cardOf(phone);
        expect([phone, text.includes(unsent), text.includes(sent)]).toEqual([phone, true, false]);
      }
      const { body } = await otherStore.get<CustomerListJson>(`${otherStore.store}/customers`);
      expect(body.customers).toHaveLength(3);
    };
    await Promise.all(words.map(inLanguage));
  });
});

describe('forms', () => {
  it('JOIN-22 Of several signups with the same address at the same time one becomes a customer, and all get the same response', async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    const forms = await Promise.all([open(poster), open(poster), open(poster)]);
    const all = await Promise.all(
      forms.map((form, i) =>
        form.send({ first_name: `Ada ${i}`, email }, { 'x-forwarded-for': newAddress() }),
      ),
    );
    expect(all.map(({ status }) => status)).toEqual([303, 303, 303]);
    const { customer_cards: cards } = await customerWith(email);
    expect(all.filter((sent) => uuidIn(sent) === cards[0]?.uuid)).toHaveLength(1);
  });

  it('JOIN-23 A form that is sent again leads to the same card and counts once', async () => {
    const poster = await newPoster(store);
    const form = await open(poster);
    const email = newEmail();
    const fields = { first_name: 'Ada', email };
    const from = { 'x-forwarded-for': newAddress() };
    const twice = await Promise.all([form.send(fields, from), form.send(fields, from)]);
    const later = await form.send(fields, from);
    const { id, customer_cards: cards } = await customerWith(email);
    expect([...twice, later].map(uuidIn)).toEqual(Array(3).fill(cards[0]?.uuid));
    expect(await eventsOf(`customer-${id}`)).toHaveLength(1);
    // Somebody who goes back and signs up somebody else.
    const otherResponse = await form.send({ ...fields, email: newEmail() }, from);
    expect([otherResponse.status, uuidIn(otherResponse) === cards[0]?.uuid]).toEqual([303, false]);
  });

  it('JOIN-24 A form that another site has sent is a 403', async () => {
    const poster = await newPoster(store);
    const fields = { first_name: 'Ada', email: newEmail() };
    for (const headers of [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const { status, text } = await send(poster, fields, headers);
      expect([status, text.includes('This form came from another site')]).toEqual([403, true]);
    }
    expect(await customers(fields.email)).toEqual([]);
  });

  it('JOIN-25 A form with the field filled in that people do not see is a 422', async () => {
    const poster = await newPoster(store);
    const email = newEmail();
    const { status } = await send(poster, {
      first_name: 'Ada',
      email,
      website: 'https://x.example',
    });
    expect([status, await customers(email)]).toEqual([422, []]);
  });

  it('JOIN-26 More forms from one IP address than the operator allows are 429, with `Retry-After`, and with the form again', async () => {
    const poster = await newPoster(store);
    const from = { 'x-forwarded-for': newAddress() };
    for (let i = 0; i < 4; i++) {
      expect((await send(poster, { first_name: 'Ada', email: 'none' }, from)).status).toBe(422);
    }
    const email = newEmail();
    const { status, headers, text } = await send(poster, { first_name: 'Ada', email }, from);
    expect(status).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(500);
    expect(findFieldValue(text, 'email')).toBe(email);
    expect((await send(poster, { first_name: 'Ada', email })).status).toBe(303);
  });

  it('JOIN-27 More complete forms for one poster than the operator allows are 429 too', async () => {
    const poster = await newPoster(store, { contact_collection_mode: 'phone_only' });
    for (let i = 0; i < 25; i++) await send(poster, { first_name: 'Ada' });
    const all = await Promise.all(
      Array.from({ length: 25 }, (_, i) =>
        send(poster, { first_name: 'Ada', phone: `+4930777${String(i).padStart(3, '0')}` }),
      ),
    );
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(24).fill(303), 429]);
  });

  it('JOIN-31 The addresses of one network (a /24 of IPv4, a /48 of IPv6) may together send no more complete forms to a poster than one of them may: 429 as well', async () => {
    const poster = await newPoster(store);
    const stranger = (i: number) => ({ 'x-forwarded-for': `2001:db8:ffff:${i}::1` });
    const from = async (headers: Record<string, string>) =>
      (await send(poster, { first_name: 'Ada', email: newEmail() }, headers)).status;
    const statuses = await Promise.all(Array.from({ length: 8 }, (_, i) => from(stranger(i))));
    expect(statuses.sort()).toEqual([...Array(4).fill(303), ...Array(4).fill(429)]);
    // Refused forms took nothing from the poster, nor from other networks.
    expect(await Promise.all([from({}), from({})])).toEqual([303, 303]);
  });
});

describe('messages that signup pages ask for', () => {
  let mails: MailServer;
  let provider: SmsProvider;
  let follower: MessageFollower;

  beforeAll(async () => {
    [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
    follower = new MessageFollower(service.running, {
      SMTP_URL: mails.url,
      MAIL_FROM: 'inkpad@shop.example',
      ...provider.settings,
    });
  });
  afterAll(async () => {
    await follower.stop();
    await Promise.all([mails.goAway(), provider.stop()]);
  });

  const messagesOf = async ({ accountId }: ContractClient) => {
    await follower.waitUntilSettled();
    const { rows } = await service.running.database.query<{ channel: string; state: string }>(
      `select channel, state from ${CARD_LINKS} where account_id = $1 order by 1, 2`,
      [accountId],
    );
    return rows.map(({ channel, state }) => `${channel} ${state}`);
  };

  /** Why messages are held. */
  const reasonsOf = async ({ accountId }: ContractClient) => {
    const { rows } = await service.running.database.query<{ reason: string }>(
      `select reason from ${CARD_LINKS} where account_id = $1 and state = 'held'`,
      [accountId],
    );
    return rows.map(({ reason }) => reason);
  };

  it('JOIN-32 Of the messages that signup pages ask for, one network gets a tenth of what the store may send in a day, by SMS (`sms_per_day`) and by e-mail', async () => {
    const cafe = await service.newStore({ locale: 'en-DE' });
    const byPhone = await newPoster(cafe, { contact_collection_mode: 'phone_only' });
    let phones = 0;
    const signUp = async (ip: string) => {
      const phone = `+4915112340${String(++phones).padStart(3, '0')}`;
      const fields = { first_name: 'Ada', phone };
      const { status, location } = await send(byPhone, fields, { 'x-forwarded-for': ip });
      expect(status).toBe(303);
      return { phone, joined: location.split('?')[1] };
    };
    const strangers = await Promise.all([1, 2, 3, 4].map((i) => signUp(`198.51.100.${i}`)));
    expect(strangers.map(({ joined }) => joined).sort()).toEqual([
      ...Array(2).fill('joined=1'),
      ...Array(2).fill('joined=unsent'),
    ]);
    expect(await messagesOf(cafe)).toEqual(['sms held', 'sms held', 'sms sent', 'sms sent']);
    // Each store has a day of its own, and so has each channel.
    const otherStore = await service.newStore({ locale: 'en-DE' });
    const poster = await newPoster(otherStore);
    const byMail = (headers: Record<string, string>) =>
      send(poster, { first_name: 'Ada', email: newEmail() }, headers);
    const [customer] = await Promise.all([
      signUp('203.0.113.1'),
      byMail({ 'x-forwarded-for': '198.51.100.1' }),
      byMail({ 'x-forwarded-for': '198.51.100.2' }),
      byMail({}),
    ]);
    expect(await messagesOf(otherStore)).toEqual(['email held', 'email sent', 'email sent']);
    expect(customer.joined).toBe('joined=1');
    expect(provider.to(customer.phone)).toHaveLength(1);
    // Held messages are not lost: a person may send them.
    const { rows } = await service.running.database.query<{ id: string }>(
      `select id from ${CARD_LINKS} where account_id = $1 and state = 'held'`,
      [cafe.accountId],
    );
    const outbox = service.running.app.get(Outbox, { strict: false });
    const by = { ...cli, accountId: cafe.accountId };
    for (const { id } of rows) expect(await outbox.send(by, id)).toBe(true);
    expect(await messagesOf(cafe)).toEqual(Array(5).fill('sms sent'));
  });

  it('JOIN-33 A store sends `signup_mails_per_day` e-mails that signup pages ask for, and holds the others', async () => {
    const cafe = await service.newStore();
    const posters = [await newPoster(cafe), await newPoster(cafe)];
    await Promise.all(
      [...posters, ...posters, ...posters].map((poster) =>
        send(poster, { first_name: 'Ada', email: newEmail() }),
      ),
    );
    // Messages that its own people ask for go on.
    await cafe.post(`${cafe.store}/customers`, {
      customer: { first_name: 'Ada', email: newEmail() },
      card_id: posters[0]?.card_id,
      send_card_links: true,
    });
    expect(await messagesOf(cafe)).toEqual(['email held', ...Array(6).fill('email sent')]);
  });

  it('JOIN-34 A form that is sent again asks for no further message', async () => {
    const cafe = await service.newStore({ locale: 'en-DE' });
    const poster = await newPoster(cafe, { contact_collection_mode: 'phone_only' });
    const from = { 'x-forwarded-for': '192.0.2.1' };
    const form = await open(poster);
    const fields = { first_name: 'Ada', phone: '+4915112349001' };
    for (let i = 0; i < 3; i++) expect((await form.send(fields, from)).status).toBe(303);
    await send(poster, { first_name: 'Bob', phone: '+4915112349002' }, from);
    expect(await messagesOf(cafe)).toEqual(['sms sent', 'sms sent']);
  });

  it('JOIN-36 A form without a phone number sends no SMS to a number on file: it is held, and the outbox names that reason', async () => {
    const cafe = await service.newStore({ locale: 'en-DE' });
    const poster = await newPoster(cafe, { contact_collection_mode: 'email_only' });
    const email = newEmail();
    await cafe.post(`${cafe.store}/customers`, {
      customer: { first_name: 'Ada', email, phone: '+4915112349101' },
    });
    mails.refuse(email);
    expect((await send(poster, { first_name: 'Ada', email })).status).toBe(303);
    expect(await messagesOf(cafe)).toEqual(['sms held']);
    expect(await reasonsOf(cafe)).toEqual(['phone_not_entered']);
  });

  it('JOIN-37 A form counts for the channels of the contacts in it', async () => {
    const cafe = await service.newStore({ locale: 'en-DE' });
    const poster = await newPoster(cafe, { require_email: false });
    const from = { 'x-forwarded-for': '192.0.2.37' };
    const joinedWith = async (contacts: Record<string, string>) =>
      (await send(poster, { first_name: 'Ada', ...contacts }, from)).location.split('?')[1];
    const onFile = { first_name: 'Ada', email: newEmail(), phone: '+4915112349203' };
    await cafe.post(`${cafe.store}/customers`, { customer: onFile });
    // Neither the two SMS of the network nor its only e-mail are spent by forms for the other channel.
    expect(await joinedWith({ phone: '+4915112349201' })).toBe('joined=1');
    await joinedWith({ email: newEmail() });
    expect(await joinedWith({ phone: '+4915112349202' })).toBe('joined=1');
    expect(await messagesOf(cafe)).toEqual(['email sent', 'sms sent', 'sms sent']);
    // The customer has an e-mail address on file.
    expect(await joinedWith({ phone: onFile.phone })).toBe('joined=unsent');
    expect(await messagesOf(cafe)).toEqual(['email sent', 'sms held', 'sms sent', 'sms sent']);
    expect(await reasonsOf(cafe)).toEqual(['too_many_signups']);
  });

  it('JOIN-38 A form that is sent again leads to a card that says the same: that a link is on its way, or that none is', async () => {
    const cafe = await service.newStore({ locale: 'en-DE' });
    const poster = await newPoster(cafe, { contact_collection_mode: 'phone_only' });
    const signUp = async (at: PosterJson, phone: string, times: number) => {
      const form = await open(at);
      const locations = new Set<string>();
      for (let i = 0; i < times; i++) {
        const from = { 'x-forwarded-for': `192.0.38.${i}` };
        locations.add((await form.send({ first_name: 'Ada', phone }, from)).location);
      }
      return [...locations].map((location) => location.split('?')[1]);
    };
    expect(await signUp(poster, '+4915112349301', 2)).toEqual(['joined=1']);
    expect(await signUp(poster, '+4915112349302', 2)).toEqual(['joined=1']);
    // Beyond the share of the network: somebody new, and a customer.
    const otherPoster = await newPoster(cafe, { contact_collection_mode: 'phone_only' });
    expect(await signUp(otherPoster, '+4915112349303', 2)).toEqual(['joined=unsent']);
    expect(await signUp(otherPoster, '+4915112349301', 2)).toEqual(['joined=unsent']);
  });
});
