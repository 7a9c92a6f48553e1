import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { Connection, getRequest, postRequest } from './connection.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { median, ms, quantile, us, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';
import { stampBody } from './stamp-body.mjs';

const QUESTIONS = 300;
const MOST_MS = 100;
const FEWEST_STAMPS = 100;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({ args, options: { stamps: { type: 'string', default: '10000' } } });
  const stamps = Number(values.stamps);
  if (!Number.isInteger(stamps) || stamps < FEWEST_STAMPS) {
    throw new StartFailure(
      `--stamps ${values.stamps}: must be a whole number of at least ${FEWEST_STAMPS}`,
    );
  }
  return onStage((stage) => measure(stage, stamps));
}

async function measure(stage, stamps) {
  const inkpad = await startInkpad(stage);
  stage.start('dist/apps/dispatcher/main.js', { env: inkpad.env });
  const connection = await Connection.open(inkpad.port);
  const send = async (request) => {
    const { status, body } = await connection.send(request);
    if (status !== 200) throw new Error(`got status ${status}: ${body}`);
    return JSON.parse(body);
  };
  const path = await inkpad.enrol();
  const stamp = postRequest(path, inkpad.token, stampBody);
  const times = [];
  while (times.length < stamps) times.push((await send(stamp)).updated_at);

  const card = path.replace(/\/stamp$/, '');
  const expected = new Map(times.map((time, i) => [time, i + 1]));
  const ask = async (i) => {
    const time = times[i];
    const start = performance.now();
    const { stamps_count: count } = await send(getRequest(`${card}?as_of=${time}`, inkpad.token));
    const took = performance.now() - start;
    // Several stamps may have the same millisecond, and all of them count.
    if (count !== expected.get(time))
      throw new Error(`${count} stamps at ${time}, not ${expected.get(time)}`);
    return took;
  };
  const ofPart = async (from, to) => {
    const took = [];
    for (let n = 0; n < QUESTIONS; n++)
      took.push(await ask(from + Math.floor(Math.random() * (to - from))));
    return took;
  };
  const explain = async () => {
    const explained = [];
    while (explained.length < QUESTIONS) {
      const start = performance.now();
      const { balance } = await send(getRequest(`${card}/explain`, inkpad.token));
      explained.push(performance.now() - start);
      if (balance !== stamps) throw new Error(`${balance} stamps explained, not ${stamps}`);
    }
    return explained;
  };
  const parts = {
    api: () => cpuTime(inkpad.pid),
    postgres: () => cpuTimeOfFamily(stage.postgres.pid),
  };
  await ofPart(0, stamps);
  const newest = await cpuTimeOf(parts, () => ofPart(Math.floor(stamps * 0.9), stamps));
  const oldest = await cpuTimeOf(parts, () => ofPart(0, Math.floor(stamps / 10)));
  const explained = await cpuTimeOf(parts, explain);
  connection.close();
  const passed = median(newest.result) <= MOST_MS && median(explained.result) <= MOST_MS;
  const each = (used) => us(used === null ? null : used / QUESTIONS);
  const line = (name, { result: took, used: { api, postgres } }) =>
    console.log(
      `${name}: ${ms(median(took))} ms, of twenty the slowest ${ms(quantile(took, 0.95))} ms; ${each(api)} µs of CPU in the api, ${each(postgres)} µs in PostgreSQL`,
    );
  line(`as of one of the first ${whole(stamps / 10)} stamps`, oldest);
  line(`as of one of the last ${whole(stamps / 10)} of ${whole(stamps)}`, newest);
  line(`explained with all ${whole(stamps)}`, explained);
  console.log(`${passed ? 'PASS' : 'FAIL'}: at most ${MOST_MS} ms`);
  return passed ? 0 : 1;
}
