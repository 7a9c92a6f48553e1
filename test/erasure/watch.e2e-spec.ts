import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ErasureWatch } from '#platform/event-store/personal-keys/erasure-watch.service.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { eventually } from '../support/jest/eventually.js';

let database: TestDatabase;
let line: DatabaseProxy;
let pool: Pool;
let link: ProcessLink;
let keys: PersonalKeys;
let watch: ErasureWatch;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  line = await DatabaseProxy.to(database.url);
  const config = testConfig(line.url);
  pool = new Pool({ connectionString: line.url });
  pool.on('error', () => undefined);
  link = new ProcessLink(config, 'test');
  keys = new PersonalKeys(pool, new MasterKeys(pool, config), customerSubjects);
  watch = new ErasureWatch(pool, keys, link);
});
afterEach(async () => {
  await watch.onModuleDestroy();
  await link.onApplicationShutdown();
  await pool.end();
  await line.close();
});

const isTrusted = () => keys.erasures.isTrusted(performance.now());
const readSeenAt = async () =>
  (await database.query<{ at: string }>('select seen_at::text as at from erasure_watchers')).rows[0]
    ?.at;

// A crash of the server takes commits with it that did not wait for the disk. Erasures then do not wait for the process.
it('a process trusts nothing that it has read once its link is lost', async () => {
  await watch.onModuleInit();
  expect(isTrusted()).toBe(true);
  let hasLost = false;
  link.onLost(() => (hasLost = true));
  await line.cut();
  await database.query('delete from erasure_watchers');
  await eventually(
    () => hasLost,
    (isLost) => isLost,
  );
  expect(isTrusted()).toBe(false);
  await line.mend();
  await eventually(isTrusted, (isSo) => isSo);
  expect(await readSeenAt()).toBeDefined();
});

it('a process is trusted although what its link reads is locked by others', async () => {
  await database.query('create table locked (); grant select on locked to public');
  link.join({ columns: '(select count(*) from locked) as locked', receive: () => undefined });
  await database.query('begin; lock table locked');
  try {
    await watch.onModuleInit();
    const seenAt = await readSeenAt();
    expect([seenAt, isTrusted()]).toEqual([expect.any(String), true]);
    await eventually(readSeenAt, (at) => at !== seenAt);
  } finally {
    await database.query('rollback');
  }
});
