import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { randomUUID } from 'node:crypto';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import type { Failure } from '../support/http/contract.js';
import { expectFailure } from '../support/http/contract.js';
import { EventStream } from '../support/http/event-stream.js';
import type { Program } from '../support/services/program.js';
import {
  startService,
  type ApiResponse,
  type Client,
  type LocalService,
} from '../support/services/service.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const ORIGIN = 'https://cards.example';
const KEY = { 'idempotency-key': 'before the outage' };

let service: LocalService;
let store: Client & { email: string };
let dispatcher: Program;
let dispatcherHealth: string;
let poster: PosterJson;
let card: Enrolled;
/** The path of a customer card. */
let path: string;
let firstResponse: ApiResponse;

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1', WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  dispatcher = await startDispatcher(service);
  const [, port = ''] = /health on port (\d+)/.exec(dispatcher.output()) ?? [];
  dispatcherHealth = `http://127.0.0.1:${port}/health/ready`;
  store = await service.newStore();
  ({ path } = await enrol(store));
  poster = await newPoster(store);
  card = await enrol(store);
  firstResponse = await store.send('POST', `${path}/stamp`, { stamps: 1 }, KEY);
});
afterAll(() => service.stop());

const databaseName = () => new URL(service.database.url).pathname.slice(1);

async function asAdmin(statement: string): Promise<void> {
  const url = new URL(service.database.ownerUrl);
  url.pathname = '/postgres';
  const client = new pg.Client(url.href);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Ends the sessions of the service and waits for their end, so that every request has to connect again. */
const endSessions = () =>
  asAdmin(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where datname = '${databaseName()}' and application_name like 'inkpad %'`,
  );

/** Lets every write fail with this error from now on. */
async function failWith(code: string, message: string): Promise<void> {
  await service.database.query(`
    create or replace function fail() returns trigger language plpgsql as $$
    begin raise exception using errcode = '${code}', message = '${message}'; end $$`);
  for (const table of ['es.events', 'audit_log', 'sessions']) {
    await service.database.query(
      `create trigger failing before insert or update on ${table} for each statement execute function fail()`,
    );
  }
}

const workAgain = () => service.database.query('drop function fail cascade');

async function readReadiness(process: 'api' | 'dispatcher') {
  const response = await fetch(
    process === 'api' ? `${service.baseUrl}/health/ready` : dispatcherHealth,
  );
  return { status: response.status, body: await response.json() };
}

async function untilReady(): Promise<void> {
  for (const process of ['api', 'dispatcher'] as const) {
    await eventually(
      () => readReadiness(process),
      ({ status }) => status === 200,
    );
  }
}

/** Waits until a stamp succeeds. */
async function untilStamped(): Promise<void> {
  await eventually(
    () => store.stamp(path),
    ({ status }) => status === 200,
  );
}

const UNREADY = {
  status: 503,
  body: { status: 'unavailable', checks: expect.objectContaining({ database: 'unavailable' }) },
};

/** Lists changes of every kind. */
function listChanges(): Record<string, () => Promise<ApiResponse<Failure>>> {
  const customer = () => ({
    customer: { first_name: 'Bea', email: `${randomUUID()}@example.com` },
  });
  return {
    'a stamp': () => store.post<Failure>(`${path}/stamp`, { stamps: 1 }),
    'a stamp under a key': () =>
      store.send('POST', `${path}/stamp`, { stamps: 1 }, { 'idempotency-key': randomUUID() }),
    'a customer': () => store.post(`${store.store}/customers`, customer()),
    'a card': () => store.post(`${store.store}/cards`, { card: { name: 'Tea' } }),
    'a subscription': () =>
      store.post(`${store.store}/webhook_subscriptions`, {
        event: 'stamp.earned',
        target_url: 'http://127.0.0.1:9/',
      }),
    'a subscription under a key': () =>
      store.send(
        'POST',
        `${store.store}/webhook_subscriptions`,
        { event: 'stamp.earned', target_url: 'http://127.0.0.1:9/' },
        { 'idempotency-key': randomUUID() },
      ),
  };
}

async function expectUnavailable(response: ApiResponse<Failure>): Promise<void> {
  expectFailure(response, 503, 'unavailable');
  expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expect(response.body.resolution).toContain('Nothing was written');
}

async function countEventsSince(revision: number): Promise<number> {
  return (await service.history()).length - revision;
}

describe.each([
  {
    what: 'with a read-only database',
    begin: async () => {
      await asAdmin(`alter database ${databaseName()} set default_transaction_read_only = on`);
      await endSessions();
    },
    end: async () => {
      await asAdmin(`alter database ${databaseName()} reset default_transaction_read_only`);
      await endSessions();
    },
    isReadOnly: true,
  },
  {
    what: 'with a full disk',
    begin: () => failWith('53100', 'could not extend file: No space left on device'),
    end: workAgain,
  },
  {
    what: 'with a failing disk',
    begin: () => failWith('58030', 'could not write to file: Input/output error'),
    end: workAgain,
  },
])('$what', ({ begin, end, isReadOnly = false }) => {
  let before: number;
  const logError = jest.spyOn(Logger.prototype, 'error');

  beforeAll(async () => {
    await untilReady();
    before = (await service.history()).length;
    logError.mockClear();
    await begin();
    // The first requests use the sessions that were ended.
    await eventually(
      () => store.get(path),
      ({ status }) => status === 200,
    );
  });
  afterAll(async () => {
    await end();
    await untilReady();
    await untilStamped();
  });

  it('every change gets 503 with Retry-After, and nothing is written', async () => {
    for (const change of Object.values(listChanges())) await expectUnavailable(await change());
    // In one group.
    const stamps = await Promise.all(
      Array.from({ length: 30 }, () => store.post<Failure>(`${path}/stamp`, { stamps: 1 })),
    );
    for (const response of stamps) await expectUnavailable(response);
    expect(await countEventsSince(before)).toBe(0);
    const lines = logError.mock.calls.filter(([line]) => String(line).includes('database refuses'));
    expect(lines).toHaveLength(1);
  });

  it('GET /health/ready of the api responds 503, and GET /health/live 200', async () => {
    // Such an error counts for some seconds.
    const readiness = await eventually(
      async () => {
        await store.stamp(path);
        return readReadiness('api');
      },
      ({ status }) => status === 503,
    );
    expect(readiness).toEqual(UNREADY);
    // The dispatcher notices a failing disk only when it writes.
    const dispatcherStatus = isReadOnly ? 503 : (await readReadiness('dispatcher')).status;
    await eventually(
      () => readReadiness('dispatcher'),
      ({ status }) => status === dispatcherStatus,
    );
    const live = await fetch(`${service.baseUrl}/health/live`);
    expect(live.status).toBe(200);
  });

  it('reads still succeed, except those that record something in a read-only database', async () => {
    expect((await store.get(`${store.store}/customers`)).status).toBe(200);
    const replay = await store.send('POST', `${path}/stamp`, { stamps: 1 }, KEY);
    // The lease of the key is written before the stored response is read.
    const { status, text } = isReadOnly ? { status: 503, text: replay.text } : firstResponse;
    expect([replay.status, replay.text]).toEqual([status, text]);
    const page = await fetch(service.baseUrl + card.page);
    // The first visit of a card is recorded.
    expect(page.status).toBe(isReadOnly ? 503 : 200);
    const stream = await EventStream.open(`${service.baseUrl}${card.page}/events`);
    expect([200, 503]).toContain(stream.status);
    stream.close();
  });

  it('the signup form responds 503 with an HTML page', async () => {
    const form = await SignupForm.open(service.baseUrl, ORIGIN, poster);
    const response = await form.send(
      { first_name: 'Cleo', email: `${randomUUID()}@example.com` },
      { accept: 'text/html' },
    );
    expect([response.status, response.headers.get('content-type')]).toEqual([
      503,
      'text/html; charset=utf-8',
    ]);
    expect(response.text).toContain('Please try again in a moment.');
  });

  if (isReadOnly) {
    it('the sign-in form responds 503 with a page that says so', async () => {
      const browser = new Browser(service);
      const signInPage = await browser.signIn(store.email, 'wrong password');
      expect(signInPage.status).toBe(503);
      expect(signInPage.text).toContain('Not available right now');
    });
  }
});

describe('without a database connection', () => {
  const limit = (maxConnections: number) =>
    asAdmin(`alter role inkpad_app connection limit ${maxConnections}`);

  beforeAll(async () => {
    await untilReady();
    await limit(0);
    await endSessions();
  });
  afterAll(async () => {
    await limit(-1);
    await untilReady();
    await untilStamped();
  });

  it('every request that needs the database gets 503, and API requests Retry-After', async () => {
    await eventually(
      () => store.get(path),
      ({ status }) => status === 503,
    );
    for (const change of Object.values(listChanges())) await expectUnavailable(await change());
    for (const read of [path, `${store.store}/customers`, `${store.store}/cards`]) {
      await expectUnavailable(await store.get(read));
    }
    for (const page of [card.page, new URL(poster.signup_url).pathname, '/app']) {
      const response = await fetch(service.baseUrl + page, { headers: { accept: 'text/html' } });
      // Without a cookie, no session is looked up.
      expect(page === '/app' ? 200 : 503).toBe(response.status);
    }
    const signIn = await new Browser(service).signIn(store.email, 'wrong password');
    expect(signIn.status).toBe(503);
  });

  it('GET /health/ready of api and dispatcher responds 503', async () => {
    expect(await readReadiness('api')).toEqual(UNREADY);
    await eventually(
      () => readReadiness('dispatcher'),
      ({ status }) => status === 503,
    );
  });
});

it('a form of the console responds 503 when the disk is full', async () => {
  const console = await Browser.signedIn(service, store.email);
  const location = { name: 'Town', address: 'Marktplatz 1, Hamburg' };
  const { body: place } = await store.post<{ id: number }>(`${store.store}/locations`, {
    location,
  });
  await failWith('53100', 'No space left on device');
  try {
    const page = `/app/stores/${store.accountId}/locations/${place.id}`;
    const pin = { latitude: '53.5503', longitude: '9.9929' };
    const response = await console.submit(page, `${page}/pin`, pin);
    expect(response.status).toBe(503);
  } finally {
    await workAgain();
  }
});
