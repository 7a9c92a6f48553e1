import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startPostgres } from '../scripts/embedded-postgres.mjs';
import { testEnvironment } from './support/database.js';
import { eventually } from './support/eventually.js';
import { freePort, runNode } from './support/program.js';

type Run = {
  starter: { pid: number; started: string };
  base_url: string;
  postgres?: { pid: number; port: number; url: string; owner_url: string; data: string };
  api?: { pid: number };
  dispatcher?: { pid: number };
};

type Start = {
  process: ChildProcess;
  output: () => string;
  ended: Promise<number | null>;
};

const root = process.cwd();
/** The steps build on each other: they are the life of one installation. */
describe('npm start', () => {
  let dataDir: string;
  let port: number;
  let starter: Start;
  const started: Start[] = [];
  let token: string;

  beforeAll(async () => {
    dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    // Passable, so that PostgreSQL's own user reaches its data in it when the tests run as root.
    fs.chmodSync(dataDir, 0o711);
    port = await freePort();
  });

  afterAll(async () => {
    for (const { process: child, ended } of started) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGINT');
      await ended;
    }
    fs.rmSync(dataDir, { recursive: true, force: true });
  });

  it('comes up and says how to use it', async () => {
    starter = start();
    await isUp(starter);

    token = readJson<{ api_token: string }>('local.json').api_token;
    expect(starter.output()).toContain(`http://localhost:${port}/api/v1/accounts`);
    expect(starter.output()).toContain(`Authorization: Bearer ${token}`);
    const unsupported = process.versions.node.startsWith('20.');
    expect(starter.output().includes('Node.js 24 is recommended')).toBe(unsupported);
    expect(await tokenStatus()).toBe(200);
  });

  it('listens on this machine alone while webhooks may go there, and says so', async () => {
    expect(starter.output()).toMatch(
      /listening on 127\.0\.0\.1 only, since webhooks may go to http and loopback targets; HOST/,
    );
    // Another address of the same machine: who listens on all would answer there too.
    expect(await statusAt('127.0.0.2')).toBe(null);
    expect(await statusAt('127.0.0.1')).toBe(200);
  });

  it('writes down what runs and its credentials, for its owner only', () => {
    const run = readRun();
    expect(run.starter.pid).toBe(starter.process.pid);
    expect(run.base_url).toBe(`http://localhost:${port}`);
    expect(run.postgres?.url).toContain(`@127.0.0.1:${run.postgres?.port}/inkpad`);
    for (const name of ['local.json', 'run.json', 'postgres.json']) {
      expect(fs.statSync(path.join(dataDir, name)).mode & 0o777).toBe(0o600);
    }
  });

  it('connects its programs as a role that may add to the history and no more', async () => {
    expect(await rightsOf(readRun())).toEqual(ONLY_TO_ADD);
    const environments = (['api', 'dispatcher'] as const).map((name) =>
      fs.readFileSync(`/proc/${pidOf(name)}/environ`, 'utf8'),
    );
    const owner = new URL(readRun().postgres?.owner_url ?? '');
    for (const environment of environments) expect(environment).not.toContain(owner.password);
  });

  it('refuses to start twice, in one sentence', async () => {
    const second = start();
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n')).toEqual([
      expect.stringContaining(`already running at http://localhost:${port} (process`),
    ]);
  });

  it('refuses a port that is taken, in one sentence', async () => {
    const other = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    const second = start({ DATA_DIR: other });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toMatch(new RegExp(`^Port ${port} is already used .*\\.$`));
    fs.rmSync(other, { recursive: true });
  });

  it('refuses a database that cannot be reached, in one sentence', async () => {
    const other = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    fs.writeFileSync(path.join(other, 'database'), 'postgres://u:p@127.0.0.1:1/none');
    const second = start({
      DATA_DIR: other,
      PORT: `${await freePort()}`,
      DATABASE_URL_FILE: path.join(other, 'database'),
    });
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n').at(-1)).toMatch(
      /^The database of DATABASE_URL \(127\.0\.0\.1:1\) cannot be reached: .*ECONNREFUSED.*\.$/,
    );
    fs.rmSync(other, { recursive: true });
  });

  it('refuses an empty file for the database, in place of making a new one', async () => {
    const other = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-second-'));
    const file = path.join(other, 'database');
    fs.writeFileSync(file, '\n');
    const second = start({ DATA_DIR: other, PORT: `${await freePort()}`, DATABASE_URL_FILE: file });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toBe(`DATABASE_URL_FILE: ${file} is empty.`);
    fs.rmSync(other, { recursive: true });
  });

  it('brings the api back after kill -9', async () => {
    const before = pidOf('api');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => pidOf('api'),
      (pid) => ![0, before].includes(pid),
    );
    await eventually(
      () => tokenStatus(),
      (status) => status === 200,
    );
    expect(isThere(before)).toBe(false);
  });

  it('brings PostgreSQL back after kill -9, on the same port', async () => {
    const { postgres } = readRun();
    const before = pidOf('postgres');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => pidOf('postgres'),
      (pid) => ![0, before].includes(pid),
    );
    expect(readRun().postgres?.url).toBe(postgres?.url);
    await eventually(
      () => tokenStatus(),
      (status) => status === 200,
    );
  });

  it('starts again after kill -9 of the starter, with its data', async () => {
    const left = pidOf('api');
    starter.process.kill('SIGKILL');
    await starter.ended;
    starter = start({ HOST: '0.0.0.0' });
    await isUp(starter);

    expect(pidOf('api')).not.toBe(left);
    expect(readJson<{ api_token: string }>('local.json').api_token).toBe(token);
    expect(await tokenStatus()).toBe(200);
  });

  it('shows the token when it is made, and later says where it is', () => {
    expect(starter.output()).not.toContain(token);
    expect(starter.output()).toContain(path.join(dataDir, 'local.json'));
  });

  it('warns when others reach a service whose webhooks go to this machine', async () => {
    expect(starter.output()).toMatch(
      /WARNING: HOST=0\.0\.0\.0 lets other machines in while webhooks may go to http and loopback targets/,
    );
    expect(await statusAt('127.0.0.1')).toBe(200);
  });

  it('goes on with a data folder of versions that had one role for everything', async () => {
    starter.process.kill('SIGINT');
    await starter.ended;
    const current = dataDir;
    dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    fs.chmodSync(dataDir, 0o711);
    try {
      await makeOldFolder();
      starter = start();
      await isUp(starter);
      expect(await tokenStatus(readJson<{ api_token: string }>('local.json').api_token)).toBe(200);
      expect(await rightsOf(readRun())).toEqual(ONLY_TO_ADD);
    } finally {
      starter.process.kill('SIGINT');
      await starter.ended;
      fs.rmSync(dataDir, { recursive: true, force: true });
      dataDir = current;
    }
    starter = start();
    await isUp(starter);
  });

  it('stops cleanly on SIGINT', async () => {
    const pids = [pidOf('postgres'), pidOf('api'), pidOf('dispatcher')];
    starter.process.kill('SIGINT');
    expect(await starter.ended).toBe(0);

    expect(pids.map((pid) => isThere(pid))).toEqual([false, false, false]);
    expect(fs.existsSync(path.join(dataDir, 'run.json'))).toBe(false);
    expect(await tokenStatus()).toBe(null);
  });

  // As supervisors and scripts do it: the signal reaches npm and not its process group.
  it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
    'stops everything when npm alone gets %s',
    async (signal) => {
      starter = start({}, ['npm', 'start']);
      await isUp(starter);
      const run = readRun();
      const pids = [run.starter.pid, pidOf('postgres'), pidOf('api'), pidOf('dispatcher')];
      expect(pids).not.toContain(0);
      expect(run.starter.pid).not.toBe(starter.process.pid);

      starter.process.kill(signal);
      await eventually(
        () => pids.map((pid) => isThere(pid)),
        (there) => !there.includes(true),
      );
      expect(fs.existsSync(path.join(dataDir, 'run.json'))).toBe(false);
      expect(starter.output()).toContain('inkpad     | stopped');
    },
  );

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'stops a start that is not up yet when npm alone gets %s',
    async (signal) => {
      starter = start({}, ['npm', 'start']);
      await eventually(starter.output, (text) => text.includes('migrating the database'));
      const { pid } = readRun().starter;
      starter.process.kill(signal);
      await eventually(
        () => isThere(pid),
        (there) => !there,
      );
      expect(fs.existsSync(path.join(dataDir, 'run.json'))).toBe(false);
      expect(starter.output()).not.toContain('Ctrl-C stops Inkpad.');
    },
  );

  it.each([
    ['npm', 'nohup npm start'],
    ['Node.js', 'nohup "$0" scripts/start.mjs'],
  ])('runs on without the shell that started %s in the background', async (_name, command) => {
    const output = path.join(dataDir, 'output');
    const shell = start({}, ['sh', '-c', `${command} >"$1" 2>&1 &`, process.execPath, output]);
    expect(await shell.ended).toBe(0);
    await eventually(
      () => fs.readFileSync(output, 'utf8'),
      (text) => text.includes('Ctrl-C stops Inkpad.'),
    );
    expect(await tokenStatus()).toBe(200);

    const { pid } = readRun().starter;
    process.kill(pid, 'SIGINT');
    await eventually(
      () => isThere(pid),
      (there) => !there,
    );
  });

  it.each([
    ['another setting', 2, 1],
    ['no other setting', 1, 2],
  ])(
    'gives the dispatcher a port for its metrics that %s names',
    async (_what, healthAt, dispatcherAt) => {
      const metrics = await freePort();
      starter = start({ METRICS_PORT: `${metrics}`, HEALTH_PORT: `${metrics + healthAt}` });
      await isUp(starter);
      expect(await metricsAt(metrics)).toContain('inkpad_http_request_seconds');
      expect(await metricsAt(metrics + dispatcherAt)).not.toContain('inkpad_http_request_seconds');
      starter.process.kill('SIGINT');
      await starter.ended;
    },
  );

  /** As they were left: the superuser owned the tables and ran everything, and no second password was kept. */
  async function makeOldFolder(): Promise<void> {
    const postgres = await startPostgres({ dataDir, tie: true });
    const settings = testEnvironment(postgres.ownerUrl, { DATA_DIR: dataDir, MASTER_KEY: '' });
    expect(runNode(['dist/scripts/migrate.js'], settings).status).toBe(0);
    const { output } = runNode(['dist/scripts/setup.js'], settings);
    await postgres.stop();
    const { created: _created, ...local } = JSON.parse(output) as { created: boolean };
    fs.writeFileSync(path.join(dataDir, 'local.json'), JSON.stringify(local), { mode: 0o600 });
    const record = path.join(dataDir, 'postgres.json');
    const { service_password: _password, ...old } =
      readJson<Record<string, string>>('postgres.json');
    fs.writeFileSync(record, JSON.stringify(old), { mode: 0o600 });
  }

  function start(
    settings: NodeJS.ProcessEnv = {},
    [program = '', ...parameters]: string[] = [
      process.execPath,
      path.join(root, 'scripts/start.mjs'),
    ],
  ): Start {
    let output = '';
    const child = spawn(program, parameters, {
      cwd: root,
      // Empty counts as not given, and wins over a .env file.
      env: {
        ...process.env,
        DATABASE_URL: '',
        PUBLIC_URL: '',
        HOST: '',
        WEBHOOK_ALLOW_INSECURE_TARGETS: '',
        PORT: `${port}`,
        DATA_DIR: dataDir,
        ...settings,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    }
    // Not 'close': what a killed starter leaves running holds its output open.
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const begun = { process: child, output: () => output, ended };
    started.push(begun);
    return begun;
  }

  async function isUp({ process: child, output }: Start): Promise<void> {
    await eventually(
      output,
      (text) => child.exitCode !== null || text.includes('Ctrl-C stops Inkpad.'),
    );
    if (child.exitCode !== null) throw new Error(`The start failed:\n${output()}`);
  }

  function readJson<T>(name: string): T {
    return JSON.parse(fs.readFileSync(path.join(dataDir, name), 'utf8')) as T;
  }

  function readRun(): Run {
    return readJson<Run>('run.json');
  }

  /** 0 while it is down. */
  function pidOf(name: 'postgres' | 'api' | 'dispatcher'): number {
    return readRun()[name]?.pid ?? 0;
  }

  /** Null when nothing listens. */
  function tokenStatus(of = token): Promise<number | null> {
    return statusAt('127.0.0.1', of);
  }

  /** Once they are there: a dispatcher may take longer to start than the api. */
  async function metricsAt(at: number): Promise<string> {
    const response = await eventually(
      () => fetch(`http://127.0.0.1:${at}/metrics`).catch(() => null),
      (it) => it !== null,
    );
    return response?.text() ?? '';
  }

  async function statusAt(host: string, of = token): Promise<number | null> {
    try {
      const response = await fetch(`http://${host}:${port}/api/v1/accounts`, {
        headers: { authorization: `Bearer ${of}` },
      });
      await response.arrayBuffer();
      return response.status;
    } catch (error) {
      // What fetch throws for a connection that is refused or cut off; by name, as jest has its own classes.
      if ((error as Error).name === 'TypeError') return null;
      throw error;
    }
  }
});

const ONLY_TO_ADD = { superuser: false, adds: true, removes: false, owns: false };

async function rightsOf({ postgres }: Run): Promise<unknown> {
  const client = new pg.Client(postgres?.url);
  await client.connect();
  const { rows } = await client.query(
    `select rolsuper as superuser, has_table_privilege('es.events', 'insert') as adds,
       has_table_privilege('es.events', 'update, delete, truncate, trigger') as removes,
       exists (select from pg_class where relowner = r.oid) as owns
     from pg_roles r where rolname = current_user`,
  );
  await client.end();
  return rows[0];
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
