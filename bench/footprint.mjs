import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { loadNow } from './dispatchers.mjs';
import { table, us, whole } from './figures.mjs';
import { enrolMany, openStore, setUpInkpad, startApi, waitUntilResponsive } from './inkpad.mjs';
import { freePort, onStage, root } from './stage.mjs';

const CARDS = 200;
const CONCURRENCY = 32;
/** Idle, MiB. */
const MAX_MB = { api: 150, dispatcher: 120 };
const WATCH_EVERY_MS = 100;
/** In a second. Followers that wait for events still poll. */
const QUIET_US = 30_000;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      stamps: { type: 'string', default: '100000' },
      seconds: { type: 'string', default: '10' },
      idle: { type: 'string', default: '15' },
      flags: { type: 'string' },
    },
  });
  const plan = {
    stamps: positive('stamps', values.stamps),
    seconds: positive('seconds', values.seconds),
    idleSeconds: positive('idle', values.idle),
    flags: values.flags?.split(' ').filter(Boolean) ?? imageFlags(),
  };
  return onStage((stage) => measure(stage, plan));
}

function positive(name, text) {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new StartFailure(`--${name} ${text}: must be a whole number above 0`);
}

/** Options that the image passes to Node.js. */
function imageFlags() {
  const [, command] = /^CMD (\[.*\])$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'));
  return JSON.parse(command).filter((word) => word.startsWith('--'));
}

async function measure(stage, plan) {
  if (process.platform !== 'linux')
    throw new StartFailure('Memory is read from /proc, on Linux only.');
  const service = await setUpInkpad(stage, 'bench_footprint');
  await promisify(execFile)(
    process.execPath,
    [join(root, 'bench/history-fill.mjs'), String(plan.stamps)],
    { cwd: root, env: { ...process.env, ...service.env }, signal: stage.abort.signal },
  );
  // The dispatcher follows the history before anything is measured, as it has in a service that is restarted.
  const first = await startDispatcher(stage, service, plan);
  const followed = async () => {
    const [row] = await stage.query(
      service.url,
      'select (select count(*) from history) = (select count(*) from es.events) as done',
    );
    return row.done;
  };
  while (!(await followed())) await sleep(WATCH_EVERY_MS, stage.abort.signal);
  await untilQuiet(stage, first.pid);
  await stage.stop(first.child);

  const api = await timed(() => startApi(stage, service, { flags: plan.flags }));
  const dispatcher = await timed(() => startDispatcher(stage, service, plan));
  await untilQuiet(stage, dispatcher.pid);
  const { used } = await cpuTimeOf(
    {
      api: () => cpuTime(api.pid),
      dispatcher: () => cpuTime(dispatcher.pid),
      PostgreSQL: () => cpuTimeOfFamily(stage.postgres.pid),
    },
    () => sleep(plan.idleSeconds * 1_000, stage.abort.signal),
  );
  const [{ connections }] = await stage.query(
    service.url,
    `select count(*) as connections from pg_stat_activity where application_name like 'inkpad %'`,
  );
  const idle = { api: memoryOf(api.pid), dispatcher: memoryOf(dispatcher.pid) };
  const busy = await underLoad(stage, service, { api, dispatcher }, plan);
  await untilQuiet(stage, dispatcher.pid);
  await sleep(plan.idleSeconds * 1_000, stage.abort.signal);
  const after = { api: memoryOf(api.pid), dispatcher: memoryOf(dispatcher.pid) };

  console.log(
    `Node.js ${process.versions.node} ${plan.flags.join(' ')}, ${whole(plan.stamps)} events kept, ${loadNow()}`,
  );
  const heading = [
    '',
    'ready after s',
    'its CPU ms',
    'idle MiB',
    'busy MiB, most',
    'idle again MiB',
    'floor',
  ];
  const rows = Object.entries({ api, dispatcher }).map(([name, { seconds, startMs }]) => [
    name,
    seconds.toFixed(1),
    us(startMs),
    whole(idle[name]),
    whole(busy[name]),
    whole(after[name]),
    `${MAX_MB[name]}`,
  ]);
  console.log(table([heading, ...rows]));
  const perSecond = Object.entries(used).map(
    ([name, micros]) => `${name} ${(micros / 1_000 / plan.idleSeconds).toFixed(1)}`,
  );
  console.log(`idle: ${connections} connections; ms of CPU a second: ${perSecond.join(', ')}`);
  const over = Object.keys(MAX_MB).filter((name) => idle[name] > MAX_MB[name]);
  for (const name of over) {
    console.log(`FAIL: an idle ${name} takes ${whole(idle[name])} MiB (at most ${MAX_MB[name]})`);
  }
  if (over.length === 0) console.log('PASS: both are idle below their floors');
  return over.length === 0 ? 0 : 1;
}

/** Until a process no longer has anything to catch up with. */
async function untilQuiet(stage, pid) {
  for (let before = cpuTime(pid), used = Infinity; used > QUIET_US;) {
    await sleep(1_000, stage.abort.signal);
    const after = cpuTime(pid);
    used = after - before;
    before = after;
  }
}

/** From the start of the program until it says that it is ready. */
async function timed(start) {
  const began = performance.now();
  const started = await start();
  const used = cpuTime(started.pid);
  return {
    ...started,
    seconds: (performance.now() - began) / 1_000,
    startMs: used === null ? null : used / 1_000,
  };
}

async function startDispatcher(stage, { env }, { flags }) {
  const port = await freePort();
  const child = stage.start('dist/apps/dispatcher/main.js', {
    env: { ...env, HEALTH_PORT: String(port) },
    flags,
  });
  await waitUntilResponsive(stage, `http://127.0.0.1:${port}/health/ready`);
  return { pid: child.pid, child };
}

/** @returns the most memory that each took meanwhile */
async function underLoad(stage, service, processes, { seconds }) {
  const { port } = processes.api;
  const { enrol } = await openStore(service, port);
  const paths = await enrolMany(enrol, CARDS);
  const load = stage.start('bench/load.mjs', { part: 'load' });
  await stage.ask(load, { target: { name: 'api', port, token: service.token, paths } });
  const peaks = { api: 0, dispatcher: 0 };
  let over = false;
  const watch = async () => {
    while (!over) {
      for (const [name, { pid }] of Object.entries(processes)) {
        peaks[name] = Math.max(peaks[name], memoryOf(pid));
      }
      await sleep(WATCH_EVERY_MS, stage.abort.signal);
    }
  };
  const stamping = stage
    .ask(load, { name: 'api', concurrency: CONCURRENCY, seconds })
    .finally(() => (over = true));
  const [{ failures }] = await Promise.all([stamping, watch()]);
  if (failures > 0) throw new Error(`${failures} stamps were not successful`);
  return peaks;
}

/** Resident, in MiB. */
function memoryOf(pid) {
  return Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1_024;
}
