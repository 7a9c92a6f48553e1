import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { Dovecot } from '../support/emulators/dovecot.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';

let database: TestDatabase;
let mails: MailServer;
let dovecot: Dovecot;

beforeAll(async () => {
  [database, mails, dovecot] = await Promise.all([
    createTestDatabase(),
    MailServer.start(),
    Dovecot.start(),
  ]);
});
afterAll(() => Promise.all([database.close(), mails.goAway(), dovecot.stop()]));

const start = (settings: NodeJS.ProcessEnv) =>
  startProgram(
    'dist/apps/cli/doctor.js',
    createTestEnvironment(database.url, {
      PUBLIC_URL: 'http://127.0.0.1:1',
      SMTP_URL: mails.url,
      MAIL_FROM: 'Inkpad <inkpad@shop.example>',
      BOUNCE_ADDRESS: 'bounces@shop.example',
      BOUNCE_MAILBOX_URL: dovecot.url,
      NODE_EXTRA_CA_CERTS: dovecot.authorityFile,
      ...settings,
    }),
  );

it('inkpad doctor sends an e-mail to itself, and says whether it counts as that of its sender', async () => {
  const doctor = start({});
  const [mail] = await eventually(
    () => mails.received.filter(({ to }) => to === 'bounces@shop.example'),
    ({ length }) => length === 1,
  );
  await dovecot.deliver(
    `Authentication-Results: mx.shop.example; dkim=pass header.d=shop.example;
 spf=pass smtp.mailfrom=bounces@shop.example
DKIM-Signature: v=1; d=shop.example; h=From:List-Unsubscribe:List-Unsubscribe-Post; b=x
${mail?.headers}

Hello`,
  );
  await doctor.exitCode;
  const lines = doctor.output().split('\n');
  for (const line of [
    /^ok +database: its tables are up to date/,
    /^warning +PUBLIC_URL: .* cannot be reached from here/,
    /^ok +SMTP_URL: the mail server accepts the login/,
    /^ok +BOUNCE_MAILBOX_URL: the mailbox can be read/,
    /^ok +delivery: /,
    /^ok +DKIM: signed by shop.example, which is aligned/,
    /^ok +unsubscribing: /,
    /^ok +SPF of that e-mail: /,
  ]) {
    expect(lines).toContainEqual(expect.stringMatching(line));
  }
  expect(await dovecot.countUnseen()).toBe(0);
});

it('inkpad doctor exits with 1 and names what is wrong, without a password', async () => {
  const url = new URL(dovecot.url);
  url.password = 'sesame';
  const doctor = start({ BOUNCE_MAILBOX_URL: url.href, SMTP_URL: 'smtp://127.0.0.1:1' });
  expect(await doctor.exitCode).toBe(1);
  expect(doctor.output()).toMatch(
    /WRONG +BOUNCE_MAILBOX_URL: .*the server refuses the name or password/,
  );
  expect(doctor.output()).toMatch(/WRONG +SMTP_URL: /);
  expect(doctor.output()).not.toContain('sesame');
});
