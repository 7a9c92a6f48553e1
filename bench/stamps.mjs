import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { cpuTime, cpuTimeOfFamily } from './cpu-time.mjs';
import { crudStamps, startCrud } from './crud.mjs';
import { median, ms, ratio, spread, table, us, whole } from './figures.mjs';
import { enrolMany, setUpInkpad, startInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

/** Of a service that runs for weeks, what counts is code that is compiled, which takes tens of thousands of requests. */
const COMPILE_SECONDS = 12;
const WARM_UP_SECONDS = 1.2;
const API = 'dist/apps/api/main.js';
const PEERS = ['crud-tx', 'crud-one', 'bare-commit'];
/** With `--engine eventstoredb` only. */
const BARE_APPEND = 'bare-append';
/** Those that know no receipt number, no location and no log. */
const BARE_PEERS = new Set(['bare-commit', BARE_APPEND]);
const YARDSTICKS = ['crud-tx', 'crud-one', BARE_APPEND, 'other'];
/**
 * Appends alone in times of the stamps of `crud-tx`, by callers, as on EventStoreDB 23.10.6 and KurrentDB 26.0.3 in the same
 * runs: 1.2 to 1.8, 2.1 and 3.2 to 3.8.
 */
const REAL_APPENDS = [
  { callers: 1, ratio: 1.5 },
  { callers: 16, ratio: 2.1 },
  { callers: 64, ratio: 3.5 },
];
const CALIBRATION_SECONDS = 2;
const CORRECTIONS = 2;
/** Delays vary by so much around their middle. */
const SPREAD = 0.1;
/** As in production; the bench reads the lines. */
const TILL_LOG = { LOG_LEVEL: 'info', LOG_FORMAT: 'json' };
/** Inkpad must not be slower than the usual way to write the same service. */
const FLOOR = { concurrency: 16, yardstick: 'crud-tx', ratio: 1 };

const MEANING = {
  inkpad: 'the api, over HTTP',
  other: 'the api of another clone, over HTTP',
  eventstoredb: 'the same with its events in EventStoreDB',
  'other-esdb': 'the api of another clone with its events in EventStoreDB',
  'crud-tx': 'Fastify and pg, one transaction of 6 statements, over HTTP',
  'crud-one': 'Fastify and pg, one CTE statement, over HTTP',
  [BARE_APPEND]: 'the appends of stamps alone, to an EventStoreDB of its own; not a service',
  'bare-commit': "Inkpad's event store alone: no HTTP, no load, no sealing; not a service",
};

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '2' },
      concurrency: { type: 'string', default: '1,16,64' },
      engine: { type: 'string', default: 'postgres' },
      peers: { type: 'string' },
      till: { type: 'boolean', default: false },
      against: { type: 'string' },
      cores: { type: 'boolean', default: false },
      keys: { type: 'boolean', default: false },
      'no-delays': { type: 'boolean', default: false },
      cards: { type: 'string', default: '2000' },
    },
  });
  if (!['postgres', 'eventstoredb'].includes(values.engine)) {
    throw new StartFailure(`--engine ${values.engine}: postgres, or eventstoredb to measure both`);
  }
  const against = values.against === undefined ? null : resolve(values.against);
  if (against !== null && !existsSync(join(against, API))) {
    throw new StartFailure(`--against ${values.against}: must be a clone that has been built`);
  }
  const isOffered = (peer) => !values.till || !BARE_PEERS.has(peer);
  const choices = (values.engine === 'eventstoredb' ? [...PEERS, BARE_APPEND] : PEERS).filter(
    isOffered,
  );
  const usual = PEERS.filter(isOffered).join();
  const peers = values.peers === 'none' ? [] : (values.peers ?? usual).split(',');
  const unknown = peers.find((peer) => !choices.includes(peer));
  if (unknown) throw new StartFailure(`--peers ${unknown}: ${choices.join(', ')} or none`);
  const plan = {
    peers,
    against,
    eventStoreDb: values.engine === 'eventstoredb',
    hasDelays: !values['no-delays'] && !process.env.EVENT_STORE_URL,
    keys: values.keys,
    isTill: values.till,
    cards: positive('cards', values.cards),
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    concurrencies: values.concurrency.split(',').map((each) => positive('concurrency', each)),
  };
  return onStage((stage) => measure(stage, plan), { cores: values.cores });
}

function positive(name, text) {
  const number = Number(text);
  if (number > 0 && (name === 'seconds' || Number.isInteger(number))) return number;
  throw new StartFailure(`--${name} ${text}: must be a number above 0`);
}

async function measure(stage, plan) {
  const { rounds, seconds, concurrencies, cards } = plan;
  console.log(
    `Stamps over ${whole(cards)} cards each, ${rounds} rounds of ${seconds} s at each concurrency.`,
  );
  const variants = await prepare(stage, plan);
  for (const { name } of variants) console.log(`  ${name.padEnd(12)}  ${MEANING[name]}`);
  const results = new Map();
  // With many callers: the few of a low concurrency would take minutes.
  const maxConcurrency = Math.max(...concurrencies, FLOOR.concurrency);
  for (const variant of variants) {
    await once(stage, variant, { concurrency: maxConcurrency, seconds: COMPILE_SECONDS });
  }
  for (const concurrency of concurrencies) {
    for (const variant of variants)
      await once(stage, variant, { concurrency, seconds: WARM_UP_SECONDS });
    const measured = new Map(variants.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      // Alternates the order, so that no variant always runs first.
      const order = round % 2 === 0 ? variants : [...variants].reverse();
      for (const variant of order) {
        measured.get(variant.name).push(await once(stage, variant, { concurrency, seconds }));
      }
    }
    results.set(concurrency, measured);
    console.log(`\nconcurrency ${concurrency}\n${tableOf(measured)}`);
  }

  const errors = [];
  for (const variant of variants) errors.push(...(await checked(variant)));
  console.log('');
  for (const error of errors) console.log(error);
  if (errors.length === 0) {
    const total = variants.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
    console.log(
      `checked: each of ${whole(total)} acknowledged stamps is in its database, once; Inkpad's rows are the folds of their streams and every hash is correct`,
    );
  }
  const fast = isFastEnough(results.get(FLOOR.concurrency));
  return errors.length === 0 && fast ? 0 : 1;
}

/** One round of one variant; failures are collected and reported at the end. */
async function once(stage, variant, load) {
  const used = () => [cpuTime(variant.pid), cpuTimeOfFamily(stage.postgres.pid)];
  const before = used();
  const result = await variant.run(load);
  const [node, postgres] = used().map((now, i) =>
    now === null ? null : (now - before[i]) / result.done,
  );
  variant.acknowledged += result.done;
  variant.failed += result.failures;
  return { ...result, node, postgres };
}

async function prepare(stage, { eventStoreDb, hasDelays, keys, isTill, against, peers, cards }) {
  const load = stage.start('bench/load.mjs', { part: 'load' });
  const overHttp = async (name, target, stamps, sendsTill = isTill) => {
    const { port, token, paths } = target;
    const locationId = sendsTill ? (target.locationId ?? (await target.addLocation())) : undefined;
    await stage.ask(load, { target: { name, port, token, paths, hasKeys: keys, locationId } });
    return {
      name,
      pid: target.pid,
      acknowledged: 0,
      failed: 0,
      run: (options) => stage.ask(load, { name, ...options }),
      stamps,
      verify: target.verify,
    };
  };

  const api = async (name, from) => {
    const inkpad = await startInkpad(stage, `bench_${name}`, isTill ? TILL_LOG : {}, from);
    inkpad.paths = await enrolMany(inkpad.enrol, cards);
    return overHttp(name, inkpad, () => inkpadStamps(stage, inkpad));
  };
  const crud = new Map();
  const startPeer = async (style, name = style, sendsTill = isTill) => {
    const service = await startCrud(stage, style, { name, cards, isTill: sendsTill });
    const stamps = () => crudStamps(stage, service);
    crud.set(name, await overHttp(name, service, stamps, sendsTill));
  };
  for (const style of peers.filter((peer) => !peer.startsWith('bare-'))) await startPeer(style);
  let bare;
  let delays;
  if (eventStoreDb && (hasDelays || peers.includes(BARE_APPEND)))
    bare = await bareAppend(stage, cards);
  if (eventStoreDb && hasDelays) {
    // The appends of real servers were measured beside plain stamps.
    const yardstick = isTill ? 'crud-tx-plain' : 'crud-tx';
    if (!crud.has(yardstick)) await startPeer('crud-tx', yardstick, false);
    delays = await calibrate(stage, crud.get(yardstick), bare);
  }
  const variants = [await api('inkpad', root)];
  if (against !== null) variants.push(await api('other', against));
  if (eventStoreDb) {
    const onEventStoreDb = async (name, from) => {
      const { url } = await openEventStore(stage, name, delays);
      const engine = { ...(isTill && TILL_LOG), EVENT_STORE_URL: url };
      const other = await startInkpad(stage, `bench_${name.replace('-', '_')}`, engine, from);
      other.paths = await enrolMany(other.enrol, cards);
      return overHttp(name, other, () => rowStamps(stage, other));
    };
    variants.push(await onEventStoreDb('eventstoredb', root));
    if (against !== null) variants.push(await onEventStoreDb('other-esdb', against));
  }
  variants.push(...peers.flatMap((peer) => crud.get(peer) ?? []));
  if (peers.includes('bare-commit')) variants.push(await bareCommit(stage, cards));
  if (peers.includes(BARE_APPEND)) variants.push(bare);
  return variants;
}

async function bareCommit(stage, cards) {
  const bare = await setUpInkpad(stage, 'bench_bare_commit');
  const child = stage.start('bench/bare-commit.mjs', {
    args: [String(bare.accountId), String(cards)],
    env: bare.env,
  });
  await stage.ask(child);
  return {
    name: 'bare-commit',
    pid: child.pid,
    acknowledged: 0,
    failed: 0,
    run: (options) => stage.ask(child, options),
    stamps: () => inkpadStamps(stage, bare),
    verify: () => stage.script('dist/apps/cli/verify.js', bare.env),
  };
}

async function bareAppend(stage, cards) {
  const { url, setDelays } = await openEventStore(stage, 'bare_append');
  const child = stage.start('bench/bare-append.mjs', {
    args: [String(cards)],
    env: { EVENT_STORE_URL: url },
  });
  await stage.ask(child);
  return {
    name: BARE_APPEND,
    pid: child.pid,
    acknowledged: 0,
    failed: 0,
    run: (options) => stage.ask(child, options),
    stamps: async () => [await stage.ask(child, { question: 'sum' })],
    setDelays,
  };
}

/** Finds the delays with which appends alone are as much faster than `crud-tx` here as on real servers. */
async function calibrate(stage, crud, bare) {
  const { callers: concurrency } = REAL_APPENDS.at(-1);
  for (const variant of [crud, bare])
    await once(stage, variant, { concurrency, seconds: COMPILE_SECONDS });
  const measureMs = async (variant, callers) => {
    const { perSecond } = await once(stage, variant, {
      concurrency: callers,
      seconds: CALIBRATION_SECONDS,
    });
    return (1_000 * callers) / perSecond;
  };
  const points = [];
  for (const { callers, ratio: realRatio } of REAL_APPENDS) {
    const ms = (await measureMs(crud, callers)) / realRatio;
    points.push({ callers, targetMs: ms, ms });
  }
  const toDelays = () =>
    points.map(({ callers, ms: middle }) => ({
      appends: callers,
      ms: [(1 - SPREAD) * middle, (1 + SPREAD) * middle],
    }));
  for (let correction = 0; correction < CORRECTIONS; correction++) {
    await bare.setDelays(toDelays());
    for (const point of points) {
      // The client, the network and the log take some of the time.
      const excess = (await measureMs(bare, point.callers)) - point.targetMs;
      point.ms = Math.max(0, point.ms - excess);
    }
  }
  await bare.setDelays(toDelays());
  const texts = points.map(({ callers, ms: middle }) => `${middle.toFixed(1)} ms at ${callers}`);
  console.log(`Appends take the server ${texts.join(', ')}.`);
  return toDelays();
}

/**
 * The server at EVENT_STORE_URL, or else the tests' emulator with its log in a file and fsync on.
 * @param {object[]} [delays] how long appends take
 */
async function openEventStore(stage, name, delays) {
  if (process.env.EVENT_STORE_URL) return { url: process.env.EVENT_STORE_URL };
  const { connectionString: url, setDelays } = await stage.eventStoreDb(name);
  if (delays) await setDelays(delays);
  return { url, setDelays };
}

/** Reads only the rows, because the events are in another store; `verify` checks that they agree. */
async function rowStamps(stage, { url }) {
  const [row] = await stage.query(
    url,
    `select sum((state ->> 'stampsCount')::bigint)::bigint as rows from customer_cards`,
  );
  return [row.rows];
}

/** The sums of the rows and of the events. */
async function inkpadStamps(stage, { url }) {
  const [row] = await stage.query(
    url,
    `select (select sum((state ->> 'stampsCount')::bigint) from customer_cards)::bigint as rows,
            (select sum((data ->> 'stamps')::bigint) from es.events where type = 'StampsEarned')::bigint
              as events`,
  );
  return [row.rows, row.events];
}

async function checked({ name, acknowledged, failed, stamps, verify }) {
  const errors = [];
  if (failed > 0) errors.push(`FAIL: ${name}: ${failed} requests were not successful`);
  const stampCount = await stamps();
  if (stampCount.some((count) => count !== acknowledged)) {
    errors.push(
      `FAIL: ${name}: ${acknowledged} stamps acknowledged, ${stampCount.join(' and ')} in the database`,
    );
  }
  try {
    await verify?.();
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    errors.push(`FAIL: ${name}: verify says\n${error.stdout}${error.stderr}`);
  }
  return errors;
}

function tableOf(measured) {
  const yardsticks = YARDSTICKS.filter((name) => measured.has(name));
  const heading = [
    '',
    'stamps/s',
    'p50 ms',
    'p99 ms',
    'node µs',
    'PostgreSQL µs',
    'sum x crud-tx',
    ...yardsticks.map((name) => `x ${name}`),
  ];
  const rows = [...measured].map(([name, rounds]) => [
    name,
    spread(
      rounds.map((round) => round.perSecond),
      whole,
    ),
    ms(median(rounds.map((round) => round.p50))),
    ms(median(rounds.map((round) => round.p99))),
    ...['node', 'postgres'].map((part) => cpuEach(rounds.map((round) => round[part]))),
    measured.has(FLOOR.yardstick) ? spread(cpuRatios(measured, name), ratio) : '',
    ...yardsticks.map((yardstick) =>
      yardstick === name ? '1' : spread(ratios(measured, name, yardstick), ratio),
    ),
  ]);
  return table([heading, ...rows]);
}

function cpuEach(values) {
  return values.includes(null) ? us(null) : spread(values, us);
}

/** Computed per round, because a disturbance of the machine then affects both sides. */
function ratios(measured, name, yardstick) {
  const against = measured.get(yardstick);
  return measured.get(name).map((round, i) => round.perSecond / against[i].perSecond);
}

/** The CPU time of a stamp on both sides, as a ratio of the yardstick's: on a busy machine that holds where rates do not. */
function cpuRatios(measured, name) {
  const sums = (of) => measured.get(of).map(({ node, postgres }) => node + postgres);
  const yardstick = sums(FLOOR.yardstick);
  return sums(name).map((sum, i) => sum / yardstick[i]);
}

function isFastEnough(measured) {
  if (!measured?.has(FLOOR.yardstick)) {
    console.log(
      `the floor is judged against ${FLOOR.yardstick} at concurrency ${FLOOR.concurrency}, which was not asked for`,
    );
    return true;
  }
  const reached = median(ratios(measured, 'inkpad', FLOOR.yardstick));
  const passed = reached >= FLOOR.ratio;
  console.log(
    `${passed ? 'PASS' : 'FAIL'}: inkpad at ${ratio(reached)} times ${FLOOR.yardstick} at concurrency ${FLOOR.concurrency} (floor ${FLOOR.ratio.toFixed(1)})`,
  );
  return passed;
}
