import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, beforeEach, test } from 'node:test';
import { executeNode, loadOptions, TriggerWorkflow } from './node-host.mjs';

const require = createRequire(import.meta.url);
const { isSigned } = require('../dist/nodes/InkpadTrigger/signature.js');
const { toApiFields, toApiTime } = require('../dist/nodes/Inkpad/api-fields.js');
const { parseNextQuery } = require('../dist/nodes/api-client.js');
const { Inkpad } = require('../dist/nodes/Inkpad/Inkpad.node.js');
const { OPERATIONS } = require('../dist/nodes/Inkpad/operations.js');

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const requests = [];
let responses = [];

const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const { method, url, headers } = request;
  requests.push({ method, url, headers, body: body === '' ? undefined : JSON.parse(body) });
  const { status = 200, json = {}, link } = responses.shift() ?? {};
  response.writeHead(status, { 'content-type': 'application/json', ...(link ? { link } : {}) });
  response.end(JSON.stringify(json));
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
after(() => server.close().closeAllConnections());

const credentials = {
  baseUrl: `http://127.0.0.1:${server.address().port}/`,
  token: 'ink_token',
};
const stamp = {
  resource: 'customerCard',
  operation: 'stamp',
  accountId: 1,
  cardBy: 'code',
  code: 'K7QX2M9P',
  stamps: 2,
};

beforeEach(() => {
  requests.length = 0;
  responses = [];
});

test('stamps a card by its code, with the receipt number and the options', async () => {
  responses = [{ json: { stamps_count: 2 } }];
  const options = { staffRef: 'Ben', note: '', locationId: '4' };
  const output = await executeNode(credentials, { ...stamp, externalRef: 'A-1', options });
  assert.deepEqual(output, [{ stamps_count: 2 }]);
  const [{ method, url, headers, body }] = requests;
  assert.equal(`${method} ${url}`, 'POST /api/v1/accounts/1/customer_cards/by_code/K7QX2M9P/stamp');
  assert.equal(headers.authorization, 'Bearer ink_token');
  assert.deepEqual(body, { stamps: 2, external_ref: 'A-1', staff_ref: 'Ben', location_id: 4 });
});

test('keeps the idempotency key when n8n tries the node again, and has one for each item and run', async () => {
  const items = [{ json: {} }, { json: {} }];
  await executeNode(credentials, stamp, { items });
  await executeNode(credentials, stamp, { items });
  await executeNode(credentials, stamp, { runIndex: 1 });
  await executeNode(credentials, stamp, { executionId: 'execution-2' });
  const keys = requests.map(({ headers }) => headers['idempotency-key']);
  assert.deepEqual(keys.slice(0, 2), keys.slice(2, 4));
  assert.equal(new Set(keys).size, 4);
});

test('uses a new idempotency key for each call of an agent, and the key of the user if there is one', async () => {
  await executeNode(credentials, stamp, { isTool: true });
  await executeNode(credentials, stamp, { isTool: true });
  await executeNode(credentials, { ...stamp, options: { idempotencyKey: 'own' } });
  const keys = requests.map(({ headers }) => headers['idempotency-key']);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], 'own');
});

test('finds the ids of a card by its code for operations that need them', async () => {
  responses = [{ json: { id: 12, customer_id: 31 } }, { json: {} }];
  const parameters = { ...stamp, operation: 'adjust', stamps: -1, reason: 'Mistake' };
  await executeNode(credentials, parameters);
  assert.equal(requests[1].url, '/api/v1/accounts/1/customers/31/customer_cards/12/adjust');
  assert.deepEqual(requests[1].body, { stamps: -1, reason: 'Mistake' });
});

test('says whether a customer was created or found', async () => {
  responses = [
    { status: 201, json: { id: 1 } },
    { status: 200, json: { id: 1 } },
  ];
  const additionalFields = { externalSource: 'shop', externalId: 'c-1', metadata: '{"a":1}' };
  const parameters = { resource: 'customer', operation: 'createOrFind', accountId: 1 };
  const person = { ...parameters, firstName: 'Anna', additionalFields };
  assert.deepEqual(await executeNode(credentials, person), [{ id: 1, created: true }]);
  assert.deepEqual(await executeNode(credentials, person), [{ id: 1, created: false }]);
  assert.deepEqual(requests[0].body, {
    customer: {
      first_name: 'Anna',
      metadata: { a: 1 },
      external_references: [{ source: 'shop', external_id: 'c-1' }],
    },
    if_exists: 'return',
  });
});

test('sends external ids as the text that they are, and its own ids as numbers', async () => {
  const parameters = { resource: 'customer', operation: 'createOrFind', accountId: 1 };
  for (const externalId of ['000069816', '69816', '12345678901234567890']) {
    const additionalFields = { externalSource: 'pos', externalId, cardId: '7' };
    await executeNode(credentials, { ...parameters, firstName: 'Anna', additionalFields });
    const { customer, card_id: cardId } = requests.at(-1).body;
    assert.deepEqual(customer.external_references, [{ source: 'pos', external_id: externalId }]);
    assert.equal(cardId, 7);
    responses = [{ json: { customers: [] } }];
    const filters = { source: 'pos', externalId };
    const listing = { ...parameters, operation: 'getAll', returnAll: true, filters };
    await executeNode(credentials, listing);
    const { searchParams } = new URL(requests.at(-1).url, credentials.baseUrl);
    assert.equal(searchParams.get('external_id'), externalId);
  }
  assert.deepEqual(toApiFields({ cardId: '12345678901234567890', locationId: ' 04 ' }, 'UTC'), {
    card_id: '12345678901234567890',
    location_id: 4,
  });
});

test('refuses an external id without a source before any request', async () => {
  const parameters = { resource: 'customer', accountId: 1, firstName: 'Anna', returnAll: true };
  for (const [operation, name, fields] of [
    ['createOrFind', 'additionalFields', { externalId: '7' }],
    ['createOrFind', 'additionalFields', { externalId: '7', externalSource: '' }],
    ['createOrFind', 'additionalFields', { externalId: '7', externalSource: ' ' }],
    ['createOrFind', 'additionalFields', { externalSource: 'pos', externalId: '' }],
    ['getAll', 'filters', { externalId: '7', source: '' }],
    ['getAll', 'filters', { source: 'pos' }],
  ]) {
    await assert.rejects(executeNode(credentials, { ...parameters, operation, [name]: fields }), {
      message: /external/,
      description: 'Fill in both, or neither.',
    });
  }
  assert.deepEqual(requests, []);
});

test('keeps its subscription however n8n writes its own address', async () => {
  for (const [own, stored] of [
    ['https://N8N.example:443/webhook/1', 'https://n8n.example/webhook/1'],
    ['http://n8n.example:80', 'http://n8n.example/'],
    ['https://n8n.example/bestellung-größe', 'https://n8n.example/bestellung-gr%C3%B6%C3%9Fe'],
    ['https://bücher.example/a/../b', 'https://xn--bcher-kva.example/b'],
  ]) {
    const trigger = new TriggerWorkflow(credentials, { accountId: 1, events: ['*'] });
    trigger.publicUrl = own;
    trigger.staticData = { accountId: '1', subscriptionId: 5 };
    const settings = {
      target_url: stored,
      events: ['*'],
      payload_format: 'envelope',
      card_ids: null,
      personal_data: true,
    };
    responses = [{ json: { id: 5, secret: SECRET, enabled: true, ...settings } }];
    assert.equal(await trigger.activate(), true);
    trigger.close();
  }
  assert.ok(requests.every(({ method }) => method === 'GET'));
});

test('deletes the subscription that it remembers whenever it makes another', async () => {
  const stored = {
    target_url: 'https://n8n.example/',
    events: ['*'],
    payload_format: 'envelope',
    card_ids: null,
  };
  for (const [remembered, parameters] of [
    [
      { accountId: '1', subscriptionId: 5 },
      { accountId: 2, events: ['*'] },
    ],
    [
      { accountId: '1', subscriptionId: 5 },
      { accountId: 1, events: ['stamp.earned'] },
    ],
    [
      { accountId: '1', subscriptionId: 5 },
      { accountId: 1, events: ['*'] },
    ],
  ]) {
    requests.length = 0;
    const trigger = new TriggerWorkflow(credentials, parameters);
    trigger.publicUrl = 'https://moved.example/webhook/1';
    trigger.staticData = { ...remembered, secret: SECRET };
    const subscription = { json: { id: 5, personal_data: true, ...stored } };
    responses = [subscription, { status: 204 }, { json: { id: 6, secret: SECRET } }];
    assert.equal(await trigger.activate(), false);
    const sent = requests.map(({ method, url }) => `${method} ${url.replace('/api/v1', '')}`);
    assert.deepEqual(sent.slice(-2), [
      'DELETE /accounts/1/webhook_subscriptions/5',
      `POST /accounts/${parameters.accountId}/webhook_subscriptions`,
    ]);
    assert.equal(trigger.staticData.subscriptionId, 6);
    trigger.close();
  }
});

test('follows the Link header to the limit, and never to another host', async () => {
  const link = '<https://elsewhere.example/api/v1/accounts/1/cards?cursor=abc&limit=3>; rel="next"';
  responses = [
    { json: [{ id: 1 }, { id: 2 }], link },
    { json: [{ id: 3 }, { id: 4 }], link },
  ];
  const parameters = { resource: 'card', operation: 'getAll', accountId: 1, limit: 3 };
  const output = await executeNode(credentials, { ...parameters, returnAll: false });
  assert.deepEqual(output, [{ id: 1 }, { id: 2 }, { id: 3 }]);
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['/api/v1/accounts/1/cards?limit=3', '/api/v1/accounts/1/cards?cursor=abc&limit=3'],
  );
  assert.equal(parseNextQuery('<https://a.example/x?page=1>; rel="prev"'), undefined);
  assert.deepEqual(parseNextQuery('</x?page=1>; rel="prev", </x?page=3>; rel="next"'), {
    page: '3',
  });
});

test('lists customers from the first blank cursor on, by their filters', async () => {
  responses = [{ json: { customers: [{ id: 1 }] } }];
  const parameters = { resource: 'customer', operation: 'getAll', accountId: 1, returnAll: true };
  const filters = { email: 'anna@example.com', phone: '' };
  assert.deepEqual(await executeNode(credentials, { ...parameters, filters }), [{ id: 1 }]);
  assert.equal(
    requests[0].url,
    '/api/v1/accounts/1/customers?email=anna%40example.com&cursor=&items=100',
  );
});

test('shows the error of the API with its advice', async () => {
  const rejection = {
    status: 422,
    json: {
      error: 'stamps must be at least 1',
      errors: { stamps: ['must be at least 1'] },
      resolution: 'Send a positive number.',
      documentation_url: 'https://cards.example/docs/errors#validation_failed',
      request_id: 'r-1',
    },
  };
  responses = [rejection, rejection];
  await assert.rejects(executeNode(credentials, stamp), (error) => {
    assert.equal(error.name, 'NodeApiError');
    assert.equal(error.message, 'stamps must be at least 1');
    assert.match(error.description, /^Send a positive number[.]\nstamps must be at least 1\n/);
    assert.equal(error.httpCode, '422');
    return true;
  });
  const [output] = await executeNode(credentials, stamp, { continueOnFail: true });
  assert.equal(output.error, 'stamps must be at least 1');
});

test('says that a response is not from Inkpad', async () => {
  responses = [{ status: 502, json: 'Bad gateway' }];
  await assert.rejects(executeNode(credentials, stamp), /is not from Inkpad[.] Check the base URL/);
});

test('lists the options of the editor', async () => {
  responses = [
    { json: [{ id: 1, name: 'corner', display_store_name: 'Corner' }] },
    { json: [{ id: 2, name: 'Free coffee', stamps_required: 5 }] },
  ];
  assert.deepEqual(await loadOptions(credentials, 'getAccounts'), [{ name: 'Corner', value: 1 }]);
  assert.deepEqual(await loadOptions(credentials, 'getRewards', { accountId: 1 }), [
    { name: 'Free coffee (5 stamps)', value: 2 },
  ]);
});

test('gives times without a zone the one of the workflow', () => {
  assert.equal(toApiTime('2026-07-01T12:00:00', 'Europe/Berlin'), '2026-07-01T10:00:00.000Z');
  assert.equal(toApiTime('2026-03-29T03:30:00', 'Europe/Berlin'), '2026-03-29T01:30:00.000Z');
  assert.equal(toApiTime('2026-01-01T12:00:00', 'America/New_York'), '2026-01-01T17:00:00.000Z');
  for (const [clock, zone, time] of [
    // Times that the clocks skip: with the offset before.
    ['2026-03-29T02:30:00', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    ['2026-03-08T02:30:00', 'America/New_York', '2026-03-08T07:30:00.000Z'],
    ['2026-03-08T02:30:00', 'America/St_Johns', '2026-03-08T06:00:00.000Z'],
    ['2026-09-06 00:00', 'America/Santiago', '2026-09-06T04:00:00.000Z'],
    ['2026-10-04T02:15:00', 'Australia/Lord_Howe', '2026-10-03T15:45:00.000Z'],
    ['2011-12-30T12:00:00', 'Pacific/Apia', '2011-12-30T22:00:00.000Z'],
    // Times that come twice: the first.
    ['2026-10-25T02:30:00', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['2026-11-01T01:30:00', 'America/New_York', '2026-11-01T05:30:00.000Z'],
    ['2026-04-05T01:45:00', 'Australia/Lord_Howe', '2026-04-04T14:45:00.000Z'],
    ['2026-07-01T12:00:00.250', 'Asia/Kolkata', '2026-07-01T06:30:00.250Z'],
    ['2026-13-01T12:00:00', 'Europe/Berlin', '2026-13-01T12:00:00'],
  ]) {
    assert.equal(toApiTime(clock, zone), time);
  }
  assert.equal(toApiTime('2026-01-01', 'Europe/Berlin'), '2026-01-01');
  assert.equal(toApiTime('2026-01-01T12:00:00+02:00', 'UTC'), '2026-01-01T12:00:00+02:00');
  assert.deepEqual(toApiFields({ expiresAt: '2026-01-01T12:00:00', note: '' }, 'UTC'), {
    expires_at: '2026-01-01T12:00:00.000Z',
  });
});

test('has code for every operation that the editor offers', () => {
  const { properties } = new Inkpad().description;
  const offered = properties
    .filter(({ name }) => name === 'operation')
    .map(({ displayOptions, options }) => [
      displayOptions.show.resource[0],
      options.map(({ value }) => value).sort(),
    ]);
  const coded = Object.entries(OPERATIONS).map(([resource, operations]) => [
    resource,
    Object.keys(operations).sort(),
  ]);
  assert.deepEqual(Object.fromEntries(offered), Object.fromEntries(coded));
});

const sign = (id, timestamp, body, secret = SECRET) => {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
};

test('accepts only signatures of the secret from the last five minutes', () => {
  const now = 1_800_000_000;
  const check = (signature, timestamp = `${now}`, body = '{}') =>
    isSigned(
      {
        headers: {
          'webhook-id': 'evt_1',
          'webhook-timestamp': timestamp,
          'webhook-signature': signature,
        },
        rawBody: Buffer.from(body),
      },
      SECRET,
      now,
    );
  const signature = sign('evt_1', now, '{}');
  assert.equal(check(signature), true);
  assert.equal(check(`v1,AAAA v1a,x ${signature}`), true);
  assert.equal(check(signature, `${now}`, '{ }'), false);
  assert.equal(check(sign('evt_1', now, '{}', `whsec_${btoa('other')}`)), false);
  assert.equal(check(sign('evt_1', now - 301, '{}'), `${now - 301}`), false);
  assert.equal(check(sign('evt_1', now + 301, '{}'), `${now + 301}`), false);
  assert.equal(check(sign('evt_1', now - 299, '{}'), `${now - 299}`), true);
  assert.equal(check(sign('evt_1', 'NaN', '{}'), 'NaN'), false);
  assert.equal(check(undefined), false);
  assert.equal(check(''), false);
});

test('the trigger subscribes, drops duplicates and forgeries, and unsubscribes', async (t) => {
  const events = ['stamp.earned', 'stamp.removed'];
  const workflow = new TriggerWorkflow(credentials, { accountId: 1, events });
  t.after(() => workflow.close());
  responses = [{ status: 201, json: { id: 7, secret: SECRET } }];
  assert.equal(await workflow.activate(), false);
  assert.equal(requests[0].url, '/api/v1/accounts/1/webhook_subscriptions');
  const subscription = {
    target_url: workflow.url,
    events,
    payload_format: 'envelope',
    card_ids: null,
    personal_data: true,
    description: 'n8n: Till',
  };
  assert.deepEqual(requests[0].body, subscription);

  const post = async (event, secret) => {
    const body = JSON.stringify(event);
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = {
      'webhook-id': event.id,
      'webhook-timestamp': `${timestamp}`,
      'webhook-signature': sign(event.id, timestamp, body, secret),
    };
    return (await fetch(workflow.url, { method: 'POST', headers, body })).status;
  };
  const event = { id: 'evt_1', type: 'stamp.earned', data: { stamps: 1 } };
  assert.equal(await post(event), 200);
  assert.equal(await post(event), 200);
  assert.equal(await post({ ...event, id: 'evt_2' }, `whsec_${btoa('other')}`), 401);
  assert.equal(await post({ ...event, id: 'evt_3', type: 'webhook.test' }), 200);
  assert.equal((await fetch(workflow.url, { method: 'POST', body: '{}' })).status, 401);
  assert.deepEqual(workflow.outputs, [event]);
  workflow.parameters.output = 'flat';
  await post({ ...event, id: 'evt_4' });
  assert.deepEqual(workflow.outputs[1], {
    stamps: 1,
    event_id: 'evt_4',
    event_type: 'stamp.earned',
  });

  // n8n starts again: the subscription and what it still has to send are kept, and enabled again.
  responses = [{ json: { ...subscription, enabled: false, secret: SECRET } }];
  assert.equal(await workflow.activate(), true);
  assert.deepEqual(requests.at(-1).body, { enabled: true });

  // Other events: another subscription.
  workflow.parameters.events = ['*'];
  responses = [
    { json: { ...subscription, enabled: true, secret: SECRET } },
    { status: 204 },
    { status: 201, json: { id: 8, secret: SECRET } },
  ];
  assert.equal(await workflow.activate(), false);
  assert.deepEqual(
    requests.slice(-2).map(({ method }) => method),
    ['DELETE', 'POST'],
  );

  requests.length = 0;
  await workflow.deactivate();
  assert.deepEqual(
    requests.map(({ method, url }) => `${method} ${url}`),
    [
      'GET /api/v1/accounts/1/webhook_subscriptions/8',
      'DELETE /api/v1/accounts/1/webhook_subscriptions/8',
    ],
  );
  assert.deepEqual(workflow.staticData, {});
});

test('a trigger of one event subscribes flat, and outputs the data with the id and type from the headers', async (t) => {
  const workflow = new TriggerWorkflow(credentials, { accountId: 1, events: ['stamp.earned'] });
  t.after(() => workflow.close());
  responses = [{ status: 201, json: { id: 7, secret: SECRET } }];
  assert.equal(await workflow.activate(), false);
  assert.equal(requests[0].body.payload_format, 'flat');

  const post = async (id, type, data) => {
    const body = JSON.stringify(data);
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': `${timestamp}`,
      'webhook-signature': sign(id, timestamp, body),
      'service-event': type,
    };
    return (await fetch(workflow.url, { method: 'POST', headers, body })).status;
  };
  assert.equal(await post('evt_1', 'stamp.earned', { stamps: 1, id: 5, type: 'x' }), 200);
  assert.equal(await post('evt_1', 'stamp.earned', { stamps: 1, id: 5, type: 'x' }), 200);
  assert.equal(await post('evt_2', 'webhook.test', {}), 200);
  assert.deepEqual(workflow.outputs, [
    { stamps: 1, id: 5, type: 'x', event_id: 'evt_1', event_type: 'stamp.earned' },
  ]);
});
