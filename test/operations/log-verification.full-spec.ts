import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  LogVerification,
  type VerifiedPage,
} from '#platform/event-store/verification/log-verification.js';
import { Verification } from '#platform/event-store/verification/verification.js';
import { readModels } from '../../apps/read-models.js';
import { fillHistory } from '../support/fixtures/mixed-history.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Verifies read models in the order of the log, in which streams take turns. */

const SCOPE = { rows: true, claims: true, repair: false };

let service: LocalService;
let store: Client;
let events: StoredEvent[];
/** Every row of a read model: table and id. */
let allRows: string[];
/** Undoes what the tests change in the row of the first customer card. */
let restore: string;
let undo: string[] = [];

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  await fillHistory(store);
  events = await service.history();
  allRows = [];
  for (const { table } of readModels) {
    const { rows } = await service.database.query<{ id: number }>(`select id from ${table}`);
    allRows.push(...rows.map(({ id }) => `${table} ${id}`));
  }
  const { rows } = await service.database.query<{ hash: string }>(
    `select encode(hash, 'hex') as hash from customer_cards where id = 1`,
  );
  restore = `update customer_cards set state = state - 'other', hash = decode('${rows[0]?.hash}', 'hex') where id = 1`;
});
afterAll(() => service.stop());
afterEach(async () => {
  for (const statement of undo) await service.database.query(statement);
  undo = [];
});

function createVerification(maxOpenReplays?: number): LogVerification {
  const { app } = service;
  const [pool, store, keys] = [app.get(Pool), app.get(EventStore), app.get(PersonalKeys)];
  const verification = new Verification(pool, store, keys, readModels);
  return new LogVerification(verification, keys, readModels, SCOPE, maxOpenReplays);
}

async function verify(
  log: StoredEvent[],
  { page = 10_000, maxOpenReplays }: { page?: number; maxOpenReplays?: number } = {},
) {
  const verification = createVerification(maxOpenReplays);
  const pages: VerifiedPage[] = [];
  for (let i = 0; i < log.length; i += page)
    pages.push(await verification.add(log.slice(i, i + page)));
  const rows = pages.flatMap(({ slices }) =>
    slices.flatMap(({ table, ids }) => ids.map((id) => `${table} ${id}`)),
  );
  const sum = (name: 'streams' | 'events' | 'outdated') =>
    pages.reduce((total, verifiedPage) => total + verifiedPage[name], 0);
  return { rows, streams: sum('streams'), events: sum('events'), outdated: sum('outdated') };
}

it.each([1, 2, 7, 10_000])('finds every row right, with pages of %i events', async (page) => {
  const verified = await verify(events, { page });
  expect(verified.rows.toSorted()).toEqual(allRows.toSorted());
  expect(verified).toMatchObject({ streams: allRows.length, events: events.length, outdated: 0 });
});

it('leaves the rows of streams that others come between too often', async () => {
  const { rows, streams } = await verify(events, { page: 1, maxOpenReplays: 2 });
  expect(streams).toBe(rows.length);
  expect(rows).toContain('cards 1');
  expect(rows.length).toBeLessThan(allRows.length);
  for (const id of [1, 2]) expect(rows).not.toContain(`customer_cards ${id}`);
});

const CARD = 'customer_card-1';

it.each([
  ['another state', `update customer_cards set state = state || '{"other": 1}' where id = 1`],
  ['another hash', `update customer_cards set hash = sha256('other') where id = 1`],
])('leaves a row with %s', async (_name, statement) => {
  undo = [restore];
  await service.database.query(statement);
  const { rows, streams } = await verify(events, { page: 3 });
  expect(rows.toSorted()).toEqual(allRows.filter((row) => row !== 'customer_cards 1').toSorted());
  expect(streams).toBe(rows.length);
});

it('leaves a row whose stream has a claim too many', async () => {
  undo = [`delete from es.claims where value = sha256('nobody')`];
  await service.database.query(
    `insert into es.claims select account_id, 'stamp_receipt', sha256('nobody'), '${CARD}', 1
     from customer_cards where id = 1`,
  );
  expect((await verify(events)).rows).not.toContain('customer_cards 1');
});

it.each([
  ['a missing event', (log: StoredEvent[]) => log.filter((event) => !isSecond(event))],
  [
    'another hash in an event',
    (log: StoredEvent[]) =>
      log.map((event) => (isSecond(event) ? { ...event, hash: 'ab'.repeat(32) } : event)),
  ],
  [
    'changed content in an event',
    (log: StoredEvent[]) =>
      log.map((event) =>
        isSecond(event) ? { ...event, data: { ...event.data, stamps: 9 } } : event,
      ),
  ],
  [
    'a missing end',
    (log: StoredEvent[]) =>
      log.filter((event) => event !== log.findLast(({ stream }) => stream === CARD)),
  ],
])('leaves a row whose stream has %s', async (_name, change) => {
  const { rows } = await verify(change(events), { page: 4 });
  expect(rows.toSorted()).toEqual(allRows.filter((row) => row !== 'customer_cards 1').toSorted());
});

it('counts a row of an older projection version, of which it compares no state', async () => {
  undo = [
    restore,
    'update customer_cards set projection_version = projection_version + 1 where id = 1',
  ];
  await service.database.query(
    `update customer_cards set state = state || '{"other": 1}',
       projection_version = projection_version - 1 where id = 1`,
  );
  expect(await verify(events)).toMatchObject({ streams: allRows.length, outdated: 1 });
});

it('a Verification reads a row again whose customer was erased before the events were read', async () => {
  const { app } = service;
  const { body } = await store.post<{ id: number }>(`${store.store}/customers`, {
    customer: { first_name: 'Dora', email: 'dora@example.com' },
  });
  const erase = async () =>
    expect((await store.post(`${store.store}/customers/${body.id}/erase`)).status).toBe(204);
  const pool = app.get(Pool);
  let reads = 0;
  const slowPool = Object.assign(Object.create(pool) as Pool, {
    query: async (...parameters: [string, unknown[]]) => {
      const result: unknown = await pool.query(...parameters);
      if (parameters[0].includes('left join customers') && ++reads === 1) await erase();
      return result;
    },
  });
  const parts = [app.get(EventStore), app.get(PersonalKeys), readModels] as const;
  const verification = new Verification(slowPool, ...parts);
  const result = await verification.verifySlice({ table: 'customers', ids: [body.id] }, SCOPE);
  expect(result).toMatchObject({ streams: 1, differences: [], repaired: 0 });
  expect(reads).toBe(2);
});

function isSecond({ stream, revision }: StoredEvent): boolean {
  return stream === CARD && revision === 1;
}
