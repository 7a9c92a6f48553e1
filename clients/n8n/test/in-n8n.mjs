/**
 * Tests the nodes in a running n8n against a running Inkpad. n8n takes ten minutes to install, so the other tests use a
 * host of their own; run this one before a release, and when n8n has a new major version:
 *
 *   node test/in-n8n.mjs http://127.0.0.1:5678 http://127.0.0.1:3000 API_TOKEN
 *
 * n8n must be a new installation with the package in ~/.n8n/nodes. Inkpad must be able to reach n8n
 * (WEBHOOK_ALLOW_INSECURE_TARGETS=true on the same machine).
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

const [n8nUrl, inkpadUrl, token] = process.argv.slice(2);
assert(token, 'usage: node test/in-n8n.mjs N8N_URL INKPAD_URL API_TOKEN');

const TIMEOUT_MS = 30_000;
const PERSON = { email: 'owner@example.com', password: `Test1${randomUUID()}`.slice(0, 32) };
const BROWSER = { 'browser-id': randomUUID() };
let cookie = '';

async function send(url, { method = 'GET', headers = {}, body } = {}) {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${url}: ${response.status} ${text}`);
  return { response, body: text === '' ? null : JSON.parse(text) };
}

async function callInkpad(method, path, body) {
  const headers = { authorization: `Bearer ${token}` };
  return (await send(`${inkpadUrl}/api/v1${path}`, { method, headers, body })).body;
}

/** Calls the interface of n8n's editor. */
async function callN8n(method, path, body) {
  const { response, body: result } = await send(`${n8nUrl}/rest${path}`, {
    method,
    headers: { ...BROWSER, cookie },
    body,
  });
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) cookie = cookies.map((one) => one.split(';')[0]).join('; ');
  return result.data;
}

/** Waits until a check passes, since n8n activates workflows in the background. */
async function eventually(check) {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await wait(200);
    }
  }
}

async function activate(workflow) {
  const { id, versionId } = await callN8n('POST', '/workflows', {
    active: false,
    settings: {},
    connections: {},
    ...workflow,
  });
  await callN8n('POST', `/workflows/${id}/activate`, { versionId });
  return id;
}

const createNode = (name, type, parameters, more = {}) => ({
  id: name,
  name,
  type,
  typeVersion: 1,
  position: [0, 0],
  parameters,
  ...more,
});

await callN8n('POST', '/owner/setup', { ...PERSON, firstName: 'Test', lastName: 'Owner' });
const [{ id: accountId }] = await callInkpad('GET', '/accounts');
const store = `/accounts/${accountId}`;
const card = await callInkpad('POST', `${store}/cards`, {
  card: { name: 'n8n', stamps_required: 10 },
});
const { customer_card: customerCard } = await callInkpad('POST', `${store}/customers`, {
  customer: { first_name: 'Zoë', email: `${randomUUID()}@example.com` },
  card_id: card.id,
});
const listSubscriptions = () => callInkpad('GET', `${store}/webhook_subscriptions`);
const subscriptionsBefore = (await listSubscriptions()).length;

const data = { baseUrl: inkpadUrl, token };
const credential = { name: 'Inkpad', type: 'inkpadApi', data };
const { id: credentialId } = await callN8n('POST', '/credentials', credential);
const { status } = await callN8n('POST', '/credentials/test', {
  credentials: { id: credentialId, ...credential },
});
assert.equal(status, 'OK');
const credentials = { inkpadApi: { id: credentialId, name: 'Inkpad' } };

const trigger = createNode(
  'Trigger',
  'n8n-nodes-inkpad.inkpadTrigger',
  { accountId, events: ['stamp.earned'] },
  { webhookId: randomUUID(), credentials },
);
const triggered = await activate({ name: 'On a stamp', nodes: [trigger] });
await eventually(async () => {
  assert.equal((await listSubscriptions()).length, subscriptionsBefore + 1);
});

const path = `sale-${randomUUID()}`;
const sale = createNode(
  'Sale',
  'n8n-nodes-base.webhook',
  { path, httpMethod: 'POST', responseMode: 'lastNode' },
  { typeVersion: 2, webhookId: randomUUID() },
);
const stamp = createNode(
  'Stamp',
  'n8n-nodes-inkpad.inkpad',
  {
    resource: 'customerCard',
    operation: 'stamp',
    accountId,
    cardBy: 'code',
    code: customerCard.code,
    stamps: 2,
    externalRef: '={{ $json.body.order }}',
  },
  { credentials },
);
const connections = { Sale: { main: [[{ node: 'Stamp', type: 'main', index: 0 }]] } };
await activate({ name: 'Stamp a sale', nodes: [sale, stamp], connections });

const orders = [randomUUID(), randomUUID()];
const counts = [];
for (const order of [orders[0], orders[0], orders[1]]) {
  const sell = () => send(`${n8nUrl}/webhook/${path}`, { method: 'POST', body: { order } });
  counts.push((await eventually(sell)).body.stamps_count);
}
assert.deepEqual(counts, [2, 2, 4], 'a receipt counts once');

const filter = encodeURIComponent(JSON.stringify({ workflowId: triggered }));
await eventually(async () => {
  const { results } = await callN8n('GET', `/executions?filter=${filter}`);
  assert.deepEqual(
    results.map((execution) => execution.status),
    ['success', 'success'],
  );
});

await callN8n('POST', `/workflows/${triggered}/deactivate`, {});
await eventually(async () => {
  assert.equal((await listSubscriptions()).length, subscriptionsBefore);
});
console.log('The nodes work in this n8n.');
