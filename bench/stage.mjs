import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { coresApart, pin } from './cores.mjs';
import { familyOf } from './cpu-time.mjs';
import { startPostgres } from '../apps/cli/local-postgres/embedded-postgres.mjs';
import { startEventStoreDbProcess } from '../test/support/emulators/eventstoredb/as-process.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

const TIE = new URL('end-with-parent.mjs', import.meta.url).href;
const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const STOP_PATIENCE_MS = 10_000;
// As durable as a real installation, with enough room that no checkpoint is forced within a round.
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  // Several processes of each kind, each with its own pool.
  max_connections: 250,
};

pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * A PostgreSQL in a temporary folder and the processes around it, for as long as `play` takes. Everything is removed
 * afterwards, also after Ctrl-C.
 * @param {(stage: Stage) => Promise<number>} play returns the exit code
 * @param {{ cores?: boolean }} [how] cores: whether service, PostgreSQL and load generator each have their own
 * @returns {Promise<number>}
 */
export async function onStage(play, { cores = false } = {}) {
  const stage = new Stage(cores ? coresApart() : null);
  const interrupt = (signal) => stage.abort.abort(new Interrupted(signal));
  for (const signal of INTERRUPTS) process.on(signal, interrupt);
  try {
    await stage.open();
    return await Promise.race([play(stage), stage.aborted]);
  } catch (error) {
    // After an abort, its reason matters more than what failed because of it.
    const reason = stage.abort.signal.aborted ? stage.abort.signal.reason : error;
    if (!(reason instanceof Interrupted)) throw reason;
    console.error(`stopped by ${reason.signal}`);
    return 128 + constants.signals[reason.signal];
  } finally {
    await stage.close();
    for (const signal of INTERRUPTS) process.off(signal, interrupt);
  }
}

class Interrupted extends Error {
  constructor(signal) {
    super(signal);
    this.signal = signal;
  }
}

class Stage {
  abort = new AbortController();
  /** Rejects as soon as everything has to end. */
  aborted = new Promise((_, reject) => {
    this.abort.signal.addEventListener('abort', () => reject(this.abort.signal.reason));
  });
  children = new Set();
  stores = [];
  dataDir = mkdtempSync(join(tmpdir(), 'inkpad-bench-'));

  /** @param {ReturnType<typeof coresApart> | null} cores */
  constructor(cores) {
    this.cores = cores;
    // As root, PostgreSQL runs as another user, who must be able to pass through to its data.
    chmodSync(this.dataDir, 0o711);
    // A caller that awaits it gets the rejection; there may be none at that moment.
    this.aborted.catch(() => {});
  }

  async open() {
    this.postgres = await startPostgres({
      dataDir: join(this.dataDir, 'database'),
      settings: SETTINGS,
      tie: true,
      signal: this.abort.signal,
    });
    for (const pid of familyOf(this.postgres.pid)) this.pin(pid, 'postgres');
  }

  /** @param {import('./cores.mjs').Part} part */
  pin(pid, part) {
    if (this.cores && !pin(pid, this.cores[part]))
      throw new Error(`process ${pid} cannot be pinned`);
  }

  /** @returns {Promise<string>} the URL of a new database on the same server, as its owner */
  async database(name) {
    await this.query(this.postgres.ownerUrl, `create database ${name}`);
    const url = new URL(this.postgres.ownerUrl);
    url.pathname = `/${name}`;
    return url.href;
  }

  /** The tests' emulator of EventStoreDB, with its log in a file and fsync on. */
  async eventStoreDb(name) {
    const log = join(this.dataDir, `${name}.log`);
    const store = await startEventStoreDbProcess(['--log', log]);
    this.stores.push(store);
    const setDelays = (delays) => store.control('setDelays', delays);
    return { connectionString: store.connectionString, log, pid: store.pid, setDelays };
  }

  async query(url, text, values) {
    const client = new pg.Client(url);
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /**
   * Starts a process; if it ends before the bench does, that is an error.
   * @param {string} module
   * @param {{ args?: string[], env?: object, from?: string, flags?: string[], part?: import('./cores.mjs').Part,
   *   readsOutput?: boolean }} options from: the clone it is in; flags: of Node.js; readsOutput: instead of printing it
   */
  start(
    module,
    { args = [], env = {}, from = root, flags = [], part = 'service', readsOutput = false } = {},
  ) {
    this.abort.signal.throwIfAborted();
    const child = fork(join(from, module), args, {
      cwd: from,
      env: { ...process.env, ...env },
      execArgv: ['--import', TIE, ...flags],
      // Out of reach of the terminal's Ctrl-C: the bench alone decides in which order processes stop.
      detached: true,
      stdio: ['ignore', readsOutput ? 'pipe' : 'inherit', 'inherit', 'ipc'],
    });
    child.stdout?.resume();
    this.children.add(child);
    if (child.pid !== undefined) this.pin(child.pid, part);
    child.once('error', (error) => this.abort.abort(error));
    child.once('exit', (code, signal) => {
      if (this.children.delete(child)) {
        this.abort.abort(new Error(`${module} ended (${signal ?? `exit code ${code}`})`));
      }
    });
    return child;
  }

  /** Sends a process one question and waits for its one response. */
  async ask(child, question) {
    const response = once(child, 'message', { signal: this.abort.signal });
    if (question !== undefined) child.send(question);
    const [message] = await Promise.race([response, this.aborted]);
    return message;
  }

  /**
   * For several questions at a time: each response carries the `tag` of its question, and messages without one go to
   * `onNews`.
   * @returns {(question: object) => Promise<any>}
   */
  conversation(child, onNews = () => {}) {
    const waiting = new Map();
    let tags = 0;
    child.on('message', ({ tag, ...message }) => {
      if (tag === undefined) return onNews(message);
      waiting.get(tag)(message);
      waiting.delete(tag);
    });
    return (question) => {
      const tag = ++tags;
      const response = new Promise((resolve) => waiting.set(tag, resolve));
      child.send({ ...question, tag });
      return Promise.race([response, this.aborted]);
    };
  }

  /** Runs one of the repository's scripts to its end. */
  async script(module, env, from = root, args = []) {
    const { stdout } = await promisify(execFile)(process.execPath, [join(from, module), ...args], {
      cwd: from,
      env: { ...process.env, ...env },
      signal: this.abort.signal,
      maxBuffer: 16 * 1024 * 1024,
    });
    return stdout.trim();
  }

  async close() {
    await Promise.all([...this.children].map((child) => this.stop(child)));
    await Promise.all(this.stores.map((store) => store.kill()));
    await this.postgres?.remove();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async stop(child) {
    this.children.delete(child);
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    // A stopped process must be continued before it can receive the signal.
    child.kill('SIGCONT');
    const harder = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
    await exited;
    clearTimeout(harder);
  }
}

/** @returns {Promise<number>} a port that nobody was listening on a moment ago */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
