import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Receiver } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';
import { CARD_LINKS } from '../support/database/card-links.js';

const SLOW = 300_000;

let service: Service;
const { receiveHeld, startDispatcher, queryRows } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);
afterAll(() => service.stop(), SLOW);

/** Prepares five rendered deliveries about a customer, the first of which a receiver holds. */
async function prepareDeliveries(environment: NodeJS.ProcessEnv = {}) {
  const store = await service.newStore();
  const { receiver, release } = await receiveHeld();
  const subscription = await subscribe(store, receiver);
  const { path, customer } = await enrol(store);
  await stamp(store, path, 5);
  const dispatcher = await startDispatcher(environment);
  await eventually(
    async () => [await countRendered(subscription), receiver.received.length],
    ([bodies = 0, sent = 0]) => bodies === 5 && sent > 0,
  );
  return { store, receiver, release, customer, dispatcher };
}

async function erase(store: Client, { id }: { id: number }): Promise<number> {
  const startedAt = performance.now();
  const { status } = await store.post(`${store.store}/customers/${id}/erase`);
  expect(status).toBe(204);
  return performance.now() - startedAt;
}

/** Waits for all five events. @returns the requests after the first ones */
async function waitForRest(receiver: Receiver, first: number): Promise<string[]> {
  await eventually(
    () => receiver.events.length,
    (count) => count === 5,
  );
  return receiver.received.slice(first).map(({ text }) => text);
}

function expectRedacted(texts: string[]): void {
  expect(texts.length).toBeGreaterThanOrEqual(4);
  for (const text of texts) {
    expect(text).toContain('"first_name":"Erased"');
    expect(text).not.toContain('Anna');
  }
}

describe('while a customer is erased', () => {
  it(
    'a paused dispatcher delays the response by about 5 seconds, and sends redacted webhooks when it resumes',
    async () => {
      const { store, receiver, release, customer, dispatcher } = await prepareDeliveries();
      dispatcher.signal('SIGSTOP');
      expect(await erase(store, customer)).toBeGreaterThan(2_000);
      const first = receiver.received.length;
      dispatcher.signal('SIGCONT');
      release();
      expectRedacted(await waitForRest(receiver, first));
      await eventually(
        async () => erase(store, (await enrol(store)).customer),
        (durationMs) => durationMs < 2_000,
      );
    },
    SLOW,
  );

  // 1. The mail server holds its response to RCPT TO. The dispatcher is paused.
  // 2. The customer is erased. The mail server accepts the recipient, and the dispatcher resumes.
  it(
    'a dispatcher paused in the middle of an e-mail to them does not send its text',
    async () => {
      const mails = await MailServer.start();
      try {
        const release = mails.holdRecipients();
        const store = await service.newStore();
        const { customer } = await enrol(store, {
          customer: { email: 'anna@mail.example' },
          links: true,
        });
        const dispatcher = await startDispatcher({
          SMTP_URL: mails.url,
          MAIL_FROM: 'Inkpad <inkpad@shop.example>',
        });
        await eventually(
          () => mails.named,
          (count) => count > 0,
        );
        dispatcher.signal('SIGSTOP');
        await erase(store, customer);
        release();
        dispatcher.signal('SIGCONT');
        await eventually(
          () => findMessageStates(customer.id),
          (states) => states.join() === 'dropped',
        );
        expect(mails.received).toEqual([]);
      } finally {
        await mails.goAway();
      }
    },
    SLOW,
  );

  it.each(['mute', 'muteResponses'] as const)(
    'a dispatcher without responses from the database sends redacted webhooks (%s)',
    async (silence) => {
      const line = await DatabaseProxy.to(service.database.url);
      try {
        const { store, receiver, release, customer } = await prepareDeliveries({
          DATABASE_URL: line.url,
        });
        line[silence]();
        await erase(store, customer);
        const first = receiver.received.length;
        release();
        line.unmute();
        expectRedacted(await waitForRest(receiver, first));
      } finally {
        await line.close();
      }
    },
    SLOW,
  );
});

async function countRendered({ id }: { id: number }): Promise<number> {
  const [row] = await queryRows<{ count: number }>(
    `select count(*)::int as count from webhook_deliveries d join webhook_bodies b on b.seq = d.event_seq
     where d.subscription_id = $1`,
    id,
  );
  return row?.count ?? 0;
}

async function findMessageStates(customerId: number): Promise<string[]> {
  const rows = await queryRows<{ state: string }>(
    `select state from ${CARD_LINKS} where customer_id = $1`,
    customerId,
  );
  return rows.map(({ state }) => state);
}
