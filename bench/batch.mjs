import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { Connection, postRequest } from './connection.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { median, ms, ratio, spread, table, us, whole } from './figures.mjs';
import { enrolMany, startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';
import { stampBody } from './stamp-body.mjs';

const OPERATIONS = 100;
const CARDS = 1_000;
const WARM_UP_ROUNDS = 40;
/** A batch must cost less than this share of the processor time of single requests. */
const FLOOR = 1 / 3;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({ args, options: { rounds: { type: 'string', default: '40' } } });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new StartFailure(`--rounds ${values.rounds}: must be a whole number above 0`);
  }
  return onStage((stage) => measure(stage, rounds));
}

async function measure(stage, rounds) {
  const inkpad = await startInkpad(stage);
  const paths = await enrolMany(inkpad.enrol, CARDS);
  const connections = await Promise.all(
    Array.from({ length: 16 }, () => Connection.open(inkpad.port)),
  );
  let receipts = 0;
  let next = 0;
  /** The next cards in turn, each with a receipt number that is not used yet. */
  const take = () =>
    Array.from({ length: OPERATIONS }, () => ({
      path: paths[next++ % paths.length],
      body: { ...stampBody, external_ref: `receipt-${receipts++}` },
    }));
  const single = async (connection, { path, body }) => {
    const { status, body: text } = await connection.send(postRequest(path, inkpad.token, body));
    if (status !== 200) throw new Error(`a stamp got status ${status}: ${text}`);
  };
  const variants = {
    'one after another': async (stamps) => {
      for (const stamp of stamps) await single(connections[0], stamp);
    },
    '16 at a time': async (stamps) => {
      await Promise.all(
        connections.map(async (connection) => {
          for (let stamp = stamps.pop(); stamp; stamp = stamps.pop())
            await single(connection, stamp);
        }),
      );
    },
    'a batch': async (stamps) => {
      const operations = stamps.map(({ path, body }) => ({
        operation: 'stamp',
        customer_card_id: Number(path.split('/').at(-2)),
        ...body,
      }));
      const path = `/api/v1/accounts/${inkpad.accountId}/batch`;
      const request = postRequest(path, inkpad.token, { operations });
      const { status, body } = await connections[0].send(request);
      const results = status === 200 ? JSON.parse(body).results : [];
      const done = results.filter((result) => result.status === 200).length;
      if (done < OPERATIONS) throw new Error(`a batch got status ${status}: ${body}`);
    },
  };

  const names = Object.keys(variants);
  const measured = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    // Alternates the order, so that no variant always runs first.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const stamps = take();
      const parts = {
        node: () => cpuTime(inkpad.pid),
        postgres: () => cpuTimeOfFamily(stage.postgres.pid),
      };
      const startedAt = performance.now();
      const { used } = await cpuTimeOf(parts, () => variants[name](stamps));
      const wall = performance.now() - startedAt;
      if (round >= 0) measured[name].push({ wall, ...used });
    }
  }
  for (const connection of connections) connection.close();

  console.log(`${OPERATIONS} stamps with receipt numbers, over ${whole(CARDS)} cards.`);
  console.log(toTable(measured));
  console.log(await inkpad.verify());
  const share = shareOf(measured, 'one after another', cpu);
  const passed = share === null || median(share) < FLOOR;
  const figures = share === null ? 'not known' : spread(share, ratio);
  console.log(
    `${passed ? 'PASS' : 'FAIL'}: ${figures} of the processor time (below ${ratio(FLOOR)})`,
  );
  return passed ? 0 : 1;
}

const wall = (one) => one.wall;
const cpu = ({ node, postgres }) => (node === null ? null : node + postgres);

/**
 * What a batch takes of what single requests of the same round took.
 * @returns {number[] | null} null where the kernel does not say
 */
function shareOf(measured, name, figure) {
  const shares = measured['a batch'].map((one, i) => {
    const value = figure(one);
    return value === null ? null : value / figure(measured[name][i]);
  });
  return shares.includes(null) ? null : shares;
}

function toTable(measured) {
  const perStamp = (list, part) =>
    us(list[0][part] === null ? null : median(list.map((one) => one[part])) / OPERATIONS);
  const rows = Object.entries(measured).map(([name, list]) => [
    name,
    ms(median(list.map(wall))),
    perStamp(list, 'node'),
    perStamp(list, 'postgres'),
    ...[wall, cpu].map((figure) => {
      const share = name === 'a batch' ? null : shareOf(measured, name, figure);
      return share === null ? '' : spread(share, ratio);
    }),
  ]);
  const heading = ['100 stamps', 'ms', 'node µs', 'PostgreSQL µs', 'batch: time', 'batch: CPU'];
  return table([heading, ...rows]);
}
