import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { table, whole } from './figures.mjs';
import { demandOf, simulateCommits, wallsOf } from './scale-model.mjs';

/**
 * As measured by `stamps` and `scale`, but for `flushMs` and `diskBytes`, which are assumed; docs/operating/scale.md says when
 * and where. Each has an option of its name.
 */
const FIGURES = {
  stampNode: 174,
  stampPostgres: 90,
  deliveryNode: 195,
  deliveryPostgres: 164,
  planNode: 53,
  flushMs: 1,
  commitGroup: 64,
  few: 16,
  lanes: 4,
  walBytes: 3_700,
  diskBytes: 3_000,
};
const LOADS = [
  { name: 'a thousand stores', stores: 1_000, stamps: 100, deliveries: 1 },
  { name: '1,000 stamps/s', stores: 10_000, stamps: 1_000, deliveries: 1 },
  { name: '10,000 deliveries/s', stores: 10_000, stamps: 1_000, deliveries: 10 },
  { name: 'a hundred thousand stores', stores: 100_000, stamps: 10_000, deliveries: 1 },
];
const COMMIT_SECONDS = 20;
const SEED = 42;

/** @param {string[]} args @returns {number} the exit code */
export function run(args) {
  const options = Object.fromEntries(
    [...Object.keys(FIGURES), 'databases', 'cores'].map((name) => [name, { type: 'string' }]),
  );
  const { values } = parseArgs({ args, options });
  const numbers = Object.entries(values).map(([name, text]) => [name, positive(name, text)]);
  const { databases = 1, cores = 32, ...measured } = Object.fromEntries(numbers);
  const costs = { ...FIGURES, ...measured };
  const heading = [
    '',
    'stamps/s',
    'deliveries/s',
    'api cores',
    'dispatcher cores',
    'PostgreSQL cores',
    'leader busy',
    'MB/s of WAL',
    'GB a day',
  ];
  const rows = LOADS.map((load) => {
    const demand = demandOf(costs, { ...load, databases, cores });
    return [
      load.name,
      whole(load.stamps),
      whole(load.stamps * load.deliveries),
      demand.apiCores.toFixed(1),
      demand.dispatcherCores.toFixed(1),
      demand.postgresCores.toFixed(1),
      `${whole(demand.leaderBusy * 100)} %`,
      demand.walMegabytes.toFixed(1),
      demand.gigabytesADay.toFixed(0),
    ];
  });
  console.log(`Each database's share with ${databases}, cores 70 % busy:`);
  console.log(table([heading, ...rows]));

  console.log(`\nWalls of one database on ${cores} cores, stamps/s with one delivery each:`);
  for (const [name, stamps] of wallsOf(costs, { deliveries: 1, cores })) {
    console.log(`  ${name.padEnd(26)} ${whole(stamps).padStart(9)}`);
  }

  console.log('\nThe commits of one api, simulated:');
  const commits = [100, 1_000, 3_000, 5_000].map((stamps) => {
    const { p50, p99, group, left } = simulateCommits(costs, {
      stamps,
      seconds: COMMIT_SECONDS,
      random: mulberry32(SEED),
    });
    return [whole(stamps), p50.toFixed(1), p99.toFixed(1), group.toFixed(1), whole(left)];
  });
  console.log(
    table([['stamps/s', 'p50 ms', 'p99 ms', 'stamps a commit', 'left over'], ...commits]),
  );
  return 0;
}

function positive(name, text) {
  const number = Number(text);
  if (number > 0) return number;
  throw new StartFailure(`--${name} ${text}: must be a number above 0`);
}

/** The same random numbers each time. */
function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
