import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { Connection, postRequest } from './connection.mjs';
import { median, ms, ratio, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';
import { stampBody } from './stamp-body.mjs';

const PAIRS = 400;
/** A new short card after this many stamps, so that it is at its 50th stamp on average. */
const FRESH_EVERY = 100;
const FLOOR = 1.2;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({ args, options: { stamps: { type: 'string', default: '5000' } } });
  const stamps = Number(values.stamps);
  if (!Number.isInteger(stamps) || stamps < PAIRS) {
    throw new StartFailure(
      `--stamps ${values.stamps}: must be a whole number of at least ${PAIRS}`,
    );
  }
  return onStage((stage) => measure(stage, stamps));
}

async function measure(stage, stamps) {
  const inkpad = await startInkpad(stage);
  const connection = await Connection.open(inkpad.port);
  const card = async () => ({
    request: postRequest(await inkpad.enrol(), inkpad.token, stampBody),
    stamps: 0,
  });
  /** @returns {Promise<number>} ms */
  const stamp = async (card) => {
    const start = performance.now();
    const { status, body } = await connection.send(card.request);
    const took = performance.now() - start;
    if (status !== 200) throw new Error(`a stamp got status ${status}: ${body}`);
    card.stamps++;
    const { stamps_count: count } = JSON.parse(body);
    if (count !== card.stamps) throw new Error(`stamp ${card.stamps} made a balance of ${count}`);
    return took;
  };

  const long = await card();
  while (long.stamps < stamps - PAIRS / 2) await stamp(long);

  const times = { long: [], short: [] };
  let short;
  for (let pair = 0; pair < PAIRS; pair++) {
    if (pair % FRESH_EVERY === 0) short = await card();
    // Alternating, each first equally often, so that a disturbance of the machine affects both alike.
    if (pair % 2 === 0) times.short.push(await stamp(short));
    times.long.push(await stamp(long));
    if (pair % 2 === 1) times.short.push(await stamp(short));
  }
  connection.close();
  console.log(await inkpad.verify());

  const [atLong, atShort] = [median(times.long), median(times.short)];
  const cost = atLong / atShort;
  const passed = cost <= FLOOR;
  console.log(`one stamp around the 50th:    ${ms(atShort)} ms (median of ${PAIRS})`);
  console.log(`one stamp around number ${whole(stamps)}: ${ms(atLong)} ms (median of ${PAIRS})`);
  console.log(`${passed ? 'PASS' : 'FAIL'}: ${ratio(cost)} times the cost (at most ${FLOOR})`);
  return passed ? 0 : 1;
}
