// A whole receiver of Inkpad's webhooks, for Node.js 20 or newer, without any package.
//
//   WEBHOOK_SECRET=whsec_… node receiver.mjs
//
// Each event is stored before the response and handled afterwards, so that none is lost when this program is killed,
// and none is handled again when it comes twice. A folder does for that; in your database it is one statement:
//   insert into webhook_events (id, body) values ($1, $2) on conflict do nothing
import {
  createHmac,
  createPublicKey,
  randomUUID,
  timingSafeEqual,
  verify as verifyWithKey,
} from 'node:crypto';
import { access, link, mkdir, open, readFile, readdir, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

const { WEBHOOK_SECRET, EVENTS_DIR = 'events', HOST = '127.0.0.1', PORT = '8787' } = process.env;
const BODY_LIMIT = 1024 * 1024;
const TRY_AGAIN_MS = 60_000;

if (!WEBHOOK_SECRET) throw new Error('Set WEBHOOK_SECRET to the secret of your subscription');

/** Your code. What it throws is tried again a minute later, so it has to be able to run twice. */
async function handle(event) {
  console.log(`handled ${event.id} ${event.type}`);
}

/** Takes a secret (whsec_…) or a public key (whpk_…). */
function verify(secret, id, timestamp, signatures, body) {
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const isPublic = secret.startsWith('whpk_');
  const key = Buffer.from(secret.replace(/^wh(sec|pk)_/, ''), 'base64');
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return (signatures ?? '').split(' ').some((one) => {
    const [version, encoded] = one.split(',');
    if (version !== (isPublic ? 'v1a' : 'v1')) return false;
    const signature = Buffer.from(encoded ?? '', 'base64');
    if (isPublic) {
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') };
      return verifyWithKey(null, signed, createPublicKey({ format: 'jwk', key: jwk }), signature);
    }
    const expected = createHmac('sha256', key).update(signed).digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

async function receive(request) {
  if (request.method !== 'POST') return 405;
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_LIMIT) return 413;
    chunks.push(chunk);
  }
  // The signature is over these bytes: parse nothing before it is verified.
  const body = Buffer.concat(chunks);
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = request.headers;
  const signatures = request.headers['webhook-signature'];
  if (!verify(WEBHOOK_SECRET, id, timestamp, signatures, body)) return 401;
  // It becomes the name of a file.
  if (!/^\w{1,64}$/.test(id)) return 400;
  if (await store(id, body)) work(id);
  return 204;
}

/** False if the event is there already: this is a duplicate. */
async function store(id, body) {
  const path = join(EVENTS_DIR, `${id}.json`);
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, 'wx');
  await file.writeFile(body);
  await file.sync();
  await file.close();
  try {
    // The file has this name only once it is whole, and the first one keeps it.
    await link(draft, path);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

let working = Promise.resolve();

/** One after the other, in the order in which they came. */
function work(id) {
  working = working.then(async () => {
    try {
      const path = join(EVENTS_DIR, id);
      await handle(JSON.parse(await readFile(`${path}.json`, 'utf8')));
      await writeFile(`${path}.done`, '');
    } catch (error) {
      console.error(`${id} will be tried again:`, error);
      setTimeout(() => work(id), TRY_AGAIN_MS);
    }
  });
}

await mkdir(EVENTS_DIR, { recursive: true });
for (const name of (await readdir(EVENTS_DIR)).filter((one) => one.endsWith('.json')).sort()) {
  const id = name.slice(0, -'.json'.length);
  await access(join(EVENTS_DIR, `${id}.done`)).catch(() => work(id));
}

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error);
      // Inkpad tries again.
      response.writeHead(500).end();
    },
  );
});
server.requestTimeout = 10_000;
server.listen(Number(PORT), HOST, () => console.log(`listening on ${HOST}:${PORT}`));
