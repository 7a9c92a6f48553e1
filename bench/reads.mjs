import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { Connection, getRequest } from './connection.mjs';
import { cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { median, ratio, spread, table, us, whole } from './figures.mjs';
import { enrolMany, startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const CUSTOMERS = 400;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '3' },
      requests: { type: 'string', default: '2000' },
      concurrency: { type: 'string', default: '8' },
      against: { type: 'string' },
    },
  });
  const [rounds, requests, concurrency] = ['rounds', 'requests', 'concurrency'].map((name) => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number > 0) return number;
    throw new StartFailure(`--${name} ${values[name]}: must be a whole number above 0`);
  });
  const other = values.against === undefined ? [] : [['against', resolve(values.against)]];
  const builds = [['inkpad', undefined], ...other];
  return onStage((stage) => measure(stage, { rounds, requests, concurrency, builds }));
}

async function measure(stage, { rounds, requests, concurrency, builds }) {
  const sides = [];
  for (const [name, from] of builds) sides.push(await prepare(stage, name, from));
  const kinds = Object.keys(sides[0].reads);
  // The first round only warms up.
  for (let round = -1; round < rounds; round++) {
    const order = round % 2 === 0 ? sides : [...sides].reverse();
    for (const kind of kinds) {
      for (const side of order) {
        const result = await read(stage, side, { kind, requests, concurrency });
        if (round >= 0) side.results[kind].push(result);
      }
    }
  }
  console.log(`${rounds} rounds of ${requests} requests, ${concurrency} at a time`);
  console.log(tableOf(kinds, sides));
  return 0;
}

async function prepare(stage, name, from) {
  const inkpad = await startInkpad(stage, `bench_reads_${name}`, {}, from);
  const cards = (await enrolMany(inkpad.enrol, CUSTOMERS)).map((path) =>
    path.slice(0, -'/stamp'.length),
  );
  const parents = cards.map((path) => path.slice(0, path.lastIndexOf('/')));
  const store = `/api/v1/accounts/${inkpad.accountId}`;
  const reads = {
    'customer card': cards,
    'its events': cards.map((path) => `${path}/events`),
    'cards of a customer': parents,
    customer: parents.map((path) => path.slice(0, path.lastIndexOf('/'))),
    '100 customers': [`${store}/customers?items=100`],
    cards: [`${store}/cards`],
    rewards: [`${store}/rewards`],
  };
  const results = Object.fromEntries(Object.keys(reads).map((kind) => [kind, []]));
  return { name, ...inkpad, reads, results };
}

async function read(stage, { pid, port, token, reads }, { kind, requests, concurrency }) {
  const paths = reads[kind].map((path) => getRequest(path, token));
  const connections = await Promise.all(
    Array.from({ length: concurrency }, () => Connection.open(port)),
  );
  let next = 0;
  const loop = async (connection) => {
    while (next < requests) {
      const { status, body } = await connection.send(paths[next++ % paths.length]);
      if (status !== 200) throw new Error(`${kind}: ${status} ${body}`);
    }
  };
  const parts = {
    api: () => cpuTimeOfFamily(pid),
    postgres: () => cpuTimeOfFamily(stage.postgres.pid),
  };
  const start = performance.now();
  const { used } = await cpuTimeOf(parts, () => Promise.all(connections.map(loop)));
  const seconds = (performance.now() - start) / 1_000;
  for (const connection of connections) connection.close();
  const each = (time) => (time === null ? null : time / requests);
  return { perSecond: requests / seconds, api: each(used.api), postgres: each(used.postgres) };
}

function tableOf(kinds, [ours, other]) {
  const of = ({ results }, kind, figure) => results[kind].map((result) => result[figure]);
  const cpu = (side, kind, figure) => {
    const times = of(side, kind, figure);
    return us(times.includes(null) ? null : median(times));
  };
  const heading = ['read', 'a second', 'api µs', 'postgres µs'];
  return table([
    other ? [...heading, 'against', 'api µs', 'postgres µs', 'x against'] : heading,
    ...kinds.map((kind) => {
      const own = [ours, other]
        .filter(Boolean)
        .flatMap((side) => [
          whole(median(of(side, kind, 'perSecond'))),
          cpu(side, kind, 'api'),
          cpu(side, kind, 'postgres'),
        ]);
      if (!other) return [kind, ...own];
      const theirs = of(other, kind, 'perSecond');
      const ratios = of(ours, kind, 'perSecond').map((rate, i) => rate / theirs[i]);
      return [kind, ...own, spread(ratios, ratio)];
    }),
  ]);
}
