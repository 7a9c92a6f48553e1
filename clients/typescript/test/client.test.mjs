import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { after, beforeEach, test } from 'node:test';
import { fetch as fetchWith, ProxyAgent } from 'undici';
import { createClient, InkpadError, InsufficientStampsError, TimedOutError } from '@inkpad/client';
import {
  verify,
  verifyFlatWebhook,
  verifyWebhook,
  WebhookVerificationError,
} from '@inkpad/client/webhooks';

const requests = [];
let responses = [];

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    const next = responses.shift() ?? { status: 500 };
    const { status = 200, headers = {}, json, text = '', drop, silent } = next;
    if (drop) return request.socket.destroy();
    if (silent) return;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(json === undefined ? text : JSON.stringify(json));
  });
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
after(() => server.close().closeAllConnections());

const origin = `http://127.0.0.1:${server.address().port}`;
const client = (options = {}) => createClient({ baseUrl: origin, token: 'ink_token', ...options });
const busy = { status: 503, headers: { 'retry-after': '0' }, json: { code: 'unavailable' } };
const path = { account_id: 1, id: 7 };

beforeEach(() => {
  requests.length = 0;
  responses = [];
});

test('sends method, path, query, token and body', async () => {
  responses = [{ json: [] }, { status: 201, json: { id: 7 } }];
  await client().listCards({ path: { account_id: 1 }, query: { scope: 'all' } });
  const card = await client().createCard({
    path: { account_id: 1 },
    body: { card: { name: 'A' } },
  });
  assert.equal(card.id, 7);
  const [list, create] = requests;
  assert.equal(list.url, '/api/v1/accounts/1/cards?scope=all');
  assert.equal(list.headers.authorization, 'Bearer ink_token');
  assert.equal(list.headers['content-type'], undefined);
  assert.equal(create.method, 'POST');
  assert.deepEqual(JSON.parse(create.body), { card: { name: 'A' } });
});

test('keeps the path of the base URL', async () => {
  responses = [{ json: {} }, { json: {} }];
  for (const baseUrl of [`${origin}/loyalty`, `${origin}/loyalty/`]) {
    await client({ baseUrl }).getCard({ path });
  }
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['/loyalty/api/v1/accounts/1/cards/7', '/loyalty/api/v1/accounts/1/cards/7'],
  );
});

test('reaches the service through the proxy of its fetch, which gets no token', async (t) => {
  const tunnels = [];
  const proxy = createServer();
  proxy.on('connect', ({ url, headers }, socket) => {
    tunnels.push({ url, headers });
    const target = connect(server.address().port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const one of [socket, target]) one.on('error', () => target.destroy());
  });
  await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));
  const dispatcher = new ProxyAgent({
    uri: `http://ann:secret@127.0.0.1:${proxy.address().port}`,
    proxyTunnel: true,
  });
  t.after(async () => {
    await dispatcher.destroy();
    proxy.close().closeAllConnections();
  });
  responses = [{ json: { id: 7 } }];
  const behind = client({
    baseUrl: 'http://cards.example',
    fetch: (url, init) => fetchWith(url, { ...init, dispatcher }),
  });
  assert.deepEqual(await behind.getCard({ path }), { id: 7 });
  const [{ url, headers }] = tunnels;
  assert.equal(url, 'cards.example:80');
  assert.equal(headers['proxy-authorization'], `Basic ${btoa('ann:secret')}`);
  assert.equal(headers.authorization, undefined);
  assert.equal(requests[0].headers.authorization, 'Bearer ink_token');
  assert.equal(requests[0].headers['proxy-authorization'], undefined);
});

test('refuses a base URL or a token that cannot be right', () => {
  for (const baseUrl of [undefined, '', 'cards.example', 'ftp://cards.example', 'https://']) {
    assert.throws(() => client({ baseUrl }), /baseUrl must be an http or https URL/);
  }
  for (const baseUrl of ['https://a@b.example', 'https://b.example/?a', 'https://b.example/#a']) {
    assert.throws(() => client({ baseUrl }), /must have no user, query or fragment/);
  }
  assert.throws(() => client({ baseUrl: `${origin}/api/v1/` }), /must end before \/api\/v1/);
  for (const token of [undefined, '', '\n']) {
    assert.throws(() => client({ token }), /token is empty/);
  }
  for (const token of ['ink_…', 'ink_a\nink_b']) {
    assert.throws(() => client({ token }), { message: 'token has characters that no token has' });
  }
});

test('takes a token with the end of its line', async () => {
  responses = [{ json: [] }];
  await client({ token: 'ink_token\r\n' }).listAccounts();
  assert.equal(requests[0].headers.authorization, 'Bearer ink_token');
});

test('refuses ids that are missing before anything is sent', async () => {
  for (const code of [undefined, null, '', ' ', '.', '..', Number.NaN, {}]) {
    const request = client().stampByCode({ path: { account_id: 1, code }, body: { stamps: 1 } });
    await assert.rejects(request, { name: 'TypeError', message: /^code is missing: .* is no id$/ });
  }
  await assert.rejects(client().getCard({}), /account_id is missing/);
  await assert.rejects(client().getCard(), /account_id is missing/);
  assert.equal(requests.length, 0);
  responses = [{ json: {} }];
  await client().getCustomerCardByCode({ path: { account_id: 1, code: 'a/b?c' } });
  assert.equal(requests[0].url, '/api/v1/accounts/1/customer_cards/by_code/a%2Fb%3Fc');
});

test('words a rejection as an error with everything that the service said', async () => {
  responses = [
    {
      status: 422,
      headers: { 'x-request-id': 'r-1' },
      json: {
        error: 'name is required',
        code: 'validation_failed',
        errors: { name: ['is required'] },
        error_codes: { name: ['required'] },
        existing: { type: 'customer', id: 31 },
        resume_after: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
        resolution: 'Give a name.',
        documentation_url: 'https://cards.example/docs/errors#validation_failed',
      },
    },
  ];
  const refused = client().createCard({ path: { account_id: 1 }, body: { card: { name: '' } } });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof InkpadError);
    assert.equal(error.status, 422);
    assert.equal(error.code, 'validation_failed');
    assert.deepEqual(error.errors, { name: ['is required'] });
    assert.deepEqual(error.errorCodes, { name: ['required'] });
    assert.deepEqual(error.existing, { type: 'customer', id: 31 });
    assert.equal(error.resumeAfter, 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3');
    assert.equal(error.message, 'name is required');
    assert.equal(error.resolution, 'Give a name.');
    assert.equal(error.documentationUrl, 'https://cards.example/docs/errors#validation_failed');
    assert.equal(error.requestId, 'r-1');
    assert.equal(error.retryAfter, null);
    return true;
  });
});

test('understands what is not the response of the service itself', async () => {
  responses = [{ status: 400 }, { status: 301, headers: { location: '/' } }];
  for (const status of [400, 301]) {
    await assert.rejects(client().getCard({ path }), { status, code: 'unknown' });
  }
  assert.equal(requests.length, 2);
  const page = { text: '<h1>Sign in</h1>', headers: { 'content-type': 'text/html' } };
  responses = [page, { text: '' }, page];
  for (let i = 0; i < 2; i++) {
    await assert.rejects(client().getCard({ path }), { status: 200, code: 'unknown' });
  }
  const cards = client().iterate('listCards', { path: { account_id: 1 } });
  await assert.rejects(cards.next(), { name: 'InkpadError', status: 200 });
  assert.equal(requests.length, 5);
});

test('sends a read again as soon as Retry-After is over', async () => {
  responses = [busy, { ...busy, status: 429 }, { json: { id: 7 } }];
  assert.equal((await client().getCard({ path })).id, 7);
  assert.equal(requests.length, 3);
});

test('sends again after every response that says nothing was written', async () => {
  for (const status of [408, 500, 502, 503, 504]) {
    responses = [{ ...busy, status }, { json: { id: 7 } }];
    assert.equal((await client().archiveCard({ path })).id, 7);
  }
  assert.equal(requests.length, 10);
});

test('waits longer each time, and never the same', async (context) => {
  const waits = [];
  const { setTimeout: real } = globalThis;
  context.mock.method(globalThis, 'setTimeout', (done, milliseconds, ...more) => {
    // Node.js itself has timers for connections.
    if (!new Error('where').stack.includes('/client.js')) return real(done, milliseconds, ...more);
    waits.push(milliseconds / 1000);
    return setImmediate(done);
  });
  for (let i = 0; i < 20; i++) {
    responses = [502, 504, 503].map((status) => ({ status }));
    await assert.rejects(client({ fetch: fetchResponse }).getCard({ path }), { status: 503 });
  }
  const first = waits.filter((_, i) => i % 2 === 0);
  const second = waits.filter((_, i) => i % 2 === 1);
  assert.ok(first.length === 20 && second.length === 20);
  assert.ok(first.every((wait) => wait >= 0.5 && wait <= 1));
  assert.ok(second.every((wait) => wait >= 1 && wait <= 2));
  assert.ok(new Set(first).size > 10);
  waits.length = 0;
  responses = [{ ...busy, headers: { 'retry-after': '4' } }, { json: {} }];
  await client({ fetch: fetchResponse }).getCard({ path });
  assert.ok(waits[0] >= 4 && waits[0] <= 5);

  /** No connection, and so no timers but those of the client. */
  async function fetchResponse() {
    const { status = 200, headers, json } = responses.shift();
    return new Response(JSON.stringify(json ?? {}), { status, headers });
  }
});

test('gives up after as many retries as it was given', async () => {
  responses = [busy, busy];
  await assert.rejects(client({ retries: 1 }).getCard({ path }), { status: 503, retryAfter: 0 });
  assert.equal(requests.length, 2);
});

test('does not wait longer than it may', async () => {
  for (const retryAfter of ['61', 'Fri, 01 Jan 2100 00:00:00 GMT']) {
    responses = [{ ...busy, headers: { 'retry-after': retryAfter } }];
    await assert.rejects(client().getCard({ path }), (error) => error.retryAfter >= 61);
  }
  assert.equal(requests.length, 2);
});

test('sends a write again with the same key', async () => {
  const inProgress = { ...busy, status: 409, json: { code: 'idempotency_in_progress' } };
  responses = [busy, inProgress, { json: { id: 7 } }];
  await client().archiveCard({ path });
  const [first, ...others] = requests.map(({ headers }) => headers['idempotency-key']);
  assert.match(first, /^[\da-f-]{36}$/);
  assert.deepEqual(others, [first, first]);
});

test('sends a write without a key once', async () => {
  responses = [busy];
  await assert.rejects(client({ idempotent: false }).archiveCard({ path }), { status: 503 });
  assert.equal(requests.length, 1);
  assert.equal(requests[0].headers['idempotency-key'], undefined);
});

test('sends again what got no response', async () => {
  responses = [{ drop: true }, { json: { id: 7 } }];
  assert.equal((await client().getCard({ path })).id, 7);
  assert.equal(requests.length, 2);
});

test('does not wait for ever', async () => {
  responses = [{ silent: true }];
  const request = client({ timeoutSeconds: 0.1, retries: 0 }).getCard({ path });
  await assert.rejects(request, { name: 'InkpadError', status: 0, code: 'timed_out' });
});

test('takes any part of a second for a time-out', async () => {
  responses = [{ json: { id: 7 } }];
  assert.equal((await client({ timeoutSeconds: 10 / 3 }).getCard({ path })).id, 7);
});

test('says that nobody is there', async () => {
  const request = client({ baseUrl: 'http://127.0.0.1:1', retries: 0 }).getStatus();
  await assert.rejects(request, { name: 'InkpadError', status: 0, code: 'no_response' });
});

test('stops when it is told to', async () => {
  const reason = new Error('enough');
  responses = [{ silent: true }];
  const stop = new AbortController();
  const request = client().getCard({ path, signal: stop.signal });
  stop.abort(reason);
  await assert.rejects(request, reason);
  await assert.rejects(client().getCard({ path, signal: AbortSignal.abort(reason) }), reason);
  responses = [{ status: 503 }];
  const between = new AbortController();
  const waiting = client().getCard({ path, signal: between.signal });
  setTimeout(() => between.abort(reason), 100);
  await assert.rejects(waiting, reason);
});

test('takes a key of the caller', async () => {
  responses = [{ status: 204 }];
  assert.equal(await client().deleteReward({ path, idempotencyKey: 'mine' }), undefined);
  assert.equal(requests[0].headers['idempotency-key'], 'mine');
});

test('refuses a key that no header can hold', async () => {
  const request = client().archiveCard({ path, idempotencyKey: 'receipt → 5' });
  await assert.rejects(request, { name: 'TypeError' });
});

test('follows the pages of a list to its end', async () => {
  const link = '</api/v1/accounts/1/cards?scope=all&limit=2&cursor=Mg>; rel="next"';
  responses = [{ headers: { link }, json: [{ id: 1 }, { id: 2 }] }, { json: [{ id: 3 }] }];
  const seen = [];
  const query = { scope: 'all', limit: 2 };
  for await (const card of client().iterate('listCards', { path: { account_id: 1 }, query })) {
    seen.push(card.id);
  }
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(requests[1].url, '/api/v1/accounts/1/cards?scope=all&limit=2&cursor=Mg');
});

test('lists customers by cursor, each exactly once', async () => {
  const link = '</api/v1/accounts/1/customers?cursor=Mg>; rel="next"';
  const pagination = { page: null, pages: null, items: 1, count: 2 };
  responses = [
    { headers: { link }, json: { customers: [{ id: 1 }], pagination } },
    { json: { customers: [{ id: 2 }], pagination } },
  ];
  const seen = [];
  for await (const one of client().iterate('listCustomers', { path: { account_id: 1 } })) {
    seen.push(one.id);
  }
  assert.deepEqual(seen, [1, 2]);
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['', 'Mg'].map((cursor) => `/api/v1/accounts/1/customers?cursor=${cursor}`),
  );
});

test('returns the headers of a result with it', async () => {
  const headers = {
    'x-request-id': 'r-1',
    'idempotent-replayed': 'true',
    'ratelimit-remaining': '299',
    'x-unknown-parameters': 'colour',
  };
  responses = [{ json: { id: 7 }, headers }, { status: 204 }];
  const response = await client().getCard({ path }).withResponse();
  const { data, status, requestId } = response;
  assert.deepEqual({ data, status, requestId }, { data: { id: 7 }, status: 200, requestId: 'r-1' });
  for (const [name, value] of Object.entries(headers)) {
    assert.equal(response.headers.get(name), value);
  }
  const deleted = await client().deleteReward({ path }).withResponse();
  assert.deepEqual([deleted.data, deleted.status, deleted.requestId], [undefined, 204, null]);
  assert.equal(requests.length, 2);
});

test('rejects once when the headers of a failure are wanted', async () => {
  const unhandled = [];
  const listen = (reason) => unhandled.push(reason);
  process.on('unhandledRejection', listen);
  responses = [{ status: 404, headers: { 'x-request-id': 'r-2', 'ratelimit-remaining': '7' } }];
  await assert.rejects(client().getCard({ path }).withResponse(), (error) => {
    assert.equal(error.headers.get('ratelimit-remaining'), '7');
    return error.status === 404 && error.requestId === 'r-2';
  });
  await new Promise(setImmediate);
  process.off('unhandledRejection', listen);
  assert.deepEqual(unhandled, []);
});

test('sends its own User-Agent, and the headers of the client and of the call', async () => {
  responses = [{ json: {} }, { json: {} }, { json: {} }];
  const strict = client({ headers: { prefer: 'handling=strict', 'x-till': '1' } });
  await strict.getCard({ path });
  await strict.getCard({
    path,
    headers: { 'X-Till': '2', 'user-agent': 'till/1', nothing: undefined },
  });
  await strict.archiveCard({ path, headers: { 'Idempotency-Key': 'mine' } });
  const [first, second, third] = requests.map(({ headers }) => headers);
  assert.match(first['user-agent'], /^inkpad-typescript\/\d+\.\d+\.\d+ node\/\d+\.\d+\.\d+$/);
  assert.deepEqual([first.prefer, first['x-till']], ['handling=strict', '1']);
  assert.deepEqual([second['x-till'], second['user-agent']], ['2', 'till/1']);
  assert.equal('nothing' in second, false);
  assert.equal(third['idempotency-key'], 'mine');
});

test('takes the store of the client where a call names none', async () => {
  responses = [{ json: [] }, { json: {} }, { json: [] }, { json: [] }];
  const own = client({ accountId: 5 });
  await own.listCards();
  await own.getCard({ path: { id: 7 } });
  await own.listCards({ path: { account_id: 6 } });
  await own.iterate('listCards').next();
  assert.deepEqual(
    requests.map(({ url }) => url.replace('/api/v1/accounts', '')),
    ['/5/cards', '/5/cards/7', '/6/cards', '/5/cards'],
  );
  await assert.rejects(client().listCards(), /account_id is missing/);
});

test('has a class for each code of an error', async () => {
  const json = { error: 'too few stamps', code: 'insufficient_stamps', errors: { base: ['few'] } };
  responses = [
    { status: 422, json },
    { status: 418, json: { error: 'new', code: 'not_known_yet' } },
    { status: 400, json: { error: 'odd', code: 'constructor' } },
    { silent: true },
  ];
  const rejected = (one) => one.getCard({ path }).catch((error) => error);
  const few = await rejected(client());
  assert.ok(few instanceof InsufficientStampsError && few instanceof InkpadError);
  assert.equal(few.code, 'insufficient_stamps');
  for (const code of ['not_known_yet', 'constructor']) {
    const error = await rejected(client());
    assert.equal(error.constructor, InkpadError);
    assert.equal(error.code, code);
  }
  const late = await rejected(client({ timeoutSeconds: 0.1, retries: 0 }));
  assert.ok(late instanceof TimedOutError);
  assert.equal(late.headers, null);
});

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const seconds = (offset = 0) => String(Math.floor(Date.now() / 1000) + offset);
const event = {
  id: 'evt_1',
  type: 'webhook.test',
  timestamp: '2026-03-01T12:00:00Z',
  account_id: 1,
  data: { message: 'é' },
};
const body = JSON.stringify(event);

function signed(timestamp = seconds(), overrides = {}) {
  const hmac = createHmac('sha256', Buffer.alloc(32, 7));
  const signature = hmac.update(`evt_1.${timestamp}.${body}`).digest('base64');
  return {
    body,
    headers: {
      'webhook-id': 'evt_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,AAAA v1,${signature}`,
      'service-event': 'webhook.test',
      ...overrides,
    },
  };
}

test('reads a webhook whose signature is right', () => {
  assert.equal(verify(signed(), secret), true);
  assert.deepEqual(verifyWebhook(signed(), secret), event);
  const { body: text, headers } = signed();
  const bytes = { body: new TextEncoder().encode(text), headers: new Headers(headers) };
  assert.deepEqual(verifyWebhook(bytes, secret), event);
  const flat = verifyFlatWebhook(signed(), secret);
  assert.deepEqual(flat, { id: 'evt_1', type: 'webhook.test', data: event });
});

test('comes as CommonJS as well', async () => {
  const require = createRequire(import.meta.url);
  const { createClient: create } = require('@inkpad/client');
  responses = [{ json: { id: 7 } }];
  assert.equal((await create({ baseUrl: origin, token: 't' }).getCard({ path })).id, 7);
  assert.equal(require('@inkpad/client/webhooks').verify(signed(), secret), true);
});

for (const [what, request, key] of [
  ['another body', { ...signed(), body: body.replace('é', 'e') }, secret],
  ['another secret', signed(), `whsec_${Buffer.alloc(32, 8).toString('base64')}`],
  ['another id', signed(seconds(), { 'webhook-id': 'evt_2' }), secret],
  ['no signature', signed(seconds(), { 'webhook-signature': undefined }), secret],
  ['no id', signed(seconds(), { 'webhook-id': undefined }), secret],
  ['no time', signed(seconds(), { 'webhook-timestamp': undefined }), secret],
  ['no headers', { body, headers: {} }, secret],
  ['a signature without a version', signed(seconds(), { 'webhook-signature': 'AAAA' }), secret],
  ['a version without a signature', signed(seconds(), { 'webhook-signature': 'v1' }), secret],
  [
    'a signature twice in the headers',
    signed(seconds(), { 'webhook-signature': ['v1,a'] }),
    secret,
  ],
  ['an old time', signed(seconds(-330)), secret],
  ['a time ahead', signed(seconds(330)), secret],
  ['a time that is none', signed('now'), secret],
]) {
  test(`refuses a webhook with ${what}`, () => {
    assert.throws(() => verifyWebhook(request, key), WebhookVerificationError);
    assert.throws(() => verifyFlatWebhook(request, key), WebhookVerificationError);
    assert.equal(verify(request, key), false);
  });
}

const pair = generateKeyPairSync('ed25519');
const { x } = pair.publicKey.export({ format: 'jwk' });
const publicKey = `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;

function signedWithPrivateKey(timestamp = seconds(), overrides = {}) {
  const content = Buffer.from(`evt_1.${timestamp}.${body}`);
  const signature = sign(null, content, pair.privateKey).toString('base64');
  return signed(timestamp, { 'webhook-signature': `v1a,AAAA v1a,${signature}`, ...overrides });
}

test('verifies with a public key', () => {
  const request = signedWithPrivateKey();
  assert.equal(verify(request, publicKey), true);
  assert.deepEqual(verifyWebhook(request, publicKey), event);
  const flat = verifyFlatWebhook(request, publicKey);
  assert.deepEqual(flat, { id: 'evt_1', type: 'webhook.test', data: event });
  // Both sign while one replaces the other.
  const [ours, theirs] = [request, signed()].map(({ headers }) => headers['webhook-signature']);
  const both = signed(request.headers['webhook-timestamp'], {
    'webhook-signature': `${ours} ${theirs}`,
  });
  assert.equal(verify(both, publicKey), true);
  assert.equal(verify(both, secret), true);
});

for (const [what, request] of [
  ['another body', { ...signedWithPrivateKey(), body: body.replace('é', 'e') }],
  ['another id', signedWithPrivateKey(seconds(), { 'webhook-id': 'evt_2' })],
  ['no signature', signedWithPrivateKey(seconds(), { 'webhook-signature': undefined })],
  ['no id', signedWithPrivateKey(seconds(), { 'webhook-id': undefined })],
  ['a signature of a secret', signed()],
  ['an empty signature', signedWithPrivateKey(seconds(), { 'webhook-signature': 'v1a,' })],
  ['an old time', signedWithPrivateKey(seconds(-330))],
  ['a time ahead', signedWithPrivateKey(seconds(330))],
  ['a time that is none', signedWithPrivateKey('now')],
]) {
  test(`refuses with a public key a webhook with ${what}`, () => {
    assert.throws(() => verifyWebhook(request, publicKey), WebhookVerificationError);
    assert.equal(verify(request, publicKey), false);
  });
}

test('refuses to verify with a public key that is none', () => {
  assert.throws(() => verify(signedWithPrivateKey(), 'whpk_AAAA'), /32 bytes in base64/);
});

test('refuses to verify with an empty secret', () => {
  assert.throws(() => verifyWebhook(signed(), 'whsec_'), /Secret can't be empty/);
});
