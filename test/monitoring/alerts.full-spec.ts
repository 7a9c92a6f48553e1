import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CORE_SCHEMA, load } from 'js-yaml';
import { appleCertificates } from '../support/emulators/apple/certificates.mjs';
import { eventually } from '../support/jest/eventually.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';

type Rules = {
  groups: { rules: { alert: string; expr: string; annotations: { runbook_url: string } }[] }[];
};
type Tests = { tests: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }[] };

type Dashboard = {
  panels: { id: number; title: string; targets?: { expr: string }[] }[];
};

const FILE = 'deploy/alerts.yml';
const TESTS = 'test/monitoring/alerts/rules-test.yml';
/** What Grafana replaces before it asks Prometheus. */
const GRAFANA_VARIABLES = { $job: 'inkpad', $__rate_interval: '2m' };

function promtool(...args: string[]) {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

/** Reads the queries of the dashboard by the title of their panel. */
function readDashboard(): { title: string; expr: string }[] {
  const { panels } = JSON.parse(readFileSync('deploy/grafana/dashboard.json', 'utf8')) as Dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expr: Object.entries(GRAFANA_VARIABLES).reduce(
        (query, [name, value]) => query.replaceAll(name, value),
        expr,
      ),
    })),
  );
}

/** Reads the query of Prometheus Adapter, with the labels that it would insert. */
function readExternalMetric(): string {
  const { rules } = load(readFileSync('deploy/prometheus-adapter.yml', 'utf8')) as {
    rules: { external: { seriesQuery: string; metricsQuery: string }[] };
  };
  expect(rules.external).toHaveLength(1);
  const [{ seriesQuery = '', metricsQuery = '' } = {}] = rules.external;
  return `${metricsQuery.replaceAll('<<.LabelMatchers>>', 'namespace="cards"')} or ${seriesQuery}`;
}

describe('the alert rules and the dashboard', () => {
  let database: TestDatabase;
  const programs: Program[] = [];
  const metricTexts: string[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    // For the metric of its certificate.
    const apple = appleCertificates();
    const wallet = {
      APPLE_PASS_CERT: apple.pass.certificate,
      APPLE_PASS_KEY: apple.pass.key,
      APPLE_WWDR_CERT: apple.wwdr,
    };
    for (const program of ['api', 'dispatcher']) {
      const port = await findFreePort();
      const environment = createTestEnvironment(database.url, {
        ...wallet,
        METRICS_PORT: String(port),
      });
      programs.push(startProgram(`dist/apps/${program}/main.js`, environment));
      const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      metricTexts.push(
        await eventually(
          // It may not listen yet.
          () => read().catch(() => ''),
          (text) => /^inkpad_ready 1$/m.test(text),
        ),
      );
    }
  });
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.kill('SIGTERM')));
    await database.close();
  });

  it('pass promtool check rules', () => {
    const { status, output } = promtool('check', 'rules', FILE);
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('fire for their faults, and not otherwise', () => {
    const { status, output } = promtool('test', 'rules', TESTS);
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('are each fired by a test, and explained in the runbook', () => {
    const { groups } = load(readFileSync(FILE, 'utf8'), { schema: CORE_SCHEMA }) as Rules;
    const rules = groups.flatMap(({ rules: own }) => own);
    const { tests } = load(readFileSync(TESTS, 'utf8'), { schema: CORE_SCHEMA }) as Tests;
    const fired = tests
      .flatMap(({ alert_rule_test: checks }) => checks)
      .filter(({ exp_alerts: expected }) => expected.length > 0);
    const names = rules.map(({ alert }) => alert);
    expect([...new Set(fired.map(({ alertname }) => alertname))].sort()).toEqual([...names].sort());
    const headings = [
      ...readFileSync('docs/operating/incidents.md', 'utf8').matchAll(/^## (\w+)$/gm),
    ];
    expect(headings.map(([, name]) => name).sort()).toEqual([...names].sort());
    for (const { alert, annotations } of rules) {
      const section = `docs/operating/incidents.md#${alert.toLowerCase()}`;
      expect(annotations.runbook_url).toBe(`{{ $externalLabels.runbooks }}${section}`);
    }
  });

  it('have queries that Prometheus can read', () => {
    const exprs = [...readDashboard().map(({ expr }) => expr), readExternalMetric()];
    const rules = exprs.map((expr, i) => ({ record: `panel:${i}`, expr }));
    const file = join(mkdtempSync(join(tmpdir(), 'inkpad-dashboard-')), 'rules.json');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { status, output } = promtool('check', 'rules', file);
    expect(output).toContain(`SUCCESS: ${exprs.length} rules`);
    expect(status).toBe(0);
  });

  it('use only metrics that the api or the dispatcher exports', () => {
    const alerts = load(readFileSync(FILE, 'utf8'), { schema: CORE_SCHEMA }) as Rules;
    const exprs = [
      ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
      ...readDashboard().map(({ expr }) => expr),
      readExternalMetric(),
    ];
    const usedNames = new Set(
      exprs.flatMap((expr) => expr.match(/\b(?:inkpad|process|nodejs)_\w+/g) ?? []),
    );
    const metricNames = new Set(
      metricTexts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)),
    );
    const unknown = [...usedNames].filter(
      (name) => !metricNames.has(name) && !metricNames.has(name.replace(/_(bucket|count)$/, '')),
    );
    expect(usedNames.size).toBeGreaterThan(30);
    expect(unknown).toEqual([]);
  });
});
