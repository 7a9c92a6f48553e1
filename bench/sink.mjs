import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/**
 * The receiver for every side: a raw server with a port for each endpoint, because a full HTTP server would take as
 * much of the processor as the dispatcher under test. Counts arrivals by endpoint and webhook-id, and verifies the
 * signature of every 50th.
 */
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const [, , COUNT, CONNECTIONS = 'warm', CERTIFICATE, KEY] = process.argv;
const IS_COLD = CONNECTIONS === 'cold';
const RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n${IS_COLD ? 'connection: close\r\n' : ''}\r\nok`,
);
const SIGNATURE_EVERY = 50;
const WARM_UP_MS = 1_000;

const now = () => performance.timeOrigin + performance.now();

let keys = [];
let watched = false;
/** By endpoint: how many ms to wait before a response, or null to never respond. */
let slow = new Map();
let run = newRun();

function newRun() {
  return {
    seen: new Set(),
    receipts: [],
    counts: new Map(),
    checked: 0,
    badSignatures: 0,
    sample: undefined,
  };
}

function receive(endpoint, head, body) {
  const at = now();
  const id = field(head, 'webhook-id');
  run.receipts.push({ at, endpoint, id });
  run.counts.set(endpoint, (run.counts.get(endpoint) ?? 0) + 1);
  run.seen.add(`${endpoint} ${id}`);
  if (run.receipts.length % SIGNATURE_EVERY === 1) {
    run.sample = body.toString();
    run.checked++;
    if (!isSigned(endpoint, id, head, body)) run.badSignatures++;
  }
  if (watched) process.send({ received: { at, endpoint, id } });
}

function isSigned(endpoint, id, head, body) {
  const timestamp = field(head, 'webhook-timestamp');
  const mac = createHmac('sha256', keys[endpoint]).update(`${id}.${timestamp}.`).update(body);
  return (
    field(head, 'webhook-signature') === `v1,${mac.digest('base64')}` &&
    Math.abs(Date.now() / 1000 - Number(timestamp)) < 300
  );
}

function field(head, name) {
  const start = head.indexOf(`\r\n${name}:`);
  if (start < 0) throw new Error(`a request without ${name}:\n${head}`);
  const from = start + name.length + 3;
  const end = head.indexOf('\r\n', from);
  return head.slice(from, end < 0 ? undefined : end).trim();
}

function serve(endpoint, socket) {
  socket.setNoDelay(true);
  let pending = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      const end = pending.indexOf(END_OF_HEAD);
      if (end < 0) return;
      const head = pending.latin1Slice(0, end);
      const from = end + END_OF_HEAD.length;
      const whole = from + Number(field(head, 'content-length'));
      if (pending.length < whole) return;
      receive(endpoint, head, pending.subarray(from, whole));
      pending = pending.subarray(whole);
      respond(endpoint, socket);
    }
  });
  // A dispatcher that gives up or is stopped cuts its connections; what it had sent still counts.
  socket.on('error', () => {});
}

function respond(endpoint, socket) {
  const delay = slow.get(endpoint);
  const send = () => (IS_COLD ? socket.end(RESPONSE) : socket.write(RESPONSE));
  if (delay === undefined) send();
  else if (delay !== null) setTimeout(() => socket.writable && send(), delay);
}

/** The first second is left out, because connections are still being opened. */
function report() {
  const { receipts, seen, checked, badSignatures } = run;
  const first = receipts[0]?.at;
  const warmCount = receipts.findIndex(({ at }) => at >= first + WARM_UP_MS);
  return {
    received: receipts.length,
    distinct: seen.size,
    checked,
    badSignatures,
    first,
    warm: warmCount < 0 ? undefined : { at: first + WARM_UP_MS, count: warmCount },
  };
}

/** Matches all endpoints, or those numbered `from` to `to`. */
function isAt({ from = 0, to = Infinity }) {
  return ({ endpoint }) => endpoint >= from && endpoint <= to;
}

function countOf(range) {
  const within = isAt(range);
  let sum = 0;
  for (const [endpoint, count] of run.counts) if (within({ endpoint })) sum += count;
  return sum;
}

function handle(message) {
  switch (message.ask) {
    case 'begin':
      run = newRun();
      return { ready: true };
    case 'secrets':
      keys = message.secrets.map((secret) => Buffer.from(secret.slice('whsec_'.length), 'base64'));
      return { ready: true };
    case 'behave':
      slow = new Map(message.slow);
      watched = message.watched ?? false;
      return { ready: true };
    case 'count':
      return { received: countOf(message) };
    case 'report':
      return report();
    case 'sample':
      return { sample: run.sample };
    case 'receipts':
      return { receipts: run.receipts.filter(isAt(message)) };
    default:
      throw new Error(`the sink knows no request ${message.ask}`);
  }
}

const tls = CERTIFICATE && { cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) };

const ports = await Promise.all(
  Array.from({ length: Number(COUNT) }, async (_, endpoint) => {
    const onSocket = (socket) => serve(endpoint, socket);
    const server = tls ? createTlsServer(tls, onSocket) : createServer(onSocket);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server.address().port;
  }),
);
process.on('message', (message) => process.send({ tag: message.tag, ...handle(message) }));
process.send({ ports });
