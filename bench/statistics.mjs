import { parseArgs } from 'node:util';
import pg from 'pg';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { StatisticsTable } from '../dist/libs/loyalty/statistics/statistics-table.service.js';
import { StoreRecounts } from '../dist/libs/loyalty/statistics/store-recounts.service.js';
import { StatisticsVerification } from '../dist/libs/loyalty/statistics/statistics-verification.service.js';
import { fillCustomers } from './customers-fill.mjs';
import { median, ms, quantile, ratio, spread, table, whole } from './figures.mjs';
import { enrolMany, startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const MAX_MS = 300;
const EVENTS_PER_CUSTOMER = 20;
const YEARS = 2;
/** As many of them are counted one after another. */
const MAX_COUNTED = 100_000;
const STAMPED_CUSTOMERS = 200;
const STAMPS_PER_SECOND = 15;
const ALONE_MS = 10_000;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '1000000' },
      rounds: { type: 'string', default: '9' },
    },
  });
  const [events, rounds] = [Number(values.events), Number(values.rounds)];
  if (!Number.isInteger(events) || events < 1000 || !Number.isInteger(rounds) || rounds < 1) {
    throw new StartFailure('--events must be at least 1000 and --rounds at least 1');
  }
  return onStage((stage) => measure(stage, { events, rounds }));
}

async function measure(stage, { events, rounds }) {
  const service = await startInkpad(stage, 'bench_statistics');
  const { url, accountId, port, token } = service;
  const stampPaths = await enrolMany(service.enrol, STAMPED_CUSTOMERS);
  const [{ card_id: cardId }] = await stage.query(url, 'select min(id) as card_id from cards');
  const customers = Math.ceil(events / EVENTS_PER_CUSTOMER);
  console.error(`writing ${whole(customers)} customers and ${whole(events)} events …`);
  await fillCustomers({ url, accountId, cardId, count: customers });
  const last = Math.min(MAX_COUNTED, Math.floor(events / 2));
  const earlier = events - last;
  const history = { accountId, cardId, events };
  await fillHistory(stage, url, { ...history, from: 1, to: earlier });
  const pool = new pg.Pool({ connectionString: url });
  const statistics = new StatisticsTable(pool);
  const before = process.memoryUsage().rss;
  const recounting = await timed(() => new StoreRecounts(pool).replace(accountId));
  const grown = Math.max(0, process.resourceUsage().maxRSS * 1024 - before);
  await stage.query(url, 'update statistics_progress set seq = (select max(seq) from history)');
  await fillHistory(stage, url, { ...history, from: earlier + 1, to: events });
  const counting = await timed(async () => {
    while (await statistics.addNext());
  });
  const { errors } = await new StatisticsVerification(pool).verify(false);
  if (errors.length > 0) throw new Error(errors[0]);
  await pool.query('vacuum analyze statistics_hours');
  const [{ bytes, hours }] = await stage.query(
    url,
    `select pg_total_relation_size('statistics_hours') as bytes, count(*) as hours from statistics_hours`,
  );
  await pool.end();
  console.log(
    `counted ${whole(last / (counting / 1000))} events a second, a store anew ${whole(earlier / (recounting / 1000))} in ${whole(grown / 1024 / 1024)} MiB; ${whole(hours)} hours take ${whole(bytes / 1024 / 1024)} MiB`,
  );
  const to = new Date().toISOString().slice(0, 10);
  const ago = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
  const questions = [
    { name: '30 days', query: {} },
    { name: '366 days', query: { from: ago(365), to } },
    { name: '104 weeks', query: { interval: 'week', from: ago(727), to } },
    { name: '24 months', query: { interval: 'month', from: ago(700), to } },
    { name: '366 days of a card', query: { from: ago(365), to, card_id: cardId } },
    { name: '366 days at a location', query: { from: ago(365), to, location_id: 1 } },
  ].map((question) => ({ ...question, times: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const { query, times } of questions) {
      const start = performance.now();
      const response = await fetch(
        `http://127.0.0.1:${port}/api/v1/accounts/${accountId}/statistics?${new URLSearchParams(query)}`,
        { headers: { authorization: `Bearer ${token}` } },
      );
      const body = await response.json();
      if (!response.ok) throw new Error(JSON.stringify(body));
      times.push(performance.now() - start);
    }
  }
  console.log(
    table([
      ['statistics of', 'ms, median (lowest-highest)'],
      ...questions.map(({ name, times }) => [name, spread(times, ms)]),
    ]),
  );
  await measureRecount(stage, service, stampPaths);
  const slow = questions.filter(({ times }) => median(times) > MAX_MS);
  for (const { name, times } of slow) console.log(`FAIL: ${name}: ${ms(median(times))} ms`);
  if (slow.length === 0) console.log(`PASS: each in at most ${MAX_MS} ms`);
  return slow.length === 0 ? 0 : 1;
}

/** Measures what a change of the time zone costs the store's stamps while a dispatcher counts the store anew. */
async function measureRecount(stage, { url, env, accountId, port, token }, stampPaths) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const send = async (path, init) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...init });
    const text = await response.text();
    if (!response.ok) throw new Error(`${init.method} ${path}: ${text}`);
  };
  const stamp = { method: 'POST', body: '{"stamps":1}' };
  const stampUntil = async (hasEnded) => {
    const times = [];
    for (let due = performance.now(); !hasEnded(); due += 1000 / STAMPS_PER_SECOND) {
      await sleep(Math.max(0, due - performance.now()));
      const path = stampPaths[times.length % stampPaths.length];
      times.push(await timed(() => send(path, stamp)));
    }
    return times;
  };
  const stampFor = (durationMs) => {
    const end = performance.now() + durationMs;
    return stampUntil(() => performance.now() > end);
  };
  stage.start('dist/apps/dispatcher/main.js', { env: { ...env, LOG_LEVEL: 'fatal' } });
  await stampFor(ALONE_MS);
  const alone = await stampFor(ALONE_MS);
  const readGeneration = async () =>
    (
      await stage.query(url, 'select generation from statistics_stores where account_id = $1', [
        accountId,
      ])
    )[0].generation;
  const generation = await readGeneration();
  let isCounted = false;
  const counting = timed(async () => {
    await send(`/api/v1/accounts/${accountId}`, {
      method: 'PATCH',
      body: JSON.stringify({ account: { time_zone: 'Asia/Tokyo' } }),
    });
    while ((await readGeneration()) === generation) await sleep(200);
    isCounted = true;
  });
  const beside = await stampUntil(() => isCounted);
  const seconds = (await counting) / 1000;
  const compare = (share) =>
    `${ms(quantile(beside, share))} ms, ${ratio(quantile(beside, share) / quantile(alone, share))} times as long as without`;
  console.log(
    `counted anew in ${whole(seconds)} s while ${whole(beside.length)} stamps went on: p50 ${compare(0.5)}; p95 ${compare(0.95)}`,
  );
}

/** The stampings of two years as the history has them, at two locations and by day, in the order of the log. */
export async function fillHistory(stage, url, { accountId, cardId, events, from, to }) {
  await stage.query(
    url,
    `insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at, latest_recorded_at,
       occurred_at, channel, actor, customer_id, customer_card_id, card_id, location_id, stamps, balance, source)
     select 1000000 + n, gen_random_uuid(), 'bench-' || n, 0, lpad(n::text, 20, '9') || ':' || lpad(n::text, 20, '0'), $1,
       case when n % 12 = 0 then 'reward.redeemed' else 'stamp.earned' end, at, at, at, 'pos', 'token:1',
       k.customer_id, k.id, $2, 1 + n % 2, case when n % 12 = 0 then -10 else 1 end, 1,
       case when n % 12 = 0 then null else 'pos' end
     from generate_series($4::int, $5::int) n
     cross join lateral (
       select date_trunc('day', now() - interval '${YEARS} years' * (1 - n::float / $3))
         + interval '8 hours' + interval '1 second' * (hashint4(n::int) & 36863) as at
     ) t
     join (select id, customer_id, row_number() over (order by id) - 1 as place from customer_cards where account_id = $1) k
       on k.place = (hashint8(n) & 2147483647) % (select count(*) from customer_cards where account_id = $1)
     order by n`,
    [accountId, cardId, events, from, to],
  );
  await stage.query(url, 'analyze history');
}

async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
