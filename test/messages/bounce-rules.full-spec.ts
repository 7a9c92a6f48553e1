import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import { Browser } from '../support/browser/browser.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { eventually } from '../support/jest/eventually.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
const service = useService({
  SMTP_URL: mails.url,
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  ...provider.settings,
});
let store: ContractClient;
let cardId: number;
let people = 0;

beforeAll(async () => {
  await startDispatcher(service.running);
  store = await service.newStore({ locale: 'en-DE' });
  const { body } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  cardId = body.id;
});
afterAll(() => Promise.all([mails.goAway(), provider.stop()]));

const newAddress = () => `anna${++people}@mail.example`;
const newNumber = () => `+4915112345${String(++people).padStart(3, '0')}`;

type Customer = { id: number; page: string };

/** Adds a customer, who is sent the link of their card. */
async function add(contact: object): Promise<Customer> {
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', ...contact },
    card_id: cardId,
    send_card_links: true,
  });
  expect(status).toBe(201);
  return { id: body.id, page: `/app/stores/${store.accountId}/customers/${body.id}` };
}

/** Sends a customer the link of another card. That of the same one is sent once in ten minutes. */
async function sendAnother(browser: Browser, { id, page }: Customer): Promise<void> {
  const card = await store.post<{ id: number }>(`${store.store}/cards`, { card: { name: 'Tea' } });
  const cards = `${store.store}/customers/${id}/customer_cards`;
  const { status, body } = await store.post<{ id: number }>(cards, { card_id: card.body.id });
  expect(status).toBe(201);
  await browser.get(page);
  const sent = await browser.post(`${page}/cards/${body.id}/send_link`);
  expect(sent.location).toBe(`${page}?done=sent`);
}

const listHistory = async (id: number, name: string) =>
  (await store.get<unknown[]>(`${store.store}/history?type=${name}&customer_id=${id}`)).body;
const waitForBounce = (id: number) =>
  eventually(
    () => listHistory(id, 'customer.email_bounced'),
    ({ length }) => length === 1,
  );
const waitForMail = (address: string) =>
  eventually(
    () => mails.received.filter(({ to }) => to === address),
    ({ length }) => length === 1,
  );
const signIn = () => Browser.signedIn(service.running, store.email);

it('MSG-11 No e-mail goes to an address any more once its mail server has refused it for good', async () => {
  const browser = await signIn();
  const [email, phone] = [newAddress(), newNumber()];
  mails.refuse(email, '5.1.1');
  const anna = await add({ email, phone });
  await waitForBounce(anna.id);
  await eventually(
    () => provider.to(phone),
    ({ length }) => length === 1,
  );
  const { named } = mails;
  expect((await browser.get(anna.page)).text).toContain(
    'its mail server does not know the mailbox',
  );
  await sendAnother(browser, anna);
  await eventually(
    () => provider.to(phone),
    ({ length }) => length === 2,
  );
  expect(mails.named).toBe(named);

  expect((await browser.get(`${anna.page}?done=sent`)).text).toContain('is being sent');

  // Without a phone number the message is not sent, and the outbox says why.
  const otherAddress = newAddress();
  mails.refuse(otherAddress, '5.2.1');
  const otto = await add({ email: otherAddress });
  await waitForBounce(otto.id);
  await sendAnother(browser, otto);
  const unreachable = (await browser.get(`${otto.page}?done=sent`)).text;
  expect(unreachable).not.toContain('is being sent');
  expect(unreachable).not.toContain('Send the link again');
  await eventually(
    async () => (await browser.get(`/app/stores/${store.accountId}/messages/links`)).text,
    (text) => />Not sent</.test(text),
  );

  // A refusal for another reason says nothing about the address.
  const third = newAddress();
  mails.refuse(third, '5.7.1');
  const ida = await add({ email: third, phone: newNumber() });
  const last = newAddress();
  mails.refuse(last, '5.1.1');
  await waitForBounce((await add({ email: last })).id);
  expect(await listHistory(ida.id, 'customer.email_bounced')).toEqual([]);
});

it('MSG-12 Another e-mail address gets e-mails, and so does one that staff try again on the page of its customer', async () => {
  const browser = await signIn();
  const email = newAddress();
  mails.refuse(email, '5.1.1');
  const anna = await add({ email });
  await waitForBounce(anna.id);
  const page = await browser.get(anna.page);
  expect(page.text).toContain('Try this address again');
  mails.accept(email);
  const tried = await browser.post(`${anna.page}/retry_email`);
  expect(tried.location).toBe(`${anna.page}?done=retried`);
  expect((await browser.get(anna.page)).text).not.toContain('Try this address again');
  expect(await listHistory(anna.id, 'customer.email_retried')).toHaveLength(1);
  await sendAnother(browser, anna);
  await waitForMail(email);

  const [wrong, right] = [newAddress(), newAddress()];
  mails.refuse(wrong, '5.1.1');
  const otto = await add({ email: wrong });
  await waitForBounce(otto.id);
  const changed = await store.patch(`${store.store}/customers/${otto.id}`, {
    customer: { email: right },
  });
  expect(changed.status).toBe(200);
  expect((await browser.get(otto.page)).text).not.toContain('Try this address again');
  await sendAnother(browser, otto);
  await waitForMail(right);
});

it('ANNOUNCE-20 The recipients of a message by SMS have its `arrival` once the provider reports it: `delivered` or `undelivered`', async () => {
  const people = [newNumber(), newNumber(), newNumber()];
  for (const phone of people) await add({ phone, sms_consent: true });
  const quiet = { quiet_from: null, quiet_to: null };
  expect((await store.patch(`${store.store}/message_settings`, quiet)).status).toBe(200);
  const path = `${store.store}/announcements`;
  const { body } = await store.post<{ id: number }>(path, {
    title: 'Closed on Monday',
    text: 'We are back on Tuesday.',
    channels: ['sms'],
  });
  const sent = await store.post(`${path}/${body.id}/send`, {});
  expect(sent.status).toBe(200);
  const [one, two] = await eventually(
    () =>
      people.flatMap((phone) => provider.to(phone).filter((sms) => sms.body.includes('Tuesday'))),
    ({ length }) => length === 3,
  );
  if (!one || !two) throw new Error('no SMS was sent');
  const readArrivals = async () => {
    const { body: recipients } = await store.get<
      { state: string; channel: string | null; arrival: string | null }[]
    >(`${path}/${body.id}/recipients`);
    return recipients.filter(({ state }) => state === 'sent').map(({ arrival }) => arrival);
  };
  await eventually(readArrivals, ({ length }) => length === 3);
  expect(await readArrivals()).toEqual([null, null, null]);
  const { baseUrl } = service.running;
  expect(await provider.report(one, { MessageStatus: 'delivered' }, { baseUrl })).toBe(204);
  const failure = { MessageStatus: 'undelivered', ErrorCode: '30003' };
  expect(await provider.report(two, failure, { baseUrl })).toBe(204);
  expect(await readArrivals()).toEqual(['delivered', 'undelivered', null]);
  const browser = await signIn();
  const page = await browser.get(
    `/app/stores/${store.accountId}/messages/announcements/${body.id}`,
  );
  expect(page.text).toContain('Not delivered');
});

it('ANNOUNCE-21 A recipient who is no longer a customer has the `customer_name` null, and the `reason` `no_card` if nothing was sent', async () => {
  const email = newAddress();
  const { body: anna } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email, marketing_consent: true },
    card_id: cardId,
  });
  const path = `${store.store}/announcements`;
  const announce = async () => {
    const content = { title: 'Open again', text: 'From eight.', channels: ['email'] };
    const { body } = await store.post<{ id: number }>(path, content);
    expect((await store.post(`${path}/${body.id}/send`, {})).status).toBe(200);
    return body.id;
  };
  const findRecipient = async (id: number) => {
    const { body } = await store.get<MessageRecipientJson[]>(`${path}/${id}/recipients`);
    return body.find((recipient) => recipient.customer_id === anna.id);
  };
  const waitUntil = (id: number, state: string) =>
    eventually(
      () => findRecipient(id),
      (recipient) => recipient?.state === state,
    );
  const sent = await announce();
  await waitUntil(sent, 'sent');
  const at = (hours: number) =>
    new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
  const quiet = { quiet_from: at(-2), quiet_to: at(2) };
  expect((await store.patch(`${store.store}/message_settings`, quiet)).status).toBe(200);
  const unsent = await announce();
  await waitUntil(unsent, 'queued');
  expect((await store.post(`${store.store}/customers/${anna.id}/erase`)).status).toBe(204);
  await service.running.database.query(
    `update outgoing_messages set due_at = now() where announcement_id = $1 and state = 'queued'`,
    [unsent],
  );
  expect(await waitUntil(unsent, 'skipped')).toMatchObject({
    customer_name: null,
    reason: 'no_card',
  });
  expect(await findRecipient(sent)).toMatchObject({
    customer_name: null,
    state: 'sent',
    reason: null,
  });
  const browser = await signIn();
  const { text } = await browser.get(
    `/app/stores/${store.accountId}/messages/announcements/${unsent}`,
  );
  expect(text).toContain('No longer a customer');
  expect(text).not.toMatch(/erased/i);
});

it('ANNOUNCE-23 A message that the server of its channel refuses goes through the next channel', async () => {
  const contact = () => ({ email: newAddress(), phone: newNumber() });
  const consents = { marketing_consent: true, sms_consent: true };
  const [refused, unreachable, silent] = [contact(), contact(), contact()];
  const path = `${store.store}/announcements`;
  const quiet = { quiet_from: null, quiet_to: null };
  expect((await store.patch(`${store.store}/message_settings`, quiet)).status).toBe(200);
  const announceTo = async (customer: ReturnType<typeof contact>) => {
    const card = await store.post<{ id: number }>(`${store.store}/cards`, {
      card: { name: 'Tea' },
    });
    const { status } = await store.post(`${store.store}/customers`, {
      customer: { first_name: 'Anna', ...customer, ...consents },
      card_id: card.body.id,
    });
    expect(status).toBe(201);
    const channels = ['email', 'sms'];
    const content = { title: 'Open again', text: 'From nine.', channels, card_id: card.body.id };
    const { body } = await store.post<{ id: number }>(path, content);
    expect((await store.post(`${path}/${body.id}/send`, {})).status).toBe(200);
    return body.id;
  };
  const waitForOutcome = (id: number) =>
    eventually(
      async () => (await store.get<MessageRecipientJson[]>(`${path}/${id}/recipients`)).body,
      ([recipient]) => recipient !== undefined && recipient.state !== 'queued',
    );

  mails.refuse(refused.email);
  const first = await announceTo(refused);
  expect(await waitForOutcome(first)).toMatchObject([{ state: 'sent', channel: 'sms' }]);
  expect(provider.to(refused.phone)).toHaveLength(1);

  // So does one that is given up there.
  await mails.goAway();
  const second = await announceTo(unreachable);
  const { database } = service.running;
  await eventually(
    async () => {
      const text = `update outgoing_messages set attempts = 100, give_up_at = now(), due_at = now()
        where announcement_id = $1 and attempts > 0 and process is null`;
      return (await database.query(text, [second])).rowCount;
    },
    (count) => count === 1,
  );
  expect(await waitForOutcome(second)).toMatchObject([{ state: 'sent', channel: 'sms' }]);
  expect(provider.to(unreachable.phone)).toHaveLength(1);
  await mails.comeBack();

  // A message that may have arrived goes through no other one.
  mails.hang(true);
  const third = await announceTo(silent);
  expect(await waitForOutcome(third)).toMatchObject([{ state: 'failed', reason: 'unknown' }]);
  mails.hang(false);
  expect(provider.to(silent.phone)).toEqual([]);
});
