import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { EventStore, type StoredEvent } from '#event-store/port/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { StagingBuilder } from '#event-store/verification/staging-builder.js';
import { CLAIMS, createStagingTables, STAGING } from '#event-store/verification/staging-tables.js';
import { StreamRanges } from '#event-store/verification/stream-ranges.js';
import { readModels } from '../../apps/read-models.js';
import { fillHistory } from '../support/fixtures/mixed-history.js';
import { runAtTime } from '../support/services/clock.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Fills the staging tables of a rebuild from a history in which streams take turns. */

let service: LocalService;
let store: Client;
let client: pg.Client;
let events: StoredEvent[];
/** What reading each stream on its own gives. */
let expected: Record<string, object[]>;

beforeAll(async () => {
  service = await startService();
  client = new pg.Client({ connectionString: service.database.ownerUrl });
  await client.connect();
  store = await service.newStore();
  await fillHistory(store);
  events = await service.history();
  await client.query(`set search_path = ${STAGING}`);
  await createTables();
  for await (const ranges of new StreamRanges(client, readModels).read())
    await createBuilder().buildStreams(ranges);
  expected = await readTables();
});
afterAll(async () => {
  await client.end();
  await service.stop();
});
beforeEach(createTables);

function createBuilder(
  maxOpenReplays?: number,
  keys = service.app.get(PersonalKeys),
): StagingBuilder {
  const parts = [client, service.app.get(EventStore), keys, readModels, true] as const;
  return new StagingBuilder(...parts, maxOpenReplays);
}

async function createTables(): Promise<void> {
  const tables = readModels.map(({ table: name }) => ({ schema: 'public' as const, name }));
  await createStagingTables(client, [...tables, CLAIMS]);
  await client.query(`create table ${STAGING}.erased (stream_id text primary key)`);
}

async function readTables(): Promise<Record<string, object[]>> {
  const contents: Record<string, object[]> = {};
  for (const name of [...readModels.map(({ table }) => table), CLAIMS.name, 'erased']) {
    const { rows } = await client.query<object>(
      `select t::text as row from ${STAGING}.${name} t order by 1`,
    );
    contents[name] = rows;
  }
  return contents;
}

it('finds rows and claims in the history', () => {
  expect(expected['customer_cards']).toHaveLength(3);
  expect(expected['claims']?.length).toBeGreaterThan(3);
});

it.each([
  { page: 1, maxOpenReplays: 2 },
  { page: 2, maxOpenReplays: 2 },
  { page: 3, maxOpenReplays: 4 },
  { page: 7, maxOpenReplays: 4 },
  { page: 10_000, maxOpenReplays: 2 },
  { page: 5, maxOpenReplays: undefined },
])(
  'in the order of the log: the same with pages of $page events and $maxOpenReplays open replays',
  async ({ page, maxOpenReplays }) => {
    const builder = createBuilder(maxOpenReplays);
    let count = 0;
    for (let i = 0; i < events.length; i += page)
      count += await builder.add(events.slice(i, i + page));
    await builder.flush();
    expect(await readTables()).toEqual(expected);
    const names = new Set(readModels.map(({ aggregate }) => aggregate.name));
    expect(count).toBe(
      events.filter(({ stream }) => names.has(stream.slice(0, stream.lastIndexOf('-')))).length,
    );
  },
);

it('skips events that have been applied already', async () => {
  const builder = createBuilder(2);
  const middle = events[20]?.meta.requestId;
  const someCommands = events.slice(
    0,
    events.findIndex(({ meta }) => meta.requestId === middle),
  );
  for (let round = 0; round < 2; round++) {
    await builder.add(someCommands);
    await builder.flush();
  }
  await builder.add(events);
  await builder.flush();
  expect(await readTables()).toEqual(expected);
});

it('names the stream of which an event is missing', async () => {
  const missing = events.find(
    ({ stream, revision }) => stream.startsWith('customer_card-') && revision === 1,
  );
  const remaining = events.filter((event) => event !== missing);
  await expect(createBuilder().add(remaining)).rejects.toMatchObject({
    cause: { message: `${missing?.stream}: event 1 is missing` },
  });
});

it('leaves out a stream that is named after no record', async () => {
  const strange = events.map((event) => ({ ...event, stream: event.stream.replace(/\d+$/, 'x') }));
  const builder = createBuilder(2);
  expect(await builder.add(strange)).toBe(0);
  await builder.add(events);
  await builder.flush();
  expect(await readTables()).toEqual(expected);
});

it('waits for personal keys that are unavailable', async () => {
  const keys = service.app.get(PersonalKeys);
  let tries = 0;
  const slowKeys = Object.assign(Object.create(keys) as PersonalKeys, {
    openEvents: async (sealed: StoredEvent[]) => {
      if (++tries === 1) throw new UnavailableError('The database responds too slowly');
      return keys.openEvents(sealed);
    },
  });
  const builder = createBuilder(2, slowKeys);
  await builder.add(events);
  await builder.flush();
  expect(tries).toBe(2);
  expect(await readTables()).toEqual(expected);
});

describe('the claims of a customer', () => {
  const create = async (customer: object): Promise<number> => {
    const { body } = await store.post<{ id: number }>(`${store.store}/customers`, { customer });
    return body.id;
  };
  const readClaims = async (schema: string, ids: number[]) =>
    (
      await client.query(
        `select kind, stream_id, revision from ${schema}.claims where stream_id = any ($1) order by kind`,
        [ids.map((id) => `customer-${id}`)],
      )
    ).rows;

  it('have the revision after their command, whatever X-Request-Id it came with and when', async () => {
    const id = await runAtTime('2026-05-01T10:00:00Z', async () => {
      const created = await create({ first_name: 'Fay', email: 'fay@example.com' });
      for (const change of [{ phone: '+4915112340001' }, { email: 'fay@new.example' }]) {
        const path = `${store.store}/customers/${created}`;
        const headers = { 'x-request-id': 'till-7' };
        expect((await store.send('PATCH', path, { customer: change }, headers)).status).toBe(200);
      }
      return created;
    });
    const live = await readClaims('es', [id]);
    expect(live.map(({ revision }: { revision: number }) => revision).sort()).toEqual([1, 2]);
    const history = await service.history();
    for (const page of [1, 2, 10_000]) {
      await createTables();
      const builder = createBuilder();
      for (let i = 0; i < history.length; i += page) await builder.add(history.slice(i, i + page));
      await builder.flush();
      expect(await readClaims(STAGING, [id])).toEqual(live);
    }
  });

  it('end with an erasure after the others of its events were written', async () => {
    const id = await create({ first_name: 'Dora', email: 'dora@example.com' });
    const before = await service.history();
    const builder = createBuilder();
    await builder.add(before);
    await builder.flush();
    expect(await readClaims(STAGING, [id])).toHaveLength(1);
    expect((await store.post(`${store.store}/customers/${id}/erase`)).status).toBe(204);
    await builder.add((await service.history()).slice(before.length));
    await builder.flush();
    expect(await readClaims(STAGING, [id])).toEqual([]);
  });

  // Several, since in the order of a database one in two would be right by chance.
  it.each([1, 2, 3, 4])(
    'stay with whom they go over to when the log ends in merge %i',
    async (i) => {
      const other = await create({ first_name: 'Ella', email: `ella${i}@example.com` });
      const survivor = await create({ first_name: 'Ella', phone: `+491511234567${i}` });
      const path = `${store.store}/customers/${survivor}/merge`;
      expect((await store.post(path, { from_customer_id: other })).status).toBe(200);
      const all = await service.history();
      expect(all.slice(-2).map(({ type }) => type)).toEqual([
        'CustomerMerged',
        'CustomerMergedAway',
      ]);
      const builder = createBuilder();
      for (const part of [all.slice(0, -1), all.slice(-1)]) {
        await builder.add(part);
        await builder.flush();
      }
      const live = await readClaims('es', [other, survivor]);
      expect(live).toHaveLength(2);
      expect(await readClaims(STAGING, [other, survivor])).toEqual(live);
    },
  );
});
