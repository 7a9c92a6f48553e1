import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fs from 'node:fs';
import path from 'node:path';
import { startPostgres } from '../../scripts/embedded-postgres.mjs';
import { testEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import {
  Installation,
  isThere,
  makeDataFolder,
  type Start,
} from '../support/services/installation.js';
import { runNode } from '../support/services/program.js';
import { ONLY_TO_ADD, readPrivileges } from '../support/services/role-privileges.js';

/** The steps build on each other: they are the life of one installation. */
describe('npm start', () => {
  let installation: Installation;
  let starter: Start;
  let token: string;

  beforeAll(async () => {
    installation = await Installation.create();
    starter = installation.start();
    await installation.isUp(starter);
    token = installation.readJson<{ api_token: string }>('local.json').api_token;
  });
  afterAll(async () => {
    starter.process.kill('SIGINT');
    await starter.ended;
    await installation.remove();
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
    starter = installation.start();
    await installation.isUp(starter);

    expect(installation.pidOf('api')).not.toBe(left);
    expect(installation.readJson<{ api_token: string }>('local.json').api_token).toBe(token);
    expect(await tokenStatus()).toBe(200);
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
      expect(await readPrivileges(installation.readRun())).toEqual(ONLY_TO_ADD);
    } finally {
      starter.process.kill('SIGINT');
      await starter.ended;
      fs.rmSync(installation.dataDir, { recursive: true, force: true });
      installation.dataDir = current;
    }
    starter = installation.start();
    await installation.isUp(starter);
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
