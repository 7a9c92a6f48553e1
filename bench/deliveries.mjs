import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { cpuTime, cpuTimeOfFamily } from './cpu-time.mjs';
import {
  MEANING,
  hold,
  loadNow,
  memoryOf,
  now,
  refuseWithoutRedis,
  release,
  startBullmq,
  startGraphile,
  startInkpadDispatcher,
  startSink,
} from './dispatchers.mjs';
import { ms, quantile, ratio, spread, table, us, whole } from './figures.mjs';
import { onStage } from './stage.mjs';

const PEERS = ['bullmq', 'graphile-worker'];
const CUSTOMERS = 50;
const WARM_UP = 6_000;
/** Of a dispatcher that runs for weeks, what counts is code that is compiled. */
const COMPILE_SECONDS = 10;
const MILLION = 1_000_000;
const IDLE_STAMPS = 300;
/** Without pauses. As in processes that run for weeks, code is compiled then, and what is cached is known. */
const IDLE_WARM_UP = 3_000;
/** The sides take turns, and the first few of a turn do not count: what the process needs is in no cache. */
const IDLE_ROUNDS = 10;
const IDLE_RETURN = 3;
const IDLE_PAUSE_MS = 25;
const POLL_MS = 10;
/** A dispatcher that works never takes this long for its next delivery. */
const SILENCE_MS = 60_000;
const FLAT = 1.3;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      endpoints: { type: 'string', default: '200' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '5' },
      concurrency: { type: 'string', default: '128' },
      peers: { type: 'string', default: PEERS.join() },
      against: { type: 'string' },
      idle: { type: 'boolean', default: false },
      million: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      follow: { type: 'boolean', default: false },
      cores: { type: 'boolean', default: false },
      tls: { type: 'string', default: 'none' },
    },
  });
  const plan = {
    endpoints: positive('endpoints', values.endpoints),
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    concurrency: positive('concurrency', values.concurrency),
    peers: values.peers === 'none' ? [] : values.peers.split(','),
    against: values.against === undefined ? null : resolve(values.against),
    idle: values.idle,
    million: values.million,
    render: values.render,
    follow: values.follow,
    tls: values.tls,
  };
  if (!['none', 'warm', 'cold'].includes(plan.tls)) {
    throw new StartFailure(`--tls ${plan.tls}: none, warm or cold`);
  }
  const unknown = plan.peers.find((peer) => !PEERS.includes(peer));
  if (unknown) throw new StartFailure(`--peers ${unknown}: ${PEERS.join(', ')} or none`);
  if (plan.against !== null && !existsSync(join(plan.against, 'dist'))) {
    throw new StartFailure(`--against ${values.against}: must be a clone that has been built`);
  }
  if (plan.peers.includes('bullmq')) refuseWithoutRedis();
  return onStage((stage) => measure(stage, plan), { cores: values.cores });
}

function positive(name, text) {
  const number = Number(text);
  if (number > 0 && (name === 'seconds' || Number.isInteger(number))) return number;
  throw new StartFailure(`--${name} ${text}: must be a number above 0`);
}

async function measure(stage, plan) {
  const { endpoints, rounds, seconds } = plan;
  const news = { onReceived: () => {} };
  const onNews = ({ received }) => news.onReceived(received);
  const sink = await startSink(stage, endpoints, onNews, plan);
  console.log(
    `Signed deliveries to ${whole(endpoints)} endpoints, the receiver a process ${sink.where}; planned until the 2xx is recorded${plan.follow ? ', beside all else that the dispatcher does with their events' : ''}.`,
  );
  const { sides, errors } = await prepare(stage, sink, plan);
  for (const { name } of sides) console.log(`  ${name.padEnd(15)}  ${MEANING[name]}`);

  if (plan.million) await million(stage, sink, sides[0], errors);
  if (plan.idle) await idle(stage, sink, news, sides, errors);
  if (!plan.million && !plan.idle) {
    const measured = new Map(sides.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      // Alternates the order, so that neither side always runs first.
      const order = round % 2 === 0 ? sides : [...sides].reverse();
      for (const side of order) {
        const count = Math.round(side.perSecond * (seconds + 1));
        const result = await drain(stage, sink, side, count, errors);
        side.perSecond = result.perSecond;
        measured.get(side.name).push(result);
      }
    }
    console.log(`\n${rounds} rounds of about ${seconds} s, ${loadNow()}\n${tableOf(measured)}`);
  }
  console.log('');
  for (const error of errors) console.log(`VOID: ${error}`);
  if (errors.length === 0) {
    console.log(
      'checked: everything arrived exactly once, is recorded as done, and has a valid signature',
    );
  }
  return errors.length === 0 ? 0 : 1;
}

/** Sets up every side, holds it, and runs it once to warm up, which also shows how many deliveries a round needs. */
async function prepare(stage, sink, plan) {
  const { peers, concurrency, million: isMillion, render, follow, against } = plan;
  const errors = [];
  const start = async (other) => {
    const side = await startInkpadDispatcher(stage, {
      urls: sink.urls,
      customers: CUSTOMERS,
      rendered: !render,
      follow,
      env: sink.env,
      ...other,
    });
    await warmUp(stage, sink, side, errors);
    return side;
  };
  const sides = [];
  if (against !== null) sides.push(await start({ name: 'other', from: against }));
  const inkpad = await start();
  sides.unshift(inkpad);
  const { sample } = await sink.ask({ ask: 'sample' });
  console.log(`The body is Inkpad's stamp.earned, ${Buffer.byteLength(sample)} bytes.`);
  const config = {
    endpoints: sink.urls.map((url, i) => ({ url, secret: inkpad.secrets[i] })),
    sample,
    concurrency,
    env: sink.env,
  };
  const startPeer = { bullmq: startBullmq, 'graphile-worker': startGraphile };
  for (const peer of isMillion ? [] : peers) {
    const side = await startPeer[peer](stage, config);
    side.secrets = inkpad.secrets;
    await warmUp(stage, sink, side, errors);
    sides.push(side);
  }
  return { sides, errors };
}

async function warmUp(stage, sink, side, errors) {
  const once = await drain(stage, sink, side, WARM_UP, errors);
  const again = await drain(
    stage,
    sink,
    side,
    Math.max(WARM_UP, once.perSecond * COMPILE_SECONDS),
    errors,
  );
  side.perSecond = again.perSecond;
}

/** Builds up a backlog while the dispatcher is held, and measures how fast it is worked off. */
async function drain(stage, sink, side, expectedCount, errors, onPoll = () => {}) {
  const count = Math.ceil(expectedCount);
  await hold(stage, side.dispatcher);
  await side.plant({ count });
  await sink.ask({ ask: 'secrets', secrets: side.secrets });
  await sink.ask({ ask: 'begin' });
  const used = () => [
    cpuTime(side.dispatcher.pid),
    cpuTimeOfFamily(side.storePid ?? stage.postgres.pid),
  ];
  const before = used();
  release(side.dispatcher);
  const began = now();
  await arrived(stage, sink, side, count, onPoll);
  while ((await side.state()).unfinished > 0) await sleep(POLL_MS, stage.abort.signal);
  const end = now();
  const [node, store] = used().map((then, i) =>
    then === null ? null : (then - before[i]) / count,
  );
  await hold(stage, side.dispatcher);
  const report = await sink.ask({ ask: 'report' });
  const { failed } = await side.state();
  errors.push(...findErrors(side, count, report, failed));
  const { warm } = report;
  return {
    perSecond: warm
      ? ((count - warm.count) / (end - warm.at)) * 1000
      : (count / (end - began)) * 1000,
    node,
    store,
    seconds: (end - began) / 1000,
    tail: end - report.last,
  };
}

async function arrived(stage, sink, side, count, onPoll) {
  let last = { received: 0, at: now() };
  for (;;) {
    stage.abort.signal.throwIfAborted();
    const { received } = await sink.ask({ ask: 'count' });
    onPoll(received);
    if (received >= count) return;
    if (received > last.received) last = { received, at: now() };
    if (now() - last.at > SILENCE_MS) {
      throw new Error(`${side.name}: only ${received} of ${count} deliveries arrived`);
    }
    await sleep(POLL_MS, stage.abort.signal);
  }
}

function findErrors({ name }, count, { received, distinct, checked, badSignatures }, failed) {
  const errors = [];
  if (received !== count || distinct !== count) {
    errors.push(`${name}: ${distinct} of ${count} deliveries arrived, ${received} times in all`);
  }
  if (failed > 0) errors.push(`${name}: ${failed} deliveries are recorded as failed`);
  if (checked === 0 || badSignatures > 0) {
    errors.push(`${name}: ${badSignatures} of ${checked} signatures are invalid`);
  }
  return errors;
}

/**
 * One delivery at a time on an idle system: the time from the request, and from the response after the commit, to the
 * receipt.
 */
async function idle(stage, sink, news, sides, errors) {
  await sink.ask({ ask: 'behave', slow: [], watched: true });
  const measured = new Map(sides.map((side) => [side, { questions: [], responded: [] }]));
  const sendSingle = async (side) => {
    const received = new Promise((resolve) => (news.onReceived = resolve));
    const one = await side.single();
    const { at } = await inTime(stage, side, received);
    return { question: at - one.startedAt, responded: at - one.done };
  };
  for (const side of sides) {
    await side.goLive();
    for (let i = 0; i < IDLE_WARM_UP; i++) await sendSingle(side);
  }
  for (let round = 0; round < IDLE_ROUNDS; round++) {
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      for (let i = -IDLE_RETURN; i < IDLE_STAMPS / IDLE_ROUNDS; i++) {
        const { question, responded } = await sendSingle(side);
        await sleep(Math.random() * 2 * IDLE_PAUSE_MS);
        if (i < 0) continue;
        measured.get(side).questions.push(question);
        measured.get(side).responded.push(responded);
      }
    }
  }
  const rows = [['', 'from asking: p50 ms', 'p99 ms', 'from the response: p50 ms', 'p99 ms']];
  for (const [side, { questions, responded }] of measured) {
    rows.push([
      side.name,
      ...[questions, responded].flatMap((v) => [0.5, 0.99].map((q) => ms(quantile(v, q)))),
    ]);
    while ((await side.state()).unfinished > 0) await sleep(POLL_MS, stage.abort.signal);
    if ((await side.state()).failed > 0) errors.push(`${side.name}: single deliveries failed`);
    await hold(stage, side.dispatcher);
  }
  console.log(
    `\nidle, ${IDLE_STAMPS} of each side, in turns of ${IDLE_STAMPS / IDLE_ROUNDS}, ${loadNow()}\n${table(rows)}`,
  );
}

async function inTime(stage, { name }, received) {
  let timer;
  const tooLate = new Promise((_, reject) => {
    const error = new Error(`${name}: a single delivery did not arrive`);
    timer = setTimeout(() => reject(error), SILENCE_MS);
  });
  try {
    return await Promise.race([received, tooLate, stage.aborted]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether memory use stays level while a backlog of a million is worked off. */
async function million(stage, sink, side, errors) {
  console.log('planting a million deliveries …');
  const samples = [];
  const result = await drain(stage, sink, side, MILLION, errors, (received) => {
    if (received >= (samples.length * MILLION) / 20) samples.push({ received, mb: memoryOf(side) });
  });
  const rows = samples.map(({ received, mb }) => [whole(received), `${whole(mb)} MB`]);
  console.log(`\n${table([['delivered', 'memory'], ...rows])}`);
  const half = samples.length >> 1;
  const maxOf = (part) => Math.max(...part.map(({ mb }) => mb));
  const growth = maxOf(samples.slice(half)) / maxOf(samples.slice(1, half));
  console.log(
    `\n${whole(result.perSecond)} deliveries/s over ${whole(result.seconds)} s, ${loadNow()}`,
  );
  console.log(
    `${growth <= FLAT ? 'PASS' : 'FAIL'}: in the second half at most ${ratio(growth)} times the memory of the first (at most ${FLAT})`,
  );
  if (growth > FLAT) errors.push(`${side.name}: memory grows with the backlog`);
}

function tableOf(measured) {
  const yardsticks = [...measured.keys()].filter((name) => name !== 'inkpad');
  const heading = [
    '',
    'deliveries/s',
    'node µs',
    'store µs',
    ...yardsticks.map((name) => `x ${name}`),
  ];
  const rows = [...measured].map(([name, rounds]) => [
    name,
    spread(
      rounds.map((round) => round.perSecond),
      whole,
    ),
    ...['node', 'store'].map((part) => {
      const values = rounds.map((round) => round[part]);
      return values.includes(null) ? us(null) : spread(values, us);
    }),
    ...yardsticks.map((other) =>
      other === name ? '1' : spread(ratios(measured, name, other), ratio),
    ),
  ]);
  return table([heading, ...rows]);
}

/** Computed per round, because a disturbance of the machine then affects both sides. */
function ratios(measured, name, yardstick) {
  const against = measured.get(yardstick);
  return measured.get(name).map((round, i) => round.perSecond / against[i].perSecond);
}
