import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { VERSION } from './version.js';

it('VERSION is the version in package.json', () => {
  const file = new URL('../../../package.json', import.meta.url);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ version: VERSION });
});
