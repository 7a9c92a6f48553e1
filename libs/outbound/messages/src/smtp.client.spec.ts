import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readConfig } from '#configuration/config.js';
import { MailServer } from '../../../../test/support/emulators/mail-server.js';
import { SmtpClient } from './smtp.client.js';

let server: MailServer;
let client: SmtpClient;

beforeAll(async () => {
  server = await MailServer.start();
  const mail = { SMTP_URL: server.url, MAIL_FROM: 'inkpad@shop.example' };
  const DATABASE_URL = 'postgres://inkpad@127.0.0.1/inkpad';
  client = new SmtpClient(readConfig({ DATABASE_URL, MASTER_KEY: 'A'.repeat(43) + '=', ...mail }));
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
