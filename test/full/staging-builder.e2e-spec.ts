import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import pg from 'pg';
import { EventStore, type StoredEvent } from '#event-store/port/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { StagingBuilder } from '#event-store/verification/staging-builder.js';
import { CLAIMS, createStagingTables, STAGING } from '#event-store/verification/staging-tables.js';
import { StreamRanges } from '#event-store/verification/stream-ranges.js';
import { readModels } from '../../apps/read-models.js';
import { fillHistory } from '../support/fixtures/mixed-history.js';
import { startService, type LocalService } from '../support/services/service.js';

/** Fills the staging tables of a rebuild from a history in which streams take turns. */

let service: LocalService;
let client: pg.Client;
let events: StoredEvent[];
/** What reading each stream on its own gives. */
let expected: Record<string, object[]>;

beforeAll(async () => {
  service = await startService();
  client = new pg.Client({ connectionString: service.database.ownerUrl });
  await client.connect();
  await fillHistory(await service.newStore());
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

function createBuilder(maxOpenReplays?: number): StagingBuilder {
  const { app } = service;
  const parts = [client, app.get(EventStore), app.get(PersonalKeys), readModels, true] as const;
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
  await expect(createBuilder().add(remaining)).rejects.toThrow(
    `${missing?.stream} cannot be projected (event 2)`,
  );
});
