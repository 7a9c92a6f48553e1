import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readConfig } from '#configuration/config.js';
import { MailServer } from '../../../test/support/emulators/mail-server.js';
import { eventually } from '../../../test/support/jest/eventually.js';
import { SmtpClient } from './smtp.client.js';

let server: MailServer;
let client: SmtpClient;

const createClient = (settings: NodeJS.ProcessEnv = {}) =>
  new SmtpClient(
    readConfig({
      DATABASE_URL: 'postgres://inkpad@127.0.0.1/inkpad',
      MASTER_KEY: 'A'.repeat(43) + '=',
      SMTP_URL: server.url,
      MAIL_FROM: 'inkpad@shop.example',
      ...settings,
    }),
  );

beforeAll(async () => {
  server = await MailServer.start();
  client = createClient();
});
afterAll(() => server.goAway());

const MAIL = {
  to: 'ada@mail.example',
  subject: 'Your card',
  text: 'Hello Ada',
  html: '<p>Ada</p>',
};

const send = (mayBeSent: () => boolean) =>
  client.send('1', MAIL, new AbortController().signal, mayBeSent);

it('SmtpClient sends an e-mail while it is current', async () => {
  expect(await send(() => true)).toEqual({ kind: 'sent' });
  expect(server.received).toMatchObject([{ to: MAIL.to, subject: MAIL.subject }]);
});

it('SmtpClient sends no text when mayBeSent turns false after the server has asked for it', async () => {
  const { startedCount, received } = server;
  const receivedCount = received.length;
  const startedCountsAtCheck: number[] = [];
  const outcome = await send(() => {
    startedCountsAtCheck.push(server.startedCount);
    return false;
  });
  expect(outcome).toMatchObject({ kind: 'failed' });
  expect(startedCountsAtCheck).toEqual([startedCount + 1]);
  expect(received).toHaveLength(receivedCount);
});

it('SmtpClient says that an e-mail may have arrived when its text gets no reply', async () => {
  server.hang(true);
  const cut = new AbortController();
  const texts: string[] = [];
  const sending = client.send('1', MAIL, cut.signal, () => texts.push('begun') > 0);
  await eventually(
    () => texts.length,
    (count) => count > 0,
  );
  cut.abort();
  expect(await sending).toMatchObject({ kind: 'failed', mayHaveArrived: true });
  server.hang(false);
});

it('SmtpClient knows that an e-mail has not arrived which it had not begun', async () => {
  const cut = new AbortController();
  cut.abort();
  expect(await client.send('1', MAIL, cut.signal)).not.toHaveProperty('mayHaveArrived');
});

it('SmtpClient sends one e-mail after another over one connection, and several at once over one each', async () => {
  const pooled = createClient();
  const { connectionCount } = server;
  const { signal } = new AbortController();
  for (const id of ['1', '2', '3'])
    expect(await pooled.send(id, MAIL, signal)).toEqual({ kind: 'sent' });
  expect(server.connectionCount - connectionCount).toBe(1);
  const release = server.holdRecipients();
  const named = server.named;
  const sending = ['1', '2', '3'].map((id) => pooled.send(id, MAIL, signal));
  await eventually(
    () => server.named - named,
    (count) => count === 3,
  );
  release();
  for (const outcome of await Promise.all(sending)) expect(outcome).toEqual({ kind: 'sent' });
  expect(server.connectionCount - connectionCount).toBe(3);
});

it('SmtpClient sends nothing more over a connection over which a text was cut', async () => {
  const pooled = createClient();
  const { signal } = new AbortController();
  const { connectionCount, received } = server;
  const receivedCount = received.length;
  expect(await pooled.send('1', MAIL, signal)).toEqual({ kind: 'sent' });
  expect(await pooled.send('2', MAIL, signal, () => false)).toMatchObject({ kind: 'failed' });
  expect(await pooled.send('3', MAIL, signal)).toEqual({ kind: 'sent' });
  expect(server.connectionCount - connectionCount).toBe(2);
  expect(received).toHaveLength(receivedCount + 2);
});

it('SmtpClient opens another connection when the server has closed the one before', async () => {
  const pooled = createClient();
  const { signal } = new AbortController();
  const receivedCount = server.received.length;
  expect(await pooled.send('1', MAIL, signal)).toEqual({ kind: 'sent' });
  await server.goAway();
  await server.comeBack();
  expect(await pooled.send('2', MAIL, signal)).toEqual({ kind: 'sent' });
  expect(server.received).toHaveLength(receivedCount + 2);
});

it.each([
  ['5.1.1', '5.1.1'],
  ['5.7.1', '5.7.1'],
  [undefined, undefined],
  ['5.1.1.1', undefined],
])('SmtpClient tells the enhanced code of a server that refuses (%s)', async (code, status) => {
  const to = `${code ?? 'none'}@refused.example`;
  server.refuse(to, code);
  const { signal } = new AbortController();
  const outcome = await client.send('1', { ...MAIL, to }, signal);
  const error = 'responded with 550 at RCPT TO';
  expect(outcome).toEqual({ kind: 'refused', error, ...(status && { status }) });
});

it.each([
  ['the host of PUBLIC_URL', { PUBLIC_URL: 'https://Cards.Example:8443/x' }, 'cards.example'],
  [
    'the domain of MAIL_FROM for a host without a dot',
    { PUBLIC_URL: 'http://inkpad' },
    'shop.example',
  ],
  ['the domain of MAIL_FROM for an address', { PUBLIC_URL: 'http://192.0.2.1' }, 'shop.example'],
  [
    'the domain of MAIL_FROM for an IPv6 address',
    { PUBLIC_URL: 'http://[::1]:3000' },
    'shop.example',
  ],
  ['the domain of MAIL_FROM without PUBLIC_URL', {}, 'shop.example'],
  ['its A-labels', { MAIL_FROM: 'Inkpad <a@bücher.example>' }, 'xn--bcher-kva.example'],
  [
    'SMTP_EHLO_NAME',
    { PUBLIC_URL: 'https://cards.example', SMTP_EHLO_NAME: 'mail.shop.example' },
    'mail.shop.example',
  ],
])('SmtpClient introduces itself by %s', async (_, settings, name) => {
  server.clientNames.clear();
  const outcome = await createClient(settings).send('1', MAIL, new AbortController().signal);
  expect(outcome).toEqual({ kind: 'sent' });
  expect([...server.clientNames]).toEqual([name]);
});

it('SmtpClient sends in the name of a store, and in that of MAIL_FROM where it looks like an address', async () => {
  const from = createClient({ MAIL_FROM: 'Inkpad <inkpad@shop.example>' });
  for (const fromName of [
    'Café, "Zum <Löwen>"',
    'security@bank.example',
    '=?utf-8?q?security=40bank=2Eexample?=',
    'A\r\nBcc: b@c.example',
  ]) {
    const outcome = await from.send('1', { ...MAIL, fromName }, new AbortController().signal);
    expect(outcome).toEqual({ kind: 'sent' });
  }
  const mails = server.received.slice(-4);
  expect(mails.map((mail) => mail.from.replaceAll('"', ''))).toEqual([
    'Café, Zum <Löwen> <inkpad@shop.example>',
    'Inkpad <inkpad@shop.example>',
    'Inkpad <inkpad@shop.example>',
    'A Bcc: <inkpad@shop.example>',
  ]);
  expect(mails.map(({ headers }) => /^bcc/im.test(headers))).toEqual([false, false, false, false]);
});

it('SmtpClient sends a subject in which mail programs find no encoded word, and marks each e-mail for reports about it', async () => {
  const client = createClient({ BOUNCE_ADDRESS: 'bounces+{id}@shop.example' });
  const subject = '=?utf-8?q?security=40bank=2Eexample?= writes';
  const id = '01a227bb-465a-7336-854a-095affb153e3';
  expect(await client.send(id, { ...MAIL, subject }, new AbortController().signal)).toEqual({
    kind: 'sent',
  });
  const mail = server.received.at(-1);
  expect(/^Subject: (.*)$/im.exec(mail?.headers ?? '')?.[1]).toBe(`= ${subject.slice(1)}`);
  expect(mail?.headers).toContain(`X-Inkpad-Message: ${id}`);
  expect(mail?.sender).toBe(`bounces+${id}@shop.example`);
});
