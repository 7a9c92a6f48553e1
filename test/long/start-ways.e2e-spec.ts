import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fs from 'node:fs';
import path from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { Installation, isThere } from '../support/services/installation.js';
import { freePort } from '../support/services/program.js';

/** Starts of one installation, each of which is stopped in another way. */
let installation: Installation;

beforeAll(async () => {
  installation = await Installation.create();
});
afterAll(() => installation.remove());

describe('npm start', () => {
  // As supervisors and scripts do it: the signal reaches npm and not its process group.
  it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
    'stops everything when npm alone gets %s',
    async (signal) => {
      const starter = installation.start({}, ['npm', 'start']);
      await installation.isUp(starter);
      const run = installation.readRun();
      const pids = [
        run.starter.pid,
        installation.pidOf('postgres'),
        installation.pidOf('api'),
        installation.pidOf('dispatcher'),
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
    'stops a start that is not up yet when npm alone gets %s',
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
  ])('runs on without the shell that started %s in the background', async (_name, command) => {
    const output = path.join(installation.dataDir, 'output');
    const shell = installation.start({}, [
      'sh',
      '-c',
      `${command} >"$1" 2>&1 &`,
      process.execPath,
      output,
    ]);
    expect(await shell.ended).toBe(0);
    await eventually(
      () => fs.readFileSync(output, 'utf8'),
      (text) => text.includes('Ctrl-C stops Inkpad.'),
    );
    const { api_token: token } = installation.readJson<{ api_token: string }>('local.json');
    expect(await installation.statusAt('127.0.0.1', token)).toBe(200);

    const { pid } = installation.readRun().starter;
    process.kill(pid, 'SIGINT');
    await eventually(
      () => isThere(pid),
      (there) => !there,
    );
  });

  it('starts while another instance starts at the same time', async () => {
    const other = await Installation.create();
    try {
      const starters = [installation, other].map((one) => one.start({ METRICS_PORT: '' }));
      await Promise.all(starters.map((starter) => installation.isUp(starter)));
      const outputs = await Promise.all(
        starters.map(({ output }) => eventually(output, (text) => portsIn(text).length === 2)),
      );
      expect(new Set(outputs.flatMap(portsIn)).size).toBe(4);
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
    ['another setting', 2, 1],
    ['no other setting', 1, 2],
  ])(
    'gives the dispatcher a installation.port for its metrics that %s names',
    async (_what, healthAt, dispatcherAt) => {
      const metrics = await freePort();
      const starter = installation.start({
        METRICS_PORT: `${metrics}`,
        HEALTH_PORT: `${metrics + healthAt}`,
      });
      await installation.isUp(starter);
      expect(await metricsAt(metrics)).toContain('inkpad_http_request_seconds');
      expect(await metricsAt(metrics + dispatcherAt)).not.toContain('inkpad_http_request_seconds');
      starter.process.kill('SIGINT');
      await starter.ended;
    },
  );
});

/** Where api and dispatcher say that their metrics are. */
const portsIn = (text: string): string[] =>
  [...text.matchAll(/metrics.*on port (\d+)/g)].map(([, port = '']) => port);

/** Once they are there: a dispatcher may take longer to start than the api. */
async function metricsAt(at: number): Promise<string> {
  const response = await eventually(
    () => fetch(`http://127.0.0.1:${at}/metrics`).catch(() => null),
    (it) => it !== null,
  );
  return response?.text() ?? '';
}
