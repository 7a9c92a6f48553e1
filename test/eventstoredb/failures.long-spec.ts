import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import {
  EventStore,
  type Commit,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { createIntent, openIntent } from '#platform/event-store/eventstoredb/intents.js';
import { ReadModelCatchUp } from '#platform/event-store/eventstoredb/read-model-catch-up.js';
import { getPool } from '#platform/database/data-source.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { testConfig, createTestEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { Client, startService, type LocalService } from '../support/services/service.js';
import { readAllEvents, openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Failure = { code: string; resolution: string };

const SLOW = 300_000;

let server: EventStoreDb;
let service: LocalService;
let store: Client;
/** The event store as another process opens it: without the service's caches. */
let otherStore: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  otherStore = await openStore(testConfig(service.database.url, service.environment));
}, SLOW);
afterEach(async () => {
  server.fault.clear();
});
afterAll(async () => {
  await otherStore.close();
  await service.stop();
  await server.stop();
}, SLOW);

/** Simulates a process that died right after its append: events without their read model. */
async function stampWithoutReadModel(customerCardId: number, stamps: number): Promise<void> {
  const stream = `customer_card-${customerCardId}`;
  const last = await getLastEvent(stream);
  const at = new Date().toISOString();
  await otherStore.store.commit({
    accountId: store.accountId,
    writes: [
      {
        stream,
        expected: { revision: last.revision, hash: last.hash },
        events: [
          {
            id: randomUUID(),
            type: 'StampsEarned',
            version: 1,
            data: { customerId: 1, stamps, source: 'api', personal: null },
            meta: { ...last.meta, occurredAt: at, recordedAt: at },
          },
        ],
      },
    ],
  });
}

async function getLastEvent(stream: string): Promise<StoredEvent> {
  for await (const event of otherStore.store.readStream(stream, { direction: 'backwards' })) {
    return event;
  }
  throw new Error(`${stream} is empty`);
}

describe('an append', () => {
  it.each(['unavailable', 'not-ready', 'timeout'] as const)(
    'that fails before it is written (%s) is retried, and the stamp counts once',
    async (how) => {
      const { path } = await enrol(store);
      server.fault.failAppends(1, how);
      const { status, body } = await store.stamp(path);
      expect([status, body.stamps_count, await store.readBalance(path)]).toEqual([200, 1, 1]);
    },
    SLOW,
  );

  it.each(['drop', 'silence'] as const)(
    'whose response is lost (%s) succeeds, and the stamp counts once',
    async (how) => {
      const { path } = await enrol(store);
      server.fault.loseResponses(1, how);
      const { status, body } = await store.stamp(path);
      expect([status, body.stamps_count, await store.readBalance(path)]).toEqual([200, 1, 1]);
      expect((await store.stamp(path)).status).toBe(200);
      expect(await store.readBalance(path)).toBe(2);
    },
    SLOW,
  );

  it('to two streams whose responses are lost creates one customer with one card, and leaves no intent', async () => {
    const { card } = await enrol(store, { card: { initial_stamps: 2 } });
    server.fault.loseResponses(2, 'drop');
    const body = {
      customer: { first_name: 'Bo', email: 'lost@example.com' },
      card_id: card.id,
    };
    const response = await store.post<CreatedCustomerJson>(`${store.store}/customers`, body);
    expect([response.status, response.body.stamp_count]).toEqual([201, 2]);
    expect((await store.post(`${store.store}/customers`, body)).status).toBe(422);
    const intents = await service.database.query('select 1 from es.intents');
    expect(intents.rows).toEqual([]);
  });

  it('that a follower refuses is sent to the leader', async () => {
    const { path } = await enrol(store);
    server.fault.notLeader(1);
    expect((await store.stamp(path)).status).toBe(200);
    expect(await store.readBalance(path)).toBe(1);
  });
});

describe('while the event store is unavailable', () => {
  it(
    'reads succeed and writes get a 503 that has written nothing, and both succeed once it is back',
    async () => {
      const { path, card } = await enrol(store);
      const before = (await readAllEvents(otherStore.store)).length;
      await server.stopListening();
      for (let i = 0; i < 20; i++) {
        const response = await store.post<Failure>(`${path}/stamp`, { stamps: 1 });
        expect([response.status, response.body.code]).toEqual([503, 'unavailable']);
        expect(response.headers.get('retry-after')).toBe('1');
        expect(response.body.resolution).toContain('Nothing was written');
      }
      const person = { first_name: 'Cy', email: 'cy@example.com' };
      const creation = await store.post(`${store.store}/customers`, {
        customer: person,
        card_id: card.id,
      });
      expect(creation.status).toBe(503);
      expect((await store.get(path)).status).toBe(200);
      expect((await store.get(`${store.store}/customers`)).status).toBe(200);
      await server.listenAgain();
      await eventually(
        async () => (await store.stamp(path)).status,
        (status) => status === 200,
      );
      expect(await store.readBalance(path)).toBe(1);
      expect((await readAllEvents(otherStore.store)).length).toBe(before + 1);
      const again = await store.post(`${store.store}/customers`, { customer: person });
      expect(again.status).toBe(201);
    },
    SLOW,
  );

  it(
    'an api starts and serves reads, and its writes succeed once the event store is back',
    async () => {
      const { path } = await enrol(store);
      await server.stopListening();
      const port = String(await findFreePort());
      const api = startProgram(
        'dist/apps/api/main.js',
        createTestEnvironment(service.database.url, {
          ...service.environment,
          PORT: port,
          LOG_LEVEL: 'fatal',
        }),
      );
      try {
        const client = new Client(`http://127.0.0.1:${port}`, store.accountId, store.token);
        const findStatus = (send: () => Promise<{ status: number }>) =>
          send().then(
            ({ status }) => status,
            () => 0,
          );
        await eventually(
          () => findStatus(() => client.get(path)),
          (status) => status === 200,
        );
        expect((await client.stamp(path)).status).toBe(503);
        await server.listenAgain();
        await eventually(
          () => findStatus(() => client.stamp(path)),
          (status) => status === 200,
        );
        expect(await store.readBalance(path)).toBe(1);
      } finally {
        await api.kill('SIGTERM');
      }
    },
    SLOW,
  );

  it(
    'a subscription to the log waits, and continues where it stopped',
    async () => {
      const { path, customerCard } = await enrol(store);
      const stop = new AbortController();
      const seen: StoredEvent[] = [];
      const events = service.app.get(EventStore);
      const subscription = events.subscribe({
        after: await events.head(),
        batch: 10,
        signal: stop.signal,
        onEvents: async (batch) => void seen.push(...batch),
      });
      const countReceived = () =>
        seen.filter(({ stream }) => stream === `customer_card-${customerCard.id}`).length;
      await store.stamp(path);
      await eventually(countReceived, (count) => count === 1);
      server.fault.dropSubscriptions();
      await store.stamp(path);
      await eventually(countReceived, (count) => count === 2);
      await server.stopListening();
      expect((await store.stamp(path)).status).toBe(503);
      await server.listenAgain();
      await eventually(
        async () => (await store.stamp(path)).status,
        (status) => status === 200,
      );
      await eventually(countReceived, (count) => count === 3);
      stop.abort();
      await subscription;
    },
    SLOW,
  );
});

describe('an append whose process died before it updated the read model', () => {
  it('counts for the card’s next stamp and redemption', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    await stampWithoutReadModel(customerCard.id, 2);
    const response = await store.stamp(path);
    expect([response.status, response.body.stamps_count]).toEqual([200, 3]);
    expect(await store.readBalance(path)).toBe(3);
    await stampWithoutReadModel(customerCard.id, 3);
    const reward_id = rewards[0]?.id;
    expect((await store.post(`${path}/redeem`, { reward_id })).status).toBe(200);
    expect((await store.post(`${path}/redeem`, { reward_id })).status).toBe(200);
    expect((await store.post(`${path}/redeem`, { reward_id })).status).toBe(422);
    expect(await store.readBalance(path)).toBe(0);
  });

  it('lets a reward be redeemed that its stamps pay for', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    await stampWithoutReadModel(customerCard.id, 3);
    const response = await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    expect(response.status).toBe(200);
  });

  it('is added to the read model by the catch-up', async () => {
    const { path, customerCard } = await enrol(store);
    await stampWithoutReadModel(customerCard.id, 4);
    expect(await store.readBalance(path)).toBe(0);
    const stop = new AbortController();
    const catchUp = new ReadModelCatchUp(otherStore.pool, otherStore.store);
    const running = catchUp.run(stop.signal);
    await eventually(
      () => store.readBalance(path),
      (balance) => balance === 4,
    );
    stop.abort();
    await running;
  });
});

describe('an intent whose process died', () => {
  it(
    'is finished by another process, once its lease has expired',
    async () => {
      const { customer } = await enrol(store);
      const commit = createAbandonedCommit(`reward-${900_000}`);
      await openIntent(getPool(otherStore.source), createIntent(randomUUID(), commit));
      await service.database.query(
        `update es.intents set leased_until = now() - interval '1 hour'`,
      );
      await eventually(
        async () => (await service.database.query('select 1 from es.intents')).rowCount,
        (count) => count === 0,
      );
      expect((await getLastEvent('reward-900000')).type).toBe('Abandoned');
      const claims = await service.database.query(
        `select 1 from es.claims where kind = 'abandoned'`,
      );
      expect(claims.rowCount).toBe(1);
      expect(customer.id).toBeGreaterThan(0);
    },
    SLOW,
  );

  it(
    'is finished by another process at once, however long its lease is, when its session has ended',
    async () => {
      await service.app.get(ProcessSession, { strict: false }).start('api');
      const pool = getPool(otherStore.source);
      const link = new ProcessLink(testConfig(service.database.url), 'test');
      const dead = new ProcessSession(pool, link);
      await dead.start('api');
      await openIntent(
        pool,
        createIntent(randomUUID(), createAbandonedCommit('reward-900005')),
        dead.leaseHolder,
      );
      await service.database.query(
        `update es.intents set leased_until = now() + interval '1 hour'`,
      );
      await link.onApplicationShutdown();
      await eventually(
        async () => (await service.database.query('select 1 from es.intents')).rowCount,
        (count) => count === 0,
      );
      expect((await getLastEvent('reward-900005')).type).toBe('Abandoned');
    },
    SLOW,
  );

  it(
    'is given up when its stream has an event already, and its claims are deleted',
    async () => {
      const stream = `reward-${900_001}`;
      const winner = createAbandonedCommit(stream);
      await otherStore.store.commit({ accountId: winner.accountId, writes: winner.writes });
      await openIntent(
        getPool(otherStore.source),
        createIntent(randomUUID(), createAbandonedCommit(stream)),
      );
      await service.database.query(
        `update es.intents set leased_until = now() - interval '1 hour'`,
      );
      await eventually(
        async () => (await service.database.query('select 1 from es.intents')).rowCount,
        (count) => count === 0,
      );
      const claims = await service.database.query(
        `select 1 from es.claims where kind = 'abandoned' and stream_id = $1`,
        [stream],
      );
      expect(claims.rowCount).toBe(0);
      expect((await getLastEvent(stream)).revision).toBe(0);
    },
    SLOW,
  );
});

describe('an append that the server refuses as too large', () => {
  const tooLarge = (stream: string): Commit => {
    const commit = createAbandonedCommit(stream);
    for (const { events } of commit.writes) {
      for (const event of events) event.data = { text: 'x'.repeat(2_000_000) };
    }
    return commit;
  };

  it('leaves no intent and no claim', async () => {
    const stream = 'reward-900002';
    await expect(otherStore.store.commit(tooLarge(stream))).rejects.toMatchObject({
      type: 'maximum-append-size-exceeded',
    });
    const remaining = await service.database.query(
      `select 1 from es.intents union all select 1 from es.claims where stream_id = $1`,
      [stream],
    );
    expect(remaining.rows).toEqual([]);
  });

  it('does not keep other intents from being finished', async () => {
    const poison = createIntent(randomUUID(), tooLarge('reward-900003'));
    const good = createIntent(randomUUID(), createAbandonedCommit('reward-900004'));
    for (const intent of [poison, good]) await openIntent(getPool(otherStore.source), intent);
    await service.database.query(`update es.intents set leased_until = now() - interval '1 hour'`);
    await eventually(
      async () => (await service.database.query('select id from es.intents')).rows,
      (rows) => rows.length === 1,
    );
    const { rows } = await service.database.query('select id from es.intents');
    expect(rows).toEqual([{ id: poison.id }]);
    await service.database.query('delete from es.intents');
  });
});

describe('read models that are 100,000 events behind', () => {
  it('are caught up, and a card can be stamped meanwhile', async () => {
    const cards = 100;
    const { path, customerCard } = await enrol(store);
    const template = await getLastEvent(`customer_card-${customerCard.id}`);
    const ids = Array.from({ length: cards }, (_, i) => 500_000 + i);
    for (const id of ids) await append(id, template, 1_000);
    const stop = new AbortController();
    const catchUp = new ReadModelCatchUp(otherStore.pool, otherStore.store);
    const running = catchUp.run(stop.signal);
    const response = await store.stamp(path);
    const countBehind = async () => {
      const { rows } = await service.database.query<{ n: number }>(
        `select count(*)::int as n from customer_cards
         where id >= 500000 and (state ->> 'stampsCount')::int = 999`,
      );
      return cards - (rows[0]?.n ?? 0);
    };
    await eventually(countBehind, (count) => count === 0, 240_000).finally(async () => {
      stop.abort();
      await running;
    });
    expect(response.status).toBe(200);
    const last = await store.post<CustomerCardDetailJson>(
      path.replace(/\d+$/, String(ids.at(-1))) + '/stamp',
      { stamps: 1 },
    );
    expect([last.status, last.body.stamps_count]).toEqual([200, 1_000]);
  }, 300_000);

  async function append(id: number, template: StoredEvent, count: number): Promise<void> {
    const customerId = template.data['customerId'] ?? 0;
    const stamps = { customerId, stamps: 1, source: 'api', personal: null };
    await otherStore.store.commit({
      accountId: store.accountId,
      writes: [
        {
          stream: `customer_card-${id}`,
          expected: null,
          events: Array.from({ length: count }, (_, i) => ({
            id: randomUUID(),
            type: i === 0 ? 'CustomerCardIssued' : 'StampsEarned',
            version: 1,
            data: i === 0 ? { ...template.data, id } : stamps,
            meta: template.meta,
          })),
        },
      ],
    });
  }
});

function createAbandonedCommit(stream: string): Commit {
  const at = new Date().toISOString();
  return {
    accountId: store.accountId,
    writes: [
      {
        stream,
        expected: null,
        events: [
          {
            id: randomUUID(),
            type: 'Abandoned',
            version: 1,
            data: {},
            meta: {
              accountId: store.accountId,
              actor: { type: 'system', id: 0 },
              channel: 'system',
              requestId: 'test',
              occurredAt: at,
              recordedAt: at,
            },
          },
        ],
      },
    ],
    claims: [{ kind: 'abandoned', value: Buffer.from(stream), stream }],
  };
}
