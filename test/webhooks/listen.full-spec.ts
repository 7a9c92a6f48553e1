import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startCommand, startProgram, type Program } from '../support/services/program.js';
import { isSigned, Receiver, type Reply } from '../support/emulators/webhook-receiver.js';
import { startService, type Client, type Service } from '../support/services/service.js';

const SLOW = 300_000;
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

let service: Service;
let store: Client;
let dispatcher: Program;
const listeners: Program[] = [];
const receivers: Receiver[] = [];

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  store = await service.newStore();
  dispatcher = startProgram('dist/apps/dispatcher/main.js', {
    ...createTestEnvironment(service.database.url, {
      ...service.environment,
      WEBHOOK_TIME_SCALE: '100',
    }),
  });
}, SLOW);

afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.kill('SIGKILL');
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
}, SLOW);

function start(parameters: string[], environment: NodeJS.ProcessEnv = {}): Program {
  const listener = startProgram('dist/apps/cli/webhooks-listen.js', environment, parameters);
  listeners.push(listener);
  return listener;
}

async function receive(reply: (nth: number) => Reply | Promise<Reply>): Promise<Receiver> {
  const receiver = await Receiver.start((_, nth) => reply(nth));
  receivers.push(receiver);
  return receiver;
}

async function waitForOutput({ output }: Program, ...words: string[]): Promise<string> {
  return eventually(output, (text) => words.every((word) => text.includes(word)));
}

async function waitForUrl(listener: Program): Promise<string> {
  const text = await waitForOutput(listener, 'Listening at ');
  return /Listening at (\S+)/.exec(text)?.[1] ?? '';
}

let customers = 0;

async function createCustomer(): Promise<void> {
  const customer = { first_name: 'Ada', email: `ada${++customers}@example.com` };
  expect((await store.post(`${store.store}/customers`, { customer })).status).toBe(201);
}

const listSubscriptions = async () =>
  (await store.get<{ id: number }[]>(`${store.store}/webhook_subscriptions`)).body;

/** Writes the file with which `npm start` tells scripts about the local service. */
function writeLocalData(): NodeJS.ProcessEnv {
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'inkpad-listen-'));
  const local = {
    base_url: service.baseUrl,
    api_token: store.token,
    account_id: store.accountId,
  };
  writeFileSync(join(DATA_DIR, 'local.json'), JSON.stringify(local));
  return { DATA_DIR };
}

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
  'webhooks:listen subscribes to the local service, fails the first attempt with --fail 1, and unsubscribes',
  async () => {
    const listener = start(['--fail', '1', '--events', 'customer.created'], writeLocalData());
    await waitForOutput(listener, 'for customer.created');
    expect(await listSubscriptions()).toHaveLength(1);
    await createCustomer();
    const text = await waitForOutput(listener, 'attempt 2');
    expect(text).toMatch(/customer\.created {2}evt_\w{26} {2}signature valid, responded 500\n/);
    expect(text).toMatch(/signature valid, attempt 2, responded 204\n/);
    expect(text).toContain('"first_name": "Ada"');
    expect(text).not.toContain('DUPLICATE');
    await listener.kill('SIGINT');
    expect(await listener.exitCode).toBe(0);
    expect(listener.output()).toContain('Unsubscribed.');
    expect(await listSubscriptions()).toEqual([]);
  },
  SLOW,
);

it(
  'webhooks:listen subscribes to the store of its options, and exits with 0 after a 410 has deleted its subscription',
  async () => {
    const target = ['--url', service.baseUrl, '--account', String(store.accountId)];
    const listener = start([...target, '--status', '410'], { INKPAD_TOKEN: `${store.token}` });
    await waitForOutput(listener, 'for *');
    await createCustomer();
    await waitForOutput(listener, 'responded 410');
    await eventually(listSubscriptions, (subscriptions) => subscriptions.length === 0);
    await listener.kill('SIGTERM');
    expect(await listener.exitCode).toBe(0);
  },
  SLOW,
);

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'webhooks:listen unsubscribes when the npx that runs it gets %s',
  async (signal) => {
    const npm = startCommand(
      ['npx', 'inkpad', 'webhooks:listen', '--events', 'customer.created'],
      writeLocalData(),
    );
    listeners.push(npm);
    await waitForOutput(npm, 'for customer.created');
    expect(await listSubscriptions()).toHaveLength(1);
    await npm.kill(signal);
    await eventually(listSubscriptions, (subscriptions) => subscriptions.length === 0);
  },
  SLOW,
);

it(
  'webhooks:listen verifies with a public key with --signature ed25519, and passes the signature on',
  async () => {
    const receiver = await receive(() => ({ status: 204 }));
    const parameters = ['--signature', 'ed25519', '--events', 'customer.created'];
    const listener = start([...parameters, '--forward-to', receiver.url], writeLocalData());
    const text = await waitForOutput(listener, 'public key');
    const [, key = ''] = /Verify with the public key (whpk_\S+)/.exec(text) ?? [];
    await createCustomer();
    await waitForOutput(listener, 'signature valid, ');
    const [webhook] = receiver.received;
    const signatures = String(webhook?.headers['webhook-signature']);
    expect(signatures).toMatch(/^v1a,/);
    await listener.kill('SIGINT');
    const url = await waitForUrl(start(['--secret', key]));
    const postAgain = (body: string) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: {
          'webhook-id': String(webhook?.headers['webhook-id']),
          'webhook-timestamp': String(webhook?.headers['webhook-timestamp']),
          'webhook-signature': signatures,
        },
      });
    expect((await postAgain(webhook?.text ?? '')).status).toBe(204);
    expect((await postAgain(`${webhook?.text} `)).status).toBe(401);
  },
  SLOW,
);

it('webhooks:listen marks duplicates and refuses invalid signatures with 401', async () => {
  const listener = start([], { WEBHOOK_SECRET: SECRET });
  const url = await waitForUrl(listener);
  expect((await post(url, 'evt_1', '{"stamps":1}')).status).toBe(204);
  expect((await post(url, 'evt_1', '{"stamps":1}')).status).toBe(204);
  const forgery = await fetch(url, {
    method: 'POST',
    body: '{}',
    headers: { 'webhook-id': 'evt_2', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' },
  });
  expect(forgery.status).toBe(401);
  expect((await fetch(url)).status).toBe(400);
  const text = await waitForOutput(listener, 'GET /: not a webhook');
  expect(text).toMatch(/stamp\.earned \(flat\) {2}evt_1 {2}signature valid, responded 204\n/);
  expect(text).toMatch(/evt_1 {2}signature valid, attempt 2, DUPLICATE/);
  expect(text).toMatch(/evt_2 {2}INVALID SIGNATURE: .*, responded 401/);
  await listener.kill('SIGINT');
  expect(await listener.exitCode).toBe(0);
});

it('webhooks:listen responds with --retry-after, and drops connections with --drop', async () => {
  const busy = await waitForUrl(start(['--secret', SECRET, '--retry-after', '7', '--fail', '1']));
  const unavailable = await post(busy, 'evt_1', '{}');
  expect(unavailable.status).toBe(503);
  expect(unavailable.headers.get('retry-after')).toBe('7');
  const response = await post(busy, 'evt_1', '{}');
  expect(response.status).toBe(204);
  expect(response.headers.has('retry-after')).toBe(false);
  const silent = await waitForUrl(start(['--secret', SECRET, '--drop']));
  await expect(post(silent, 'evt_1', '{}')).rejects.toThrow('fetch failed');
});

describe('webhooks:listen --forward-to', () => {
  it('forwards verified webhooks unchanged, and returns the receiver’s responses', async () => {
    const replies: Reply[] = [
      { status: 503, headers: { 'retry-after': '7' } },
      { status: 200, body: 'ok' },
    ];
    const receiver = await receive((nth) => replies[nth - 1] ?? { status: 204 });
    const to = `${receiver.url}?from=listener`;
    const listener = start(['--secret', SECRET, '--forward-to', to]);
    const url = await waitForUrl(listener);
    const body = '{"name":"Zoë",  "stamps":1}';
    const unavailable = await post(url, 'evt_1', body);
    expect([unavailable.status, unavailable.headers.get('retry-after')]).toEqual([503, '7']);
    const response = await post(url, 'evt_1', body);
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    const forgery = await fetch(url, { method: 'POST', body, headers: { 'webhook-id': 'evt_2' } });
    expect(forgery.status).toBe(401);

    expect(receiver.received).toHaveLength(2);
    for (const webhook of receiver.received) {
      expect([webhook.text, webhook.path]).toEqual([body, '/hooks?from=listener']);
      expect(webhook.headers).toMatchObject({
        'webhook-id': 'evt_1',
        'service-event': 'stamp.earned',
        host: new URL(receiver.url).host,
      });
      expect(isSigned(webhook, SECRET)).toBe(true);
    }
    const text = await waitForOutput(listener, 'evt_2');
    expect(text).toContain(`Forwarding to ${to}\n`);
    expect(text).toMatch(/evt_1 {2}signature valid, http\S+ responded with 503 in \d+ ms\n/);
    expect(text).toMatch(
      /evt_1 {2}signature valid, attempt 2, http\S+ responded with 200 in \d+ ms\n/,
    );
    expect(text).toMatch(/evt_2 {2}INVALID SIGNATURE: .*, responded 401\n/);
  });

  it('responds 502 with the reason when the receiver is down, disconnects or is slow', async () => {
    const outcomes: string[] = [];
    const silent = await receive(() => new Promise(() => undefined));
    const rude = createServer((socket) => socket.once('data', () => socket.destroy()));
    await once(rude.listen(0, '127.0.0.1'), 'listening');
    const downReceiver = await Receiver.start();
    const urls = [
      downReceiver.url,
      `http://127.0.0.1:${(rude.address() as AddressInfo).port}/`,
      silent.url,
    ];
    await downReceiver.stop();
    for (const to of urls) {
      const withinMs = to === silent.url ? '300' : '100000';
      const options = ['--secret', SECRET, '--forward-to', to, '--forward-timeout', withinMs];
      const listener = start(options);
      const response = await post(await waitForUrl(listener), 'evt_1', '{}');
      expect(response.status).toBe(502);
      const reason = /FAILED after \d+ ms: (.*)/.exec(await waitForOutput(listener, 'FAILED'))?.[1];
      expect(await response.text()).toContain(reason);
      outcomes.push(reason ?? '');
    }
    rude.close();
    expect(outcomes).toEqual([
      'nothing listens there',
      'the connection was closed without a response',
      'no response within 300 ms',
    ]);
  });

  it('prints the secret of its subscription, and shows retries', async () => {
    const receiver = await receive((nth) => ({ status: nth === 1 ? 500 : 204 }));
    const target = ['--url', service.baseUrl, '--account', String(store.accountId)];
    const options = [...target, '--events', 'customer.created', '--forward-to', receiver.url];
    const listener = start(options, { INKPAD_TOKEN: `${store.token}` });
    const [, secret = ''] =
      /Signed with (\S+)/.exec(await waitForOutput(listener, 'Signed with')) ?? [];
    await createCustomer();
    const text = await waitForOutput(listener, 'attempt 2');
    expect(text).toMatch(/signature valid, http\S+ responded with 500/);
    expect(text).toMatch(/signature valid, attempt 2, http\S+ responded with 204/);
    expect(receiver.received.map((webhook) => isSigned(webhook, secret))).toEqual([true, true]);
    await listener.kill('SIGINT');
    expect(await listener.exitCode).toBe(0);
  });
});

it('webhooks:listen exits with 0 on SIGINT while --delay holds a response back', async () => {
  const listener = start(['--secret', SECRET, '--delay', '900000']);
  const url = await waitForUrl(listener);
  const pendingPost = post(url, 'evt_1', '{}').catch(() => 'no response');
  await waitForOutput(listener, 'evt_1');
  await listener.kill('SIGINT');
  expect(await listener.exitCode).toBe(0);
  expect(await pendingPost).toBe('no response');
});

it.each([
  [2, ['--secret', 'whsec_?'], 'must be whsec_ followed by base64'],
  [2, ['--status', '99'], 'must be from 200 to 599'],
  [2, ['--forward-to', 'localhost:3000'], 'must be an http or https URL'],
  [
    2,
    ['--forward-to', 'http://127.0.0.1:1', '--fail', '1'],
    "cannot be used with option '--fail <n>'",
  ],
  [1, ['--url', 'http://127.0.0.1:1'], '--url, --token and --account must be given together'],
  [1, [], 'No running service found'],
  [1, ['--url', 'http://127.0.0.1:1', '--token', 't', '--account', '1'], 'got no response from'],
])(
  'webhooks:listen exits with %d and an explanation for %j',
  async (code, parameters, sentence) => {
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'inkpad-listen-'));
    const listener = start(parameters, { DATA_DIR });
    expect(await listener.exitCode).toBe(code);
    expect(listener.output()).toContain(sentence);
  },
);
