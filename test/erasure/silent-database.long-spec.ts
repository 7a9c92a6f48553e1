import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ErasureWatch } from '#platform/event-store/personal-keys/erasure-watch.service.js';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const SLOW = 300_000;

let database: TestDatabase;
let line: DatabaseProxy;
let service: LocalService;

beforeEach(async () => {
  database = await createTestDatabase();
  line = await DatabaseProxy.to(database.url);
  service = await startService({ DATABASE_URL: line.url }, database);
}, SLOW);
afterEach(async () => {
  await service?.stop();
  await line?.close();
}, SLOW);

/** Erases a customer, and loses the database right after the commit. @returns how long the response took */
async function eraseAndLose(lose: () => unknown): Promise<number> {
  const store = await service.newStore();
  const { customer } = await enrol(store);
  const watch = service.app.get(ErasureWatch);
  const forgetEverywhere = watch.forgetEverywhere.bind(watch);
  let lostAt = 0;
  jest.spyOn(watch, 'forgetEverywhere').mockImplementation(async (ids) => {
    lostAt = performance.now();
    await lose();
    await forgetEverywhere(ids);
  });
  const { status } = await store.post(`${store.store}/customers/${customer.id}/erase`);
  expect(status).toBe(204);
  return performance.now() - lostAt;
}

const countNotices = async () =>
  (await database.query('select id from erasure_announcements')).rows.length;

describe('an erasure whose database fails right after the commit', () => {
  it.each([
    ['requests and responses are lost', () => line.mute(), () => line.unmute()],
    ['responses are lost', () => line.muteResponses(), () => line.unmute()],
    ['connections are refused', () => line.cut(), () => line.mend()],
  ])(
    'gets its response after 5 seconds, and its notice is written when the database is back (%s)',
    async (_what, lose, restore) => {
      expect(await eraseAndLose(lose)).toBeGreaterThan(4_000);
      await restore();
      await eventually(countNotices, (count) => count > 0);
    },
    SLOW,
  );

  it(
    'gets its response and its notice as soon as the database is back',
    async () => {
      const durationMs = await eraseAndLose(async () => {
        await line.cut();
        await line.mend();
      });
      // Where connecting takes longer than the erasure waits, the notice follows.
      expect(durationMs > 5_000 || (await countNotices()) > 0).toBe(true);
      await eventually(countNotices, (count) => count > 0);
    },
    SLOW,
  );
});
