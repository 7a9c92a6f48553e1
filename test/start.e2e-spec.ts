import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startPostgres } from '../scripts/embedded-postgres.mjs';
import { testEnvironment } from './support/database.js';
import { eventually } from './support/eventually.js';
import {
  Installation,
  isThere,
  makeDataFolder,
  type Run,
  type Start,
} from './support/installation.js';
import { freePort, runNode } from './support/program.js';

/** The steps build on each other: they are the life of one installation. */
describe('npm start', () => {
  let installation: Installation;
  let starter: Start;
  let token: string;

  beforeAll(async () => {
    installation = await Installation.create();
  });
  afterAll(() => installation.remove());

  it('comes up and says how to use it', async () => {
    starter = installation.start();
    await installation.isUp(starter);

    token = installation.readJson<{ api_token: string }>('local.json').api_token;
    expect(starter.output()).toContain(`http://localhost:${installation.port}/api/v1/accounts`);
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
    expect(await installation.statusAt('127.0.0.2', token)).toBe(null);
    expect(await installation.statusAt('127.0.0.1', token)).toBe(200);
  });

  it('writes down what runs and its credentials, for its owner only', () => {
    const run = installation.readRun();
    expect(run.starter.pid).toBe(starter.process.pid);
    expect(run.base_url).toBe(`http://localhost:${installation.port}`);
    expect(run.postgres?.url).toContain(`@127.0.0.1:${run.postgres?.port}/inkpad`);
    for (const name of ['local.json', 'run.json', 'postgres.json']) {
      expect(fs.statSync(path.join(installation.dataDir, name)).mode & 0o777).toBe(0o600);
    }
  });

  it('connects its programs as a role that may add to the history and no more', async () => {
    expect(await rightsOf(installation.readRun())).toEqual(ONLY_TO_ADD);
    const environments = (['api', 'dispatcher'] as const).map((name) =>
      fs.readFileSync(`/proc/${installation.pidOf(name)}/environ`, 'utf8'),
    );
    const owner = new URL(installation.readRun().postgres?.owner_url ?? '');
    for (const environment of environments) expect(environment).not.toContain(owner.password);
  });

  it('refuses to start twice, in one sentence', async () => {
    const second = installation.start();
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n')).toEqual([
      expect.stringContaining(`already running at http://localhost:${installation.port} (process`),
    ]);
  });

  it('refuses a installation.port that is taken, in one sentence', async () => {
    const other = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    const second = installation.start({ DATA_DIR: other });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toMatch(
      new RegExp(`^Port ${installation.port} is already used .*\\.$`),
    );
    fs.rmSync(other, { recursive: true });
  });

  it('refuses a database that cannot be reached, in one sentence', async () => {
    const other = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    fs.writeFileSync(path.join(other, 'database'), 'postgres://u:p@127.0.0.1:1/none');
    const second = installation.start({
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
    const second = installation.start({
      DATA_DIR: other,
      PORT: `${await freePort()}`,
      DATABASE_URL_FILE: file,
    });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toBe(`DATABASE_URL_FILE: ${file} is empty.`);
    fs.rmSync(other, { recursive: true });
  });

  it('brings the api back after kill -9', async () => {
    const before = installation.pidOf('api');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => installation.pidOf('api'),
      (pid) => ![0, before].includes(pid),
    );
    await eventually(
      () => tokenStatus(),
      (status) => status === 200,
    );
    expect(isThere(before)).toBe(false);
  });

  it('brings PostgreSQL back after kill -9, on the same port', async () => {
    const { postgres } = installation.readRun();
    const before = installation.pidOf('postgres');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => installation.pidOf('postgres'),
      (pid) => ![0, before].includes(pid),
    );
    expect(installation.readRun().postgres?.url).toBe(postgres?.url);
    await eventually(
      () => tokenStatus(),
      (status) => status === 200,
    );
  });

  it('starts again after kill -9 of the starter, with its data', async () => {
    const left = installation.pidOf('api');
    starter.process.kill('SIGKILL');
    await starter.ended;
    starter = installation.start({ HOST: '0.0.0.0' });
    await installation.isUp(starter);

    expect(installation.pidOf('api')).not.toBe(left);
    expect(installation.readJson<{ api_token: string }>('local.json').api_token).toBe(token);
    expect(await tokenStatus()).toBe(200);
  });

  it('shows the token when it is made, and later says where it is', () => {
    expect(starter.output()).not.toContain(token);
    expect(starter.output()).toContain(path.join(installation.dataDir, 'local.json'));
  });

  it('warns when others reach a service whose webhooks go to this machine', async () => {
    expect(starter.output()).toMatch(
      /WARNING: HOST=0\.0\.0\.0 lets other machines in while webhooks may go to http and loopback targets/,
    );
    expect(await installation.statusAt('127.0.0.1', token)).toBe(200);
  });

  it('goes on with a data folder of versions that had one role for everything', async () => {
    starter.process.kill('SIGINT');
    await starter.ended;
    const current = installation.dataDir;
    installation.dataDir = makeDataFolder();
    try {
      await makeOldFolder();
      starter = installation.start();
      await installation.isUp(starter);
      expect(
        await tokenStatus(installation.readJson<{ api_token: string }>('local.json').api_token),
      ).toBe(200);
      expect(await rightsOf(installation.readRun())).toEqual(ONLY_TO_ADD);
    } finally {
      starter.process.kill('SIGINT');
      await starter.ended;
      fs.rmSync(installation.dataDir, { recursive: true, force: true });
      installation.dataDir = current;
    }
    starter = installation.start();
    await installation.isUp(starter);
  });

  it('stops cleanly on SIGINT', async () => {
    const pids = [
      installation.pidOf('postgres'),
      installation.pidOf('api'),
      installation.pidOf('dispatcher'),
    ];
    starter.process.kill('SIGINT');
    expect(await starter.ended).toBe(0);

    expect(pids.map((pid) => isThere(pid))).toEqual([false, false, false]);
    expect(fs.existsSync(path.join(installation.dataDir, 'run.json'))).toBe(false);
    expect(await tokenStatus()).toBe(null);
  });

  /** As they were left: the superuser owned the tables and ran everything, and no second password was kept. */
  async function makeOldFolder(): Promise<void> {
    const postgres = await startPostgres({ dataDir: installation.dataDir, tie: true });
    const settings = testEnvironment(postgres.ownerUrl, {
      DATA_DIR: installation.dataDir,
      MASTER_KEY: '',
    });
    expect(runNode(['dist/scripts/migrate.js'], settings).status).toBe(0);
    const { output } = runNode(['dist/scripts/setup.js'], settings);
    await postgres.stop();
    const { created: _created, ...local } = JSON.parse(output) as { created: boolean };
    fs.writeFileSync(path.join(installation.dataDir, 'local.json'), JSON.stringify(local), {
      mode: 0o600,
    });
    const record = path.join(installation.dataDir, 'postgres.json');
    const { service_password: _password, ...old } =
      installation.readJson<Record<string, string>>('postgres.json');
    fs.writeFileSync(record, JSON.stringify(old), { mode: 0o600 });
  }

  /** Null when nothing listens. */
  function tokenStatus(of = token): Promise<number | null> {
    return installation.statusAt('127.0.0.1', of);
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
