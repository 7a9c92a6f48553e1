import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { listSuitesOf, PARTS, readSkippedParts } from './parts.mjs';

const names = Object.keys(PARTS) as (keyof typeof PARTS)[];

describe('the parts of the tests', () => {
  it.each(names)('%s has files, and its packages are in CONTRIBUTING.md', (name) => {
    const files = listSuitesOf(name);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => file.endsWith('.e2e-spec.ts'))).toEqual([]);
    const row = readFileSync('CONTRIBUTING.md', 'utf8').match(`\\| \`${name}\` +\\|.*`)?.[0] ?? '';
    const packages = PARTS[name].needs.flatMap(
      ({ debianPackage }) => debianPackage?.split(' ') ?? [],
    );
    expect([...row.matchAll(/`([^`]+)`/g)].map(([, text]) => text).slice(1)).toEqual(
      name === 'chart' ? ['.ci/run'] : packages,
    );
  });

  it('are skipped by their names alone', () => {
    expect(readSkippedParts({ SKIP_PARTS: ' browser  redis ' })).toEqual(['browser', 'redis']);
    expect(readSkippedParts({})).toEqual([]);
    expect(() => readSkippedParts({ SKIP_PARTS: 'firefox' })).toThrow('none of browser, ');
  });

  it('that cannot run are named with what they need', () => {
    const check = (skipped: string) =>
      spawnSync(process.execPath, ['tools/test/parts.mjs'], {
        encoding: 'utf8',
        env: { PATH: '/nowhere', SKIP_PARTS: skipped },
      });
    const { status, stderr } = check('');
    expect(status).toBe(1);
    expect(stderr).toContain(
      'The part redis cannot run here: run apt-get install redis-server, or set SKIP_PARTS=redis.',
    );
    expect(check(names.join(' '))).toMatchObject({ status: 0, stderr: '' });
  });
});
