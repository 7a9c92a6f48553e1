import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { defineLocks, LOCKS } from './locks.js';

const LOCK_NUMBER = /\b727_?\d{3}\b/g;

const files = ['libs', 'apps', 'tools'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|sql)$/.test(file) && basename(file) !== 'locks.ts')
    .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') })),
);

const findNumbers = (extension: string) =>
  files
    .filter(({ file }) => file.endsWith(extension))
    .flatMap(({ text }) => [...new Set(text.match(LOCK_NUMBER))])
    .map((number) => Number(number.replace('_', '')));

it('the schema names only locks of the table, each in one file', () => {
  const numbers = findNumbers('.sql');
  expect(numbers.length).toBeGreaterThan(5);
  expect([...new Set(numbers)]).toEqual(numbers);
  expect(Object.values<number>(LOCKS)).toEqual(expect.arrayContaining(numbers));
});

it('code names a lock by its name in the table, which has no lock that nothing takes', () => {
  expect(findNumbers('.ts')).toEqual([]);
  const inSchema = new Set(findNumbers('.sql'));
  const isTaken = (name: string) => files.some(({ text }) => text.includes(`LOCKS.${name}`));
  const unused = Object.entries<number>(LOCKS).filter(
    ([name, number]) => !inSchema.has(number) && !isTaken(name),
  );
  expect(unused).toEqual([]);
});

it('a number that occurs twice does not compile', () => {
  // @ts-expect-error: the second one has the number of the first
  expect(defineLocks({ one: 727, other: 727 })).toEqual({ one: 727, other: 727 });
  expect(defineLocks({ one: 727, other: 728 })).toEqual({ one: 727, other: 728 });
});
