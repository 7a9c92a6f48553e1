import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const ROW_COUNT = 3_000;

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

async function upload(store: Client, cardId: number): Promise<number> {
  const lines = Array.from({ length: ROW_COUNT }, (_, i) => `P${i},p${i}@example.com,${i % 9}`);
  const { body } = await store.send<ImportJson>(
    'POST',
    `${store.store}/imports?card_id=${cardId}`,
    ['first_name,email,stamps', ...lines].join('\n'),
    { 'content-type': 'text/csv' },
  );
  return body.id;
}

const waitFor = async (store: Client, id: number, isReached: (current: ImportJson) => boolean) =>
  (
    await eventually(
      () => store.get<ImportJson>(`${store.store}/imports/${id}`),
      ({ body }) => isReached(body),
    )
  ).body;

/** Ends the lease of a process that was killed, which another one would wait for. */
const endLease = (id: number) =>
  service.database.query('update imports set due_at = now() where id = $1', [id]);

const countEvents = async (store: Client) => {
  const { rows } = await service.database.query<{ type: string; count: number; stamps: number }>(
    `select type, count(*)::int as count, coalesce(sum((data ->> 'stamps')::int), 0)::int as stamps
     from es.events where account_id = $1 and meta ->> 'channel' = 'import' group by type order by type`,
    [store.accountId],
  );
  return rows;
};

it('applies each row of an import once although the dispatcher is killed again and again', async () => {
  const store = await service.newStore();
  const card = { name: 'Coffee' };
  const { body } = await store.post<CardJson>(`${store.store}/cards`, { card });
  const id = await upload(store, body.id);
  for (const share of [0, 0.2, 0.5, 0.8]) {
    const dispatcher = startDispatcher();
    await waitFor(
      store,
      id,
      ({ state, rows_done }) => state === 'running' && rows_done >= share * ROW_COUNT,
    );
    await dispatcher.kill('SIGKILL');
    await endLease(id);
  }
  const last = startDispatcher();
  const done = await waitFor(store, id, ({ state }) => state === 'done');
  expect(done).toMatchObject({ rows_done: ROW_COUNT, created: ROW_COUNT, updated: 0, failed: 0 });
  const { body: list } = await store.get<CustomerListJson>(`${store.store}/customers?items=1`);
  expect(list.pagination.count).toBe(ROW_COUNT);
  const stamps = Array.from({ length: ROW_COUNT }, (_, i) => i % 9);
  const events = await countEvents(store);
  expect(events).toEqual([
    { type: 'CustomerCardIssued', count: ROW_COUNT, stamps: 0 },
    { type: 'CustomerCreated', count: ROW_COUNT, stamps: 0 },
    {
      type: 'StampsEarned',
      count: stamps.filter((count) => count > 0).length,
      stamps: stamps.reduce((sum, count) => sum + count, 0),
    },
  ]);

  const again = await upload(store, body.id);
  const unchanged = await waitFor(store, again, ({ state }) => state === 'done');
  expect(unchanged).toMatchObject({ created: 0, updated: 0, unchanged: ROW_COUNT, failed: 0 });
  expect(await countEvents(store)).toEqual(events);

  await store.post(`${store.store}/imports/${id}/undo`);
  await waitFor(store, id, ({ undone }) => undone > 0);
  await last.kill('SIGKILL');
  await endLease(id);
  const dispatcher = startDispatcher();
  const undone = await waitFor(store, id, ({ state }) => state === 'undone');
  expect(undone).toMatchObject({ undone: ROW_COUNT, refused: 0, rows_done: ROW_COUNT });
  // A killed process may leave keys of customers whom it has not created.
  const { rows } = await service.database.query(
    `select count(*)::int as count from personal_keys k
     join es.events e on e.stream_id = 'customer-' || k.subject_id and e.revision = 0`,
  );
  expect(rows).toEqual([{ count: 0 }]);
  await dispatcher.kill('SIGTERM');
}, 600_000);
