import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient, InkpadError } from '../../clients/typescript/src/client.js';
import {
  verifyWebhook,
  type WebhookEvent,
  type WebhookRequest,
} from '../../clients/typescript/src/webhooks.js';
import { readLocalService, type LocalService } from './local-service.js';
import { parseProgram } from './programs.js';

/**
 * Plays the main scenario against a running `npm start`: a shop creates a card and a reward, enrols a
 * customer, stamps until the reward unlocks and redeems it, while its webhook receiver gets each event
 * signed. Exits 1 if anything is not as expected.
 */

const WAIT_MS = 20_000;

parseProgram('demo');

let service: LocalService;
try {
  service = readLocalService();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

console.error(`service: ${service.base_url}, store ${service.account_id}`);

const inkpad = createClient({ baseUrl: service.base_url, token: service.api_token });
const store = { account_id: service.account_id };
const received: WebhookRequest[] = [];
let news: () => void = () => undefined;

const receiver = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    received.push({ headers: request.headers, body });
    response.writeHead(204).end();
    news();
  });
});

try {
  await runDemo();
  console.log('\nEverything works as expected.');
} catch (error) {
  console.error(
    `\nSomething went wrong: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exitCode = 1;
} finally {
  receiver.closeAllConnections();
  receiver.close();
}

async function runDemo(): Promise<void> {
  await inkpad.getStatus().catch((cause: unknown) => {
    // Any response comes from a service that runs; the client's own errors have no status.
    if (cause instanceof InkpadError && cause.status > 0) throw cause;
    throw new Error(`${service.base_url} does not respond. Run npm start first, then try again.`, {
      cause,
    });
  });
  print(`The service is running at ${service.base_url}`);

  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
  const { port } = receiver.address() as AddressInfo;
  const target_url = `http://127.0.0.1:${port}/webhooks`;
  const { id, secret } = await inkpad.createWebhookSubscription({
    path: store,
    body: { events: ['*'], target_url, description: 'demo' },
  });
  print(`A receiver at ${target_url} subscribes to every event`);
  try {
    await runScenes(secret);
  } finally {
    await inkpad.deleteWebhookSubscription({ path: { ...store, id } });
  }
  print('The subscription has been deleted');
}

async function runScenes(secret: string): Promise<void> {
  const card = await inkpad.createCard({
    path: store,
    body: { card: { name: 'Coffee card', stamps_required: 5, initial_stamps: 1 } },
  });
  print('The shop creates a card for 5 stamps, the first of them a welcome gift');
  const reward = await inkpad.createReward({
    path: store,
    body: { reward: { card_id: card.id, name: 'Free coffee', stamps_required: 5 } },
  });
  print('… and adds a reward: a free coffee for 5 stamps');

  const customer = await inkpad.createCustomer({
    path: store,
    body: {
      customer: { first_name: 'Anna', email: `anna.${Date.now()}@example.com` },
      card_id: card.id,
    },
  });
  if (!customer.customer_card) throw new Error('expected that the customer gets the card');
  const path = { ...store, customer_id: customer.id, id: customer.customer_card.id };
  print('Anna joins and gets the card');

  for (let visit = 1; visit <= 4; visit++) {
    const body = { stamps: 1, external_ref: `demo ${Date.now()} ${visit}` };
    const stamped = await inkpad.stampCustomerCard({ path, body });
    check(stamped.stamps_count === visit + 1, `there are ${visit + 1} stamps after visit ${visit}`);
    print(`Visit ${visit}: ${'●'.repeat(visit + 1)}${'○'.repeat(4 - visit)}`);
    if (visit === 4) {
      const again = await inkpad.stampCustomerCard({ path, body });
      check(again.stamps_count === 5, 'a repeated receipt adds nothing');
      print('The till sends the last receipt twice: it counts once');
      check(stamped.available_rewards[0]?.id === reward.id, 'the reward is available');
    }
  }

  const body = { reward_id: reward.id };
  const { redemption } = await inkpad.redeemReward({ path, body });
  check(redemption.stamps_remaining === 0, 'the redemption deducts the five stamps');
  print(`Anna gets her ${redemption.reward_name.toLowerCase()}`);
  const rejection = await inkpad.redeemReward({ path, body }).catch((error: unknown) => error);
  const isRefused = rejection instanceof InkpadError && rejection.code === 'insufficient_stamps';
  check(isRefused, `a second redemption is refused (got ${String(rejection)})`);
  print('A second redemption is refused: the stamps are spent');

  const customerCard = await inkpad.getCustomerCard({ path });
  check(customerCard.stamps_count === 0, 'the card is empty when read back');
  const { stamp_count } = await inkpad.getCustomer({ path: { ...store, id: customer.id } });
  check(stamp_count === 0, 'the customer has no stamps left');
  print('Reading the card and the customer confirms it');
  await checkReceived(secret);
}

async function checkReceived(secret: string): Promise<void> {
  const expected = [
    'card.created',
    'reward.created',
    'customer.created',
    'customer_card.created',
    'stamp.earned',
    'stamp.earned',
    'stamp.earned',
    'stamp.earned',
    'stamp.earned',
    'reward.unlocked',
    'reward.redeemed',
  ];
  await waitForWebhooks(expected.length);
  print(`The receiver got ${received.length} webhooks:`);
  const events = received.map((webhook) => verifyAndPrint(webhook, secret));
  const types = events.map((event) => event.type);
  check(types.join() === expected.join(), `the events arrive in order (got ${types.join(', ')})`);
  const ids = new Set(events.map((event) => event.id));
  check(ids.size === expected.length, 'every event has a unique id');
}

function verifyAndPrint(webhook: WebhookRequest, secret: string): WebhookEvent {
  const event = verifyWebhook(webhook, secret);
  console.log(`    ✓ ${event.type.padEnd(22)} ${event.id}  signature valid`);
  return event;
}

async function waitForWebhooks(count: number): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while (received.length < count) {
    const left = deadline - performance.now();
    check(left > 0, `${count} webhooks arrive within 20 s (got ${received.length})`);
    await new Promise<void>((wake) => {
      const timer = setTimeout(wake, left);
      news = () => {
        clearTimeout(timer);
        wake();
      };
    });
  }
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`expected that ${what}`);
}

function print(line: string): void {
  console.log(`  ${line}`);
}
