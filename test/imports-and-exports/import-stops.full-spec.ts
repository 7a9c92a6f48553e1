import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';

const ROW_COUNT = 2_000;
/** Every fifth row has an address that cannot be read. */
const FAILED_COUNT = ROW_COUNT / 5;
/** Before a lease of 60 s would have run out, with the start of a dispatcher on a slow machine. */
const SOON_MS = 45_000;

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

function startDispatcher(): Program {
  const dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, service.environment),
  );
  service.onStop(() => dispatcher.kill('SIGKILL'));
  return dispatcher;
}

it('an import goes on at once after SIGTERM and SIGKILL end its dispatcher, and applies each row once', async () => {
  const store = await service.newStore();
  const lines = Array.from({ length: ROW_COUNT }, (_, i) => {
    const email = i % 5 ? `p${i}@example.com` : 'no';
    return `P${i},${email}`;
  });
  const { body: uploaded } = await store.send<ImportJson>(
    'POST',
    `${store.store}/imports`,
    ['first_name,email', ...lines].join('\n'),
    { 'content-type': 'text/csv' },
  );
  const path = `${store.store}/imports/${uploaded.id}`;
  const waitFor = async (isReached: (current: ImportJson) => boolean, withinMs?: number) =>
    (
      await eventually(
        () => store.get<ImportJson>(path),
        ({ body }) => isReached(body),
        withinMs,
      )
    ).body;

  let dispatcher = startDispatcher();
  await waitFor(({ created }) => created > 0);
  await dispatcher.kill('SIGTERM');
  expect(await dispatcher.exitCode).toBe(0);
  const { body: stopped } = await store.get<ImportJson>(path);
  expect(stopped.state).toBe('running');
  expect(stopped.rows_done).toBeLessThan(ROW_COUNT);

  dispatcher = startDispatcher();
  await waitFor(({ created }) => created > stopped.created, SOON_MS);
  await dispatcher.kill('SIGKILL');
  const { body: killed } = await store.get<ImportJson>(path);
  expect(killed.state).toBe('running');

  startDispatcher();
  await waitFor(({ created }) => created > killed.created, SOON_MS);
  const createdCount = ROW_COUNT - FAILED_COUNT;
  expect(await waitFor(({ state }) => state === 'done')).toMatchObject({
    rows_total: ROW_COUNT,
    rows_done: ROW_COUNT,
    created: createdCount,
    updated: 0,
    unchanged: 0,
    failed: FAILED_COUNT,
  });
  const { body: list } = await store.get<CustomerListJson>(`${store.store}/customers?items=1`);
  expect(list.pagination.count).toBe(createdCount);
  const { rows: created } = await service.database.query<object>(
    `select count(*)::int as count, count(distinct meta ->> 'causationId')::int as rows from es.events
     where account_id = $1 and type = 'CustomerCreated'`,
    [store.accountId],
  );
  expect(created).toEqual([{ count: createdCount, rows: createdCount }]);
  const { rows: states } = await service.database.query<object>(
    'select state, count(*)::int as count from import_rows where import_id = $1 group by state order by state',
    [uploaded.id],
  );
  expect(states).toEqual([
    { state: 'created', count: createdCount },
    { state: 'failed', count: FAILED_COUNT },
  ]);
}, 300_000);
