import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const RUN_JEST = path.resolve('tools/test/run-jest.mjs');
const REPORTER = path.resolve('test/support/jest/reporter.cjs');

/** Fails as often as `failures` says, by what it has written beside itself. */
const testFile = (failures: number) => `
  const { existsSync, readFileSync, writeFileSync } = require('node:fs');
  test('works', () => {});
  test('works in the end', () => {
    const runs = existsSync(__filename + '.runs') ? Number(readFileSync(__filename + '.runs')) : 0;
    writeFileSync(__filename + '.runs', String(runs + 1));
    expect(runs).toBeGreaterThanOrEqual(${failures});
  });`;

/** Runs files that fail as often as these numbers say. @param hasResults whether it is a CI script */
function run(failures: number[], hasResults = true) {
  const folder = mkdtempSync(path.join(tmpdir(), 'run-jest-'));
  const results = path.join(folder, 'results');
  mkdirSync(results);
  const project = { displayName: 'unit', testMatch: ['<rootDir>/*.test.cjs'] };
  const config = { reporters: [REPORTER], projects: [project] };
  writeFileSync(path.join(folder, 'jest.config.json'), JSON.stringify(config));
  for (const [i, count] of failures.entries())
    writeFileSync(path.join(folder, `file-${i}.test.cjs`), testFile(count));
  const env = { ...process.env, INKPAD_TEST_RESULTS: hasResults ? results : '' };
  const { status } = spawnSync(process.execPath, [RUN_JEST, '--selectProjects=unit'], {
    cwd: folder,
    env,
  });
  const read = (name: string) => {
    const file = path.join(results, name);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const counts = read('counts').trim().split('\n').filter(Boolean);
  const add = (column: number) =>
    counts.reduce((sum, line) => sum + Number(line.split(' ')[column]), 0);
  return { status, passed: add(0), failed: add(1), flaky: read('flaky') };
}

describe('a run of Jest by the CI script', () => {
  it('runs a file that failed once more, and lists it with its first error', () => {
    const { status, passed, failed, flaky } = run([0, 1]);
    expect([status, passed, failed]).toEqual([0, 4, 0]);
    expect(flaky).toMatch(/^file-1[.]test[.]cjs\n {2}● works in the end\n/);
    expect(flaky).toContain('Expected: >= 1');
  });

  it('fails by a file that fails twice', () => {
    const { status, failed, flaky } = run([0, 2]);
    expect([status, flaky]).toEqual([1, '']);
    expect(failed).toBeGreaterThan(0);
  });

  it('fails by more than three files, without running them again', () => {
    const { status, failed, flaky } = run([1, 1, 1, 1]);
    expect([status, failed, flaky]).toEqual([1, 4, '']);
  });

  it('runs nothing again elsewhere', () => {
    expect(run([1], false).status).toBe(1);
  });
});
