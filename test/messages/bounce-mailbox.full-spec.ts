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
  BOUNCE_ADDRESS: 'bounces+{id}@shop.example',
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

/** @property mark the field of ours in the head of the e-mail @property sender its envelope sender */
type Customer = { id: number; email: string; messageId: string; mark: string; sender: string };

/** Adds a customer who has got the link of their card. */
async function add(email = `anna${++people}@mail.example`): Promise<Customer> {
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
  const [, mark = ''] = /^(X-Inkpad-Message: .*)$/im.exec(mail?.headers ?? '') ?? [];
  return { id: body.id, email, messageId, mark, sender: mail?.sender ?? '' };
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

const RELAY_ID =
  '<0100019abcdef012-5b0f4f16-4b8f-4f0e-8c1e-5c8c8e8e8e8e-000000@email.amazonses.com>';

it('MSG-15 A report is recognized behind a relay that gives e-mails an id of its own, such as Amazon SES, Microsoft 365 and Gmail', async () => {
  const behindRelays: ((customer: Customer) => string)[] = [
    // Amazon SES with the headers of the e-mail.
    (customer) => renderBounce({ ...customer, messageId: `${RELAY_ID}\n${customer.mark}` }),
    // Microsoft 365 and Gmail, which keep the id in a field of theirs.
    (customer) =>
      renderBounce({
        ...customer,
        messageId: `${RELAY_ID}\nX-Microsoft-Original-Message-ID:\n ${customer.messageId}`,
      }),
    (customer) =>
      renderBounce({
        ...customer,
        messageId: `${RELAY_ID}\nX-Google-Original-Message-ID: ${customer.messageId}`,
      }),
    // A relay of which nothing of the e-mail comes back, but the report goes to its envelope sender.
    (customer) =>
      renderBounce({ ...customer, messageId: RELAY_ID }).replace(
        'To: bounces@shop.example',
        `To: ${customer.sender}`,
      ),
  ];
  for (const render of behindRelays) {
    const customer = await add();
    expect(customer.sender).toMatch(/^bounces\+[0-9a-f-]{36}@shop\.example$/);
    expect(customer.messageId).toContain(customer.sender.slice('bounces+'.length, -13));
    await dovecot.deliver(render(customer));
    await waitUntilRead();
    expect(await listBounces(customer)).toHaveLength(1);
  }
});

it('MSG-16 A report is read as servers write it: without the type of the address, with comments, in UTF-8 (RFC 6533)', async () => {
  const untyped = await add();
  await dovecot.deliver(
    renderReport(
      'message/delivery-status',
      `Reporting-MTA: dns; mx.mail.example

Final-Recipient: ${untyped.email}
Action: failed (no such mailbox)
Status: 5.1.1 (bad destination)`,
      untyped,
    ),
  );
  // RFC 6533, encoded as relays send it on that take no UTF-8.
  const jurgen = await add('jürgen@mail.example');
  const otto = await add('ottö@mail.example');
  for (const [customer, encoding, encode] of [
    [jurgen, 'quoted-printable', encodeQuotedPrintable],
    [otto, 'base64', (text: string) => Buffer.from(text).toString('base64')],
  ] as const) {
    const report = `Reporting-MTA: dns; mx.mail.example

Final-Recipient: utf-8; ${customer.email}
Action: failed
Status: 5.1.1
`;
    const head = encode(`From: inkpad@shop.example\nMessage-ID: ${customer.messageId}\n`);
    await dovecot.deliver(
      renderReport(
        `message/global-delivery-status\nContent-Transfer-Encoding: ${encoding}`,
        encode(report),
        customer,
      ).replace(
        /Content-Type: message\/rfc822[^]*Hello/,
        `Content-Type: message/global-headers\nContent-Transfer-Encoding: ${encoding}\n\n${head}`,
      ),
    );
  }
  await waitUntilRead();
  for (const customer of [untyped, jurgen, otto])
    expect(await listBounces(customer)).toHaveLength(1);
});

it('MSG-17 A report that cannot be recorded holds up no other one', async () => {
  const [anna, otto] = [await add(), await add()];
  const { database } = service.running;
  await database.query(`
    create function es.refuse_bounce() returns trigger language plpgsql as
      'begin raise exception ''refused for a test''; end';
    create trigger refuses before insert on es.events for each row
      when (new.stream_id = 'customer-${anna.id}') execute function es.refuse_bounce()`);
  try {
    await dovecot.deliver(renderBounce(anna));
    await dovecot.deliver(renderBounce(otto));
    await eventually(
      () => listBounces(otto),
      ({ length }) => length === 1,
    );
    await eventually(dispatcher.output, (text) => text.includes('it stays unseen in the mailbox'));
    expect(await dovecot.countUnseen()).toBe(1);
    const ida = await add();
    await dovecot.deliver(renderBounce(ida));
    await eventually(
      () => listBounces(ida),
      ({ length }) => length === 1,
    );
  } finally {
    await database.query('drop trigger refuses on es.events; drop function es.refuse_bounce()');
    await dovecot.readAll();
  }
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
  // Providers hide whose mailbox it was (RFC 6590).
  for (const hidden of ['<####@mail.example>', 'c9a2b3f0d1e2@mail.example', '<####@####>']) {
    const otto = await add();
    const { reached } = await preview(['email']);
    await dovecot.deliver(renderComplaint(otto, hidden));
    await waitUntilRead();
    expect((await preview(['email'])).reached).toBe(reached - 1);
  }
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

function encodeQuotedPrintable(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) =>
      byte > 126 || byte === 61 ? `=${byte.toString(16).toUpperCase()}` : String.fromCharCode(byte),
    )
    .join('');
}
