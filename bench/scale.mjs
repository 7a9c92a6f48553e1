import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { hold, loadNow, now, release, startInkpadDispatcher, startSink } from './dispatchers.mjs';
import { median, ms, quantile, spread, table, us, whole } from './figures.mjs';
import { enrolMany, startApi, startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const CARDS = 2_000;
const ENDPOINTS = 200;
const CUSTOMERS = 20;
const WARM_UP_SECONDS = 1.2;
const WARM_UP_DELIVERIES = 4_000;
const POLL_MS = 20;
const SILENCE_MS = 60_000;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      apis: { type: 'string', default: '1,2,4' },
      dispatchers: { type: 'string', default: '1,2,4' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '3' },
      concurrency: { type: 'string', default: '64' },
      deliveries: { type: 'string', default: '12000' },
      cores: { type: 'boolean', default: false },
    },
  });
  const counts = (name) =>
    values[name] === 'none' ? [] : values[name].split(',').map((each) => positive(name, each));
  const plan = {
    apis: counts('apis'),
    dispatchers: counts('dispatchers'),
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    concurrency: positive('concurrency', values.concurrency),
    deliveries: positive('deliveries', values.deliveries),
  };
  if (plan.apis.some((count) => count > plan.concurrency)) {
    throw new StartFailure(
      `--concurrency ${values.concurrency}: must be at least one for each api`,
    );
  }
  return onStage((stage) => measure(stage, plan), { cores: values.cores });
}

function positive(name, text) {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new StartFailure(`--${name} ${text}: must be a whole number above 0`);
}

async function measure(stage, plan) {
  const errors = [];
  const rows = [];
  if (plan.apis.length > 0) rows.push(...(await withApis(stage, plan, errors)));
  if (plan.dispatchers.length > 0) rows.push(...(await withDispatchers(stage, plan, errors)));
  const heading = [
    'processes',
    'a second',
    'process µs',
    'PostgreSQL µs',
    'a core of processes',
    'a core of PostgreSQL',
    'WAL bytes',
    'p50 / p99 ms',
  ];
  console.log(`\n${plan.rounds} rounds each, ${loadNow()}\n${table([heading, ...rows])}\n`);
  for (const error of errors) console.log(`VOID: ${error}`);
  if (errors.length === 0) {
    console.log('checked: every stamp is in the database once, and every delivery arrived once');
  }
  return errors.length === 0 ? 0 : 1;
}

/** Stamps over HTTP: the same number of connections in all, shared out among the apis. */
async function withApis(stage, plan, errors) {
  const service = await startInkpad(stage, 'bench_scale_apis');
  const paths = await enrolMany(service.enrol, CARDS);
  const apis = [service];
  while (apis.length < Math.max(...plan.apis)) apis.push(await startApi(stage, service));
  for (const [i, api] of apis.entries()) {
    api.load = stage.start('bench/load.mjs', { part: 'load' });
    const target = { name: 'api', port: api.port, token: service.token, paths };
    await stage.ask(api.load, { target });
    api.name = `api ${i + 1}`;
  }
  // Held while stamps are measured; afterwards it shows what following the log takes.
  const follower = stage.start('dist/apps/dispatcher/main.js', { env: service.env });
  await followed(stage, service.url);
  await hold(stage, follower);
  let acknowledged = 0;
  const writtenBefore = await writtenTo(stage, service.url);
  const once = async (count, seconds) => {
    const used = apis.slice(0, count);
    const { result, used: took } = await cpuTimeOf(
      {
        process: () => sum(used.map(({ pid }) => cpuTime(pid))),
        postgres: () => cpuTimeOfFamily(stage.postgres.pid),
      },
      () =>
        Promise.all(
          shares(plan.concurrency, count).map((concurrency, i) =>
            stage.ask(used[i].load, { name: 'api', concurrency, seconds }),
          ),
        ),
    );
    const done = sum(result.map((one) => one.done));
    const failed = sum(result.map((one) => one.failures));
    if (failed > 0) errors.push(`${count} apis: ${failed} stamps were not successful`);
    acknowledged += done;
    return {
      perSecond: sum(result.map((one) => one.perSecond)),
      ...each(took, done),
      p50: median(result.map((one) => one.p50)),
      p99: Math.max(...result.map((one) => one.p99)),
    };
  };
  for (const count of plan.apis) await once(count, WARM_UP_SECONDS);
  const measured = new Map(plan.apis.map((count) => [count, []]));
  for (let round = 0; round < plan.rounds; round++) {
    // Alternates the order, so that no number of processes always runs first.
    for (const count of round % 2 === 0 ? plan.apis : [...plan.apis].reverse()) {
      measured.get(count).push(await once(count, plan.seconds));
    }
  }
  const [{ stamps }] = await stage.query(
    service.url,
    `select coalesce(sum((data ->> 'stamps')::bigint), 0)::bigint as stamps from es.events where type = 'StampsEarned'`,
  );
  if (stamps !== acknowledged) {
    errors.push(`${acknowledged} stamps acknowledged, ${stamps} in the database`);
  }
  const written = await writtenTo(stage, service.url);
  const wal = (written - writtenBefore) / acknowledged;
  const following = await follow(stage, service.url, follower, stamps);
  await stage.stop(follower);
  for (const { child, load, pid } of apis) {
    await stage.stop(load);
    await stage.stop(child ?? [...stage.children].find((one) => one.pid === pid));
  }
  return [
    ...[...measured].map(([count, rounds]) => line(`${count} api, stamps`, rounds, wal)),
    line('1 dispatcher, events followed', [following], following.wal),
  ];
}

/** The dispatcher's work for every event, with or without webhooks: history, transparency log, passes, planning. */
async function follow(stage, url, follower, events) {
  const writtenBefore = await writtenTo(stage, url);
  const began = now();
  const { used } = await cpuTimeOf(
    {
      process: () => cpuTime(follower.pid),
      postgres: () => cpuTimeOfFamily(stage.postgres.pid),
    },
    async () => {
      release(follower);
      await followed(stage, url);
    },
  );
  const perSecond = (events / (now() - began)) * 1000;
  const wal = ((await writtenTo(stage, url)) - writtenBefore) / events;
  return { perSecond, ...each(used, events), wal };
}

async function followed(stage, url) {
  for (;;) {
    const [{ done }] = await stage.query(
      url,
      `select (select count(*) from history) = e.count
              and coalesce((select size from transparency_log), 0) = e.count
              and (select count(distinct position) from es.positions
                   where subscription in ('webhooks', 'history', 'transparency log')) = 1 as done
       from (select count(*) from es.events) as e`,
    );
    if (done) return;
    await sleep(POLL_MS * 5, stage.abort.signal);
  }
}

/** Bytes that the whole server has written to its write-ahead log so far. */
async function writtenTo(stage, url) {
  const [{ bytes }] = await stage.query(
    url,
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes`,
  );
  return bytes;
}

/**
 * From the commit to the recorded 2xx: a backlog of stamps is committed while the dispatchers are held, and they plan,
 * render, send and record it, and do what else a dispatcher does with an event.
 */
async function withDispatchers(stage, plan, errors) {
  const sink = await startSink(stage, ENDPOINTS, () => {});
  const side = await startInkpadDispatcher(stage, {
    urls: sink.urls,
    customers: CUSTOMERS,
    live: true,
  });
  await sink.ask({ ask: 'secrets', secrets: side.secrets });
  const dispatchers = [side.dispatcher];
  const rows = [];
  for (const count of plan.dispatchers) {
    while (dispatchers.length < count) dispatchers.push(await side.startDispatcher());
    while (dispatchers.length > count) await stage.stop(dispatchers.pop());
    const drained = (deliveries) => drain(stage, { sink, side, dispatchers, errors }, deliveries);
    await drained(WARM_UP_DELIVERIES);
    await drained(WARM_UP_DELIVERIES);
    const rounds = [];
    while (rounds.length < plan.rounds) rounds.push(await drained(plan.deliveries));
    const wal = median(rounds.map((round) => round.wal));
    rows.push(line(`${count} dispatcher, deliveries`, rounds, wal));
  }
  return rows;
}

async function drain(stage, { sink, side, dispatchers, errors }, count) {
  await hold(stage, ...dispatchers);
  await side.append({ count });
  await sink.ask({ ask: 'begin' });
  const writtenBefore = await writtenTo(stage, side.url);
  let began;
  const { used } = await cpuTimeOf(
    {
      process: () => sum(dispatchers.map(({ pid }) => cpuTime(pid))),
      postgres: () => cpuTimeOfFamily(stage.postgres.pid),
    },
    async () => {
      release(...dispatchers);
      began = now();
      await arrived(stage, sink, count);
      while ((await side.state()).unfinished > 0) await sleep(POLL_MS, stage.abort.signal);
    },
  );
  const end = now();
  const report = await sink.ask({ ask: 'report' });
  const { receipts } = await sink.ask({ ask: 'receipts' });
  if (report.received !== count || report.distinct !== count || report.badSignatures > 0) {
    errors.push(
      `${dispatchers.length} dispatchers: ${report.distinct} of ${count} deliveries arrived, ${report.received} times in all, ${report.badSignatures} with a wrong signature`,
    );
  }
  const { warm } = report;
  const delays = receipts.map(({ at }) => at - began);
  return {
    perSecond: warm
      ? ((count - warm.count) / (end - warm.at)) * 1000
      : (count / (end - began)) * 1000,
    ...each(used, count),
    wal: ((await writtenTo(stage, side.url)) - writtenBefore) / count,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
  };
}

async function arrived(stage, sink, count) {
  let last = { received: 0, at: now() };
  for (;;) {
    const { received } = await sink.ask({ ask: 'count' });
    if (received >= count) return;
    if (received > last.received) last = { received, at: now() };
    if (now() - last.at > SILENCE_MS) {
      throw new Error(`only ${received} of ${count} deliveries arrived`);
    }
    await sleep(POLL_MS, stage.abort.signal);
  }
}

function line(name, rounds, wal) {
  const part = (key) => rounds.map((round) => round[key]);
  const cpu = (key) => (part(key).includes(null) ? us(null) : spread(part(key), us));
  const core = (key) => (part(key).includes(null) ? us(null) : whole(1e6 / median(part(key))));
  return [
    name,
    spread(part('perSecond'), whole),
    cpu('process'),
    cpu('postgres'),
    core('process'),
    core('postgres'),
    whole(wal),
    part('p50').includes(undefined)
      ? ''
      : `${ms(median(part('p50')))} / ${ms(median(part('p99')))}`,
  ];
}

/** @param {Record<string, number | null>} used in µs @returns by operation */
function each(used, operations) {
  return Object.fromEntries(
    Object.entries(used).map(([name, took]) => [name, took === null ? null : took / operations]),
  );
}

function sum(values) {
  return values.includes(null) ? null : values.reduce((total, value) => total + value, 0);
}

/** As equal as whole numbers can be. */
function shares(total, parts) {
  return Array.from(
    { length: parts },
    (_, i) => Math.floor(((i + 1) * total) / parts) - Math.floor((i * total) / parts),
  );
}
