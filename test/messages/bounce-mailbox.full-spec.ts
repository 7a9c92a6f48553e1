import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { ReachJson } from '#outbound/campaigns/message-fields.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { Dovecot } from '../support/emulators/dovecot.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const [mails, dovecot] = await Promise.all([MailServer.start(), Dovecot.start()]);
const service = useService({
  SMTP_URL: mails.url,
  MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  BOUNCE_ADDRESS: 'bounces@shop.example',
});
let dispatcher: Program;
let store: ContractClient;
let cardId: number;
let people = 0;

beforeAll(async () => {
  dispatcher = await startDispatcher(service.running, {
    BOUNCE_MAILBOX_URL: dovecot.url,
    NODE_EXTRA_CA_CERTS: dovecot.authorityFile,
    WEBHOOK_TIME_SCALE: '100',
  });
  store = await service.newStore({ locale: 'en-DE' });
  const { body } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  cardId = body.id;
});
afterAll(() => Promise.all([mails.goAway(), dovecot.stop()]));

type Customer = { id: number; email: string; messageId: string };

/** Adds a customer who has got the link of their card. */
async function add(): Promise<Customer> {
  const email = `anna${++people}@mail.example`;
  const { body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email, marketing_consent: true },
    card_id: cardId,
    send_card_links: true,
  });
  const [mail] = await eventually(
    () => mails.received.filter(({ to }) => to === email),
    ({ length }) => length === 1,
  );
  const [, messageId = ''] = /^Message-ID: (<.*>)$/im.exec(mail?.headers ?? '') ?? [];
  return { id: body.id, email, messageId };
}

const renderReport = (type: string, report: string, { messageId }: Pick<Customer, 'messageId'>) =>
  `
From: postmaster@mail.example
To: bounces@shop.example
Subject: Report
MIME-Version: 1.0
Content-Type: multipart/report; report-type=x; boundary="part"

--part
Content-Type: text/plain

See below.
--part
Content-Type: ${type}

${report}

--part
Content-Type: message/rfc822

From: inkpad@shop.example
Message-ID: ${messageId}
Subject: Your card

Hello
--part--
`.trimStart();

const renderBounce = (customer: Customer, address = customer.email, status = '5.1.1') =>
  renderReport(
    'message/delivery-status',
    `Reporting-MTA: dns; mx.mail.example

Final-Recipient: rfc822; ${address}
Action: failed
Status: ${status}`,
    customer,
  );

const renderComplaint = (customer: Customer, address = customer.email) =>
  renderReport(
    'message/feedback-report',
    `Feedback-Type: abuse
User-Agent: Provider/1.0
Version: 1
Original-Rcpt-To: ${address}`,
    customer,
  );

const listBounces = async ({ id }: Customer) =>
  (
    await store.get<unknown[]>(
      `${store.store}/history?type=customer.email_bounced&customer_id=${id}`,
    )
  ).body;
const waitUntilRead = () =>
  eventually(
    () => dovecot.countUnseen(),
    (count) => count === 0,
  );
const preview = async (channels: string[]) =>
  (await store.post<ReachJson>(`${store.store}/announcements/preview`, { channels })).body;

it('MSG-13 A report in the mailbox of bounces stops the address of its customer, if it is about an e-mail that went there', async () => {
  const [anna, otto, ida] = [await add(), await add(), await add()];
  for (const mail of [
    renderBounce(anna, 'somebody@else.example'),
    renderBounce(anna, anna.email, '4.2.2'),
    renderBounce(anna, anna.email, '5.7.1'),
    renderBounce({ ...anna, messageId: `<01a227bb-465a-7336-854a-095affb153e3@shop.example>` }),
    renderBounce({ ...otto, messageId: anna.messageId }),
    `Subject: Hello\n\nMessage-ID: ${anna.messageId}\n`,
    `Content-Type: multipart/report; boundary="x"\n\n--x\nContent-Type: message/rfc822\n\n`.repeat(
      50,
    ),
  ]) {
    await dovecot.deliver(mail);
  }
  await waitUntilRead();
  expect([await listBounces(anna), await listBounces(otto)]).toEqual([[], []]);
  for (const _ of [1, 2]) await dovecot.deliver(renderBounce(anna));
  await waitUntilRead();
  expect(await listBounces(anna)).toHaveLength(1);
  expect([await listBounces(otto), await listBounces(ida)]).toEqual([[], []]);
});

it('ANNOUNCE-18 Nobody is reached at an e-mail address that takes no mail: the reason is `bounced`, and the next channel is tried', async () => {
  const before = await preview(['email']);
  const anna = await add();
  await dovecot.deliver(renderBounce(anna));
  await waitUntilRead();
  const after = await preview(['email']);
  expect([after.reached, after.people]).toEqual([before.reached, before.people + 1]);
  expect(after.reasons).toContainEqual(
    expect.objectContaining({ channel: 'email', reason: 'bounced' }),
  );
  const { body } = await store.post<AnnouncementJson>(`${store.store}/announcements`, {
    title: 'Closed on Monday',
    text: 'We are back on Tuesday.',
    channels: ['email', 'wallet'],
  });
  await store.post(`${store.store}/announcements/${body.id}/send`, {});
  const path = `${store.store}/announcements/${body.id}/recipients`;
  const recipients = await eventually(
    async () => (await store.get<{ customer_id: number; reason: string | null }[]>(path)).body,
    (all) => all.some(({ customer_id: id }) => id === anna.id),
  );
  const recipient = recipients.find(({ customer_id: id }) => id === anna.id);
  expect(recipient).toMatchObject({ state: 'skipped', reason: 'bounced' });
});

it('ANNOUNCE-19 A complaint about a message in the mailbox of bounces stops the messages to its recipient (RFC 5965), as ANNOUNCE-15 does', async () => {
  const anna = await add();
  const before = (await preview(['email'])).reached;
  await dovecot.deliver(renderComplaint(anna, 'somebody@else.example'));
  await waitUntilRead();
  expect((await preview(['email'])).reached).toBe(before);
  await dovecot.deliver(renderComplaint(anna));
  await waitUntilRead();
  const after = await preview(['email']);
  expect(after.reached).toBe(before - 1);
  expect(after.reasons).toContainEqual(
    expect.objectContaining({ channel: 'email', reason: 'stopped' }),
  );
});

it('MSG-14 While the mailbox of bounces cannot be reached, everything else goes on, and its reports are read later', async () => {
  const anna = await add();
  await dovecot.deliver(renderBounce(anna));
  await waitUntilRead();
  await dovecot.goAway();
  const warning = 'reports wait in the mailbox of BOUNCE_MAILBOX_URL';
  await eventually(dispatcher.output, (text) => text.includes(warning));
  const otto = await add();
  await dovecot.comeBack();
  await dovecot.deliver(renderBounce(otto));
  await waitUntilRead();
  expect(await listBounces(otto)).toHaveLength(1);
  expect(dispatcher.output().split(warning)).toHaveLength(2);
});
