// A whole receiver of Inkpad's webhooks, for Node.js 20 or newer.
//
//   npm install standardwebhooks
//   WEBHOOK_SECRET=whsec_… node receiver.mjs
//
// Each event is stored before the response and handled afterwards, so that none is lost when this program is killed,
// and none is handled again when it comes twice. A folder does for that; in your database it is one statement:
//   insert into webhook_events (id, body) values ($1, $2) on conflict do nothing
import { randomUUID } from 'node:crypto';
import { access, link, mkdir, open, readFile, readdir, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const { WEBHOOK_SECRET, EVENTS_DIR = 'events', HOST = '127.0.0.1', PORT = '8787' } = process.env;
const BODY_LIMIT = 1024 * 1024;
const TRY_AGAIN_MS = 60_000;

if (!WEBHOOK_SECRET) throw new Error('Set WEBHOOK_SECRET to the secret of your subscription');
const webhook = new Webhook(WEBHOOK_SECRET);

/** Your code. What it throws is tried again a minute later, so it has to be able to run twice. */
async function handle(event) {
  console.log(`handled ${event.id} ${event.type}`);
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
  try {
    // Also refuses what was signed more than five minutes ago, and requests without the headers.
    webhook.verify(body, request.headers);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return 401;
    throw error;
  }
  const id = request.headers['webhook-id'];
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
