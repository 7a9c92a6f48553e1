import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (how: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Returns memory used at startup to the system. Node.js would keep a young generation of a hundred megabytes; under
 * load it grows again as needed. Blocks for some tenths of a second, so call it before the first request.
 */
export function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  // An ordinary collection keeps the room; Node.js 20 does not know the flavour, and makes one.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
