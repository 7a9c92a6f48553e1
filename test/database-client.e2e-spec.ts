import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { encodeByteaArray } from '#database/bytea-array.js';
import { createDatabaseClient, type DatabaseClient } from '#database/database-client.js';
import { testDatabase, type TestDatabase } from './support/database/database.js';

let database: TestDatabase;
let client: DatabaseClient;

beforeAll(async () => {
  database = await testDatabase();
  client = createDatabaseClient(database.url, 'test');
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.close();
});

it.each([
  ['an empty array', []],
  ['an empty item', [Buffer.alloc(0)]],
  ['items of any bytes, and null', [Buffer.from([0, 92, 255]), null, randomBytes(70_000)]],
])('an encoded bytea array is received unchanged: %s', async (_what, items) => {
  const { rows } = await client.query<{ items: unknown; count: number }>(
    'select $1::bytea[] as items, cardinality($1::bytea[]) as count',
    [encodeByteaArray(items)],
  );
  expect(rows).toEqual([{ items, count: items.length }]);
});

it('the error of a statement has the caller in its stack', async () => {
  const failure = await client.query('select nothing').catch((error: Error) => error.stack);
  expect(failure).toMatch(/column "nothing" does not exist[^]*database-client\.e2e-spec/);
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
