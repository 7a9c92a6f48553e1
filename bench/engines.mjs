import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { cpuTime, cpuTimeOfFamily } from './cpu-time.mjs';
import { median, ratio, spread, us, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

/** At most so many times the time of PostgreSQL. */
const MOST_TIMES = 2;
/** Events a second. */
const MOVE_FLOOR = 10_000;
/** Printed last, on standard error: what the process used, times in µs. */
const TELL_USAGE = `data:text/javascript,import{isMainThread}from'node:worker_threads';if(isMainThread)process.on('exit',()=>console.error(JSON.stringify(process.resourceUsage())))`;

/**
 * What reads the whole history, with both engines in one run: each starts as by hand, and its start counts.
 * @param {string[]} args @returns {Promise<number>} the exit code
 */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '200000' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const [events, rounds] = [Number(values.events), Number(values.rounds)];
  if (!Number.isInteger(events) || events < 10_000) {
    throw new StartFailure(`--events ${values.events}: must be a whole number of at least 10000`);
  }
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new StartFailure(`--rounds ${values.rounds}: must be a whole number above 0`);
  }
  return onStage((stage) => measureAll(stage, events, rounds));
}

async function measureAll(stage, events, rounds) {
  const { postgres, kurrentdb, serverPid } = await fill(stage, events);
  const measure = (env, module, ...parameters) =>
    runMeasured(stage, { env, serverPid, module: `dist/apps/cli/${module}.js`, parameters });
  const print = (name, results) => {
    const seconds = results.map((result) => result.seconds);
    const cpu = ['script', 'postgres', 'server'].map((part) =>
      us(median(results.map((result) => (result[part] ?? NaN) / events))),
    );
    console.log(
      `${name.padEnd(24)} ${whole(events / median(seconds)).padStart(7)} events/s, ${spread(seconds, (one) => one.toFixed(1))} s; CPU µs an event: ${cpu[0]} script, ${cpu[1]} PostgreSQL, ${cpu[2]} KurrentDB`,
    );
  };
  const moved = { KurrentDB: await measure(kurrentdb, 'move-events', '--to', 'eventstoredb') };
  print('move to KurrentDB', [moved.KurrentDB]);
  const times = {};
  for (const name of ['verify', 'rebuild']) {
    const results = { PostgreSQL: [], KurrentDB: [] };
    for (let round = 0; round < rounds; round++) {
      // Alternates the order, so that neither always runs first.
      const order = [
        ['PostgreSQL', postgres],
        ['KurrentDB', kurrentdb],
      ];
      for (const [engine, env] of round % 2 === 0 ? order : order.reverse())
        results[engine].push(await measure(env, name));
    }
    for (const engine of Object.keys(results)) print(`${name}, ${engine}`, results[engine]);
    times[name] = results.KurrentDB.map(
      ({ seconds }, round) => seconds / results.PostgreSQL[round].seconds,
    );
  }
  print('backup, KurrentDB', [await measure(kurrentdb, 'backup', join(stage.dataDir, 'backup'))]);
  await stage.query(kurrentdb.DATABASE_URL, EMPTY);
  moved.PostgreSQL = await measure(kurrentdb, 'move-events', '--to', 'postgres');
  print('move to PostgreSQL', [moved.PostgreSQL]);
  await measure({ ...kurrentdb, EVENT_STORE_URL: '' }, 'verify');
  return judge(events, times, moved);
}

function judge(events, times, moved) {
  const moves = Object.values(moved).map(({ seconds }) => events / seconds);
  const passed =
    Object.values(times).every((list) => median(list) <= MOST_TIMES) &&
    Math.min(...moves) >= MOVE_FLOOR;
  console.log(
    `${passed ? 'PASS' : 'FAIL'}: with KurrentDB verify takes ${spread(times.verify, ratio)} and rebuild ${spread(times.rebuild, ratio)} times as long (at most ${MOST_TIMES}); events move at ${moves.map(whole).join(' and ')} a second (at least ${whole(MOVE_FLOOR)})`,
  );
  return passed ? 0 : 1;
}

/** Two databases with the same history: one keeps its events in PostgreSQL, the other moves them. */
async function fill(stage, events) {
  const { env: postgres } = await setUpInkpad(stage, 'bench_engines');
  const fillWith = (module, ...parameters) =>
    promisify(execFile)(process.execPath, [join(root, module), ...parameters], {
      cwd: root,
      env: { ...process.env, ...postgres },
      signal: stage.abort.signal,
    });
  await fillWith('bench/history-fill.mjs', String(events));
  await fillWith('bench/history-follow.mjs');
  await stage.query(
    stage.postgres.ownerUrl,
    'create database bench_engines_moved template bench_engines',
  );
  const url = new URL(postgres.DATABASE_URL);
  url.pathname = '/bench_engines_moved';
  const server = await stage.eventStoreDb('bench_engines');
  const kurrentdb = {
    ...postgres,
    DATABASE_URL: url.href,
    EVENT_STORE_URL: server.connectionString,
  };
  return { postgres, kurrentdb, serverPid: server.pid };
}

/** @returns {Promise<{ seconds: number, script: number, postgres: number | null, server: number | null }>} CPU in µs */
async function runMeasured(stage, { env, serverPid, module, parameters }) {
  const read = () => [cpuTimeOfFamily(stage.postgres.pid), cpuTime(serverPid)];
  const before = read();
  const start = performance.now();
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', TELL_USAGE, join(root, module), ...parameters],
    {
      cwd: root,
      env: { ...process.env, ...env },
      signal: stage.abort.signal,
      maxBuffer: 16 * 1024 * 1024,
    },
  );
  const seconds = (performance.now() - start) / 1_000;
  const { userCPUTime, systemCPUTime } = JSON.parse(stderr.trim().split('\n').at(-1));
  const [postgres, server] = read().map((now, i) => (now === null ? null : now - before[i]));
  return { seconds, script: userCPUTime + systemCPUTime, postgres, server };
}

/** Removes what the first move has left in PostgreSQL, so that the second copies everything. */
const EMPTY = `
  alter table es.events disable trigger events_are_final;
  truncate es.events;
  alter table es.events enable always trigger events_are_final`;
