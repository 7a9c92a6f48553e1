import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { Installation, isThere, makeDataFolder, root } from '../support/services/installation.js';
import { findFreePorts } from '../support/services/program.js';

/** An installation that each test starts and stops in another way. */
let installation: Installation;

beforeAll(async () => {
  installation = await Installation.create();
});
afterAll(() => installation.remove());

describe('npm start', () => {
  // Supervisors and scripts send the signal to npm, and not to its process group.
  it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
    'stops api, dispatcher and PostgreSQL when only npm gets %s',
    async (signal) => {
      const starter = installation.start({}, ['npm', 'start']);
      await installation.isUp(starter);
      const run = installation.readRun();
      const pids = [
        run.starter.pid,
        installation.readPid('postgres'),
        installation.readPid('api'),
        installation.readPid('dispatcher'),
      ];
      expect(pids).not.toContain(0);
      expect(run.starter.pid).not.toBe(starter.process.pid);

      starter.process.kill(signal);
      await eventually(
        () => pids.map((pid) => isThere(pid)),
        (there) => !there.includes(true),
      );
      expect(fs.existsSync(path.join(installation.dataDir, 'run.json'))).toBe(false);
      expect(starter.output()).toContain('inkpad     | stopped');
    },
  );

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'stops while it is still starting when only npm gets %s',
    async (signal) => {
      const starter = installation.start({}, ['npm', 'start']);
      await eventually(starter.output, (text) => text.includes('migrating the database'));
      const { pid } = installation.readRun().starter;
      starter.process.kill(signal);
      await eventually(
        () => isThere(pid),
        (there) => !there,
      );
      expect(fs.existsSync(path.join(installation.dataDir, 'run.json'))).toBe(false);
      expect(starter.output()).not.toContain('Ctrl-C stops Inkpad.');
    },
  );

  it.each([
    ['npm', 'nohup npm start'],
    ['Node.js', 'nohup "$0" tools/start/start.mjs'],
  ])(
    'keeps running after the shell has ended that started %s in the background',
    async (_name, command) => {
      const output = path.join(installation.dataDir, 'output');
      const shell = installation.start({}, [
        'sh',
        '-c',
        `: >"$1"; ${command} >"$1" 2>&1 &`,
        process.execPath,
        output,
      ]);
      expect(await shell.ended).toBe(0);
      await eventually(
        () => fs.readFileSync(output, 'utf8'),
        (text) => text.includes('Ctrl-C stops Inkpad.'),
      );
      const { api_token: token } = installation.readJson<{ api_token: string }>('local.json');
      expect(await installation.fetchStatus('127.0.0.1', token)).toBe(200);

      const { pid } = installation.readRun().starter;
      process.kill(pid, 'SIGINT');
      await eventually(
        () => isThere(pid),
        (there) => !there,
      );
    },
  );

  it('uses other ports than a second installation that starts at the same time', async () => {
    const otherInstallation = await Installation.create();
    try {
      const starters = [installation, otherInstallation].map((each) =>
        each.start({ METRICS_PORT: '' }),
      );
      await Promise.all(starters.map((starter) => installation.isUp(starter)));
      const outputs = await Promise.all(
        starters.map(({ output }) => eventually(output, (text) => findPorts(text).length === 2)),
      );
      expect(new Set(outputs.flatMap(findPorts)).size).toBe(4);
      expect(outputs.join('')).not.toMatch(/EADDRINUSE|exited|started again/);
      for (const { process: child, ended } of starters) {
        child.kill('SIGINT');
        await ended;
      }
    } finally {
      await otherInstallation.remove();
    }
  });

  it.each([
    [1, 2],
    [2, 1],
  ])(
    'serves the dispatcher’s metrics on METRICS_PORT + %i when HEALTH_PORT is METRICS_PORT + %i',
    async (dispatcherOffset, healthOffset) => {
      const metrics = await findFreePorts(3);
      const starter = installation.start({
        METRICS_PORT: `${metrics}`,
        HEALTH_PORT: `${metrics + healthOffset}`,
      });
      await installation.isUp(starter);
      expect(await fetchMetrics(metrics)).toContain('inkpad_http_request_seconds');
      expect(await fetchMetrics(metrics + dispatcherOffset)).not.toContain(
        'inkpad_http_request_seconds',
      );
      starter.process.kill('SIGINT');
      await starter.ended;
    },
  );
});

describe('npm run dev', () => {
  it('serves what a changed source says, names one that does not compile, and leaves nothing of it behind', async () => {
    const { folder, remove } = copyProject();
    try {
      const command = [process.execPath, path.join(folder, 'tools/start/start.mjs'), '--watch'];
      const starter = installation.start({}, command);
      await installation.isUp(starter);
      const controller = path.join(folder, 'libs/web/pages/start-page.controller.ts');
      const source = fs.readFileSync(controller, 'utf8');

      fs.writeFileSync(controller, `${source}\nexport const unfinished = (;\n`);
      await eventually(starter.output, (text) => text.includes('start-page.controller.ts'));
      expect(starter.output()).not.toContain('restarting');

      fs.writeFileSync(controller, source.replace('status_url:', 'changed_url:'));
      await eventually(
        () => fetchStartPage().catch(() => ''),
        (text) => text.includes('changed_url'),
      );
      starter.process.kill('SIGINT');
      await starter.ended;

      fs.writeFileSync(controller, source);
      const restarted = installation.start({}, command.slice(0, -1));
      await installation.isUp(restarted);
      expect(await fetchStartPage()).not.toContain('changed_url');
      restarted.process.kill('SIGINT');
      await restarted.ended;
    } finally {
      remove();
    }
  });

  it('removes what was compiled from a source that is gone', async () => {
    const { folder, remove } = copyProject();
    try {
      const built = path.join(folder, 'dist/libs/platform/kernel/old.js');
      fs.writeFileSync(built, '');
      execFileSync('npm', ['run', 'build'], { cwd: folder });
      expect(fs.existsSync(built)).toBe(false);
      expect(fs.existsSync(path.join(folder, 'dist/libs/platform/kernel/clock.js'))).toBe(true);
    } finally {
      remove();
    }
  });
});

const fetchStartPage = async (): Promise<string> => {
  const headers = { accept: 'application/json' };
  const response = await fetch(`http://127.0.0.1:${installation.port}/`, { headers });
  return response.text();
};

/** Copies what a start reads into a folder of its own, with a link to the packages. */
function copyProject(): { folder: string; remove: () => void } {
  const folder = makeDataFolder();
  for (const name of fs.readdirSync(root)) {
    if (['node_modules', 'bench', 'test', '.git', '.data'].includes(name)) continue;
    fs.cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  }
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  return { folder, remove: () => fs.rmSync(folder, { recursive: true, force: true }) };
}

/** Finds the ports on which api and dispatcher say that they serve metrics. */
const findPorts = (text: string): string[] =>
  [...text.matchAll(/metrics.*on port (\d+)/g)].map(([, port = '']) => port);

/** Waits for the metrics: a dispatcher may take longer to start than the api. */
async function fetchMetrics(port: number): Promise<string> {
  const response = await eventually(
    () => fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null),
    (it) => it !== null,
  );
  return response?.text() ?? '';
}
