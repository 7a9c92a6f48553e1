import { readdirSync, readFileSync } from 'node:fs';

const TICKS_A_SECOND = 100;

/** CPU time of a process with all its threads that run, in µs; null where the kernel does not say. */
export function cpuTime(pid) {
  return orUndefined(() =>
    readdirSync(`/proc/${pid}/task`).reduce(
      (sum, thread) => sum + onCpu(`/proc/${pid}/task/${thread}/schedstat`),
      0,
    ),
  );
}

/**
 * CPU time of a process, its children that run and those that have ended, in µs; null where the kernel does not say.
 */
export function cpuTimeOfFamily(parent) {
  const own = cpuTime(parent);
  const fields = statOf(parent);
  if (own === null || fields === null) return null;
  // Of children that have ended the kernel keeps only ticks.
  const ended = ((Number(fields[13]) + Number(fields[14])) * 1e6) / TICKS_A_SECOND;
  return childrenOf(parent).reduce((sum, child) => sum + (cpuTime(child) ?? 0), own + ended);
}

/** A process and its children; alone where the kernel does not say. */
export function familyOf(parent) {
  return [parent, ...(orUndefined(() => childrenOf(parent)) ?? [])];
}

/**
 * Measures what `work` takes of the processors.
 * @param {Record<string, () => number | null>} of by part, how to ask for its CPU time
 * @returns {Promise<{ result: any, used: Record<string, number | null> }>} in µs
 */
export async function cpuTimeOf(of, work) {
  const ask = () => Object.values(of).map((part) => part());
  const before = ask();
  const result = await work();
  const after = ask();
  const used = Object.keys(of).map((name, i) => [
    name,
    before[i] === null || after[i] === null ? null : after[i] - before[i],
  ]);
  return { result, used: Object.fromEntries(used) };
}

function childrenOf(parent) {
  return readdirSync('/proc').filter(
    (name) => /^[0-9]+$/.test(name) && statOf(name)?.[1] === String(parent),
  );
}

/** In µs. The first figure of `schedstat` is in ns, where `stat` counts ticks of 10 ms. */
function onCpu(file) {
  return Number(readFileSync(file, 'utf8').split(' ', 1)[0]) / 1000;
}

/** From the third field on: the second, its name, may contain spaces. */
function statOf(pid) {
  return orUndefined(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  });
}

/** @returns null where there is no such file, or no such process any more */
function orUndefined(read) {
  try {
    return read();
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
    return null;
  }
}
