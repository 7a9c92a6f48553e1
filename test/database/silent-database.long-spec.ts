import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Pool } from 'pg';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { newPoster } from '../support/browser/signup.js';
import { StoppableServer } from '../support/database/stoppable-postgres.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const RESPONSE_WITHIN_MS = 8_000;
const OUTCOME_WITHIN_MS = 30_500;

/** How late this process was, which is the service, and what it may be late by: it waits for several timers in a row. */
const lateness = monitorEventLoopDelay();
const TIMERS = 20;

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
  pages = [(await enrol(store)).page, new URL(poster.signup_url).pathname];
  // Opens connections, which are idle when PostgreSQL stops.
  await Promise.all(paths.map((path) => store.get(path)));
});
afterAll(async () => {
  server?.goOn();
  await service?.stop();
});

async function measure(what: string, send: () => Promise<{ status: number }>): Promise<Timed> {
  const startedAt = performance.now();
  const status = await send().then(
    (response) => response.status,
    () => 'closed' as const,
  );
  return { what, status, ms: Math.round(performance.now() - startedAt) };
}

const fetchPage = (path: string) =>
  fetch(service.baseUrl + path, { headers: { accept: 'text/html' } });

/** Sends requests that only read, are refused, or read before they write. */
function sendReads(): Promise<Timed>[] {
  const missing = `${store.store}/customers/999999`;
  const keyed = { 'idempotency-key': randomUUID() };
  return [
    ...paths.map((path) => measure('a card', () => store.get(path))),
    measure('a list', () => store.get(`${store.store}/customers`)),
    measure('the cards', () => store.get(`${store.store}/cards`)),
    measure('the rewards', () => store.get(`${store.store}/rewards`)),
    measure('a record that is missing', () => store.post(`${missing}/customer_cards`, {})),
    measure('a change of one that is missing', () =>
      store.send('PATCH', missing, { customer: { first_name: 'Bea' } }),
    ),
    measure('a stamp under a key', () => store.send('POST', `${paths[0]}/stamp`, {}, keyed)),
    ...pages.map((path) => measure(path, () => fetchPage(path))),
    measure('signing in', () => new Browser(service).signIn(store.email, 'wrong password')),
    measure('readiness', () => fetch(`${service.baseUrl}/health/ready`)),
  ];
}

/** Sends requests that write. */
function sendWrites(): Promise<Timed>[] {
  return [
    // Several for each card, which wait for one another.
    ...paths.flatMap((path) => [1, 2, 3].map(() => measure('a stamp', () => store.stamp(path)))),
    measure('a customer', () =>
      store.post(`${store.store}/customers`, {
        customer: { first_name: 'Bea', email: `${randomUUID()}@example.com` },
      }),
    ),
    measure('a subscription', () =>
      store.post(`${store.store}/webhook_subscriptions`, {
        event: 'stamp.earned',
        target_url: 'https://example.com/',
      }),
    ),
  ];
}

describe.each([
  ['from now on', false],
  ['since reads have failed', true],
])('a PostgreSQL that does not respond %s', (_since, isKnown) => {
  it('makes reads fail with 503 within 8 seconds, and writes fail within 30 seconds', async () => {
    const before = await Promise.all(paths.map((path) => store.readBalance(path)));
    server.stop();
    lateness.reset();
    lateness.enable();
    const reads: Timed[] = [];
    let writes: Timed[];
    try {
      if (isKnown) reads.push(...(await Promise.all(sendReads())));
      const pendingWrites = sendWrites();
      const pendingReads = sendReads();
      // More, while others wait for a connection. Once the silence is known, none waits.
      const pool = service.app.get<DatabasePool>(Pool, { strict: false });
      if (!isKnown) {
        await eventually(
          () => pool.queuedCount,
          (count) => count > 0,
        );
      }
      pendingReads.push(...sendReads());
      reads.push(...(await Promise.all(pendingReads)));
      writes = await Promise.all(pendingWrites);
    } finally {
      server.goOn();
      lateness.disable();
    }
    const lateMs = (TIMERS * lateness.max) / 1e6;
    const isLate = ({ ms, status }: Timed) =>
      ms - lateMs > (status === 'closed' ? OUTCOME_WITHIN_MS : RESPONSE_WITHIN_MS);
    expect(reads.filter((read) => isLate(read) || read.status !== 503)).toEqual([]);
    const late = writes.filter(isLate);
    expect(late).toEqual([]);
    // With KurrentDB every change reads first, so that no commit was sent whose outcome is unknown.
    const isNoneSent = isKnown || service.environment['EVENT_STORE_URL'] !== undefined;
    expect(new Set(writes.map(({ status }) => status))).toEqual(
      new Set(isNoneSent ? [503] : [503, 'closed']),
    );
    await eventually(
      () => fetchPage('/health/ready'),
      ({ status }) => status === 200,
    );
    // A 503 has written nothing; a closed connection may have.
    const closedCount = writes.filter(({ status }) => status === 'closed').length;
    const after = await eventually(
      () => Promise.all(paths.map((path) => store.readBalance(path))),
      (counts) => counts.every((count) => count !== undefined),
    );
    const writtenCount = after.reduce((sum, count, i) => sum + count - (before[i] ?? 0), 0);
    expect(writtenCount).toBeLessThanOrEqual(closedCount);
    for (const path of paths) {
      expect((await store.stamp(path)).status).toBe(200);
    }
  });
});
