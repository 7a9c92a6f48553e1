import '../../apps/cli/node-version.cjs';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, findWork, install, usePackages, watchBuild } from '../build/build.mjs';
import { startPostgres } from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { stopLeftovers } from '../../apps/cli/local-postgres/embedded-run.mjs';
import { printFailure, renderOutput } from '../../apps/cli/log-lines.mjs';
import { endWithParent } from '../../apps/cli/npm-parent.mjs';
import { createDataDir } from '../../apps/cli/local-postgres/postgres-data.mjs';
import { StartFailure, describeInOneSentence } from '../../apps/cli/start-failure.mjs';
import {
  getStartTime,
  hasTrace,
  describeExit,
  keepRunning,
  findLastMessage,
  launch,
  sleep,
  readJson,
  takeLock,
  writeJson,
} from '../../apps/cli/processes.mjs';
import { fillShop } from './fill-shop.mjs';
import { checkMonitoringPorts, checkPort, readMetricsPort } from './ports.mjs';
import {
  EVERYWHERE,
  LOOPBACK,
  checkSettings,
  isLocal,
  readSettings,
} from '../../apps/cli/start-settings.mjs';
import { renderWelcome } from './welcome.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const programs = {
  api: 'dist/apps/api/main.js',
  dispatcher: 'dist/apps/dispatcher/main.js',
};
const responseTimeoutMs = 60_000;
const endsBeforeGivingUp = 5;
/** The exit code of a process whose settings are invalid: EXIT_CONFIG in start-error.ts. */
const exitConfig = 78;
const maxErrorLines = 100;
/** What a script says while it waits for something that may come: shown at once, unlike its other output. */
const isWaiting = / Waiting for it\.$/;

// For all that is started here: with what Node.js 24 has compiled before, a start takes a fifth less.
process.env.NODE_COMPILE_CACHE ||= path.join(root, 'dist', '.compile-cache');

const stopRequested = new AbortController();
const forceStopRequested = new AbortController();
const stopped = new Promise((resolve) => {
  stopRequested.signal.addEventListener('abort', resolve, { once: true });
});

/** Everything that is running, for the shutdown and for run.json. */
const running = { step: null, postgres: null, api: null, dispatcher: null, packages: null };
/** The last standard error of each program, also of one that has been started again. */
const lastErrors = {};

async function main() {
  const settings = readSettings(root);
  const dataDir = createDataDir(settings.dataDir);
  const lock = takeLock(dataDir);
  if (lock.holder) throw new StartFailure(describeHolder(dataDir, lock.holder));
  const runFile = path.join(dataDir, 'run.json');
  try {
    if (await stopLeftovers(dataDir)) {
      say('stopped processes that an earlier start had left running');
    }
    await checkPort(settings.port);
    await checkMonitoringPorts();
    await run({ ...settings, dataDir, runFile });
  } catch (error) {
    // Steps interrupted by the stop fail because of it, which is no error.
    if (!stopRequested.signal.aborted) throw error;
  } finally {
    await stopAll();
    fs.rmSync(runFile, { force: true });
    lock.release();
  }
}

async function run(settings) {
  const { port, publicUrl, host, insecureTargets, databaseUrl, dataDir, runFile } = settings;
  const { pid } = process;
  const starter = { pid, birth: getStartTime(pid), started: new Date().toISOString() };
  const base = { starter, base_url: publicUrl };
  const record = () => writeJson(runFile, { ...base, ...describeRunning(databaseUrl) });
  const onStep = (step) => {
    running.step = step;
    record();
  };
  record();
  if (process.versions.node.startsWith('20.')) {
    say('Node.js 20 has had no security fixes since April 2026: Node.js 24 is recommended.');
  }
  const { signal } = stopRequested;
  await prepare({ root, dataDir, say, signal, onStep });
  running.packages = usePackages(root);

  await checkSettings(root, databaseUrl);
  const { url, ownerUrl } = databaseUrl
    ? { url: databaseUrl, ownerUrl: settings.databaseMigrationUrl ?? databaseUrl }
    : await keepPostgres(dataDir, record);
  if (databaseUrl) await checkDatabase(ownerUrl);
  stopRequested.signal.throwIfAborted();
  const env = createEnvironment(settings, url);
  say('migrating the database …');
  await runProgram('migrate', { ...env, DATABASE_MIGRATION_URL: ownerUrl }, dataDir, onStep);
  const localFile = path.join(dataDir, 'local.json');
  // Setting up only needs the tables, as the two programs do: it need not hold them up.
  const setup = runProgram('setup', env, dataDir, onStep).then((lines) => {
    const { created, sign_in_token: signInToken, ...credentials } = parseLastJson(lines);
    const local = keepLocalFile(localFile, publicUrl, created ? credentials : null);
    return { created, signInToken, local };
  });
  say('starting api and dispatcher …');
  for (const name of Object.keys(programs)) {
    running[name] = keepRunning(name, () => startProgram(name, env), { say, onChange: record });
  }
  const { created, signInToken, local } = await waitForStart(setup, host, port);
  if (insecureTargets) warnAboutInsecureTargets(host);
  const fillsShop = process.argv.includes('--demo');
  const welcome = { localFile, local, created, signInToken, fillsShop };
  process.stdout.write(`${renderWelcome(publicUrl, welcome)}\n`);
  if (fillsShop) await fillShop({ root, env, localFile, signal, say, onStep });
  await stopped;
}

/** Creates the settings of the programs. @param url of the database, for what serves requests */
function createEnvironment({ dataDir, host, port, publicUrl, insecureTargets }, url) {
  return {
    ...process.env,
    DATABASE_URL: url,
    // Only for the migration: what serves requests has no use for the owner's password.
    DATABASE_MIGRATION_URL: '',
    // Read already: given twice they would be refused.
    DATABASE_URL_FILE: '',
    DATABASE_MIGRATION_URL_FILE: '',
    DATA_DIR: dataDir,
    HOST: host,
    PORT: String(port),
    // Any free port, because a second Inkpad on this machine could have taken a fixed one.
    HEALTH_PORT: process.env.HEALTH_PORT || '0',
    PUBLIC_URL: publicUrl,
    // Values that were given are checked by the programs.
    WEBHOOK_ALLOW_INSECURE_TARGETS:
      process.env.WEBHOOK_ALLOW_INSECURE_TARGETS || String(insecureTargets),
  };
}

/** Waits until the first store exists and the api is live. @returns what the setup has made */
async function waitForStart(setup, host, port) {
  const giveUp = new AbortController();
  const live = waitUntilLive(host, port, giveUp.signal);
  // Thrown below, once the token is kept: it is told only once.
  live.catch(() => undefined);
  try {
    const done = await setup;
    await live;
    return done;
  } finally {
    // After a refused setup the wait would keep this process for a minute.
    giveUp.abort();
  }
}

/** Warns about webhooks to this machine: anyone who may create subscriptions could reach what listens only for it. */
function warnAboutInsecureTargets(host) {
  const why = 'webhooks may go to http and loopback targets';
  if (!process.env.HOST) say(`listening on ${host} only, since ${why}; HOST changes that`);
  else if (!isLocal(host)) {
    say(
      `WARNING: HOST=${host} lets other machines in while ${why}: set WEBHOOK_ALLOW_INSECURE_TARGETS=false, or leave HOST out`,
    );
  }
}

function describeHolder(dataDir, { pid, command }) {
  if (command) {
    return `${command} is working on ${dataDir} (process ${pid}): wait until it has ended, then run npm start.`;
  }
  const run = readJson(path.join(dataDir, 'run.json'));
  const address = run?.starter?.pid === pid ? run.base_url : null;
  return `Inkpad is already running${address ? ` at ${address}` : ''} (process ${pid}); stop that one first, or give this one another DATA_DIR and PORT.`;
}

/** Installs and builds what is missing, and with --watch whatever changes from now on. */
async function prepare(around) {
  const work = findWork(root, false);
  if (work.install) await install(around, false);
  if (work.build) await build(around);
  if (process.argv.includes('--watch')) {
    const { signal } = around;
    watchBuild({ root, say: (line) => show('build', line), onRebuilt: restartPrograms, signal });
  }
}

function restartPrograms() {
  say('rebuilt; restarting api and dispatcher …');
  for (const name of Object.keys(programs)) {
    running[name]?.restart({ signal: 'SIGTERM' });
  }
}

/** @returns {Promise<{ url: string, ownerUrl: string }>} the DATABASE_URL and DATABASE_MIGRATION_URL */
async function keepPostgres(dataDir, record) {
  say('starting PostgreSQL …');
  const begin = (options) => startPostgres({ dataDir, log: say, ...options });
  const first = await begin({ signal: stopRequested.signal });
  // By now the programs have been told the port; they find the server again when it comes back on it.
  running.postgres = keepRunning('PostgreSQL', (signal) => begin({ port: first.port, signal }), {
    say,
    onChange: record,
    first,
  });
  return first;
}

async function checkDatabase(url) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  try {
    await client.connect();
    await client.end();
  } catch (error) {
    const setting = process.env.DATABASE_MIGRATION_URL ? 'DATABASE_MIGRATION_URL' : 'DATABASE_URL';
    const where = `${client.host}:${client.port}`;
    throw new StartFailure(
      `The database of ${setting} (${where}) cannot be reached: ${error.message || error.code}.`,
    );
  }
}

/** @returns {Promise<string[]>} the lines of its standard output */
async function runProgram(name, env, dataDir, onStep) {
  const lines = [];
  const errors = [];
  const child = launch(process.execPath, [path.join(root, `dist/apps/cli/${name}.js`)], {
    cwd: root,
    env,
    signal: stopRequested.signal,
    output: (line, stream) => {
      (stream === 'stdout' ? lines : errors).push(line);
      if (stream === 'stderr' && isWaiting.test(line)) say(line);
    },
  });
  onStep(child);
  const end = await child.result;
  onStep(null);
  if (end.code === 0) return lines;
  stopRequested.signal.throwIfAborted();
  const logFile = path.join(dataDir, `${name}.log`);
  fs.writeFileSync(logFile, [...lines, ...errors, ''].join('\n'), { mode: 0o600 });
  const reason = findLastMessage(errors) ?? describeExit(end);
  if (errors.length > 0 && !hasTrace(errors)) throw new StartFailure(reason);
  throw new StartFailure(`The script "${name}" failed (see ${logFile}): ${reason}`);
}

async function startProgram(name, env) {
  let output = [];
  const program = launch(process.execPath, [path.join(root, programs[name])], {
    cwd: root,
    env: { ...env, METRICS_PORT: await readMetricsPort(name) },
    output: (line, stream) => {
      show(name, line, stream === 'stderr' ? 'error' : 'info');
      if (stream === 'stderr') output = [...output.slice(-maxErrorLines), line];
    },
  });
  program.result.then(() => (lastErrors[name] = output));
  return program;
}

/** Waits until the api is live. Does not request the API itself, which responds with 410 once it is retired. */
async function waitUntilLive(host, port, giveUp) {
  const at = [EVERYWHERE, '::'].includes(host) ? LOOPBACK : host;
  const url = `http://${net.isIPv6(at) ? `[${at}]` : at}:${port}/health/live`;
  const deadline = Date.now() + responseTimeoutMs;
  while (!stopRequested.signal.aborted && !giveUp.aborted) {
    refuseUnusable();
    if (await isLive(url)) return;
    if (Date.now() > deadline) {
      throw new StartFailure(`The api does not respond on port ${port}; see its output above.`);
    }
    await sleep(30, stopRequested.signal);
  }
  stopRequested.signal.throwIfAborted();
}

/** Programs that cannot work with these settings, or end again and again. */
function refuseUnusable() {
  for (const name of Object.keys(programs)) {
    const { end, ends } = running[name];
    const reason = findLastMessage(lastErrors[name] ?? []);
    if (end?.code === exitConfig)
      throw new StartFailure(reason ?? `The ${name} refused its settings.`);
    if (ends < endsBeforeGivingUp) continue;
    throw new StartFailure(
      `The ${name} exited ${ends} times while starting: ${reason ?? describeExit(end)}`,
    );
  }
}

function isLive(url) {
  return new Promise((resolve) => {
    const request = http.get(url, { agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once('timeout', () => request.destroy());
    // Refused while nothing listens yet, which is what this waits for.
    request.once('error', () => resolve(false));
    request.once('close', () => resolve(false));
  });
}

function parseLastJson(lines) {
  const line = lines.filter((text) => text.startsWith('{')).at(-1);
  if (!line) throw new StartFailure('The script "setup" did not print what it has set up.');
  return JSON.parse(line);
}

/** Stores the token in a file. It exists in plain text only here: the database stores only its hash. */
function keepLocalFile(file, publicUrl, initial) {
  const state = initial ?? readJson(file);
  if (!state) return null;
  const local = { ...state, base_url: publicUrl };
  if (initial || state.base_url !== publicUrl) writeJson(file, local);
  return local;
}

function describeRunning(databaseUrl) {
  const describe = (program) =>
    program?.pid ? { pid: program.pid, birth: program.birth } : undefined;
  const { port, url, ownerUrl, dataPath } = running.postgres?.current ?? {};
  return {
    postgres: databaseUrl
      ? { pid: null, port: null, url: databaseUrl, data: null }
      : url && {
          ...describe(running.postgres.current),
          port,
          url,
          owner_url: ownerUrl,
          data: dataPath,
        },
    api: describe(running.api?.current),
    dispatcher: describe(running.dispatcher?.current),
    step: describe(running.step),
  };
}

/** Stops all programs in this order, so that no request or delivery in flight loses its database. */
async function stopAll() {
  const hurry = forceStopRequested.signal;
  if (running.postgres ?? running.api ?? running.step) say('stopping …');
  await Promise.all(
    ['step', 'api', 'dispatcher'].map((name) => running[name]?.stop({ signal: 'SIGTERM', hurry })),
  );
  await running.postgres?.stop({ hurry });
  running.packages?.();
}

function show(name, line, level) {
  process.stdout.write(`${renderOutput(name, line, level)}\n`);
}

function say(line) {
  show('inkpad', line);
}

function listenForSignals() {
  let requestCount = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm.
      if (requestCount > 0 && Date.now() - requestCount > 500) forceStopRequested.abort();
      if (requestCount === 0) requestCount = Date.now();
      stopRequested.abort();
    });
  }
  // A closed terminal or pipe accepts no more lines, but that must not leave anything running.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

listenForSignals();
endWithParent();
try {
  await main();
} catch (error) {
  process.exitCode = 1;
  printFailure('inkpad', describeInOneSentence(error) ?? error.stack);
}
if (stopRequested.signal.aborted) say('stopped');
