import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { testEnvironment } from './support/database.js';
import { eventually } from './support/eventually.js';
import { startProgram, type Program } from './support/program.js';
import { startService, type Client, type Service } from './support/service.js';

const SLOW = 300_000;
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

let service: Service;
let store: Client;
let dispatcher: Program;
const listeners: Program[] = [];

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  store = await service.newStore();
  dispatcher = startProgram('dist/apps/dispatcher/src/main.js', {
    ...testEnvironment(service.database.url, {
      ...service.environment,
      WEBHOOK_TIME_SCALE: '100',
    }),
  });
}, SLOW);

afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.kill('SIGKILL');
});

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
}, SLOW);

function start(parameters: string[], environment: NodeJS.ProcessEnv = {}): Program {
  const listener = startProgram('dist/scripts/webhooks-listen.js', environment, parameters);
  listeners.push(listener);
  return listener;
}

async function said({ output }: Program, ...words: string[]): Promise<string> {
  return eventually(output, (text) => words.every((word) => text.includes(word)));
}

async function addressOf(listener: Program): Promise<string> {
  const text = await said(listener, 'Listening at ');
  return /Listening at (\S+)/.exec(text)?.[1] ?? '';
}

let customers = 0;

async function makeCustomer(): Promise<void> {
  const customer = { first_name: 'Ada', email: `ada${++customers}@example.com` };
  expect((await store.post(`${store.store}/customers`, { customer })).status).toBe(201);
}

const subscriptions = async () =>
  (await store.get<{ id: number }[]>(`${store.store}/webhook_subscriptions`)).body;

function post(url: string, id: string, body: string): Promise<Response> {
  const at = new Date();
  return fetch(url, {
    method: 'POST',
    body,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign(id, at, body),
      'service-event': 'stamp.earned',
    },
  });
}

it(
  'subscribes to the service that runs here, fails as it is told, and unsubscribes',
  async () => {
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'inkpad-listen-'));
    const local = {
      base_url: service.baseUrl,
      api_token: store.token,
      account_id: store.accountId,
    };
    writeFileSync(join(DATA_DIR, 'local.json'), JSON.stringify(local));
    const listener = start(['--fail', '1', '--events', 'customer.created'], { DATA_DIR });
    await said(listener, 'for customer.created');
    expect(await subscriptions()).toHaveLength(1);
    await makeCustomer();
    const text = await said(listener, 'attempt 2');
    expect(text).toMatch(/customer\.created {2}evt_\w{26} {2}signature valid, responded 500\n/);
    expect(text).toMatch(/signature valid, attempt 2, responded 204\n/);
    expect(text).toContain('"first_name": "Ada"');
    expect(text).not.toContain('DUPLICATE');
    await listener.kill('SIGINT');
    expect(await listener.exitCode).toBe(0);
    expect(listener.output()).toContain('Unsubscribed.');
    expect(await subscriptions()).toEqual([]);
  },
  SLOW,
);

it(
  'subscribes where it is told, and notices when its subscription was deleted by a 410',
  async () => {
    const where = ['--url', service.baseUrl, '--account', String(store.accountId)];
    const listener = start([...where, '--status', '410'], { INKPAD_TOKEN: `${store.token}` });
    await said(listener, 'for *');
    await makeCustomer();
    await said(listener, 'responded 410');
    await eventually(subscriptions, (left) => left.length === 0);
    await listener.kill('SIGTERM');
    expect(await listener.exitCode).toBe(0);
  },
  SLOW,
);

it('finds what came before, and what somebody else signed', async () => {
  const listener = start([], { WEBHOOK_SECRET: SECRET });
  const url = await addressOf(listener);
  expect((await post(url, 'evt_1', '{"stamps":1}')).status).toBe(204);
  expect((await post(url, 'evt_1', '{"stamps":1}')).status).toBe(204);
  const forged = await fetch(url, {
    method: 'POST',
    body: '{}',
    headers: { 'webhook-id': 'evt_2', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' },
  });
  expect(forged.status).toBe(401);
  expect((await fetch(url)).status).toBe(400);
  const text = await said(listener, 'GET /: not a webhook');
  expect(text).toMatch(/stamp\.earned \(flat\) {2}evt_1 {2}signature valid, responded 204\n/);
  expect(text).toMatch(/evt_1 {2}signature valid, attempt 2, DUPLICATE/);
  expect(text).toMatch(/evt_2 {2}INVALID SIGNATURE: .*, responded 401/);
  await listener.kill('SIGINT');
  expect(await listener.exitCode).toBe(0);
});

it('asks to be left alone, or says nothing at all', async () => {
  const busy = await addressOf(start(['--secret', SECRET, '--retry-after', '7', '--fail', '1']));
  const refused = await post(busy, 'evt_1', '{}');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('7');
  const taken = await post(busy, 'evt_1', '{}');
  expect(taken.status).toBe(204);
  expect(taken.headers.has('retry-after')).toBe(false);
  const silent = await addressOf(start(['--secret', SECRET, '--drop']));
  await expect(post(silent, 'evt_1', '{}')).rejects.toThrow('fetch failed');
});

it('ends while an answer is still held back', async () => {
  const listener = start(['--secret', SECRET, '--delay', '900000']);
  const url = await addressOf(listener);
  const held = post(url, 'evt_1', '{}').catch(() => 'no answer');
  await said(listener, 'evt_1');
  await listener.kill('SIGINT');
  expect(await listener.exitCode).toBe(0);
  expect(await held).toBe('no answer');
});

it.each([
  [['--secret', 'whsec_?'], 'must be whsec_ followed by base64'],
  [['--status', '99'], 'must be from 200 to 599'],
  [['--url', 'http://127.0.0.1:1'], '--url, --token and --account must be given together'],
  [[], 'No running service found'],
  [['--url', 'http://127.0.0.1:1', '--token', 't', '--account', '1'], 'got no response from'],
])('says what is wrong with %j', async (parameters, sentence) => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'inkpad-listen-'));
  const listener = start(parameters, { DATA_DIR });
  expect(await listener.exitCode).toBe(1);
  expect(listener.output()).toContain(sentence);
});
