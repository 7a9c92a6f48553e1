import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { isConnectionLoss } from '#platform/database/connection.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { ImportQueue } from '#loyalty/imports/import-queue.service.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, startSession, type LocalService } from '../support/services/service.js';

let service: LocalService;
let proxy: DatabaseProxy;
let pool: pg.Pool;
let queue: ImportQueue;

beforeAll(async () => {
  service = await startService();
  proxy = await DatabaseProxy.to(service.database.url);
  pool = new pg.Pool({ connectionString: proxy.url, max: 1 });
  pool.on('error', () => undefined);
  const session = service.app.get(ProcessSession, { strict: false });
  queue = new ImportQueue(pool, session);
  startSession(service);
  await eventually(
    () => session.leaseHolder,
    (holder) => holder !== null,
  );
  const store = await service.newStore();
  const file = 'first_name,email\nAnna,anna@example.com';
  await store.send<ImportJson>('POST', `${store.store}/imports`, file, {
    'content-type': 'text/csv',
  });
});
afterAll(async () => {
  await pool.end();
  await proxy.close();
  await service.stop();
});

const readLease = async () =>
  (
    await service.database.query<{ isLeased: boolean; dueAt: string; attempts: number }>(
      'select due_at > now() as "isLeased", due_at::text as "dueAt", attempts from imports',
    )
  ).rows[0];

/** Sends a statement that the server executes, and cuts the connection before its response. */
async function loseResponse(send: () => Promise<unknown>): Promise<void> {
  const before = await readLease();
  await pool.query('select 1');
  proxy.muteResponses();
  const error = send().catch((cause: unknown) => cause);
  const after = await eventually(readLease, (lease) => lease?.dueAt !== before?.dueAt);
  expect(after?.isLeased).toBe(true);
  proxy.switchTo(service.database.url);
  expect(isConnectionLoss(await error)).toBe(true);
}

it('a job whose claim lost its response is claimed again at once, and counts one attempt', async () => {
  await loseResponse(() => queue.claim(1));
  const [job] = await queue.claim(1);
  expect(job?.attempts).toBe(1);
  expect(await queue.claim(1)).toEqual([]);
  expect(await readLease()).toMatchObject({ isLeased: true, attempts: 1 });
});

it('a job whose extended lease lost its response is claimed again at once', async () => {
  await service.database.query('update imports set due_at = now(), process = null, attempts = 0');
  const [job] = await queue.claim(1);
  if (!job) throw new Error('the import is due');
  await loseResponse(() => queue.extendLease(job));
  await queue.release(job);
  expect((await readLease())?.isLeased).toBe(true);
  const [again] = await queue.claim(1);
  expect(again?.id).toBe(job.id);
  expect(again && (await queue.extendLease(again))).toBe(true);
  expect(await queue.claim(1)).toEqual([]);
});
