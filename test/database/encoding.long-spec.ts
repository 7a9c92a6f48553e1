import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { databaseIn, nameIn } from '../support/database/database-encodings.js';
import { runNode } from '../support/services/program.js';

let database: TestDatabase;
let url: string;

beforeAll(async () => {
  database = await createTestDatabase();
  url = await databaseIn('LATIN1', database);
});
afterAll(() => database.close());

it.each([
  ['the api', 78, ['dist/apps/api/main.js']],
  ['the dispatcher', 78, ['dist/apps/dispatcher/main.js']],
  ['migrate', 1, ['dist/apps/cli/migrate.js']],
  ['setup', 1, ['dist/apps/cli/setup.js']],
  ['the command line', 1, ['dist/apps/cli/cli.js', 'store:list']],
  ['verify', 1, ['dist/apps/cli/verify.js']],
  ['rebuild', 1, ['dist/apps/cli/rebuild.js']],
  ['backup', 1, ['dist/apps/cli/backup.js', '/tmp/inkpad-no-backup']],
])(
  '%s refuses a database whose encoding is LATIN1, in one sentence that says what to do',
  (_who, code, args) => {
    const { host } = new URL(url);
    const { status, output } = runNode(args, createTestEnvironment(url));
    expect([status, output.trimEnd().split('\n').at(-1)]).toEqual([
      code,
      `The database ${nameIn(url)} at ${host} has the encoding LATIN1, which does not hold every text: create one with create database … encoding 'UTF8' template template0, and name it in DATABASE_URL.`,
    ]);
    expect(output).not.toContain('    at ');
  },
);
