import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { after, beforeEach, test } from 'node:test';
import { createClient, InkpadError } from '@inkpad/client';
import {
  verifyFlatWebhook,
  verifyWebhook,
  WebhookVerificationError,
} from '@inkpad/client/webhooks';

const requests = [];
let answers = [];

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    const { status = 200, headers = {}, json } = answers.shift() ?? { status: 500 };
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(json === undefined ? '' : JSON.stringify(json));
  });
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
after(() => server.close());

const client = (options = {}) =>
  createClient({
    baseUrl: `http://127.0.0.1:${server.address().port}`,
    token: 'ink_token',
    ...options,
  });
const busy = { status: 503, headers: { 'retry-after': '0' }, json: { code: 'unavailable' } };
const path = { account_id: 1, id: 7 };

beforeEach(() => {
  requests.length = 0;
  answers = [];
});

test('sends method, path, query, token and body', async () => {
  answers = [{ json: [] }, { status: 201, json: { id: 7 } }];
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

test('words a refusal as an error with everything that the service said', async () => {
  answers = [
    {
      status: 422,
      headers: { 'x-request-id': 'r-1' },
      json: {
        error: 'name is required',
        code: 'validation_failed',
        errors: { name: ['is required'] },
      },
    },
  ];
  const refused = client().createCard({ path: { account_id: 1 }, body: { card: { name: '' } } });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof InkpadError);
    assert.equal(error.status, 422);
    assert.equal(error.code, 'validation_failed');
    assert.deepEqual(error.errors, { name: ['is required'] });
    assert.equal(error.requestId, 'r-1');
    assert.equal(error.retryAfter, null);
    return true;
  });
});

test('sends a read again as soon as Retry-After is over', async () => {
  answers = [busy, { ...busy, status: 429 }, { json: { id: 7 } }];
  assert.equal((await client().getCard({ path })).id, 7);
  assert.equal(requests.length, 3);
});

test('gives up after as many retries as it was given', async () => {
  answers = [busy, busy];
  await assert.rejects(client({ retries: 1 }).getCard({ path }), { status: 503, retryAfter: 0 });
  assert.equal(requests.length, 2);
});

test('does not wait longer than it may', async () => {
  answers = [{ ...busy, headers: { 'retry-after': '61' } }];
  await assert.rejects(client().getCard({ path }), { status: 503, retryAfter: 61 });
  assert.equal(requests.length, 1);
});

test('sends a write once, unless it has a key', async () => {
  answers = [busy];
  await assert.rejects(client().archiveCard({ path }), { status: 503 });
  assert.equal(requests.length, 1);
  assert.equal(requests[0].headers['idempotency-key'], undefined);
});

test('sends a write with a key again, with the same one', async () => {
  answers = [busy, { json: { id: 7 } }];
  await client({ idempotent: true }).archiveCard({ path });
  const [first, second] = requests.map(({ headers }) => headers['idempotency-key']);
  assert.match(first, /^[\da-f-]{36}$/);
  assert.equal(second, first);
});

test('takes a key of the caller', async () => {
  answers = [{ status: 204 }];
  assert.equal(await client().deleteReward({ path, idempotencyKey: 'mine' }), undefined);
  assert.equal(requests[0].headers['idempotency-key'], 'mine');
});

test('follows the pages of a list to its end', async () => {
  const link = '</api/v1/accounts/1/cards?scope=all&limit=2&cursor=Mg>; rel="next"';
  answers = [{ headers: { link }, json: [{ id: 1 }, { id: 2 }] }, { json: [{ id: 3 }] }];
  const seen = [];
  const query = { scope: 'all', limit: 2 };
  for await (const card of client().iterate('listCards', { path: { account_id: 1 }, query })) {
    seen.push(card.id);
  }
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(requests[1].url, '/api/v1/accounts/1/cards?scope=all&limit=2&cursor=Mg');
});

test('follows the numbered pages of customers', async () => {
  answers = [1, 2].map((page) => ({
    json: { customers: [{ id: page }], pagination: { page, pages: 2, items: 1, count: 2 } },
  }));
  const seen = [];
  for await (const one of client().iterate('listCustomers', { path: { account_id: 1 } })) {
    seen.push(one.id);
  }
  assert.deepEqual(seen, [1, 2]);
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
  assert.deepEqual(verifyWebhook(signed(), secret), event);
  const { body: text, headers } = signed();
  const bytes = { body: new TextEncoder().encode(text), headers: new Headers(headers) };
  assert.deepEqual(verifyWebhook(bytes, secret), event);
  const flat = verifyFlatWebhook(signed(), secret);
  assert.deepEqual(flat, { id: 'evt_1', type: 'webhook.test', data: event });
});

for (const [what, request, key] of [
  ['another body', { ...signed(), body: body.replace('é', 'e') }, secret],
  ['another secret', signed(), `whsec_${Buffer.alloc(32, 8).toString('base64')}`],
  ['another id', signed(seconds(), { 'webhook-id': 'evt_2' }), secret],
  ['no signature', signed(seconds(), { 'webhook-signature': undefined }), secret],
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
  });
}

test('refuses to verify with an empty secret', () => {
  assert.throws(() => verifyWebhook(signed(), 'whsec_'), /Secret can't be empty/);
});
