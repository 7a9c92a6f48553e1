import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { migrate } from '#database/data-source.js';
import { testConfig, testDatabase, type TestDatabase } from './support/database.js';
import { startService, type Service } from './support/service.js';
import { enrol } from './support/story.js';

const role = `app_${randomBytes(4).toString('hex')}`;

let database: TestDatabase;
let service: Service;
let url: string;

beforeAll(async () => {
  database = await testDatabase();
  await database.query(`create role ${role} login password 'app'`);
  const own = new URL(database.url);
  own.username = role;
  own.password = 'app';
  url = own.href;
  await migrate(testConfig(url, { DATABASE_MIGRATION_URL: database.url }));
  service = await startService({ DATABASE_URL: url }, database);
});
afterAll(async () => {
  await service.app.close();
  await database.query(`drop owned by ${role}; drop role ${role}`);
  await database.drop();
});

describe('a role of its own that owns no table', () => {
  it('is enough for the service', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store, { rewards: [1] });
    expect((await store.post(`${path}/stamp`, { stamps: 1, external_ref: 'r' })).status).toBe(200);
  });

  it.each([
    'update es.events set type = type',
    'delete from es.events',
    'truncate es.events',
    'alter table es.events disable trigger all',
    'drop table es.events',
  ])('is not allowed: %s', async (statement) => {
    const client = new pg.Client(url);
    await client.connect();
    await expect(client.query(statement)).rejects.toThrow(/permission denied|must be owner/);
    await client.end();
  });
});
