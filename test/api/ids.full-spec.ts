import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { takeIdFromBlock, takeNextId, raiseSequence } from '#platform/database/ids.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { readModels } from '../../apps/read-models.js';
import { eventually } from '../support/jest/eventually.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Created = { id: number };

let service: LocalService;
let store: Client;
const sequences = [...readModels.map(({ table }) => table), 'webhook_subscriptions'];

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

/** Resets sequences as a failover without their replication does. */
const restartSequence = async (table: string, at: number) => {
  await service.database.query(`alter sequence ${table}_id restart with ${at}`);
};

async function createAll(): Promise<Record<string, number>> {
  const { card, customer, customerCard } = await enrol(store);
  const post = async (path: string, body: object): Promise<number> => {
    const response = await store.post<Created>(`${store.store}/${path}`, body);
    expect([path, response.status]).toEqual([path, 201]);
    return response.body.id;
  };
  const another = await post('cards', { card: { name: 'Tea' } });
  return {
    accounts: (await service.newStore()).accountId,
    cards: card.id,
    customers: customer.id,
    customer_cards: customerCard.id,
    rewards: await post('rewards', {
      reward: { card_id: card.id, name: 'A cup', stamps_required: 3 },
    }),
    locations: await post('locations', { location: { name: 'Here', address: 'Markt 1' } }),
    posters: await post('posters', { poster: { card_id: card.id } }),
    webhook_subscriptions: await post('webhook_subscriptions', {
      event: '*',
      target_url: 'https://receiver.example/hooks',
    }),
    enrolled: await post(`customers/${customer.id}/customer_cards`, { card_id: another }),
  };
}

describe('ids that are in use already', () => {
  it('are skipped, and existing records stay unchanged', async () => {
    const first = await createAll();
    const before = await store.get(`${store.store}/cards/${first['cards']}`);
    const subscriptions = await service.database.query('select * from webhook_subscriptions');
    for (const table of sequences) await restartSequence(table, 1);
    const second = await createAll();
    for (const [table, id] of Object.entries(second)) {
      expect([table, id]).toEqual([table, expect.any(Number)]);
      expect([table, id > (first[table] ?? 0)]).toEqual([table, true]);
    }
    expect((await store.get(`${store.store}/cards/${first['cards']}`)).body).toEqual(before.body);
    const after = await service.database.query(
      'select * from webhook_subscriptions order by id limit 1',
    );
    expect(after.rows).toEqual(subscriptions.rows);
    const streams = new Map<string, number>();
    for (const { stream, type } of await service.history()) {
      if (!/Created$|Issued$/.test(type)) continue;
      streams.set(stream, (streams.get(stream) ?? 0) + 1);
    }
    expect([...streams].filter(([, beginnings]) => beginnings > 1)).toEqual([]);
  });

  it('are skipped for the second record of a request too', async () => {
    const { customer } = await enrol(store);
    await restartSequence('customer_cards', 1);
    const again = await enrol(store);
    expect(again.customer.id).toBeGreaterThan(customer.id);
  });
});

describe('the start of the api', () => {
  const start = () =>
    startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(service.database.url, { ...service.environment, LOG_LEVEL: 'info' }),
    );

  it('raises sequences above the ids in use', async () => {
    const ids = await createAll();
    for (const table of sequences) await restartSequence(table, 1);
    if (service.environment['EVENT_STORE_URL'] !== undefined) {
      // The failover has lost the read models as well; their events are in EventStoreDB.
      for (const { table } of readModels) await service.database.query(`delete from ${table}`);
      await service.database.query('delete from es.positions');
    }
    const api = start();
    await eventually(api.output, (text) => text.includes('listening on'));
    for (const table of sequences) {
      const { rows } = await service.database.query<{ last_value: number }>(
        `select last_value from ${table}_id`,
      );
      expect([table, Number(rows[0]?.last_value) >= (ids[table] ?? 0)]).toEqual([table, true]);
    }
    expect(api.output()).toContain('the ids of cards were behind by');
    await api.kill('SIGTERM');
  });

  it('fails with exit code 78 when the event store ends before processed events', async () => {
    const beyond = formatPosition({ commit: 2n ** 60n, prepare: 2n ** 60n });
    await service.database.query(
      `insert into es.positions (subscription, position) values ('webhooks', $1)
       on conflict (subscription) do update set position = excluded.position`,
      [beyond],
    );
    const api = start();
    expect(await api.exitCode).toBe(78);
    expect(api.output()).toMatch(
      /ends before events that were already processed \(webhooks\)|carry positions of another PostgreSQL server/,
    );
    await service.database.query(`delete from es.positions where subscription = 'webhooks'`);
  });
});

describe('a sequence that is far behind', () => {
  it('is raised above every id in use in one step', async () => {
    const pool = service.app.get(Pool);
    await restartSequence('redemptions', 1);
    const highestId = 2 ** 40;
    expect(await raiseSequence(pool, 'redemptions', highestId)).toBe(highestId);
    expect(await takeNextId(pool, 'redemptions')).toBe(highestId + 1);
    expect(await raiseSequence(pool, 'redemptions', highestId)).toBe(0);
    expect(await takeNextId(pool, 'redemptions')).toBe(highestId + 2);
  });
});

describe('ids of redemptions', () => {
  it('come from a block, of which nothing is used after a connection was made anew', async () => {
    const pool = service.app.get(Pool);
    const first = await takeIdFromBlock(pool, 'redemptions');
    expect(await takeIdFromBlock(pool, 'redemptions')).toBe(first + 1);
    await service.database.query(
      'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await eventually(
      () =>
        pool.query('select 1').then(
          () => true,
          () => false,
        ),
      (isConnected) => isConnected,
    );
    expect(await takeIdFromBlock(pool, 'redemptions')).toBe(first + 32);
  });
});

describe('a read model that is ahead of its history', () => {
  it('makes an update of its record respond 503, which names the repair', async () => {
    const own = await service.newStore();
    const { card } = await enrol(own);
    await service.database.query('update cards set revision = revision + 3 where id = $1', [
      card.id,
    ]);
    const response = await own.send<{ error: string }>('PATCH', `${own.store}/cards/${card.id}`, {
      card: { name: 'Tea' },
    });
    expect([response.status, response.body.error]).toEqual([
      503,
      'This record cannot be changed until its history is repaired',
    ]);
  });

  // With EventStoreDB, the check would take a read for each row.
  if (process.env['TEST_ENGINE'] !== 'eventstoredb') {
    it('is logged with the repair command when a dispatcher starts', async () => {
      const dispatcher = startProgram(
        'dist/apps/dispatcher/main.js',
        createTestEnvironment(service.database.url, { LOG_LEVEL: 'info' }),
      );
      await eventually(dispatcher.output, (text) =>
        /cards \d+: the read model is ahead of its history.*inkpad verify --repair/.test(text),
      );
      await dispatcher.kill('SIGTERM');
    });
  }
});
