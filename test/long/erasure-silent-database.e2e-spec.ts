import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ErasureWatch } from '#event-store/personal-keys/erasure-watch.service.js';
import { testDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const SLOW = 120_000;

let database: TestDatabase;
let line: DatabaseProxy;
let service: LocalService;

beforeEach(async () => {
  database = await testDatabase();
  line = await DatabaseProxy.to(database.url);
  service = await startService({ DATABASE_URL: line.url }, database);
}, SLOW);
afterEach(async () => {
  await service?.stop();
  await line?.close();
}, SLOW);

/** Erases somebody, and loses the database right after the commit. @returns how long the response took */
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

const noticesIn = async () => (await database.query('select id from erasure_notices')).rows.length;

describe('an erasure whose database goes away right after the commit', () => {
  it.each([
    ['says nothing any more', () => line.mute(), () => line.unmute()],
    ['answers nothing any more', () => line.muteResponses(), () => line.unmute()],
    ['is gone', () => line.cut(), () => line.mend()],
  ])(
    'is answered after 5 seconds, and announced when it is back (it %s)',
    async (_what, lose, restore) => {
      const milliseconds = await eraseAndLose(lose);
      expect([milliseconds > 4_000, milliseconds < 6_000]).toEqual([true, true]);
      await restore();
      await eventually(noticesIn, (count) => count > 0);
    },
    SLOW,
  );

  it(
    'is answered as soon as the database is back',
    async () => {
      const milliseconds = await eraseAndLose(async () => {
        await line.cut();
        await line.mend();
      });
      expect(milliseconds).toBeLessThan(4_500);
      expect(await noticesIn()).toBeGreaterThan(0);
    },
    SLOW,
  );
});
