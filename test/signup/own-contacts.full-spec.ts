import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { UpdateAccount } from '#loyalty/accounts/account.commands.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli } from '../support/services/service.js';

/** Tests what a stranger learns at a contact of their own about another one that they enter beside it. */

const ORIGIN = 'https://cards.example';
const CONSENTS = { marketing_consent: 'yes', sms_consent: 'yes' };

const service = useService({
  PUBLIC_URL: ORIGIN,
  TRUST_PROXY_HOPS: '1',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
});
let mails: MailServer;
let provider: SmsProvider;
let follower: MessageFollower;
let networks = 0;
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

type Fields = Record<string, string>;

const newPerson = () => {
  const digits = String(++people).padStart(3, '0');
  return { email: `guest${digits}@mail.example`, phone: `+4915112347${digits}` };
};

async function openStore(): Promise<ContractClient> {
  const store = await service.newStore({ country: 'DE', locale: 'en-DE' });
  const consentTexts = { marketing: 'Write.', sms: 'Text.', privacy: null, privacyUrl: null };
  const { accountId } = store;
  await service.running.execute(new UpdateAccount({ ...cli, accountId }, 0, { consentTexts }));
  return store;
}

/** Finds the messages to a contact. Their links and tokens differ from card to card. */
const findMessages = (to: string): string[] =>
  [
    ...mails.received.filter((mail) => mail.to === to).map(({ text }) => text),
    ...provider.to(to).map(({ body }) => body),
  ].map((text) =>
    text.replaceAll(/passes\/[0-9a-f-]{36}/g, 'CARD').replaceAll(/c=[\w-]+/g, 'TOKEN'),
  );

/** Sends forms one after another, each from another browser. @param apart whether an hour passes between them */
async function sendForms(store: ContractClient, forms: Fields[], apart = true): Promise<void> {
  const poster = await newPoster(store, { require_email: false });
  for (const fields of forms) {
    const form = await SignupForm.open(service.running.baseUrl, ORIGIN, poster);
    const from = { 'x-forwarded-for': `2001:db8:${(++networks).toString(16)}::1` };
    const { status } = await form.send({ first_name: 'Grace', ...fields }, from);
    expect(status).toBe(303);
    await follower.waitUntilSettled();
    if (!apart) continue;
    await service.running.database.query(
      `update outgoing_messages set created_at = created_at - interval '1 hour' where account_id = $1`,
      [store.accountId],
    );
  }
}

const findCustomers = async (store: ContractClient) =>
  (await store.get<CustomerListJson>(`${store.store}/customers`)).body.customers;

it('JOIN-50 If customers have one contact of a form and nobody has the other, the form makes a customer with the other alone', async () => {
  for (const [own, other] of [
    ['email', 'phone'],
    ['phone', 'email'],
  ] as const) {
    for (const consents of [{}, CONSENTS]) {
      const seen = [];
      for (const isKnown of [false, true]) {
        const store = await openStore();
        const [me, second, them] = [newPerson(), newPerson(), newPerson()];
        if (isKnown) {
          await store.post(`${store.store}/customers`, {
            customer: { first_name: 'Ada', ...them },
          });
        }
        const mine = { [own]: me[own] };
        const theirs = { [other]: them[other] };
        await sendForms(store, [
          { ...mine, ...theirs, ...consents },
          theirs,
          { [own]: second[own], ...theirs, ...consents },
        ]);
        seen.push([findMessages(me[own]), findMessages(second[own])]);
        const customers = await findCustomers(store);
        const entered = customers.find((customer) => customer[own] === me[own]);
        expect(entered?.[other]).toBe(isKnown ? null : them[other]);
        const consent = other === 'phone' ? 'sms_consent' : 'marketing_consent';
        expect(entered?.[consent]).toBe(!isKnown && consents === CONSENTS);
        const owner = customers.find((customer) => customer[other] === them[other]);
        expect(owner?.first_name).toBe(isKnown ? 'Ada' : 'Grace');
      }
      expect({ own, consents, seen: seen[1] }).toEqual({ own, consents, seen: seen[0] });
      // The e-mail goes to the others then, and the SMS only to a phone that is asked for its consent.
      const count = own === 'phone' && consents !== CONSENTS ? 0 : 1;
      expect(seen[0]?.map((messages) => messages.length)).toEqual([count, count]);
    }
  }

  // Nor does a second form within minutes, with the own number alone.
  const counts = [];
  for (const isKnown of [false, true]) {
    const store = await openStore();
    const [me, them] = [newPerson(), newPerson()];
    if (isKnown)
      await store.post(`${store.store}/customers`, { customer: { first_name: 'Ada', ...them } });
    const forms = [{ phone: me.phone, email: them.email }, { phone: me.phone }];
    await sendForms(store, forms, false);
    counts.push(findMessages(me.phone).length);
  }
  expect(counts).toEqual([1, 1]);
});

it('JOIN-51 A form without an e-mail address sends nothing to an address on file: the link goes to the phone number that was entered', async () => {
  const store = await openStore();
  const person = newPerson();
  await store.post(`${store.store}/customers`, { customer: { first_name: 'Ada', ...person } });
  await sendForms(store, [{ phone: person.phone }]);
  expect([findMessages(person.email).length, findMessages(person.phone).length]).toEqual([0, 1]);
  await sendForms(store, [person]);
  expect([findMessages(person.email).length, findMessages(person.phone).length]).toEqual([1, 1]);
});
