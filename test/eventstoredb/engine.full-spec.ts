import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  event,
  eventStoreContract,
  newStream,
} from '#platform/event-store/port/event-store.contract.js';
import type { Head, Position } from '#platform/event-store/port/event-store.js';
import { EventStoreDbEventStore } from '#platform/event-store/eventstoredb/eventstoredb-event-store.js';
import { isAfter } from '#platform/event-store/port/position.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { readKeys, streamKinds } from '../support/database/event-store.js';
import { startEventStoreDb } from '../support/emulators/eventstoredb/server.mjs';

async function open(kinds = streamKinds('thing')) {
  const database = await createTestDatabase();
  const server = await startEventStoreDb();
  return openOn(database, { EVENT_STORE_URL: server.connectionString }, () => server.stop(), kinds);
}

/** Opens the EventStoreDB at EVENT_STORE_URL. */
async function openReal() {
  return openOn(await createTestDatabase(), {}, async () => undefined);
}

async function openOn(
  database: TestDatabase,
  environment: NodeJS.ProcessEnv,
  stop: () => Promise<void>,
  kinds = streamKinds('thing'),
) {
  const config = testConfig(database.url, environment);
  const source = await createDataSource(config, 'test').initialize();
  const pool = getPool(source);
  const store = new EventStoreDbEventStore(pool, await readKeys(pool, config), config, kinds);
  return {
    config,
    source,
    store,
    database,
    close: async () => {
      await store.onApplicationShutdown();
      await stop();
      await source.destroy();
      await database.close();
    },
  };
}

eventStoreContract('EventStoreDB', open);

if (process.env['EVENT_STORE_URL'] && process.env['TEST_ENGINE'] === 'eventstoredb') {
  eventStoreContract('the EventStoreDB at EVENT_STORE_URL', openReal);
}

describe('a subscription whose filter matches no event', () => {
  it('still advances its position', async () => {
    const { store, source, config, close } = await open(streamKinds('nobody'));
    const pool = getPool(source);
    const keys = await readKeys(pool, config);
    const writer = new EventStoreDbEventStore(pool, keys, config, streamKinds('thing'));
    const from = await store.head();
    const stop = new AbortController();
    const batches: { events: number; position: Position }[] = [];
    const subscription = store.subscribe({
      after: from,
      batch: 10,
      signal: stop.signal,
      onEvents: async (events, position) => void batches.push({ events: events.length, position }),
    });
    await eventually(
      async () => {
        await writer.commit({
          accountId: 1,
          writes: [
            {
              stream: newStream(),
              expected: null,
              events: Array.from({ length: 100 }, () => event('A')),
            },
          ],
        });
        return batches.length;
      },
      (count) => count > 0,
    );
    stop.abort();
    await subscription;
    expect(batches.every(({ events, position }) => events === 0 && isAfter(position, from))).toBe(
      true,
    );
    await writer.onApplicationShutdown();
    await close();
  });
});

describe('commits that claim values at the same time', () => {
  it('are refused one by one, and only those whose value is taken', async () => {
    const { store, database, close } = await open();
    const commit = (value: string) => {
      const stream = newStream();
      const claims = [{ kind: 'receipt', value: Buffer.from(value), stream }];
      const writes = [{ stream, expected: null, events: [event('A')] }];
      return store.commit({ accountId: 1, writes, claims });
    };
    await commit('taken');
    const free = Array.from({ length: 40 }, (_, i) => `free ${i}`);
    for (const values of [free, ['taken', 'twice', 'twice', ...free.map((name) => `so ${name}`)]]) {
      const results = await Promise.allSettled(values.map(commit));
      const refused = values.filter((_, i) => results[i]?.status === 'rejected');
      expect(refused.sort()).toEqual(values === free ? [] : ['taken', 'twice']);
    }
    const { rows } = await database.query<{ claims: number; intents: number }>(
      `select (select count(*) from es.claims)::int as claims,
              (select count(*) from es.intents)::int as intents`,
    );
    expect(rows).toEqual([{ claims: 82, intents: 0 }]);
    await close();
  });
});

describe('a locked read model', () => {
  it('does not delay a commit to another stream', async () => {
    const { store, database, close } = await open();
    const commit = async (id: number, expected: Head | null) => {
      const row = { table: 'accounts', id, projectionVersion: 1, state: { accountId: id } };
      const write = { stream: `thing-${id}`, expected, events: [event('A')], row };
      const [head] = await store.commit({ accountId: id, writes: [write] });
      return head ?? null;
    };
    const head = await commit(1, null);
    const holder = new pg.Client(database.url);
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from accounts where id = 1 for update');
    const pendingCommit = commit(1, head);
    await eventually(
      () =>
        database.query(
          `select from pg_stat_activity where query like '%es.write_read_models%' and wait_event_type = 'Lock'`,
        ),
      ({ rowCount }) => rowCount === 1,
    );
    const first = await Promise.race([
      pendingCommit.then(() => 'held'),
      commit(2, null).then(() => 'other'),
    ]);
    expect(first).toBe('other');
    await holder.query('rollback');
    await holder.end();
    expect(await pendingCommit).toMatchObject({ revision: 1 });
    await close();
  });
});
