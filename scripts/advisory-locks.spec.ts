import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Numbers of advisory locks, as SQL and TypeScript write them. */
const LOCK = /\b727_?\d{3}\b/g;

it('no two files take an advisory lock of the same number', () => {
  const files = ['libs', 'apps'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|sql)$/.test(file))
      .map((file) => join(folder, file)),
  );
  const filesByLock = new Map<string, string[]>();
  for (const file of files) {
    const locks = readFileSync(file, 'utf8').match(LOCK) ?? [];
    for (const lock of new Set(locks.map((text) => text.replace('_', '')))) {
      filesByLock.set(lock, [...(filesByLock.get(lock) ?? []), file]);
    }
  }
  expect(filesByLock.size).toBeGreaterThan(10);
  expect([...filesByLock.values()].filter((holders) => holders.length > 1)).toEqual([]);
});
