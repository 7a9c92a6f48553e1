import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { table, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

/** Limits what the transparency log costs the dispatcher for each event, in µs of CPU time. */
const MOST_US = 5;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { events: { type: 'string', default: '200000' } },
  });
  const events = Number(values.events);
  if (!Number.isInteger(events) || events < 10_000) {
    throw new StartFailure(`--events ${values.events}: must be a whole number of at least 10000`);
  }
  return onStage(async (stage) => {
    const { env } = await setUpInkpad(stage, 'bench_proof');
    const run = async (module, ...parameters) => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [join(root, module), ...parameters],
        { cwd: root, env: { ...process.env, ...env }, signal: stage.abort.signal },
      );
      return stdout;
    };
    await run('bench/history-fill.mjs', String(events));
    const { history, proof } = JSON.parse(await run('bench/history-follow.mjs'));
    const us = (value) => (value === null ? 'not known here' : value.toFixed(1));
    console.log(`µs of CPU time for each of ${whole(proof.events)} events:`);
    console.log(
      table([
        ['', 'Node.js', 'PostgreSQL', 'reading the log (Node.js)'],
        ...Object.entries({ 'table history': history, 'transparency log': proof }).map(
          ([name, { node, postgres, reading }]) => [name, us(node), us(postgres), us(reading)],
        ),
      ]),
    );
    const cost = proof.node + (proof.postgres ?? 0);
    const passed = cost < MOST_US;
    console.log(
      `${passed ? 'PASS' : 'FAIL'}: the transparency log takes ${us(cost)} µs an event (less than ${MOST_US})`,
    );
    return passed ? 0 : 1;
  });
}
