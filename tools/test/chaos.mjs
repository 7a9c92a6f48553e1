import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

/** node tools/test/chaos.mjs --operations 100000 --seed 7 --faults 250 --engine postgresql */
const { values } = parseArgs({
  options: {
    operations: { type: 'string' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    faults: { type: 'string' },
    engine: { type: 'string' },
  },
});

const settings = Object.entries(values).map(([name, value]) => [
  `CHAOS_${name.toUpperCase()}`,
  value,
]);
const jest = ['node_modules/jest/bin/jest.js', '--selectProjects=full', '--runInBand'];
const { status } = spawnSync(
  process.execPath,
  [...jest, '--testPathPatterns', 'test/chaos/chaos[.]'],
  {
    stdio: 'inherit',
    env: { ...process.env, ...Object.fromEntries(settings) },
  },
);
process.exitCode = status ?? 1;
