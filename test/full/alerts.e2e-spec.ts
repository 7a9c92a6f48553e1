import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CORE_SCHEMA, load } from 'js-yaml';
import { eventually } from '../support/jest/eventually.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';

type Rules = { groups: { rules: { alert: string; expr: string }[] }[] };

const FILE = 'deploy/alerts.yml';

function promtool(...args: string[]) {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

describe('the alert rules', () => {
  let database: TestDatabase;
  const programs: Program[] = [];
  const metricTexts: string[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    for (const program of ['api', 'dispatcher']) {
      const port = await findFreePort();
      const environment = createTestEnvironment(database.url, { METRICS_PORT: String(port) });
      programs.push(startProgram(`dist/apps/${program}/src/main.js`, environment));
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

  it('fire when a process is missing or not ready, and not otherwise', () => {
    const { status, output } = promtool('test', 'rules', 'test/full/alerts/rules-test.yml');
    expect(output).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('use only metrics that the api or the dispatcher exports', () => {
    const rules = load(readFileSync(FILE, 'utf8'), { schema: CORE_SCHEMA }) as Rules;
    const exprs = rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr));
    const usedNames = new Set(exprs.flatMap((expr) => expr.match(/\binkpad_\w+/g) ?? []));
    const metricNames = new Set(
      metricTexts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)),
    );
    const unknown = [...usedNames].filter(
      (name) => !metricNames.has(name) && !metricNames.has(name.replace(/_(bucket|count)$/, '')),
    );
    expect(usedNames.size).toBeGreaterThan(9);
    expect(unknown).toEqual([]);
  });
});
