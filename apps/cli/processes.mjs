import { execFileSync, spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { StartFailure } from './start-failure.mjs';
import { toTextLines } from './log-lines.mjs';

const onLinux = fs.existsSync('/proc/self/stat');

/** @param {number} ms @param {AbortSignal} [signal] ends the pause early */
export async function sleep(ms, signal) {
  await wait(ms, undefined, { signal }).catch((error) => {
    if (!signal?.aborted) throw error;
  });
}

/**
 * Waits until the condition holds; false if it still does not after `patience` ms.
 * @param {() => unknown} condition may be async
 * @param {{ patience: number, every?: number, signal?: AbortSignal }} options
 */
export async function waitUntil(condition, { patience, every = 25, signal }) {
  const deadline = Date.now() + patience;
  while (!(await condition())) {
    if (Date.now() >= deadline || signal?.aborted) return false;
    await sleep(every, signal);
  }
  return true;
}

/** @param {string} file */
export function readFileIfExists(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    // If a process exits while its /proc entry is being read, the error is ESRCH instead of ENOENT.
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return null;
    throw error;
  }
}

/** @param {string} file */
export function readJson(file) {
  const text = readFileIfExists(file);
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new StartFailure(`${file} is not valid JSON; fix or remove it.`);
  }
}

/**
 * Creates a folder and its parents. Node's own `recursive` never returns where nothing can be created, such as under
 * /proc.
 */
export function createFolder(folder, mode) {
  if (fs.existsSync(folder)) return;
  createFolder(path.dirname(folder), mode);
  try {
    fs.mkdirSync(folder, { mode });
  } catch (error) {
    // Another process was first.
    if (error.code !== 'EEXIST') throw error;
  }
}

/** Replaces the file atomically, so that neither a reader nor a crash sees half of it. */
export function writeJson(file, value) {
  const fresh = `${file}.${process.pid}.new`;
  const handle = fs.openSync(fresh, 'w', 0o600);
  try {
    fs.writeSync(handle, `${JSON.stringify(value, null, 2)}\n`);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(fresh, file);
}

/**
 * Gets the start time of a process, which distinguishes it from a later one with the same pid. Null if there is no such
 * process, or only a zombie that has not been reaped.
 * @param {number} pid
 * @returns {string | null}
 */
export function getStartTime(pid) {
  if (!onLinux) {
    const [state, ...began] = runPs(['-o', 'stat=,lstart=', '-p', String(pid)])[0] ?? ['Z'];
    return state.startsWith('Z') ? null : began.join(' ');
  }
  const stat = readFileIfExists(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name in parentheses may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  return `${readFileIfExists('/proc/sys/kernel/random/boot_id')?.trim() ?? ''}/${fields[19]}`;
}

/** @returns {{ pid: number, command: string }[]} */
export function listProcesses() {
  if (!onLinux) {
    return runPs(['-axww', '-o', 'pid=,command=']).map(([pid, ...command]) => ({
      pid: Number(pid),
      command: command.join(' '),
    }));
  }
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({
      pid: Number(name),
      command: (readFileIfExists(`/proc/${name}/cmdline`) ?? '').replaceAll('\0', ' '),
    }))
    .filter(({ command }) => command !== '');
}

function runPs(args) {
  try {
    const output = execFileSync('ps', args, {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return output
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => line.trim().split(/\s+/));
  } catch (error) {
    // With -p, ps exits with status 1 if there is no such process.
    if (error.status === 1) return [];
    throw error;
  }
}

/** @param {number} pid @param {NodeJS.Signals} signal @returns {boolean} whether it existed */
export function sendSignal(pid, signal) {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (error.code === 'ESRCH') return false;
    throw error;
  }
}

/**
 * Stops a process that an earlier run left behind. Comparing the start time avoids killing an unrelated
 * process that has reused its pid.
 * @param {{ pid?: number, birth?: string } | null | undefined} left
 * @param {NodeJS.Signals} signal
 * @returns {Promise<boolean>} whether there was something to stop
 */
export async function stopLeftover(left, signal) {
  if (!left?.pid || !left.birth) return false;
  const gone = () => getStartTime(left.pid) !== left.birth;
  if (gone()) return false;
  sendSignal(left.pid, signal);
  if (!(await waitUntil(gone, { patience: 15_000 })) && !gone()) {
    sendSignal(left.pid, 'SIGKILL');
    await waitUntil(gone, { patience: 5_000 });
  }
  return true;
}

/**
 * Starts a program in its own process group, which the terminal's Ctrl-C does not reach, so that the
 * starter alone decides in which order processes stop.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv, cwd?: string, uid?: number, gid?: number, input?: string,
 *   output: number | ((line: string, stream: 'stdout' | 'stderr') => void),
 *   signal?: AbortSignal, tie?: boolean }} options
 *   `output` receives the lines, or is the descriptor of a file to write to;
 *   `signal` terminates the program;
 *   `tie` gives it a channel, whose end tells a program that this process is gone, even if killed
 */
export function launch(command, args, { output, input, signal: giveUp, tie = false, ...options }) {
  giveUp?.throwIfAborted();
  const toFile = typeof output === 'number';
  const child = spawn(command, args, {
    ...options,
    detached: true,
    stdio: [
      input === undefined ? 'ignore' : 'pipe',
      ...(toFile ? [output, output] : ['pipe', 'pipe']),
      ...(tie ? ['ipc'] : []),
    ],
  });
  const exited = new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, error }));
    // 'close' comes after the last line of output, but a grandchild can delay it.
    child.once('exit', (code, signal) => resolve({ code, signal, error: null }));
  });
  const drained = toFile
    ? exited
    : Promise.race([
        new Promise((resolve) => child.once('close', resolve)),
        exited.then(() => sleep(500)),
      ]);
  if (!toFile) {
    for (const stream of ['stdout', 'stderr']) {
      readline.createInterface({ input: child[stream] }).on('line', (line) => output(line, stream));
    }
  }
  if (input !== undefined) {
    // If a program exits before it has read everything, its exit code and output say why.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  }

  const result = Promise.all([exited, drained]).then(([how]) => how);
  /**
   * @param {{ signal: NodeJS.Signals, patience?: number, harder?: NodeJS.Signals, hurry?: AbortSignal }} how
   */
  async function stop({ signal, patience = 15_000, harder = 'SIGKILL', hurry }) {
    if (child.pid === undefined) return;
    const running = () => child.exitCode === null && child.signalCode === null;
    if (running()) child.kill(signal);
    if (await waitUntil(() => !running(), { patience, signal: hurry })) return;
    child.kill(harder);
    if (await waitUntil(() => !running(), { patience: 5_000 })) return;
    sendSignal(-child.pid, 'SIGKILL');
    await exited;
  }
  const end = () => child.kill('SIGTERM');
  giveUp?.addEventListener('abort', end, { once: true });
  exited.then(() => giveUp?.removeEventListener('abort', end));
  return {
    pid: child.pid,
    birth: child.pid ? getStartTime(child.pid) : null,
    exited,
    result,
    stop,
    unref: () => child.unref(),
  };
}

/** @param {{ code: number | null, signal: string | null, error: Error | null }} how */
export function describeExit({ code, signal, error }) {
  if (error) return error.message;
  return signal ? `killed by ${signal}` : `exit code ${code}`;
}

/**
 * Finds a program's last message: its last line that is not indented, and what follows. Of a stack trace only what went
 * wrong.
 * @param {string[]} lines
 * @returns {string | undefined}
 */
export function findLastMessage(lines) {
  const output = toTextLines(lines).filter((line) => line.trim() !== '');
  if (hasTrace(output)) return output.find((line) => /^\S*error\b/i.test(line));
  const last = output.findLastIndex((line) => !/^\s/.test(line));
  return last < 0 ? undefined : output.slice(last).join('\n');
}

/** @param {string[]} lines */
export function hasTrace(lines) {
  return toTextLines(lines).some((line) => /^ {4}at /.test(line));
}

/**
 * Keeps one program running: restarts it, with growing pauses, whenever it exits.
 * @template {{ pid?: number, birth?: string | null, exited: Promise<any>, stop: Function }} Program
 * @param {string} name
 * @param {(signal: AbortSignal) => Promise<Program> | Program} begin returns early when aborted
 * @param {{ say: (line: string) => void, onChange: () => void, first?: Program }} options
 */
export function keepRunning(name, begin, { say, onChange, first }) {
  const firstPause = 200;
  const longestPause = 10_000;
  const longEnough = 30_000;
  const stopping = new AbortController();
  const keeper = { current: first ?? null, ends: 0, end: null, stop, restart };
  let restarting = false;

  async function run() {
    let delay = firstPause;
    while (!stopping.signal.aborted) {
      const since = Date.now();
      let end;
      try {
        keeper.current ??= await begin(stopping.signal);
        onChange();
        // With all its output, where that is read here.
        keeper.end = await (keeper.current.result ?? keeper.current.exited);
        end = describeExit(keeper.end);
      } catch (error) {
        end = error.message;
      }
      keeper.current = null;
      if (stopping.signal.aborted) return;
      onChange();
      if (restarting) {
        restarting = false;
        continue;
      }
      keeper.ends += 1;
      if (Date.now() - since >= longEnough) delay = firstPause;
      say(`${name} exited (${end}); restarting it in ${delay / 1000} s`);
      await sleep(delay, stopping.signal);
      delay = Math.min(delay * 2, longestPause);
    }
  }
  // Deferred: the caller must first have the keeper that onChange reads.
  const done = Promise.resolve().then(run);

  async function restart(how) {
    if (!keeper.current) return;
    restarting = true;
    await keeper.current.stop(how);
  }
  async function stop(how) {
    stopping.abort();
    let over = false;
    const end = done.then(() => (over = true));
    while (!over) {
      await keeper.current?.stop(how);
      // It may be just starting when the stop is requested.
      await Promise.race([end, sleep(20)]);
    }
  }
  return keeper;
}

/**
 * Makes this process the only starter of a data folder. Locks are numbered and the highest is valid:
 * taking over the lock of a dead starter means creating the next number, which only one process can do.
 * @param {string} dataDir
 * @param {string} [command] of a command that has the folder for a while; without it npm start has it
 * @returns {{ holder: { pid: number, command?: string } } | { release: () => void }}
 */
export function takeLock(dataDir, command) {
  const numbers = () =>
    fs
      .readdirSync(dataDir)
      .map((name) => Number(/^starter\.lock\.(\d+)$/.exec(name)?.[1] ?? 0))
      .filter((number) => number > 0)
      .sort((a, b) => b - a);
  const fileOf = (number) => path.join(dataDir, `starter.lock.${number}`);
  const own = path.join(dataDir, `starter.lock.own-${crypto.randomBytes(6).toString('hex')}`);
  writeJson(own, { pid: process.pid, birth: getStartTime(process.pid), command });
  try {
    for (;;) {
      const highest = numbers()[0] ?? 0;
      const text = highest > 0 ? readFileIfExists(fileOf(highest)) : null;
      // A power failure can leave an empty lock; its holder is certainly gone.
      const holder = text ? JSON.parse(text) : null;
      if (holder && getStartTime(holder.pid) === holder.birth) return { holder };
      try {
        fs.linkSync(own, fileOf(highest + 1));
      } catch (error) {
        if (error.code === 'EEXIST') continue;
        throw error;
      }
      const [first, ...lower] = numbers();
      if (first !== highest + 1) {
        fs.rmSync(fileOf(highest + 1), { force: true });
        continue;
      }
      for (const number of lower) fs.rmSync(fileOf(number), { force: true });
      return { release: () => fs.rmSync(fileOf(highest + 1), { force: true }) };
    }
  } finally {
    fs.rmSync(own, { force: true });
  }
}
