import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

it('sets the storage of columns apart, since PostgreSQL 15 does not know it in create table', () => {
  const migrations = readdirSync('apps/schema', { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.spec)\.(sql|ts)$/.test(name))
    .map((name) => readFileSync(join('apps/schema', name), 'utf8'));
  const storages = migrations.flatMap((text) => text.match(/(set )?\bstorage external\b/g) ?? []);
  expect(storages.length).toBeGreaterThanOrEqual(4);
  expect([...new Set(storages)]).toEqual(['set storage external']);
});
