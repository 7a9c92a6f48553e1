import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import {
  checkCompleted,
  getClusterPaths,
  databaseName,
  hashText,
  locate,
  createDatabase,
  createDataDir,
  ownerName,
  serviceName,
} from './postgres-data.mjs';
import { getEnvironment, isRoot } from './postgres-programs.mjs';
import { StartFailure } from '../start-failure.mjs';
import {
  describeExit,
  launch,
  listProcesses,
  sleep,
  readFileIfExists,
  readJson,
  sendSignal,
  waitUntil,
  writeJson,
} from '../processes.mjs';

/**
 * The server as it runs. `url` is the DATABASE_URL, whose role inkpad migrate makes; `ownerUrl` is the
 * DATABASE_MIGRATION_URL. `birth` tells the process from a later one with the same number. `remove` is for throw-away
 * databases: it also deletes the data, wherever that lies.
 * @typedef {{ url: string, ownerUrl: string, port: number, pid: number, birth: string, dataPath: string,
 *   exited: Promise<{ code: number | null, signal: NodeJS.Signals | null, error: Error | null }>,
 *   stop: (how?: { mode?: 'fast' | 'immediate', hurry?: AbortSignal }) => Promise<void>,
 *   remove: () => Promise<void> }} EmbeddedPostgres
 */

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
 * Starts the PostgreSQL that npm installed, with its data under `dataDir`, and creates the database on the first call.
 * As root the server runs as another user, and anything that this user could not reach inside `dataDir` is kept outside
 * of it; `dataDir`/postgres.json says where.
 *
 * Only the owner of `dataDir` may call this: it refuses when a server already runs on the data.
 *
 * @param {{ dataDir: string, log?: (line: string) => void, port?: number,
 *   settings?: Record<string, string | number>, tie?: boolean, signal?: AbortSignal }} options `log` gets the few lines
 *   worth showing to a person; without `port` it takes the one used last, when that is still free; `settings` of the
 *   server, such as { fsync: 'off' }; `tie` stops the server when this process ends, however it ends
 * @returns {Promise<EmbeddedPostgres>}
 */
export async function startPostgres({
  dataDir,
  log = () => {},
  port: wantedPort,
  settings = {},
  tie = false,
  signal,
}) {
  const home = createDataDir(dataDir);
  const server = locate(home, log);
  if (!server.record.completed) await createDatabase(server, settings, log, signal);
  checkCompleted(server);
  // Saved before any role has its password.
  writeJson(server.recordFile, server.record);

  const running = readPostmasterPid(server);
  if (running) {
    throw new StartFailure(`PostgreSQL is already running on ${server.data} (process ${running}).`);
  }
  await endOrphans(server);
  // After a reboot its pid may belong to another process, which PostgreSQL would take for a server.
  fs.rmSync(path.join(server.data, 'postmaster.pid'), { force: true });

  const port = await choosePort(server, wantedPort, log);
  const logFile = path.join(home, 'postgres.log');
  const { child, logStart } = launchServer(server, logFile, {
    ...createSettings(server, port),
    ...settings,
  });
  if (tie) stopWithParent(child);
  await waitUntilReady({ child, server, logFile, logStart, log, signal });

  /** @param {{ mode?: 'fast' | 'immediate', hurry?: AbortSignal }} [how] */
  async function stop({ mode = 'fast', hurry } = {}) {
    const first = mode === 'fast' ? 'SIGINT' : 'SIGQUIT';
    await child.stop({ signal: first, harder: 'SIGQUIT', hurry });
    await endOrphans(server);
  }
  async function remove() {
    await stop({ mode: 'immediate' });
    await removeFiles(server, logFile);
  }
  const urlOf = (name, password) =>
    `postgres://${name}:${password}@127.0.0.1:${port}/${databaseName}`;
  return {
    url: urlOf(serviceName, server.record.service_password),
    ownerUrl: urlOf(ownerName, server.record.password),
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
 * Stops the server that an earlier owner of `dataDir` left running when it was killed.
 * @param {string} dataDir
 * @returns {Promise<boolean>} whether there was one
 */
export async function stopLeftoverPostgres(dataDir) {
  const home = fs.realpathSync(dataDir);
  const record = readJson(path.join(home, 'postgres.json'));
  if (!record) return false;
  const data = path.resolve(home, record.data);
  // A copied data folder still names the original's database, which is not ours to stop.
  if (path.isAbsolute(record.data) && !data.includes(hashText(home))) return false;
  const owner = fs.statSync(data, { throwIfNoEntry: false })?.uid;
  // Missing, or another user's; the start itself reports that.
  if (owner === undefined || (!isRoot() && owner !== process.getuid())) return false;
  const server = { data, postgres: readRecordedProgram(data), cluster: getClusterPaths(data) };
  const pid = readPostmasterPid(server);
  if (!pid) return false;
  const gone = () => readPostmasterPid(server) !== pid;
  for (const kind of /** @type {const} */ (['SIGINT', 'SIGQUIT', 'SIGKILL'])) {
    sendSignal(pid, kind);
    if (await waitUntil(gone, { patience: 15_000 })) break;
  }
  await endOrphans(server);
  return true;
}

/** @returns the server while it starts, and where its part of the log begins */
function launchServer(server, logFile, settings) {
  limitLog(logFile);
  const logHandle = fs.openSync(logFile, 'a', 0o600);
  const logStart = fs.fstatSync(logHandle).size;
  const child = launch(server.postgres, ['-D', server.data, ...toArguments(settings)], {
    ...server.account,
    cwd: server.data,
    env: getEnvironment(),
    output: logHandle,
  });
  fs.closeSync(logHandle);
  const watch = setInterval(() => limitLog(logFile), 60_000).unref();
  child.exited.then(() => clearInterval(watch));
  return { child, logStart };
}

async function removeFiles({ home, data, outside, recordFile }, logFile) {
  await fs.promises.rm(outside ? path.dirname(data) : data, { recursive: true, force: true });
  for (const file of [recordFile, logFile, `${logFile}.1`]) fs.rmSync(file, { force: true });
  if (fs.readdirSync(home).length === 0) fs.rmdirSync(home);
}

/** Reads which program the last server on this data was started with; an update may have moved it. */
function readRecordedProgram(data) {
  return readFileIfExists(path.join(data, 'postmaster.opts'))?.split(' "')[0] ?? null;
}

/** @returns {number | null} the pid of the server that runs on the data */
function readPostmasterPid({ data, postgres }) {
  const pid = Number(readFileIfExists(path.join(data, 'postmaster.pid'))?.split('\n')[0]);
  if (!pid) return null;
  const programs = [postgres, readRecordedProgram(data)].filter((program) => program !== null);
  const running = listProcesses().find((process) => process.pid === pid);
  return programs.some((program) => running?.command.startsWith(`${program} -D ${data} `))
    ? pid
    : null;
}

/**
 * Stops backends that are left. When a server is killed, its backends notice and exit. One in the middle of a long
 * computation notices late, and no new server can start before the last backend is gone.
 */
async function endOrphans({ cluster }) {
  const orphans = () =>
    listProcesses().filter(({ command }) => command.startsWith(`postgres: ${cluster}: `));
  if (await waitUntil(() => orphans().length === 0, { patience: 3_000 })) return;
  for (const { pid } of orphans()) sendSignal(pid, 'SIGKILL');
  await waitUntil(() => orphans().length === 0, { patience: 5_000 });
}

async function choosePort(server, preferred, log) {
  const { record } = server;
  if (preferred && !(await isFree(preferred))) {
    throw new StartFailure(
      `Port ${preferred}, on which PostgreSQL should listen, is already in use.`,
    );
  }
  let port = preferred ?? record.port;
  if (!port || !(await isFree(port))) {
    if (port)
      log(`Port ${port}, which PostgreSQL has used so far, is in use; it gets another one.`);
    do {
      // Below the range from which operating systems take the local ports of outgoing connections.
      port = crypto.randomInt(20_000, 30_000);
    } while (!(await isFree(port)));
  }
  if (record.port !== port) {
    record.port = port;
    writeJson(server.recordFile, record);
  }
  return port;
}

async function isFree(port) {
  return (await findPortError(port, ['127.0.0.1'])) === undefined;
}

function createSettings(server, port) {
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

function toArguments(settings) {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function waitUntilReady({ child, server, logFile, logStart, log, signal }) {
  let end = null;
  child.exited.then((how) => (end = how));
  const patient = Date.now() + 10_000;
  let hasTold = false;
  while (end === null && !signal?.aborted) {
    const [pid, , , , , , , status] = (
      readFileIfExists(path.join(server.data, 'postmaster.pid')) ?? ''
    ).split('\n');
    if (Number(pid) === child.pid && status?.trim() === 'ready') return;
    if (!hasTold && Date.now() > patient) {
      hasTold = true;
      log(`PostgreSQL is still recovering; see ${logFile}.`);
    }
    await sleep(20, signal);
  }
  if (end === null) {
    await child.stop({ signal: 'SIGINT', harder: 'SIGQUIT' });
    throw new StartFailure('The start of PostgreSQL was cancelled.');
  }
  const output = end.error ? '' : fs.readFileSync(logFile).subarray(logStart).toString();
  const reason = output
    .split('\n')
    .filter((line) => /(FATAL|PANIC): /.test(line))
    .at(-1);
  throw new StartFailure(
    `PostgreSQL did not start: ${reason?.replace(/^.*?(FATAL|PANIC): +/, '') ?? describeExit(end)} (see ${logFile}).`,
  );
}

/**
 * Limits the size of the log. The server itself appends to this file, even after its starter was killed, so it is
 * emptied in place.
 */
function limitLog(logFile) {
  const stats = fs.statSync(logFile, { throwIfNoEntry: false });
  if (!stats || stats.size < logLimit) return;
  fs.copyFileSync(logFile, `${logFile}.1`);
  fs.truncateSync(logFile);
}

/**
 * Stops the server with this process. When this process ends, even by kill -9, the pipe to a small shell closes, and
 * the shell stops the server.
 */
function stopWithParent(child) {
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

/** @returns {Promise<string | undefined>} why this port cannot be listened on */
export async function findPortError(port, hosts = ['127.0.0.1', '::']) {
  for (const host of hosts) {
    const code = await new Promise((resolve) => {
      const server = net.createServer();
      server.once('error', (error) => resolve(error.code));
      server.listen({ port, host }, () => server.close(() => resolve(null)));
    });
    if (['EADDRINUSE', 'EACCES'].includes(code)) return code;
  }
  return undefined;
}
