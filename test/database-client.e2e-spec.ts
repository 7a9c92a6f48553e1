import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
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
