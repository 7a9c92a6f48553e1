import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { MailServer } from '../support/emulators/mail-server.js';
import type { Receiver } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { enrolled } from '../support/browser/web-card.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

const SLOW = 120_000;

let service: Service;
const { receiveHeld, startDispatcher, ask } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
}, SLOW);
afterAll(() => service.stop(), SLOW);

/** Rendered deliveries about somebody, of which the first is under way to a receiver that takes its time. */
async function waiting(environment: NodeJS.ProcessEnv = {}) {
  const store = await service.newStore();
  const { receiver, release } = await receiveHeld();
  const subscription = await subscribe(store, receiver);
  const { path, customer } = await enrol(store);
  await stamp(store, path, 5);
  const dispatcher = await startDispatcher(environment);
  await eventually(
    async () => [await renderedFor(subscription), receiver.received.length],
    ([bodies = 0, sent = 0]) => bodies === 5 && sent > 0,
  );
  return { store, receiver, release, customer, dispatcher };
}

async function erase(store: Client, { id }: { id: number }): Promise<number> {
  const began = performance.now();
  const { status } = await store.post(`${store.store}/customers/${id}/erase`);
  expect(status).toBe(204);
  return performance.now() - began;
}

/** All that came after the first ones, once all five events have come. */
async function afterwards(receiver: Receiver, first: number): Promise<string[]> {
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

describe('while somebody is erased', () => {
  it(
    'a dispatcher that stands still delays the response by 5 seconds at most, and sends nothing of them afterwards',
    async () => {
      const { store, receiver, release, customer, dispatcher } = await waiting();
      dispatcher.signal('SIGSTOP');
      const milliseconds = await erase(store, customer);
      expect([milliseconds > 2_000, milliseconds < 6_500]).toEqual([true, true]);
      const first = receiver.received.length;
      dispatcher.signal('SIGCONT');
      release();
      expectRedacted(await afterwards(receiver, first));
      const { customer: other } = await enrol(store);
      expect(await erase(store, other)).toBeLessThan(2_000);
    },
    SLOW,
  );

  // 1. The mail server has been told the recipient, and takes its time. The dispatcher is stopped.
  // 2. The customer is erased. The mail server asks for the text, and then the dispatcher goes on.
  it(
    'a dispatcher that stands still in the middle of an e-mail does not send its text',
    async () => {
      const mails = await MailServer.start();
      try {
        const release = mails.holdRecipients();
        const store = await service.newStore();
        const { customerId } = await enrolled(store, {
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
        await erase(store, { id: customerId });
        release();
        dispatcher.signal('SIGCONT');
        await eventually(
          () => messageStatesOf(customerId),
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
    'a dispatcher that hears nothing of the database sends nothing of them (%s)',
    async (silence) => {
      const line = await DatabaseProxy.to(service.database.url);
      try {
        const { store, receiver, release, customer } = await waiting({ DATABASE_URL: line.url });
        line[silence]();
        expect(await erase(store, customer)).toBeLessThan(6_500);
        const first = receiver.received.length;
        release();
        line.unmute();
        expectRedacted(await afterwards(receiver, first));
      } finally {
        await line.close();
      }
    },
    SLOW,
  );
});

async function renderedFor({ id }: { id: number }): Promise<number> {
  const [row] = await ask<{ count: number }>(
    `select count(*)::int as count from webhook_deliveries d join webhook_bodies b on b.seq = d.event_seq
     where d.subscription_id = $1`,
    id,
  );
  return row?.count ?? 0;
}

async function messageStatesOf(customerId: number): Promise<string[]> {
  const rows = await ask<{ state: string }>(
    'select state from card_messages where customer_id = $1',
    customerId,
  );
  return rows.map(({ state }) => state);
}
