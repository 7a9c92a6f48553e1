import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { startProgram } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { CARD_LINKS } from '../support/database/card-links.js';

let service: LocalService;
let mails: MailServer;

beforeAll(async () => {
  [service, mails] = await Promise.all([startService(), MailServer.start()]);
});
afterAll(async () => {
  await Promise.all([mails?.goAway(), service?.stop()]);
});

it('a card link by e-mail is sent exactly once although the dispatcher is killed while it sends it', async () => {
  const settings = { SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' };
  const email = 'anna@mail.example';
  mails.hang(true);
  const { startedCount } = mails;
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, { ...service.environment, ...settings }),
  );
  const { customer } = await enrol(await service.newStore(), {
    customer: { email },
    links: true,
  });
  const findMessages = async () =>
    (
      await service.database.query(
        `select state, attempts from ${CARD_LINKS} where customer_id = $1`,
        [customer.id],
      )
    ).rows;
  await eventually(
    () => mails.startedCount,
    (now) => now > startedCount,
  );
  await dispatcher.kill('SIGKILL');
  mails.hang(false);
  expect(await findMessages()).toEqual([{ state: 'queued', attempts: 1 }]);
  // Expires the killed dispatcher's lease.
  await service.database.query(
    `update outgoing_messages set due_at = now() where kind = 'card_link' and due_at is not null`,
  );
  const follower = new MessageFollower(service, settings);
  await follower.waitUntilSettled();
  await follower.stop();
  expect(mails.received.filter(({ to }) => to === email)).toHaveLength(1);
  expect(await findMessages()).toEqual([{ state: 'sent', attempts: 2 }]);
});
