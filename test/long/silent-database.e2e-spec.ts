import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { newPoster } from '../support/browser/signup.js';
import { StoppableServer } from '../support/database/stoppable-postgres.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { enrolled } from '../support/browser/web-card.js';

const ANSWER_WITHIN_MS = 8_000;
const OUTCOME_WITHIN_MS = 30_500;

type Timed = { what: string; status: number | 'closed'; ms: number };

let service: LocalService;
let server: StoppableServer;
let store: Client & { email: string };
let paths: string[];
let pages: string[];

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1', DATABASE_POOL: '6' });
  server = await StoppableServer.of(service.database);
  store = await service.newStore();
  paths = [];
  for (let i = 0; i < 4; i++) paths.push((await enrol(store)).path);
  const poster = await newPoster(store);
  pages = [(await enrolled(store)).page, new URL(poster.signup_url).pathname];
  // Idle connections, as a service at work has them.
  await Promise.all(paths.map((path) => store.get(path)));
});
afterAll(async () => {
  server?.goOn();
  await service?.stop();
});

async function timed(what: string, ask: () => Promise<{ status: number }>): Promise<Timed> {
  const began = performance.now();
  const status = await ask().then(
    (answer) => answer.status,
    () => 'closed' as const,
  );
  return { what, status, ms: Math.round(performance.now() - began) };
}

const page = (path: string) => fetch(service.baseUrl + path, { headers: { accept: 'text/html' } });

/** Requests that only read, are refused, or read before they write. */
function unwritten(): Promise<Timed>[] {
  const missing = `${store.store}/customers/999999`;
  const keyed = { 'idempotency-key': randomUUID() };
  return [
    ...paths.map((path) => timed('a card', () => store.get(path))),
    timed('a list', () => store.get(`${store.store}/customers`)),
    timed('the cards', () => store.get(`${store.store}/cards`)),
    timed('the rewards', () => store.get(`${store.store}/rewards`)),
    timed('a record that is missing', () => store.post(`${missing}/customer_cards`, {})),
    timed('a change of one that is missing', () =>
      store.send('PATCH', missing, { customer: { first_name: 'Bea' } }),
    ),
    timed('a stamp under a key', () => store.send('POST', `${paths[0]}/stamp`, {}, keyed)),
    ...pages.map((path) => timed(path, () => page(path))),
    timed('signing in', () => new Browser(service).signIn(store.email, 'wrong password')),
    timed('readiness', () => fetch(`${service.baseUrl}/health/ready`)),
  ];
}

function changes(): Promise<Timed>[] {
  return [
    // Several of one card, which wait for one another.
    ...paths.flatMap((path) =>
      [1, 2, 3].map(() => timed('a stamp', () => store.post(`${path}/stamp`, { stamps: 1 }))),
    ),
    timed('a customer', () =>
      store.post(`${store.store}/customers`, {
        customer: { first_name: 'Bea', email: `${randomUUID()}@example.com` },
      }),
    ),
    timed('a subscription', () =>
      store.post(`${store.store}/webhook_subscriptions`, {
        event: 'stamp.earned',
        target_url: 'https://example.com/',
      }),
    ),
  ];
}

const stampsOf = async (path: string) =>
  (await store.get<{ stamps_count: number }>(path)).body.stamps_count;

describe.each([
  ['when it has just fallen silent', 0],
  ['when it has been silent for a while', 12_000],
])('a PostgreSQL that says nothing, %s', (_when, silentMs) => {
  it('delays no request', async () => {
    const before = await Promise.all(paths.map(stampsOf));
    server.stop();
    const requests: Promise<Timed>[] = [];
    let read: Timed[];
    let changed: Timed[];
    try {
      if (silentMs > 0) {
        requests.push(...unwritten());
        await wait(silentMs);
      }
      const changing = changes();
      const reading = unwritten();
      await wait(2_000);
      // While others wait.
      reading.push(...unwritten());
      read = await Promise.all([...requests, ...reading]);
      changed = await Promise.all(changing);
    } finally {
      server.goOn();
    }
    expect(read.filter(({ ms, status }) => ms > ANSWER_WITHIN_MS || status !== 503)).toEqual([]);
    const late = changed.filter(
      ({ ms, status }) => ms > (status === 503 ? ANSWER_WITHIN_MS : OUTCOME_WITHIN_MS),
    );
    expect(late).toEqual([]);
    expect(new Set(changed.map(({ status }) => status))).toEqual(
      new Set(silentMs > 0 ? [503] : [503, 'closed']),
    );
    await eventually(
      () => page('/health/ready'),
      ({ status }) => status === 200,
    );
    // A 503 has written nothing; whatever was closed may have.
    const closed = changed.filter(({ status }) => status === 'closed').length;
    const after = await eventually(
      () => Promise.all(paths.map(stampsOf)),
      (counts) => counts.every((count) => count !== undefined),
    );
    const written = after.reduce((sum, count, i) => sum + count - (before[i] ?? 0), 0);
    expect(written).toBeLessThanOrEqual(closed);
    for (const path of paths) {
      expect((await store.post(`${path}/stamp`, { stamps: 1 })).status).toBe(200);
    }
  });
});
