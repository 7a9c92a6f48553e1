import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { load } from 'js-yaml';
import { SECRET_SETTINGS } from '#configuration/secret-files.js';
import { Settings, SETTINGS } from '#configuration/settings.js';
import { RUNTIME_VARIABLES } from '../generate/env-example.js';

type Step = { uses?: string; run?: string; with?: Record<string, unknown> };
type Job = {
  permissions?: Record<string, string>;
  uses?: string;
  container?: string;
  steps?: Step[];
};
type Workflow = { permissions: Record<string, string>; jobs: Record<string, Job> };

const read = (file: string) => readFileSync(file, 'utf8');

describe('deploy/systemd', () => {
  const api = read('deploy/systemd/inkpad-api.service');

  it('differs between the processes in their names only', () => {
    const dispatcher = read('deploy/systemd/inkpad-dispatcher.service');
    expect(dispatcher).toBe(
      api.replace('Inkpad api', 'Inkpad dispatcher').replace('apps/api/', 'apps/dispatcher/'),
    );
  });

  it('starts a process again for as long as its database is down, but not with an invalid setting', () => {
    expect(api).toMatch(/^StartLimitIntervalSec=0$/m);
    expect(api).toMatch(/^Restart=always$/m);
    expect(api).toMatch(/^RestartSec=[1-9]\d*$/m);
    expect(api).toMatch(/^RestartPreventExitStatus=78$/m);
  });

  it('leaves a process more than the 15 s that it needs to stop', () => {
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(api)?.[1])).toBeGreaterThan(15);
  });
});

describe('defaults of settings', () => {
  const defaults: Record<string, unknown> = { ...new Settings() };

  it.each(['apps/cli/start-settings.mjs', 'deploy/health.mjs'])(
    'are the declared ones in %s, which runs without a build',
    (file) => {
      const repeated = [...read(file).matchAll(/env\.([A-Z_]+) \|\| (?:'([^']*)'|(\d+))/g)];
      expect(repeated.length).toBeGreaterThan(0);
      for (const [, name = '', text, number] of repeated) {
        expect([name, text ?? number]).toEqual([name, String(defaults[name])]);
      }
    },
  );
});

describe('the Helm chart', () => {
  it('takes copies of the alerts and the dashboard, as node deploy/generate.mjs writes them', () => {
    const files = 'deploy/helm/inkpad/files';
    expect(read(`${files}/alerts.yml`)).toBe(read('deploy/alerts.yml'));
    expect(read(`${files}/dashboard.json`)).toBe(read('deploy/grafana/dashboard.json'));
  });

  it('accepts every setting that is no secret, except those that the image or the chart sets', () => {
    const schema = JSON.parse(read('deploy/helm/inkpad/values.schema.json')) as {
      properties: { settings: { properties: object } };
    };
    const secrets: readonly string[] = SECRET_SETTINGS;
    const accepted = Object.keys(schema.properties.settings.properties);
    const variables = [...SETTINGS, ...Object.keys(RUNTIME_VARIABLES)];
    const missing = variables.filter((name) => !secrets.includes(name) && !accepted.includes(name));
    expect(missing.sort()).toEqual([
      'CHECKPOINT_DIR',
      'DATA_DIR',
      'HEALTH_PORT',
      'METRICS_PORT',
      'NODE_ENV',
      'PORT',
      'WEBHOOK_ALLOW_INSECURE_TARGETS',
      'WEBHOOK_TIME_SCALE',
      'WEB_PUSH_ALLOW_INSECURE_ENDPOINTS',
    ]);
    expect(accepted.filter((name) => !variables.includes(name) || secrets.includes(name))).toEqual(
      [],
    );
  });
});

describe('.github/workflows', () => {
  const folder = '.github/workflows';
  const workflows = readdirSync(folder).map(
    (name) => [name, load(read(join(folder, name))) as Workflow] as const,
  );
  const jobs = workflows.flatMap(([file, workflow]) =>
    Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${file} ${name}`, job })),
  );

  it('pins each action to a commit, with its version behind', () => {
    const uses = readdirSync(folder)
      .flatMap((name) => read(join(folder, name)).match(/^.*\buses: .*$/gm) ?? [])
      .map((line) => line.replace(/^.*uses: /, ''));
    expect(uses.length).toBeGreaterThan(10);
    const movable = uses.filter(
      (use) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(use) && !use.startsWith('./'),
    );
    expect(movable).toEqual([]);
    // One commit of each action, so that all jobs run the same.
    const commits = new Map(uses.map((use) => [use.replace(/@.*/, ''), use]));
    expect(uses.filter((use) => commits.get(use.replace(/@.*/, '')) !== use)).toEqual([]);
  });

  it('may write only where a release is published', () => {
    expect(workflows.map(([name, { permissions }]) => [name, permissions])).toEqual([
      ['ci.yml', { contents: 'read' }],
      ['release.yml', {}],
    ]);
    const writers = jobs.flatMap(({ name, job: { permissions = {} } }) => {
      const written = Object.keys(permissions).filter((scope) => permissions[scope] === 'write');
      return written.length > 0 ? [[name, ...written]] : [];
    });
    expect(writers).toEqual([
      ['release.yml image', 'packages', 'id-token', 'attestations'],
      ['release.yml npm', 'id-token'],
      ['release.yml pypi', 'id-token'],
      ['release.yml release', 'contents'],
    ]);
  });

  it('keeps no credentials in a checkout, and puts no text of others into a script', () => {
    const steps = jobs.flatMap(({ job }) => job.steps ?? []);
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    for (const { with: options } of checkouts) {
      expect(options).toMatchObject({ 'persist-credentials': false });
    }
    expect(steps.filter(({ run }) => run?.includes('${{'))).toEqual([]);
  });

  it('runs what there is, on the Node.js of .nvmrc', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: object };
    const commands = jobs.flatMap(({ job }) => job.steps?.flatMap(({ run = [] }) => run) ?? []);
    const names = commands.flatMap((run) => run.match(/(?<=npm run )[a-z:]+/g) ?? []);
    expect(names.filter((name) => !(name in scripts))).toEqual([]);
    const image = `node:${read('.nvmrc').trim()}-bookworm`;
    expect(jobs.flatMap(({ job }) => job.container ?? [])).toEqual([image]);
    expect(JSON.parse(read('.devcontainer/devcontainer.json'))).toMatchObject({ image });
  });
});

describe('tools/generate/release-notes.mjs', () => {
  const script = resolve('tools/generate/release-notes.mjs');
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const run = (argument: string, cwd = '.') =>
    spawnSync(process.execPath, [script, argument], { cwd, encoding: 'utf8' });

  it('refuses a version that the packages do not have', () => {
    const { status, stderr } = run('99.0.0');
    expect(status).toBe(1);
    expect(stderr).toContain(`package.json has version ${version}, not 99.0.0`);
    expect(stderr).toContain('pyproject.toml has version');
    expect(stderr).toContain('CHANGELOG.md has no heading such as "## 99.0.0, 2026-01-31"');
  });

  it('prints what the changelog says about the version', () => {
    const folder = mkdtempSync(join(tmpdir(), 'inkpad-release-'));
    for (const file of [
      'package.json',
      'clients/typescript/package.json',
      'clients/python/pyproject.toml',
      'deploy/helm/inkpad/Chart.yaml',
    ]) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), read(file));
    }
    const write = (heading: string) =>
      writeFileSync(
        join(folder, 'CHANGELOG.md'),
        `# Changelog\n\n${heading}\n\n### Stamps\n\n- More.\n\n## 0.0.1, 2020-01-01\n\n- Old.\n`,
      );
    write(`## ${version}, not released yet`);
    expect(run(version, folder)).toMatchObject({ status: 1, stdout: '' });
    write(`## ${version}, 2026-01-31`);
    expect(run(version, folder)).toMatchObject({
      status: 0,
      stdout: '### Stamps\n\n- More.\n',
      stderr: '',
    });
  });
});
