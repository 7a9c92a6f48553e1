import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import {
  MEANING,
  hold,
  loadNow,
  now,
  refuseWithoutRedis,
  release,
  startBullmq,
  startInkpadDispatcher,
  startSink,
} from './dispatchers.mjs';
import { median, ms, quantile, table, whole } from './figures.mjs';
import { onStage } from './stage.mjs';

const ENDPOINTS = 200;
/** Two endpoints apart from the others: one is slow, and the store of the other floods. */
const SLOW = ENDPOINTS;
const FLOODED = ENDPOINTS + 1;
const CUSTOMERS = 20;
const FAST_DELIVERIES = 4_000;
const SLOW_RESPONSE_MS = 500;
const BULLMQ_CONCURRENCY = 128;
const SINGLES_PER_SECOND = 20;
const WARM_UP_SINGLES = 60;
const POLL_MS = 20;
const SETTLE_MS = 300_000;
/** The delay that others may add at the median. */
const FLOOR_MS = 1_500;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '10' },
      backlog: { type: 'string', default: '4000' },
      flood: { type: 'string', default: '100000' },
      patience: { type: 'string', default: '60' },
      peers: { type: 'string', default: 'bullmq' },
      cores: { type: 'boolean', default: false },
    },
  });
  if (!['bullmq', 'none'].includes(values.peers)) {
    throw new StartFailure(`--peers ${values.peers}: bullmq or none`);
  }
  const plan = {
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    backlog: positive('backlog', values.backlog),
    flood: positive('flood', values.flood),
    patienceMs: positive('patience', values.patience) * 1000,
    bullmq: values.peers === 'bullmq',
  };
  if (plan.bullmq) refuseWithoutRedis();
  return onStage((stage) => measure(stage, plan), { cores: values.cores });
}

function positive(name, text) {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new StartFailure(`--${name} ${text}: must be a whole number above 0`);
}

async function measure(stage, plan) {
  const sink = await startSink(stage, ENDPOINTS + 2);
  const inkpad = await startInkpadDispatcher(stage, {
    urls: sink.urls,
    apart: 2,
    customers: CUSTOMERS,
    many: plan.backlog,
  });
  await sink.ask({ ask: 'secrets', secrets: inkpad.secrets });
  const bench = { stage, sink, plan };
  await backlog(bench, inkpad);
  const sides = [inkpad];
  if (plan.bullmq) {
    const { sample } = await sink.ask({ ask: 'sample' });
    const endpoints = sink.urls.map((url, i) => ({ url, secret: inkpad.secrets[i] }));
    const config = { endpoints, apart: 2, sample, concurrency: BULLMQ_CONCURRENCY };
    const bullmq = await startBullmq(stage, config);
    await backlog(bench, bullmq);
    sides.push(bullmq);
  }
  for (const { name } of sides) console.log(`  ${name.padEnd(8)}  ${MEANING[name]}`);

  const added = [...(await besideFlood(bench, sides)), ...(await besideSlow(bench, sides))].filter(
    ({ side }) => side === 'inkpad',
  );
  console.log('');
  for (const { what, by } of added) {
    const passed = by < FLOOR_MS;
    console.log(
      `${passed ? 'PASS' : 'FAIL'}: ${what} adds ${milliseconds(by, plan)} ms at the median (less than ${whole(FLOOR_MS)} ms)`,
    );
  }
  return added.every(({ by }) => by < FLOOR_MS) ? 0 : 1;
}

/** Single events of the others at a steady rate, first alone and then while one store floods. */
async function besideFlood(bench, sides) {
  const { plan } = bench;
  const rows = [
    ['', 'alone: p50', 'p99', 'beside the flood: p50', 'p99', 'flood came in', 'sent in'],
  ];
  const added = [];
  for (const side of sides) {
    await side.goLive();
    await withSingles(bench, side, () => sleep((WARM_UP_SINGLES / SINGLES_PER_SECOND) * 1000));
    const alone = await withSingles(bench, side, () => sleep(plan.seconds * 1000));
    const took = {};
    const beside = await withSingles(bench, side, async () => {
      const began = now();
      await side.append({ count: plan.flood, endpoint: FLOODED });
      took.append = now() - began;
      const all = await arrived(bench, [FLOODED, FLOODED], plan.flood);
      took.sent = all ? now() - began : undefined;
    });
    await settled(bench, side);
    await side.goStaged();
    await hold(bench.stage, side.dispatcher);
    const seconds = (value) => (value === undefined ? 'not in time' : `${ms(value / 1000)} s`);
    rows.push([
      side.name,
      ...[alone, beside].flatMap((delays) => pair(delays, plan)),
      seconds(took.append),
      seconds(took.sent),
    ]);
    added.push({
      side: side.name,
      what: `a flood of ${whole(plan.flood)} events of another store`,
      by: median(beside) - median(alone),
    });
  }
  console.log(
    `\nsingle events at ${SINGLES_PER_SECOND}/s, from the response to the receipt, ms, ${loadNow()}\n${table(rows)}`,
  );
  return added;
}

/** @returns {Promise<number[]>} the delay of every single event that occurred while `act` ran */
async function withSingles({ stage, sink, plan }, side, act) {
  await sink.ask({ ask: 'begin' });
  const singles = [];
  let over = false;
  const cause = async () => {
    for (let next = now(); !over; next = Math.max(next + 1000 / SINGLES_PER_SECOND, now())) {
      await sleep(next - now());
      singles.push(await side.single());
    }
  };
  await Promise.race([Promise.all([act().finally(() => (over = true)), cause()]), stage.aborted]);
  await arrived({ stage, sink, plan }, [0, ENDPOINTS - 1], singles.length);
  const { receipts } = await sink.ask({ ask: 'receipts', from: 0, to: ENDPOINTS - 1 });
  // The single events of an endpoint are seconds apart, so they arrive in order.
  const byEndpoint = byEndpointOf(receipts);
  return singles.map(({ endpoint, done }) => {
    const receipt = byEndpoint.get(endpoint)?.shift();
    return receipt ? receipt.at - done : plan.patienceMs;
  });
}

function byEndpointOf(receipts) {
  const byEndpoint = new Map();
  for (const receipt of receipts) {
    const endpoint = byEndpoint.get(receipt.endpoint);
    if (endpoint) endpoint.push(receipt);
    else byEndpoint.set(receipt.endpoint, [receipt]);
  }
  return byEndpoint;
}

/** A backlog of the fast endpoints, alone and behind an earlier one of an endpoint that is slow or hangs. */
async function besideSlow(bench, sides) {
  const { plan } = bench;
  const measured = new Map(sides.map(({ name }) => [name, { alone: [], slow: [], hanging: [] }]));
  // Inkpad's dispatcher has been started anew since the flood, and has compiled nothing yet.
  for (const side of sides) await backlog(bench, side);
  for (let round = 0; round < plan.rounds; round++) {
    // Alternates the order, so that neither side always runs first.
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      const { alone, slow } = measured.get(side.name);
      alone.push(await backlog(bench, side));
      slow.push(await backlog(bench, side, { respondsAfterMs: SLOW_RESPONSE_MS }));
    }
  }
  // Once and last, because it leaves attempts behind that are repeated for hours.
  for (const side of sides) {
    measured.get(side.name).hanging.push(await backlog(bench, side, { respondsAfterMs: null }));
  }
  const rows = [['', 'alone: p50', 'p99', 'slow one: p50', 'p99', 'hanging one: p50', 'p99']];
  const added = [];
  for (const [side, { alone, slow, hanging }] of measured) {
    rows.push([side, ...[alone, slow, hanging].flatMap((runs) => pair(runs.flat(), plan))]);
    const by = (runs) => median(runs.map((delays, i) => median(delays) - median(alone[i])));
    added.push(
      { side, what: `an endpoint that responds after ${SLOW_RESPONSE_MS} ms`, by: by(slow) },
      { side, what: 'an endpoint that hangs', by: by(hanging) },
    );
  }
  console.log(
    `\n${whole(FAST_DELIVERIES)} due deliveries of ${ENDPOINTS} fast endpoints behind ${whole(plan.backlog)} of one other, from the start to the receipt, ms, ${loadNow()}\n${table(rows)}`,
  );
  return added;
}

/** @returns {Promise<number[]>} how long after the start each delivery to the fast endpoints arrived */
async function backlog(bench, side, slow) {
  const { stage, sink, plan } = bench;
  await hold(stage, side.dispatcher);
  if (slow) await side.plant({ count: plan.backlog, endpoint: SLOW });
  await side.plant({ count: FAST_DELIVERIES });
  await sink.ask({ ask: 'behave', slow: slow ? [[SLOW, slow.respondsAfterMs]] : [] });
  await sink.ask({ ask: 'begin' });
  release(side.dispatcher);
  const began = now();
  await arrived(bench, [0, ENDPOINTS - 1], FAST_DELIVERIES);
  const { receipts } = await sink.ask({ ask: 'receipts', from: 0, to: ENDPOINTS - 1 });
  await sink.ask({ ask: 'behave', slow: [] });
  if (slow?.respondsAfterMs !== null) await settled(bench, side);
  await hold(stage, side.dispatcher);
  const missing = Array.from(
    { length: Math.max(0, FAST_DELIVERIES - receipts.length) },
    () => plan.patienceMs,
  );
  stage.abort.signal.throwIfAborted();
  return [...receipts.map(({ at }) => at - began), ...missing];
}

/** @returns {Promise<boolean>} whether this many had arrived at these endpoints within the time allowed */
async function arrived({ stage, sink, plan }, [from, to], count) {
  const deadline = now() + plan.patienceMs;
  for (;;) {
    stage.abort.signal.throwIfAborted();
    const { received } = await sink.ask({ ask: 'count', from, to });
    if (received >= count) return true;
    if (now() > deadline) return false;
    await sleep(POLL_MS, stage.abort.signal);
  }
}

/** Waits until nothing is left that would disturb the next measurement. */
async function settled({ stage }, side) {
  const deadline = now() + SETTLE_MS;
  while ((await side.state()).unfinished > 0) {
    stage.abort.signal.throwIfAborted();
    if (now() > deadline) throw new Error(`${side.name} does not finish`);
    await sleep(10 * POLL_MS, stage.abort.signal);
  }
}

function pair(delays, plan) {
  return [0.5, 0.99].map((share) => milliseconds(quantile(delays, share), plan));
}

/**
 * Anything that had not arrived within the time allowed counts as arriving at its end, so the figure is a lower bound.
 */
function milliseconds(value, { patienceMs }) {
  return value >= patienceMs * 0.95 ? `> ${whole(value)}` : ms(value);
}
