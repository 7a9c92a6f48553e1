import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { selfSigned } from '../test/support/emulators/eventstoredb/certificate.mjs';
import { pin } from './cores.mjs';
import { join } from 'node:path';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep, readFileIfExists } from '../apps/cli/processes.mjs';
import { Connection, postRequest } from './connection.mjs';
import { startInkpad } from './inkpad.mjs';
import { stampBody } from './stamp-body.mjs';
import { freePort, root } from './stage.mjs';

const CONCURRENCY = 16;
const POLL_MS = 10;
const HOLD_TRIES = 100;
const SETTLE_MS = 20;

export const MEANING = {
  inkpad: 'the dispatcher as it runs in production, PostgreSQL (synchronous commit, fsync)',
  other: 'the dispatcher of the other clone',
  bullmq: 'BullMQ and undici, Redis (append-only file, fsync once a second)',
  'graphile-worker': 'Graphile Worker and undici, PostgreSQL (synchronous commit, fsync)',
};

/**
 * One way of dispatching webhooks.
 * @typedef {object} Side
 * @property {string} name
 * @property {import('node:child_process').ChildProcess} dispatcher
 * @property {(wanted: { count: number, endpoint?: number }) => Promise<void>} plant builds up a backlog while the
 *   dispatcher is held, for all endpoints in turn or for one
 * @property {(wanted: { count: number, endpoint?: number }) => Promise<void>} append the same while it runs
 * @property {() => Promise<{ endpoint: number, startedAt: number, done: number }>} single one more while it runs: when it
 *   was requested and when its response came
 * @property {() => Promise<{ unfinished: number, failed: number }>} state
 * @property {() => Promise<import('node:child_process').ChildProcess>} [startDispatcher] one more beside it
 * @property {string} [url] of its database
 * @property {number} [storePid] the parent of what it keeps deliveries in, where that is not PostgreSQL
 */

/** The receiver for all sides, pinned to the last core where the system supports that. */
export async function startSink(stage, count, onNews, { tls = 'none' } = {}) {
  const certificate = tls === 'none' ? null : makeCertificate(stage);
  const child = stage.start('bench/sink.mjs', {
    args: [String(count), tls, ...(certificate ? [certificate.cert, certificate.key] : [])],
    part: 'load',
  });
  const { ports } = await stage.ask(child);
  const core = stage.cores?.load ?? String(cpus().length - 1);
  const pinned = pin(child.pid, core);
  return {
    ask: stage.conversation(child, onNews),
    urls: ports.map((port) => `${certificate ? 'https' : 'http'}://127.0.0.1:${port}/webhooks`),
    /** For whoever sends: with what the receivers' certificate is trusted. */
    env: certificate ? { NODE_EXTRA_CA_CERTS: certificate.cert } : {},
    where: pinned ? `on core ${core}` : 'on any core',
  };
}

/** Elliptic, as most receivers have today. */
function makeCertificate({ dataDir }) {
  const { cert, key } = selfSigned();
  const files = { cert: join(dataDir, 'receiver.crt'), key: join(dataDir, 'receiver.key') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}

/**
 * One store per endpoint, each with customers of its own: `customers` for the endpoints that share the load, `many` for
 * those `apart`, because deliveries about one customer are sent one after another. With `live` the dispatcher plans what it
 * sends, as in production. With `follow` it also does what else it does with every event, as in production.
 * `from` is the folder of the clone whose build runs.
 * @returns {Promise<Side & { secrets: string[] }>}
 */
export async function startInkpadDispatcher(
  stage,
  {
    urls,
    apart = 0,
    customers,
    many = customers,
    rendered = true,
    follow = false,
    env = {},
    live = false,
    name = 'inkpad',
    from = root,
  },
) {
  const settings = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true', HOST: '127.0.0.1', ...env };
  const service = await startInkpad(stage, `bench_webhooks_${name}`, settings, from);
  const child = stage.start('bench/webhook-planter.mjs', { env: service.env, from });
  await stage.ask(child);
  const planter = stage.conversation(child);
  const spread = urls.length - apart;
  const stores = await makeStores(service, planter, urls, (i) => (i < spread ? customers : many));
  await planter({ ask: 'know', cards: stores });
  const lead = () => planter({ ask: 'lead', on: true, follows: !follow });
  if (!live) await lead();
  const startDispatcher = async () =>
    stage.start('dist/apps/dispatcher/main.js', { env: service.env, from });
  const deliveries = () => deliveriesOf(stage, service.url);
  const stamp = stampInTurn(service, stores.slice(0, spread));
  let planted = 0;
  const append = async ({ count, endpoint }) => {
    await planter({ ask: 'stamp', count, store: endpoint, spread });
    planted += count;
  };
  const side = {
    name,
    dispatcher: await startDispatcher(),
    startDispatcher,
    url: service.url,
    secrets: stores.map(({ secret }) => secret),
    append,
    async plant(task) {
      await append(task);
      while ((await deliveries()).planned < planted) await sleep(POLL_MS, stage.abort.signal);
      while (!follow && (await subscriptionsBehind(stage, service.url)) > 0) {
        await sleep(POLL_MS, stage.abort.signal);
      }
      if (rendered) await planter({ ask: 'render' });
    },
    single() {
      planted++;
      return stamp();
    },
    async state() {
      const { planned, pending, failed } = await deliveries();
      return { unfinished: planted - planned + pending, failed };
    },
    /** The dispatcher plans what it sends, as in production. */
    async goLive() {
      release(side.dispatcher);
      await planter({ ask: 'lead', on: false });
    },
    /** Goes back to backlogs that are built up while the dispatcher is held. */
    async goStaged() {
      await stage.stop(side.dispatcher);
      await lead();
      side.dispatcher = await startDispatcher();
    },
  };
  return side;
}

/**
 * @returns a function that stamps over HTTP for the next store at each call; the response comes right after the commit
 */
function stampInTurn({ port, token }, stores) {
  let connection;
  let stampCount = 0;
  return async () => {
    const endpoint = stampCount % stores.length;
    const { accountId, cards } = stores[endpoint];
    const { customerId, id } = cards[Math.floor(stampCount++ / stores.length) % cards.length];
    const path = `/api/v1/accounts/${accountId}/customers/${customerId}/customer_cards/${id}/stamp`;
    // Idle connections are closed by both ends between measurements.
    if (connection?.socket.destroyed !== false) connection = await Connection.open(port);
    const startedAt = now();
    const { status } = await connection.send(postRequest(path, token, stampBody));
    if (status !== 200) throw new Error(`a stamp got status ${status}`);
    return { endpoint, startedAt, done: now() };
  };
}

async function makeStores(service, planter, urls, customersOf) {
  const { accountIds } = await planter({ ask: 'stores', count: urls.length });
  const call = callWith(service);
  const stores = [];
  await inParallel(accountIds, async (accountId, i) => {
    const card = await call(`/accounts/${accountId}/cards`, {
      card: { name: 'Coffee', stamps_required: 10 },
    });
    const { secret } = await call(`/accounts/${accountId}/webhook_subscriptions`, {
      events: ['stamp.earned'],
      target_url: urls[i],
    });
    stores[i] = { accountId, cardId: card.id, secret, cards: [] };
  });
  const guests = stores.flatMap((store, i) =>
    Array.from({ length: customersOf(i) }, (_, n) => ({ store, n })),
  );
  await inParallel(guests, async ({ store, n }) => {
    const { id, customer_card: card } = await call(`/accounts/${store.accountId}/customers`, {
      customer: { first_name: `Guest ${n}`, email: `guest${n}@example.com` },
      card_id: store.cardId,
    });
    store.cards.push({ customerId: id, id: card.id });
  });
  return stores;
}

/**
 * How many of the subscriptions have not come as far in the log as the planning of deliveries. This and the next function
 * are all in the bench that knows the dispatcher's tables.
 */
async function subscriptionsBehind(stage, url) {
  const [{ behind }] = await stage.query(
    url,
    `select (select count(*) from es.positions
         where position < (select position from es.positions where subscription = 'webhooks'))::int
       + (select count(*) from statistics_progress where seq < (select max(seq) from history))::int as behind`,
  );
  return behind;
}

async function deliveriesOf(stage, url) {
  const [row] = await stage.query(
    url,
    `select count(*)::int as planned,
            count(*) filter (where status = 'pending')::int as pending,
            count(*) filter (where status = 'failed')::int as failed
     from webhook_deliveries`,
  );
  return row;
}

function callWith({ port, token }) {
  return async (path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
}

async function inParallel(items, act) {
  const queue = items.entries();
  const loop = async () => {
    for (const [i, item] of queue) await act(item, i);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
}

/** @param {{ endpoints: object[], apart?: number, sample: string, concurrency: number }} config */
export async function startBullmq(stage, config) {
  refuseWithoutRedis();
  const port = await freePort();
  const dir = join(stage.dataDir, 'redis');
  mkdirSync(dir);
  const redis = stage.start('bench/redis.mjs', { args: [dir, String(port)] });
  await stage.ask(redis);
  const side = await startPeer(stage, 'bullmq', 'bullmq', { ...config, port });
  return { ...side, storePid: redis.pid };
}

export async function startGraphile(stage, config) {
  const url = await stage.database('bench_graphile');
  return startPeer(stage, 'graphile-worker', 'graphile', { ...config, url });
}

async function startPeer(stage, name, file, config) {
  const settings = { apart: 0, ...config };
  const child = stage.start(`bench/${file}-planter.mjs`);
  await stage.ask(child, settings);
  const planter = stage.conversation(child);
  const dispatcher = stage.start(`bench/${file}-dispatcher.mjs`, { env: config.env });
  await stage.ask(dispatcher, settings);
  const side = {
    name,
    dispatcher,
    plant: (task) => planter({ ask: 'plant', ...task }),
    append: (task) => planter({ ask: 'plant', ...task }),
    goLive: async () => release(side.dispatcher),
    goStaged: async () => {},
    single: () => planter({ ask: 'single' }),
    state: () => planter({ ask: 'state' }),
  };
  return side;
}

export function refuseWithoutRedis() {
  const { error } = spawnSync('redis-server', ['--version']);
  if (error) {
    throw new StartFailure(
      'BullMQ needs redis-server, which is not installed (Debian: apt-get install redis-server). Leave it out with --peers graphile-worker or --peers none.',
    );
  }
}

/**
 * Held dispatchers neither run nor lose anything until they are released. They are caught outside of transactions, whose
 * locks would hold up whoever prepares the next round.
 */
export async function hold(stage, ...dispatchers) {
  for (let tries = 1; tries <= HOLD_TRIES; tries++) {
    for (const dispatcher of dispatchers) dispatcher.kill('SIGSTOP');
    await sleep(SETTLE_MS, stage.abort.signal);
    const [{ open }] = await stage.query(
      stage.postgres.ownerUrl,
      `select count(*)::int as open from pg_stat_activity
       where pid <> pg_backend_pid() and backend_type = 'client backend' and xact_start is not null`,
    );
    if (open === 0) return;
    release(...dispatchers);
    await sleep(SETTLE_MS, stage.abort.signal);
  }
  throw new Error('a dispatcher could not be held outside of its transactions');
}

export function release(...dispatchers) {
  for (const dispatcher of dispatchers) dispatcher.kill('SIGCONT');
}

/** Resident memory in MB. */
export function memoryOf({ dispatcher }) {
  const status = readFileIfExists(`/proc/${dispatcher.pid}/status`);
  const kilobytes = status
    ? /VmRSS:\s*(\d+)/.exec(status)[1]
    : execFileSync('ps', ['-o', 'rss=', '-p', String(dispatcher.pid)], { encoding: 'utf8' });
  return Number(kilobytes) / 1024;
}

/** In ms, on one clock for all processes of the machine. */
export function now() {
  return performance.timeOrigin + performance.now();
}

/** Figures mean little without what else the machine was doing: the load average of 1, 5 and 15 minutes. */
export function loadNow() {
  return `load ${loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')}`;
}
