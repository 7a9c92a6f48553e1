import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fs from 'node:fs';
import path from 'node:path';
import { startPostgres } from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import {
  Installation,
  isThere,
  makeDataFolder,
  type Start,
} from '../support/services/installation.js';
import { runNode } from '../support/services/program.js';
import { ONLY_TO_ADD, readPrivileges } from '../support/services/role-privileges.js';

/** These tests are steps in the life of one installation; each needs the ones before it. */
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

  it('restarts the api after a kill -9', async () => {
    const before = installation.readPid('api');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => installation.readPid('api'),
      (pid) => ![0, before].includes(pid),
    );
    await eventually(
      () => requestWithToken(),
      (status) => status === 200,
    );
    expect(isThere(before)).toBe(false);
  });

  it('restarts PostgreSQL after a kill -9, on the same port', async () => {
    const { postgres } = installation.readRun();
    const before = installation.readPid('postgres');
    process.kill(before, 'SIGKILL');
    await eventually(
      () => installation.readPid('postgres'),
      (pid) => ![0, before].includes(pid),
    );
    expect(installation.readRun().postgres?.url).toBe(postgres?.url);
    await eventually(
      () => requestWithToken(),
      (status) => status === 200,
    );
  });

  it('starts again with its data after a kill -9 of itself', async () => {
    const formerPid = installation.readPid('api');
    starter.process.kill('SIGKILL');
    await starter.ended;
    starter = installation.start();
    await installation.isUp(starter);

    expect(installation.readPid('api')).not.toBe(formerPid);
    expect(installation.readJson<{ api_token: string }>('local.json').api_token).toBe(token);
    expect(await requestWithToken()).toBe(200);
  });

  it('upgrades the data folder of a version with one database role', async () => {
    starter.process.kill('SIGINT');
    await starter.ended;
    const current = installation.dataDir;
    installation.dataDir = makeDataFolder();
    try {
      await createOldFolder();
      starter = installation.start();
      await installation.isUp(starter);
      expect(
        await requestWithToken(
          installation.readJson<{ api_token: string }>('local.json').api_token,
        ),
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

  /** Creates the folder as such a version left it: owned and used by the superuser, without a second password. */
  async function createOldFolder(): Promise<void> {
    const postgres = await startPostgres({ dataDir: installation.dataDir, tie: true });
    const settings = createTestEnvironment(postgres.ownerUrl, {
      DATA_DIR: installation.dataDir,
      MASTER_KEY: '',
    });
    expect(runNode(['dist/apps/cli/migrate.js'], settings).status).toBe(0);
    const { output } = runNode(['dist/apps/cli/setup.js'], settings);
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

  /** Requests the API with a token. @returns the status, or null when nothing listens */
  function requestWithToken(apiToken = token): Promise<number | null> {
    return installation.fetchStatus('127.0.0.1', apiToken);
  }
});
