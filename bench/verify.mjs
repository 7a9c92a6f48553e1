import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { ratio, us, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

const MOST_GROWTH = 1.2;
/** Printed last, on standard error: what the process used, times in µs and memory in kB. */
const TELL_USAGE = `data:text/javascript,process.on('exit',()=>console.error(JSON.stringify(process.resourceUsage())))`;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { events: { type: 'string', default: '1000000' } },
  });
  const events = Number(values.events);
  if (!Number.isInteger(events) || events < 100_000) {
    throw new StartFailure(`--events ${values.events}: must be a whole number of at least 100000`);
  }
  return onStage(async (stage) => {
    const quarter = await measure(stage, events / 4);
    const all = await measure(stage, events);
    const growth = all.peak / quarter.peak;
    const passed = growth <= MOST_GROWTH;
    console.log(
      `${passed ? 'PASS' : 'FAIL'}: ${whole(all.perSecond)} events/s; memory ${ratio(growth)} times that of a quarter of the history (at most ${MOST_GROWTH})`,
    );
    return passed ? 0 : 1;
  });
}

async function measure(stage, events) {
  const { env } = await setUpInkpad(stage, `bench_verify_${events}`);
  const run = (module, args = [], options = []) =>
    promisify(execFile)(process.execPath, [...options, join(root, module), ...args], {
      cwd: root,
      env: { ...process.env, ...env },
      signal: stage.abort.signal,
    });
  await run('bench/history-fill.mjs', [String(events)]);
  await run('bench/history-follow.mjs');
  const start = performance.now();
  const { result, used } = await cpuTimeOf(
    { postgres: () => cpuTimeOfFamily(stage.postgres.pid) },
    () => run('apps/cli/inkpad.cjs', ['verify'], ['--import', TELL_USAGE]),
  );
  const seconds = (performance.now() - start) / 1_000;
  const {
    userCPUTime,
    systemCPUTime,
    maxRSS: peak,
  } = JSON.parse(result.stderr.trim().split('\n').at(-1));
  console.log(result.stdout.trim());
  const postgres = us(used.postgres === null ? null : used.postgres / events);
  console.log(
    `${seconds.toFixed(1)} s, at most ${whole(peak / 1_024)} MiB; for each event ${us((userCPUTime + systemCPUTime) / events)} µs of its CPU and ${postgres} µs of PostgreSQL's`,
  );
  return { perSecond: events / seconds, peak };
}
