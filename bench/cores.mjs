import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { StartFailure } from '../apps/cli/start-failure.mjs';

const MIN_CORES = 3;

/** @typedef {'service' | 'postgres' | 'load'} Part peers take turns with the service, on its cores */

/**
 * Assigns cores for `--cores`: the load generator or receiver to the last one, PostgreSQL to half of the others,
 * and the service and its peers to the rest.
 * @returns {Record<Part, string>} lists as `taskset` takes them
 */
export function coresApart() {
  if (process.platform !== 'linux') {
    throw new StartFailure('--cores pins processes with taskset, which only Linux has.');
  }
  if (spawnSync('taskset', ['--version']).error) {
    throw new StartFailure('--cores needs taskset, which is not installed (Debian: util-linux).');
  }
  const [, list] = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'));
  return divide(coresIn(list));
}

/** @param {number[]} cores */
export function divide(cores) {
  if (cores.length < MIN_CORES) {
    throw new StartFailure(
      `--cores needs at least ${MIN_CORES} cores, one each for the service, PostgreSQL and what loads them; there are ${cores.length} here.`,
    );
  }
  const others = cores.slice(0, -1);
  const half = Math.ceil(others.length / 2);
  return {
    service: others.slice(0, half).join(),
    postgres: others.slice(half).join(),
    load: String(cores.at(-1)),
  };
}

/** @param {string} list such as `0-3,6` @returns {number[]} */
export function coresIn(list) {
  return list.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}

/** All threads that a process has; those it starts later inherit it, as do its children. */
export function pin(pid, cores) {
  return spawnSync('taskset', ['-a', '-cp', cores, String(pid)]).status === 0;
}
