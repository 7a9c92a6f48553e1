import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Installation, isThere, type Start } from '../support/services/installation.js';
import { ONLY_TO_ADD, readPrivileges } from '../support/services/role-privileges.js';
import { findFreePort } from '../support/services/program.js';

/** These tests are steps in the life of one installation; each needs the ones before it. */
describe('npm start', () => {
  let installation: Installation;
  let starter: Start;
  let token: string;

  beforeAll(async () => {
    installation = await Installation.create();
  });
  afterAll(() => installation.remove());

  it('starts the service and prints its URL and token', async () => {
    starter = installation.start();
    await installation.isUp(starter);

    token = installation.readJson<{ api_token: string }>('local.json').api_token;
    expect(starter.output()).toContain(`http://localhost:${installation.port}/api/v1/accounts`);
    expect(starter.output()).toContain(`Authorization: Bearer ${token}`);
    const [link = ''] = /http:\S+\/app\/sign-in\/link\?token=\S+/.exec(starter.output()) ?? [];
    const open = async () => {
      const { headers } = await fetch(link, { redirect: 'manual' });
      return [headers.get('location'), headers.getSetCookie().length];
    };
    expect(await open()).toEqual([expect.stringMatching('^/app/stores/[0-9]+$'), 2]);
    expect(await open()).toEqual(['/app/sign-in?done=late', 0]);
    const isUnsupported = process.versions.node.startsWith('20.');
    expect(starter.output().includes('Node.js 24 is recommended')).toBe(isUnsupported);
    expect(await requestWithToken()).toBe(200);
  });

  it('responds to the requests of README.md as it says', () => {
    const [, section = ''] = fs.readFileSync('README.md', 'utf8').split('## Build on it');
    const [, script = ''] = /```sh\n([^`]+)```/.exec(section) ?? [];
    const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-clone-'));
    fs.symlinkSync(installation.dataDir, path.join(clone, '.data'));
    for (const count of [1, 2]) {
      const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', script], {
        encoding: 'utf8',
        cwd: clone,
      });
      expect([count, status, stderr]).toEqual([count, 0, '']);
      expect(stdout).toContain('\n  "name": "Free coffee",\n');
      expect(stdout).toMatch(
        /\n {2}"balance": 0,\n {2}"rewards": \[\n {4}\{[^}]*"state": "redeemed"/,
      );
    }
    fs.rmSync(clone, { recursive: true });
  });

  it('listens on 127.0.0.1 only while webhooks may go to this machine, and says so', async () => {
    expect(starter.output()).toMatch(
      /listening on 127\.0\.0\.1 only, since webhooks may go to http and loopback targets; HOST/,
    );
    // Another address of the same machine: a server that listens on all would respond there too.
    expect(await installation.fetchStatus('127.0.0.2', token)).toBe(null);
    expect(await installation.fetchStatus('127.0.0.1', token)).toBe(200);
  });

  it('writes its processes and credentials to files that only their owner can read', () => {
    const run = installation.readRun();
    expect(run.starter.pid).toBe(starter.process.pid);
    expect(run.base_url).toBe(`http://localhost:${installation.port}`);
    expect(run.postgres?.url).toContain(`@127.0.0.1:${run.postgres?.port}/inkpad`);
    for (const name of ['local.json', 'run.json', 'postgres.json']) {
      expect(fs.statSync(path.join(installation.dataDir, name)).mode & 0o777).toBe(0o600);
    }
  });

  it('connects its programs as a role that can only append to the history', async () => {
    expect(await readPrivileges(installation.readRun())).toEqual(ONLY_TO_ADD);
    const environments = (['api', 'dispatcher'] as const).map((name) =>
      fs.readFileSync(`/proc/${installation.readPid(name)}/environ`, 'utf8'),
    );
    const owner = new URL(installation.readRun().postgres?.owner_url ?? '');
    for (const environment of environments) expect(environment).not.toContain(owner.password);
  });

  it('refuses to start a second time, in one sentence', async () => {
    const second = installation.start();
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n')).toEqual([
      expect.stringContaining(`already running at http://localhost:${installation.port} (process`),
    ]);
  });

  it('refuses a port that is in use, in one sentence', async () => {
    const otherFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    const second = installation.start({ DATA_DIR: otherFolder });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toMatch(
      new RegExp(`^Port ${installation.port} is already used .*\\.$`),
    );
    fs.rmSync(otherFolder, { recursive: true });
  });

  it('refuses a database that cannot be reached, in one sentence', async () => {
    const otherFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
    fs.writeFileSync(path.join(otherFolder, 'database'), 'postgres://u:p@127.0.0.1:1/none');
    const second = installation.start({
      DATA_DIR: otherFolder,
      PORT: `${await findFreePort()}`,
      DATABASE_URL_FILE: path.join(otherFolder, 'database'),
    });
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n').at(-1)).toMatch(
      /^The database of DATABASE_URL \(127\.0\.0\.1:1\) cannot be reached: .*ECONNREFUSED.*\.$/,
    );
    fs.rmSync(otherFolder, { recursive: true });
  });

  it('refuses an empty DATABASE_URL_FILE instead of creating a database', async () => {
    const otherFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-second-'));
    const file = path.join(otherFolder, 'database');
    fs.writeFileSync(file, '\n');
    const second = installation.start({
      DATA_DIR: otherFolder,
      PORT: `${await findFreePort()}`,
      DATABASE_URL_FILE: file,
    });
    expect(await second.ended).toBe(1);
    expect(second.output().trim()).toBe(`DATABASE_URL_FILE: ${file} is empty.`);
    fs.rmSync(otherFolder, { recursive: true });
  });

  it('starts again with its data and token after SIGINT', async () => {
    starter.process.kill('SIGINT');
    expect(await starter.ended).toBe(0);
    starter = installation.start({ HOST: '0.0.0.0' });
    await installation.isUp(starter);
    expect(installation.readJson<{ api_token: string }>('local.json').api_token).toBe(token);
    expect(await requestWithToken()).toBe(200);
  });

  it('prints the path of the token, not the token, when it starts again', () => {
    expect(starter.output()).not.toContain(token);
    expect(starter.output()).toContain(path.join(installation.dataDir, 'local.json'));
  });

  it('warns when HOST lets other machines in while webhooks may go to this one', async () => {
    expect(starter.output()).toMatch(
      /WARNING: HOST=0\.0\.0\.0 lets other machines in while webhooks may go to http and loopback targets/,
    );
    expect(await installation.fetchStatus('127.0.0.1', token)).toBe(200);
  });

  it('ends all its processes and removes run.json on SIGINT', async () => {
    const pids = [
      installation.readPid('postgres'),
      installation.readPid('api'),
      installation.readPid('dispatcher'),
    ];
    starter.process.kill('SIGINT');
    expect(await starter.ended).toBe(0);

    expect(pids.map((pid) => isThere(pid))).toEqual([false, false, false]);
    expect(fs.existsSync(path.join(installation.dataDir, 'run.json'))).toBe(false);
    expect(await requestWithToken()).toBe(null);
  });

  /** Requests the API with the token. @returns the status, or null when nothing listens */
  function requestWithToken(): Promise<number | null> {
    return installation.fetchStatus('127.0.0.1', token);
  }
});
