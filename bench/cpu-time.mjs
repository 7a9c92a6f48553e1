import { readdirSync, readFileSync } from 'node:fs';

const TICKS_A_SECOND = 100;

/** CPU time of a process in µs; null where the kernel does not say. */
export function cpuTime(pid) {
  const fields = statOf(pid);
  return fields === null ? null : inMicroseconds(Number(fields[11]) + Number(fields[12]));
}

/**
 * CPU time of a process, its children that run and those that have ended, in µs; null where the kernel does not say.
 */
export function cpuTimeOfFamily(parent) {
  const fields = statOf(parent);
  if (fields === null) return null;
  let ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  for (const name of readdirSync('/proc')) {
    const child = /^[0-9]+$/.test(name) ? statOf(name) : null;
    if (child?.[1] === String(parent)) ticks += Number(child[11]) + Number(child[12]);
  }
  return inMicroseconds(ticks);
}

/** From the third field on: the second, its name, may contain spaces. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
    return null;
  }
}

function inMicroseconds(ticks) {
  return (ticks * 1e6) / TICKS_A_SECOND;
}
