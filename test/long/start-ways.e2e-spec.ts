import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fs from 'node:fs';
import path from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { Installation, isThere } from '../support/services/installation.js';
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
    ['Node.js', 'nohup "$0" scripts/start.mjs'],
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
    const other = await Installation.create();
    try {
      const starters = [installation, other].map((one) => one.start({ METRICS_PORT: '' }));
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
      await other.remove();
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
