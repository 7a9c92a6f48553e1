import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { Refusal } from '../scripts/processes.mjs';
import { ratio, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage, root } from './stage.mjs';

/** At most so many times the time of PostgreSQL. */
const MOST_TIMES = 2;
/** Events a second. */
const MOVE_FLOOR = 10_000;

/**
 * What reads the whole history, with both engines in one run: each starts as by hand, and its start counts.
 * @param {string[]} args @returns {Promise<number>} the exit code
 */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { events: { type: 'string', default: '200000' } },
  });
  const events = Number(values.events);
  if (!Number.isInteger(events) || events < 10_000) {
    throw new Refusal(`--events ${values.events}: must be a whole number of at least 10000`);
  }
  return onStage(async (stage) => {
    const { env: postgres } = await setUpInkpad(stage, 'bench_engines');
    const { connectionString } = await stage.eventStoreDb('bench_engines');
    const kurrentdb = { ...postgres, EVENT_STORE_URL: connectionString };
    const program = async (env, module, ...parameters) => {
      const start = performance.now();
      await promisify(execFile)(process.execPath, [join(root, module), ...parameters], {
        cwd: root,
        env: { ...process.env, ...env },
        signal: stage.abort.signal,
        maxBuffer: 16 * 1024 * 1024,
      });
      return (performance.now() - start) / 1_000;
    };
    const script = (name) => `dist/scripts/${name}.js`;
    await program(postgres, 'bench/history-fill.mjs', String(events));
    await program(postgres, 'bench/history-follow.mjs');
    const seconds = {};
    const measure = async (name, env, ...work) => {
      seconds[name] = await program(env, ...work);
      console.log(
        `${name}: ${whole(events / seconds[name])} events/s (${seconds[name].toFixed(1)} s)`,
      );
    };
    await measure('verify, PostgreSQL', postgres, script('verify'));
    await measure('rebuild, PostgreSQL', postgres, script('rebuild'));
    await measure('move to KurrentDB', kurrentdb, script('move-events'), '--to', 'eventstoredb');
    await measure('verify, KurrentDB', kurrentdb, script('verify'));
    await measure('rebuild, KurrentDB', kurrentdb, script('rebuild'));
    await measure('backup, KurrentDB', kurrentdb, script('backup'), join(stage.dataDir, 'backup'));
    await stage.query(postgres.DATABASE_URL, EMPTY);
    await measure('move to PostgreSQL', kurrentdb, script('move-events'), '--to', 'postgres');
    await measure('verify, PostgreSQL again', postgres, script('verify'));
    const times = ['verify', 'rebuild'].map(
      (name) => seconds[`${name}, KurrentDB`] / seconds[`${name}, PostgreSQL`],
    );
    const moves = ['KurrentDB', 'PostgreSQL'].map((to) => events / seconds[`move to ${to}`]);
    const passed = Math.max(...times) <= MOST_TIMES && Math.min(...moves) >= MOVE_FLOOR;
    console.log(
      `${passed ? 'PASS' : 'FAIL'}: with KurrentDB verify takes ${ratio(times[0])} and rebuild ${ratio(times[1])} times as long (at most ${MOST_TIMES}); events move at ${moves.map(whole).join(' and ')} a second (at least ${whole(MOVE_FLOOR)})`,
    );
    return passed ? 0 : 1;
  });
}

/** Removes what the first move has left in PostgreSQL, so that the second copies everything. */
const EMPTY = `
  alter table es.events disable trigger events_are_final;
  truncate es.events, es.streams;
  alter table es.events enable always trigger events_are_final`;
