import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { cpuTimeOfFamily } from './cpu-time.mjs';
import { ratio, us, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

/** A million events in a minute. */
const FLOOR = 1_000_000 / 60;
/** Printed last, on standard error: what the process used, times in µs and memory in kB. */
const TELL_USAGE = `data:text/javascript,process.on('exit',()=>console.error(JSON.stringify(process.resourceUsage())))`;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { events: { type: 'string', default: '1000000' } },
  });
  const events = Number(values.events);
  if (!Number.isInteger(events) || events < 10_000) {
    throw new StartFailure(`--events ${values.events}: must be a whole number of at least 10000`);
  }
  return onStage(async (stage) => {
    const { env } = await setUpInkpad(stage, 'bench_rebuild');
    const program = (module, options = [], parameters = []) =>
      promisify(execFile)(process.execPath, [...options, join(root, module), ...parameters], {
        cwd: root,
        env: { ...process.env, ...env },
        signal: stage.abort.signal,
      });
    await program('bench/history-fill.mjs', [], [String(events)]);
    await program('bench/history-follow.mjs');
    const rebuild = await measure(stage, () =>
      program('dist/apps/cli/rebuild.js', ['--import', TELL_USAGE]),
    );
    const verify = await measure(stage, () =>
      program('dist/apps/cli/verify.js', ['--import', TELL_USAGE]),
    );
    for (const [name, { seconds, cpu, postgres, peak }] of Object.entries({ rebuild, verify })) {
      const each = (used) => us((used * 1e6) / events);
      const theirs =
        postgres === null
          ? ''
          : `, ${postgres.toFixed(1)} s of PostgreSQL's (${each(postgres)} µs an event)`;
      console.log(
        `${name}: ${whole(events / seconds)} events/s (${seconds.toFixed(1)} s), ${cpu.toFixed(1)} s of CPU (${each(cpu)} µs an event)${theirs}, at most ${whole(peak / 1_024)} MiB`,
      );
    }
    const passed = events / rebuild.seconds >= FLOOR;
    console.log(
      `${passed ? 'PASS' : 'FAIL'}: rebuilt at ${whole(events / rebuild.seconds)} events/s (at least ${whole(FLOOR)}), in ${ratio(rebuild.seconds / verify.seconds)} times the time of verify`,
    );
    return passed ? 0 : 1;
  });
}

/** Both programs exit 1 at any difference, which ends the bench. */
async function measure(stage, work) {
  const before = cpuTimeOfFamily(stage.postgres.pid);
  const start = performance.now();
  const { stdout, stderr } = await work();
  const seconds = (performance.now() - start) / 1_000;
  const after = cpuTimeOfFamily(stage.postgres.pid);
  console.log(stdout.trim());
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(stderr.trim().split('\n').at(-1));
  const postgres = before === null || after === null ? null : (after - before) / 1e6;
  return { seconds, cpu: (userCPUTime + systemCPUTime) / 1e6, postgres, peak: maxRSS };
}
