import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import pg from 'pg';
import sharp from 'sharp';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { StoreRecounts } from '../dist/libs/loyalty/statistics/store-recounts.service.js';
import { fillCustomers } from './customers-fill.mjs';
import { quantile, ratio, table, whole } from './figures.mjs';
import { enrolMany, openStore, setUpInkpad, startApi } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';
import { fillHistory } from './statistics.mjs';

/** What one store may send at the defaults: 10 tokens with 300 requests a minute each. */
const TOKENS = 10;
const PER_SECOND = 3_000 / 60;
const BATCH = 100;
/** A batch counts as a tenth of its operations. */
const BATCHES_PER_SECOND = PER_SECOND / (BATCH / 10);
const STAMPS_PER_SECOND = 15;
const LISTS_PER_SECOND = 8;
const MAX_RATIO = 3;
const ATTEMPTS = 3;
const OWN_CUSTOMERS = 200;
const REAL_CUSTOMERS = 300;
const LONG_CARD_STAMPS = 2_000;
const IMPORT_ROWS = 2_000;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      customers: { type: 'string', default: '50000' },
      events: { type: 'string', default: '200000' },
      seconds: { type: 'string', default: '6' },
      operations: { type: 'string', default: '' },
    },
  });
  const [customers, events, seconds] = ['customers', 'events', 'seconds'].map((name) => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number > 0) return number;
    throw new StartFailure(`--${name} ${values[name]}: must be a whole number above 0`);
  });
  const only = values.operations.split(',').filter(Boolean);
  const operations = readOperations().filter(({ id }) => only.length === 0 || only.includes(id));
  if (operations.length < only.length) {
    throw new StartFailure(`--operations ${values.operations}: openapi.json lacks one of them`);
  }
  return onStage((stage) => measure(stage, { customers, events, seconds, operations }));
}

/** Lists what a token may call, as openapi.json declares it. So no new operation is forgotten. */
function readOperations() {
  const document = JSON.parse(readFileSync(`${root}openapi.json`, 'utf8'));
  const resolve = (part) =>
    part?.$ref
      ? part.$ref
          .slice(2)
          .split('/')
          .reduce((at, name) => at[name], document)
      : part;
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const content = Object.values(operation.requestBody?.content ?? {})[0];
      const body = content?.example ?? resolve(content?.schema)?.example;
      const query = (operation.parameters ?? []).map(resolve).filter((one) => one.in === 'query');
      const names = query.map(({ name }) => name);
      return { id: operation.operationId, method: method.toUpperCase(), path, body, names };
    }),
  );
}

async function measure(stage, plan) {
  const bench = await open(stage, plan);
  const rows = [
    [
      'operation',
      'stamp p50',
      'p95',
      'max',
      'list p50',
      'p95',
      'max',
      'responses of the busy store',
    ],
  ];
  const slow = [];
  const broken = [];
  await measureNeighbour(bench, 4);
  for (const operation of plan.operations) {
    const tries = [];
    do tries.push(await beside(bench, operation, plan.seconds));
    while (isSlow(tries.at(-1).ratios) && tries.length < ATTEMPTS);
    const best = tries.toSorted((a, b) => worst(a.ratios) - worst(b.ratios))[
      Math.floor((tries.length - 1) / 2)
    ];
    if (isSlow(best.ratios)) slow.push(operation.id);
    if (tries.some(({ statuses }) => hasFault(statuses))) broken.push(operation.id);
    rows.push([operation.id, ...best.ratios.map(ratio), renderStatuses(best.statuses)]);
    console.error(rows.at(-1).join('  '));
  }
  console.log(
    `\nthe neighbour's stamps and lists as ratios of those without the busy store, ${PER_SECOND} requests or ${BATCHES_PER_SECOND} batches of ${BATCH} a second\n${table(rows)}`,
  );
  for (const id of slow)
    console.log(`FAIL: beside ${id} the neighbour takes more than ${MAX_RATIO} times as long`);
  for (const id of broken) console.log(`FAIL: ${id} has responses that are faults`);
  if (slow.length + broken.length > 0) return 1;
  console.log(`PASS: beside each operation p50 and p95 stay within ${MAX_RATIO} times`);
  return 0;
}

/** Only p50 and p95 count: a single slow response may have any cause. */
const selectJudged = ([stamp50, stamp95, , list50, list95]) => [stamp50, stamp95, list50, list95];
const worst = (ratios) => Math.max(...selectJudged(ratios));
const isSlow = (ratios) => worst(ratios) > MAX_RATIO;

/** A store at its limits may get 503, but no other error of the service, and no end of its connection. */
const hasFault = (statuses) =>
  Object.keys(statuses).some((status) => status === 'cut' || /^5(?!03)/.test(status));

const renderStatuses = (statuses) =>
  Object.entries(statuses)
    .map(([status, count]) => `${count} x ${status}`)
    .join(', ');

/** Measures the neighbour alone, beside one operation, and alone again. */
async function beside(bench, operation, seconds) {
  const requests = createRequests(bench, operation);
  const perSecond = operation.id === 'executeBatch' ? BATCHES_PER_SECOND : PER_SECOND;
  const before = await measureNeighbour(bench, seconds / 2);
  const attack = bench.stage.ask(bench.attacker, {
    port: bench.port,
    requests,
    tokens: bench.tokens,
    perSecond,
    seconds,
  });
  const busy = await measureNeighbour(bench, seconds);
  const statuses = await attack;
  const after = await measureNeighbour(bench, seconds / 2);
  const shares = [0.5, 0.95, 1];
  const ratios = ['stamps', 'lists'].flatMap((kind) =>
    shares.map(
      (share) => quantile(busy[kind], share) / quantile([...before[kind], ...after[kind]], share),
    ),
  );
  return { ratios, statuses };
}

/** Stamps and lists at a steady rate, one after another of each kind. */
async function measureNeighbour({ port, neighbour }, seconds) {
  const { token, stampPaths, listPath } = neighbour;
  const send = async (method, path, body) => {
    const start = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) {
      const ms = whole(performance.now() - start);
      throw new Error(
        `${method} ${path} of the neighbour: ${response.status} after ${ms} ms ${text}`,
      );
    }
    return performance.now() - start;
  };
  const loop = async (perSecond, act) => {
    const times = [];
    const end = performance.now() + seconds * 1000;
    for (let due = performance.now(); due < end; due += 1000 / perSecond) {
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      times.push(await act(times.length));
    }
    return times;
  };
  const [stamps, lists] = await Promise.all([
    loop(STAMPS_PER_SECOND, () => {
      const path = stampPaths[Math.floor(Math.random() * stampPaths.length)];
      return send('POST', path, { stamps: 1 });
    }),
    loop(LISTS_PER_SECOND, () => send('GET', listPath)),
  ]);
  return { stamps, lists };
}

/** Two stores: a busy one with much in it, and a small one beside it. */
async function open(stage, { customers, events }) {
  const service = await setUpInkpad(stage, 'bench_neighbours');
  const cli = async (...args) =>
    JSON.parse(await stage.script('dist/apps/cli/cli.js', service.env, root, args));
  const { port, child } = await startApi(stage, service);
  const { url, accountId } = service;
  const call = createCaller(port, service.token);
  const { enrol } = await openStore(service, port);
  const [{ card_id: cardId }] = await stage.query(url, 'select min(id) as card_id from cards');
  console.error(`writing ${whole(customers)} customers and ${whole(events)} events …`);
  const real = (await enrolMany(enrol, REAL_CUSTOMERS)).map((path) => path.split('/'));
  const ids = await openRecords(call, { accountId, cardId, real });
  await followRecords(stage, service);
  await fillCustomers({ url, accountId, cardId, count: customers });
  await fillHistory(stage, url, { accountId, cardId, events, from: 1, to: events });
  await fillEvents(stage, url, accountId);
  const pool = new pg.Pool({ connectionString: url });
  await new StoreRecounts(pool).replace(accountId);
  await pool.query('update statistics_progress set seq = (select max(seq) from history)');
  await pool.query('vacuum analyze statistics_hours');
  await pool.end();
  startDispatcher(stage, service);
  ids.codes = (
    await stage.query(url, 'select code from customer_cards where customer_id = any ($1)', [
      ids.customers,
    ])
  ).map(({ code }) => code);

  const [{ email }] = await stage.query(url, 'select email from users limit 1');
  const tokens = [];
  for (let i = 0; i < TOKENS; i++) {
    tokens.push((await cli('token:create', '--user', email, '--name', `till ${i}`)).api_token);
  }
  const { account_id: otherId } = await cli('store:create', '--name', 'Beside', '--user', email);
  const own = await cli('token:create', '--user', email, '--name', 'beside');
  const { enrol: enrolOther } = await openStore(
    { ...service, accountId: otherId, token: own.api_token },
    port,
  );
  const stampPaths = await enrolMany(enrolOther, OWN_CUSTOMERS);
  await cli('token:limit', '--token-id', String(own.token_id), '--per-minute', '3000');
  // From here on with the limits of a new installation.
  await stage.stop(child);
  const limits = { RATE_LIMIT_PER_MINUTE: '', STORE_RATE_LIMIT_PER_MINUTE: '' };
  const api = await startApi(stage, { env: { ...service.env, ...limits } });
  return {
    stage,
    port: api.port,
    tokens,
    ids,
    attacker: stage.start('bench/neighbours-attack.mjs', { part: 'load' }),
    neighbour: {
      token: own.api_token,
      stampPaths,
      listPath: `/api/v1/accounts/${otherId}/customers?items=20`,
    },
  };
}

/**
 * Starts what adds to the history and the statistics, as in production. Its check at the start would report each of the
 * customers that have no events.
 */
const startDispatcher = (stage, { env }) =>
  stage.start('dist/apps/dispatcher/main.js', { env: { ...env, LOG_LEVEL: 'fatal' } });

/** Lets a dispatcher add what is recorded so far, and stops it: the bench adds entries of its own then. */
async function followRecords(stage, service) {
  const child = startDispatcher(stage, service);
  const countMissing = async () => {
    const [{ missing }] = await stage.query(
      service.url,
      'select (select count(*) from es.events)::int - (select count(*) from history)::int as missing',
    );
    return missing;
  };
  while ((await countMissing()) > 0) await sleep(200);
  await stage.stop(child);
}

/** Stores the events of the entries that `fillHistory` writes: copies of a stamping and a redemption of the store. */
async function fillEvents(stage, url, accountId) {
  await stage.query(
    url,
    `insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id, data, meta, hash,
       recorded_at)
     select '3', h.seq, h.stream, h.revision, h.event_id, e.type, e.schema_version, e.account_id, e.data, e.meta, e.hash,
       h.recorded_at
     from history h
     join (
       select distinct on (type) * from es.events
       where account_id = $1 and type in ('StampsEarned', 'RewardRedeemed')
     ) e on e.type = case h.name when 'reward.redeemed' then 'RewardRedeemed' else 'StampsEarned' end
     where h.stream like 'bench-%'`,
    [accountId],
  );
  await stage.query(url, 'analyze es.events');
}

function createCaller(port, token) {
  return async (method, path, body, type = 'application/json') => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) },
      ...(body && { body: type === 'application/json' ? JSON.stringify(body) : body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? {} : JSON.parse(text);
  };
}

/** One record of each kind that a path may name, and a card with a long history. */
async function openRecords(call, { accountId, cardId, real }) {
  const store = `/accounts/${accountId}`;
  const [, , , , , , longCustomer, , longCard] = real[0];
  const longPath = `${store}/customers/${longCustomer}/customer_cards/${longCard}`;
  for (let i = 0; i < LONG_CARD_STAMPS / BATCH; i++) {
    await call('POST', `${store}/batch`, { operations: createOperations([Number(longCard)]) });
  }
  const [event] = await call('GET', `${longPath}/events?limit=1`);
  const post = async (path, body, type) => (await call('POST', `${store}${path}`, body, type)).id;
  const rewards = await call('GET', `${store}/rewards`);
  await call('POST', `${longPath}/redeem`, { reward_id: rewards[0].id });
  return {
    account_id: accountId,
    cards: cardId,
    rewards: rewards[0].id,
    customers: real.map((parts) => Number(parts[6])),
    customer_cards: real.map((parts) => Number(parts[8])),
    locations: await post('/locations', {
      location: { name: 'Old Town', address: 'Marktplatz 1', pin: { latitude: 53, longitude: 9 } },
    }),
    posters: await post('/posters', { poster: { card_id: cardId, title: 'Collect' } }),
    imports: await post(`/imports?card_id=${cardId}`, renderFile(), 'text/csv'),
    webhook_subscriptions: await post('/webhook_subscriptions', {
      events: ['reward.redeemed'],
      target_url: 'https://receiver.example/hooks',
    }),
    announcements: await post('/announcements', { title: 'Closed', text: 'Back on Tuesday.' }),
    message_rules: await post('/message_rules', {
      kind: 'inactive',
      threshold: 30,
      title: 'We miss you',
      text: 'Come back.',
    }),
    deliveries: 1,
    history: event.event_id,
    events: event.event_id,
    by_code: 'codes',
    picture: (await createPicture()).toString('base64'),
  };
}

let receipts = 0;
const createOperations = (cards) =>
  Array.from({ length: BATCH }, (_, i) => ({
    operation: 'stamp',
    customer_card_id: cards[i % cards.length],
    stamps: 1,
    external_ref: `neighbours-${++receipts}`,
  }));

function renderFile() {
  const lines = ['first_name,email'];
  for (let i = 0; i < IMPORT_ROWS; i++) lines.push(`Anna,imported${i}@example.com`);
  return `${lines.join('\n')}\n`;
}

function createPicture() {
  const noise = { type: 'gaussian', mean: 128, sigma: 30 };
  return sharp({ create: { width: 700, height: 700, channels: 3, noise } })
    .png()
    .toBuffer();
}

const day = (daysAgo) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);

/** Queries that cost most, where the parameters alone do not tell which. */
const QUERIES = {
  getStatistics: [
    { interval: 'day', from: day(365), to: day(0) },
    { interval: 'day', from: day(365), to: day(0), breakdown: 'card' },
    { interval: 'month', from: day(700), to: day(0) },
  ],
  listCustomers: [
    { search: 'a', items: 100 },
    { search: 'example.', items: 100, page: 100 },
    { items: 100, page: 400 },
  ],
  executeBatch: [{}],
  createImport: [{}],
};

/** Several requests of an operation, so that they differ in query and record. */
function createRequests({ ids }, { id, method, path, body, names }) {
  const queries = QUERIES[id] ?? [
    {},
    ...(names.includes('limit') ? [{ limit: 250 }] : []),
    ...(names.includes('as_of') ? [{ as_of: new Date(Date.now() - 60_000).toISOString() }] : []),
    ...(names.includes('from') && names.includes('to')
      ? [{ from: `${day(700)}T00:00:00Z`, to: `${day(0)}T00:00:00Z` }]
      : []),
  ];
  // Not the history, whose entries from `fillHistory` have positions other than their events.
  const files = ['customers.csv', 'customer_cards.ndjson'];
  const count = Math.max(REAL_CUSTOMERS, queries.length);
  return Array.from({ length: count }, (_, i) => {
    const query = new URLSearchParams(queries[i % queries.length]).toString();
    return {
      method,
      path: `${fillPath(ids, path, i, files)}${query && `?${query}`}`,
      ...createBody({ ids, id, body, i }),
    };
  });
}

/** @param {number} i the first card has the long history; a third of the requests are about it */
function fillPath(ids, path, i, files) {
  const place = i % 3 === 0 ? 0 : i % ids.customers.length;
  const pick = (kind) => (Array.isArray(ids[kind]) ? ids[kind][place] : ids[kind]);
  const parts = path.split('/');
  return parts
    .map((part, at) => {
      const name = /^\{(.+)\}$/.exec(part)?.[1];
      if (name === undefined) return part;
      if (name === 'account_id') return ids.account_id;
      if (name === 'file') return files[i % files.length];
      if (name === 'code') return ids.codes[place];
      return pick(parts[at - 1]);
    })
    .join('/');
}

function createBody({ ids, id, body, i }) {
  const cards = ids.customer_cards;
  if (id === 'executeBatch') {
    const from = (i * BATCH) % cards.length;
    const some = [...cards.slice(from), ...cards].slice(0, BATCH);
    return { body: JSON.stringify({ operations: createOperations(some) }) };
  }
  if (id === 'createImport') {
    return { body: Buffer.from(renderFile()).toString('base64'), type: 'text/csv' };
  }
  if (id === 'setLogo' || id === 'setCardStripImage')
    return { body: ids.picture, type: 'image/png' };
  if (body === undefined) return {};
  const text = JSON.stringify(body, (name, value) => {
    if (name === 'card_id') return ids.cards;
    if (name === 'reward_id') return ids.rewards;
    if (name === 'external_ref') return `neighbours-${++receipts}`;
    if (name === 'email') return `neighbour${++receipts}@example.com`;
    if (name === 'phone' || name === 'external_references') return undefined;
    return value;
  });
  return { body: text };
}
