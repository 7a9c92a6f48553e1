import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { createDatabaseClient, type DatabaseClient } from '#platform/database/database-client.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';

const STATEMENTS = 500;
const RESULT_BYTES = 20_000;

let database: TestDatabase;
let client: DatabaseClient;

beforeAll(async () => {
  database = await createTestDatabase();
  client = createDatabaseClient(database.url, 'test');
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.close();
});

it('a DatabaseClient lets the minor garbage collection free most results', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as (options: { type: 'major' | 'minor' }) => void;
  const query = async () => {
    const { rows } = await client.query<{ text: string }>({
      name: 'repeat',
      text: `select repeat('x', $1) as text`,
      values: [RESULT_BYTES],
    });
    return rows[0]?.text.length;
  };
  expect(await query()).toBe(RESULT_BYTES);
  collectGarbage({ type: 'major' });
  const before = memoryUsage().heapUsed;
  for (let queryCount = 0; queryCount < STATEMENTS; queryCount++) {
    await query();
    if (queryCount % 50 === 0) collectGarbage({ type: 'minor' });
  }
  // Objects that survive two collections are promoted.
  for (let i = 0; i < 3; i++) collectGarbage({ type: 'minor' });
  const growth = memoryUsage().heapUsed - before;
  expect(growth).toBeLessThan((STATEMENTS * RESULT_BYTES) / 4);
});

it('the error of a statement has the caller in its stack', async () => {
  const failure = await client.query('select nothing').catch((error: Error) => error.stack);
  expect(failure).toMatch(/column "nothing" does not exist[^]*client\.e2e-spec/);
});

it('a DatabaseClient passes callbacks and pg.Query on to the driver', async () => {
  const rows = await new Promise((resolve, reject) => {
    client.query('select 1 as one', (error: Error | null, result) => {
      if (error) reject(error);
      else resolve(result.rows);
    });
  });
  expect(rows).toEqual([{ one: 1 }]);
  const query = client.query(new pg.Query('select 2 as two'));
  const row = await new Promise((resolve) => query.on('row', resolve));
  expect(row).toEqual({ two: 2 });
});

it('a bigint is a number on every connection, in lists as well', async () => {
  const text =
    'select 9007199254740991::bigint as one, array[9007199254740991::bigint, null] as list';
  const expected = [{ one: Number.MAX_SAFE_INTEGER, list: [Number.MAX_SAFE_INTEGER, null] }];
  expect((await client.query(text)).rows).toEqual(expected);
  const source = await createDataSource(testConfig(database.url), 'test').initialize();
  try {
    expect((await getPool(source).query(text)).rows).toEqual(expected);
    expect(await source.manager.query(text)).toEqual(expected);
  } finally {
    await source.destroy();
  }
});
