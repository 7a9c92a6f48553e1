import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { localService, type LocalService } from './local-service.js';

/**
 * Plays the main story against a running `npm start`: a shop makes a card and a reward, enrols a
 * customer, stamps until the reward unlocks, redeems it, and a receiver of its own gets each event as
 * a signed webhook. Exits 1 when anything is not as it should be.
 */

const WAIT_MS = 20_000;

type Envelope = { id: string; type: string; timestamp: string; account_id: number; data: object };
type Received = { headers: IncomingHttpHeaders; body: string };

let service: LocalService;
try {
  service = localService();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

const store = `/api/v1/accounts/${service.account_id}`;
const received: Received[] = [];
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
  await story();
  console.log('\nEverything is as it should be.');
} catch (error) {
  console.error(`\nSomething is off: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  receiver.closeAllConnections();
  receiver.close();
}

async function story(): Promise<void> {
  say(`The service answers at ${service.base_url}`);
  await call('GET', '/api/v1/status', 200);

  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
  const { port } = receiver.address() as AddressInfo;
  const target_url = `http://127.0.0.1:${port}/webhooks`;
  const subscription = await call('POST', `${store}/webhook_subscriptions`, 201, {
    events: ['*'],
    target_url,
    description: 'demo',
  });
  say(`A receiver at ${target_url} subscribes to every event`);
  try {
    await play(z.object({ secret: z.string() }).parse(subscription).secret);
  } finally {
    const { id } = z.object({ id: z.number() }).parse(subscription);
    await call('DELETE', `${store}/webhook_subscriptions/${id}`, 204);
  }
  say('The subscription is removed again');
}

async function play(secret: string): Promise<void> {
  const anId = z.object({ id: z.number() });
  const card = anId.parse(
    await call('POST', `${store}/cards`, 201, {
      card: { name: 'Coffee card', stamps_required: 5, initial_stamps: 1 },
    }),
  );
  say('The shop makes a card that is full with 5 stamps, one of them a welcome gift');
  const reward = anId.parse(
    await call('POST', `${store}/rewards`, 201, {
      reward: { card_id: card.id, name: 'Free coffee', stamps_required: 5 },
    }),
  );
  say('… and puts a reward on it: a free coffee for 5 stamps');

  const customer = z.object({ id: z.number(), customer_card: anId }).parse(
    await call('POST', `${store}/customers`, 201, {
      customer: { first_name: 'Anna', email: `anna.${Date.now()}@example.com` },
      card_id: card.id,
    }),
  );
  const path = `${store}/customers/${customer.id}/customer_cards/${customer.customer_card.id}`;
  say('Anna joins and gets the card');

  const detail = z.object({ stamps_count: z.number(), available_rewards: z.array(anId) });
  for (let visit = 1; visit <= 4; visit++) {
    const body = { stamps: 1, external_ref: `demo ${Date.now()} ${visit}` };
    const stamped = detail.parse(await call('POST', `${path}/stamp`, 200, body));
    expect(stamped.stamps_count === visit + 1, `visit ${visit} leaves ${visit + 1} stamps`);
    say(`Visit ${visit}: ${'●'.repeat(visit + 1)}${'○'.repeat(4 - visit)}`);
    if (visit === 4) {
      const again = detail.parse(await call('POST', `${path}/stamp`, 200, body));
      expect(again.stamps_count === 5, 'the same receipt again adds nothing');
      say('The till sends the last receipt twice: it counts once');
      expect(stamped.available_rewards[0]?.id === reward.id, 'the reward is within reach');
    }
  }

  const redemption = z
    .object({ redemption: z.object({ reward_name: z.string(), stamps_remaining: z.number() }) })
    .parse(await call('POST', `${path}/redeem`, 200, { reward_id: reward.id })).redemption;
  expect(redemption.stamps_remaining === 0, 'the redemption takes the five stamps');
  say(`Anna gets her ${redemption.reward_name.toLowerCase()}`);
  await call('POST', `${path}/redeem`, 422, { reward_id: reward.id });
  say('A second one is refused: the stamps are spent');

  const shown = detail.parse(await call('GET', path, 200));
  expect(shown.stamps_count === 0, 'the card reads back empty');
  await call('GET', `${store}/customers/${customer.id}`, 200);
  say('The card reads back as it was left');

  const wanted = [
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
  await untilReceived(wanted.length);
  say(`The receiver got ${received.length} webhooks:`);
  const envelopes = received.map((webhook) => verified(webhook, secret));
  const types = envelopes.map((envelope) => envelope.type);
  expect(types.join() === wanted.join(), `the events come in order (got ${types.join(', ')})`);
  const ids = new Set(envelopes.map((envelope) => envelope.id));
  expect(ids.size === wanted.length, 'every event has an id of its own');
}

async function call(method: string, path: string, wanted: number, body?: object): Promise<unknown> {
  const response = await fetch(service.base_url + path, {
    method,
    headers: {
      authorization: `Bearer ${service.api_token}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(
    response.status === wanted,
    `${method} ${path} answers ${wanted} (got ${response.status}: ${text.slice(0, 300)})`,
  );
  return text === '' ? undefined : JSON.parse(text);
}

/** By the book of Standard Webhooks, with nothing but an HMAC. */
function verified({ headers, body }: Received, secret: string): Envelope {
  const envelope = JSON.parse(body) as Envelope;
  const header = (name: string) => String(headers[name]);
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signed = `${header('webhook-id')}.${header('webhook-timestamp')}.${body}`;
  const mine = Buffer.from(createHmac('sha256', key).update(signed).digest('base64'));
  const valid = header('webhook-signature')
    .split(' ')
    .map((signature) => Buffer.from(signature.replace(/^v1,/, '')))
    .some((theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine));
  expect(valid, `the signature of ${envelope.type} is right`);
  expect(header('webhook-id') === envelope.id, 'webhook-id is the id of the event');
  const age = Math.abs(Date.now() / 1000 - Number(header('webhook-timestamp')));
  expect(age < 300, 'the webhook was signed just now');
  console.log(`    ✓ ${envelope.type.padEnd(22)} ${envelope.id}  signature right`);
  return envelope;
}

async function untilReceived(count: number): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (received.length < count) {
    const left = deadline - Date.now();
    expect(left > 0, `${count} webhooks arrive within 20 s (got ${received.length})`);
    await new Promise<void>((wake) => {
      const timer = setTimeout(wake, left);
      news = () => {
        clearTimeout(timer);
        wake();
      };
    });
  }
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`expected that ${what}`);
}

function say(line: string): void {
  console.log(`  ${line}`);
}
