import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { EventMeta } from '#kernel/aggregate.js';
import { getPool } from '#database/data-source.js';
import type { Commit, StoredEvent } from '#event-store/port/event-store.js';
import {
  createIntent,
  openIntent,
  sealIntent,
  type Intent,
} from '#event-store/eventstoredb/intents.js';
import { customer } from '#customers/customer.js';
import type { CustomerJson } from '#customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import { testConfig } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import {
  Client,
  startService,
  type ApiResponse,
  type Service,
} from '../support/services/service.js';
import { readAllEvents, openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * Commits that are written down as intents before they are appended to EventStoreDB, seen from outside while
 * they are under way: by a retry, by another till, by a process that was paused.
 */

const SLOW = 300_000;

let server: EventStoreDb;
let service: Service;
let store: Client;
/** The same store in a process of its own, which opens intents and dies. */
let dead: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  dead = await openStore(testConfig(service.database.url, service.environment));
}, SLOW);
afterEach(() => server.fault.clear());
afterAll(async () => {
  await dead.close();
  await service.stop();
  await server.stop();
}, SLOW);

type Card = { path: string; id: number; stream: string };

async function newCard(): Promise<Card> {
  const { path, customerCard } = await enrol(store);
  return { path, id: customerCard.id, stream: `customer_card-${customerCard.id}` };
}

const stamp = (path: string, stamps: number, external_ref?: string, client = store) =>
  client.post<CustomerCardDetailJson & { code?: string }>(`${path}/stamp`, {
    stamps,
    ...(external_ref !== undefined && { external_ref }),
  });

const summarize = ({ status, body }: ApiResponse<CustomerCardDetailJson>) => [
  status,
  body.stamps_count,
];

async function lastOf(stream: string): Promise<StoredEvent> {
  for await (const event of dead.store.readStream(stream, { direction: 'backwards' })) {
    return event;
  }
  throw new Error(`${stream} is empty`);
}

/** Simulates a request that opened its intent and died: its claim exists, its event does not. */
async function openAndDie(card: Card, stamps: number, receipt: string): Promise<Intent> {
  const last = await lastOf(card.stream);
  const at = new Date().toISOString();
  const meta: EventMeta = { ...last.meta, occurredAt: at, recordedAt: at };
  const { accountId } = store;
  const customerId = Number(card.path.split('/').at(-3));
  const action = { locationId: null, staffRef: null, silent: false, personal: null };
  const commit: Commit = {
    accountId,
    writes: [
      {
        stream: card.stream,
        expected: { revision: last.revision, hash: last.hash },
        events: [
          {
            id: randomUUID(),
            type: 'StampsEarned',
            version: 1,
            data: { customerId, stamps, source: 'api', externalRef: receipt, ...action },
            meta,
          },
        ],
      },
    ],
    claims: [dead.keys.createClaim(accountId, 'stamp_receipt', receipt, card.stream)],
  };
  const intent = createIntent(randomUUID(), commit);
  await openIntent(getPool(dead.source), intent);
  return intent;
}

const letRecover = (): Promise<unknown> =>
  service.database.query(`update es.intents set leased_until = now() - interval '1 hour'`);

const intents = async () => (await service.database.query('select id from es.intents')).rowCount;

const stampsIn = async (stream: string) =>
  (await readAllEvents(dead.store))
    .filter((event) => event.stream === stream && event.type === 'StampsEarned')
    .map(({ data }) => data['stamps']);

describe('a retry with the receipt number of an intent whose process has died', () => {
  /*
   * till A: claims "r", opens its intent, dies             claim r -> revision n+1, stream ends at n
   * till A again, at another api: finds the claim          must not take revision n for its own stamp
   * recovery: appends what A wanted
   */
  it(
    'waits for the intent and gets its result, which counts once',
    async () => {
      const card = await newCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      await letRecover();
      expect(summarize(await retry)).toEqual([200, 3]);
      expect(summarize(await stamp(card.path, 2, `lost ${card.id}`))).toEqual([200, 3]);
      expect(await stampsIn(card.stream)).toEqual([1, 2]);
    },
    SLOW,
  );

  /*
   * till A: claims "r", opens its intent, dies
   * till A again: finds the claim, waits
   * till B: stamps                                         the stream moves past A's expected revision
   * recovery: gives A's intent up and frees the claim
   * till A: finds no claim any more                        must stamp now, or a stamp is lost
   */
  it(
    'stamps anew when another till was faster and the intent is given up',
    async () => {
      const card = await newCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      expect(summarize(await stamp(card.path, 5))).toEqual([200, 6]);
      await letRecover();
      expect(summarize(await retry)).toEqual([200, 8]);
      expect(await stampsIn(card.stream)).toEqual([1, 5, 2]);
    },
    SLOW,
  );

  it(
    'is not answered by a card without any stamp',
    async () => {
      const card = await newCard();
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      await letRecover();
      expect(summarize(await retry)).toEqual([200, 2]);
    },
    SLOW,
  );

  it(
    'is compared with what its own number was used for',
    async () => {
      const card = await newCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const [same, other] = [
        stamp(card.path, 2, `lost ${card.id}`),
        stamp(card.path, 1, `lost ${card.id}`),
      ];
      await letRecover();
      expect(summarize(await same)).toEqual([200, 3]);
      expect((await other).status).toBe(422);
    },
    SLOW,
  );

  it(
    'is a 503 while nobody settles the intent, and nothing is written',
    async () => {
      const card = await newCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = await stamp(card.path, 2, `lost ${card.id}`);
      expect([retry.status, retry.body.code]).toEqual([503, 'unavailable']);
      expect(retry.headers.get('retry-after')).not.toBeNull();
      expect(await stampsIn(card.stream)).toEqual([1]);
      await letRecover();
      await eventually(intents, (count) => count === 0);
    },
    SLOW,
  );
});

describe('with a second api', () => {
  let program: Program;
  let second: Client;

  beforeAll(async () => {
    ({ program, second } = await startSecondApi(service, store));
  }, SLOW);
  afterAll(() => program.kill('SIGTERM'));

  it(
    'two equal requests at once get one answer',
    async () => {
      const card = await newCard();
      for (let i = 1; i <= 20; i++) {
        // The claim is there for a while before its event.
        server.fault.failAppends(1);
        const receipt = `twice ${card.id} ${i}`;
        const both = await Promise.all([
          stamp(card.path, 1, receipt),
          stamp(card.path, 1, receipt, second),
        ]);
        expect(both.map(summarize)).toEqual([
          [200, i],
          [200, i],
        ]);
      }
    },
    SLOW,
  );

  /*
   * second api: claims the e-mail, opens its intent, reads whether the card's stream is new, and is paused
   * recovery, after the lease: appends both streams and closes the intent
   * second api: sees that the card's stream is there     it is its own work: no refusal, and nothing is done twice
   */
  it(
    'a process that was paused for longer than its lease answers with what was done for it',
    async () => {
      const { card } = await enrol(store);
      server.fault.delayAnswers(4_000);
      const customer = { first_name: 'Paula', email: `paused-${card.id}@example.com` };
      const body = { customer, card_id: card.id };
      const creation = second.post<{ id: number }>(`${store.store}/customers`, body);
      await eventually(intents, (count) => count === 1);
      program.signal('SIGSTOP');
      server.fault.clear();
      await letRecover();
      await eventually(intents, (count) => count === 0);
      program.signal('SIGCONT');
      const { status, body: answer } = await creation;
      expect(status).toBe(201);
      expect((await store.get(`${store.store}/customers/${answer.id}`)).status).toBe(200);
      const written = (await readAllEvents(dead.store)).filter(
        ({ stream, data }) =>
          stream === `customer-${answer.id}` || data['customerId'] === answer.id,
      );
      expect(written.map(({ type }) => type)).toEqual(['CustomerCreated', 'CustomerCardIssued']);
    },
    SLOW,
  );
});

describe('an intent that has to be given up while PostgreSQL refuses connections', () => {
  /*
   * api: claims the e-mail, opens its intent, reads whether the card's stream is new; the event store fails
   * PostgreSQL refuses connections: the intent stays      "nothing was written" would be a lie: recovery
   * api: waits until it is given up, then says so         would execute it later
   */
  it(
    'is given up before the caller hears that nothing was written',
    async () => {
      const { card } = await enrol(store);
      server.fault.delayAnswers(4_000);
      const customer = { first_name: 'Ada', email: `given-up-${card.id}@example.com` };
      const creation = store.post(`${store.store}/customers`, { customer, card_id: card.id });
      await eventually(intents, (count) => count === 1);
      const open = await refuseConnections();
      await server.stopListening();
      const reopened = new Promise((resolve) => setTimeout(resolve, 2_000)).then(open);
      const { status } = await creation;
      await reopened;
      const left = await intents();
      server.fault.clear();
      await server.listenAgain();
      expect([status, left]).toEqual([503, 0]);
      await eventually(
        async () => (await store.post(`${store.store}/customers`, { customer })).status,
        (now) => now === 201,
      );
    },
    SLOW,
  );

  /** All but the test's own. @returns what lets them in again */
  async function refuseConnections(): Promise<() => Promise<unknown>> {
    const url = new URL(service.database.ownerUrl);
    const name = url.pathname.slice(1);
    const { rows } = await service.database.query<{ pid: number }>(
      'select pg_backend_pid() as pid',
    );
    url.pathname = '/postgres';
    const admin = new pg.Client(url.href);
    await admin.connect();
    await admin.query(`alter database ${name} allow_connections false`);
    await admin.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2',
      [name, rows[0]?.pid],
    );
    return async () => {
      await admin.query(`alter database ${name} allow_connections true`);
      await admin.end();
    };
  }
});

describe('the intent of a change of a person', () => {
  type Person = { id: number; path: string; stream: string };

  async function newPerson(): Promise<Person> {
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    return { id: customer.id, path, stream: `customer-${customer.id}` };
  }

  /** Simulates a request that changed the name and the address, opened its intent and died. */
  async function renameAndDie({ id, stream }: Person): Promise<void> {
    const last = await lastOf(stream);
    const at = new Date().toISOString();
    const { rows } = await service.database.query<{ state: object }>(
      'select state from customers where id = $1',
      [id],
    );
    const personal = { firstName: 'Zebulon', email: `zebulon${id}@example.com` };
    const events = await dead.keys.sealEvents([
      {
        id: randomUUID(),
        type: 'CustomerUpdated',
        version: 1,
        data: { customerId: id, personal },
        meta: { ...last.meta, occurredAt: at, recordedAt: at },
      },
    ]);
    const state = { ...rows[0]?.state, ...personal, updatedAt: at };
    const row = { table: 'customers', id, projectionVersion: 3, state, subjectId: id };
    const intent = createIntent(randomUUID(), {
      accountId: store.accountId,
      writes: [{ stream, expected: { revision: last.revision, hash: last.hash }, events, row }],
      claims: [dead.keys.createClaim(store.accountId, 'email', personal.email, stream)],
    });
    await openIntent(getPool(dead.source), await sealIntent(dead.keys, intent));
  }

  const stored = async () =>
    (await service.database.query<{ content: string }>('select content::text from es.intents')).rows
      .map(({ content }) => content)
      .join();
  const show = async ({ path }: Person) => (await store.get<CustomerJson>(path)).body;

  it(
    'holds nothing of them in clear, and whoever finishes it writes their row',
    async () => {
      const person = await newPerson();
      await renameAndDie(person);
      expect(await stored()).toContain(person.stream);
      expect(await stored()).not.toMatch(/zebulon/i);
      await letRecover();
      await eventually(intents, (left) => left === 0, SLOW);
      expect(await show(person)).toMatchObject({ first_name: 'Zebulon' });
    },
    SLOW,
  );

  it(
    'comes to nothing when they are erased before it is finished',
    async () => {
      const person = await newPerson();
      await renameAndDie(person);
      expect((await store.post(`${person.path}/erase`)).status).toBe(204);
      await letRecover();
      await eventually(intents, (left) => left === 0, SLOW);
      expect(await show(person)).toMatchObject({ first_name: 'Erased', email: null });
      expect((await lastOf(person.stream)).type).toBe('CustomerErased');
    },
    SLOW,
  );

  it(
    'does not make an address count as taken that it may still give up',
    async () => {
      const person = await newPerson();
      await renameAndDie(person);
      const moved = await store.send('PATCH', person.path, { customer: { last_name: 'Ypsilon' } });
      expect(moved.status).toBe(200);
      const customer = { first_name: 'Ada', email: `zebulon${person.id}@example.com` };
      const created = store.post(`${store.store}/customers`, { customer });
      await letRecover();
      expect((await created).status).toBe(201);
    },
    SLOW,
  );

  it(
    'does not keep an address that they have given up, though it is not closed yet',
    async () => {
      const { query } = service.database;
      const person = await newPerson();
      const { email } = await show(person);
      const change = (to: string | null) =>
        store.send('PATCH', person.path, { customer: { email: to } });
      await query(`create function stays() returns trigger language plpgsql as $$
        begin raise 'it stays'; end $$`);
      await query(`create trigger stays before delete on es.intents
        for each row execute function stays()`);
      expect((await change(`other${person.id}@example.com`)).status).toBe(200);
      await query('drop function stays cascade');
      const back = change(email);
      await letRecover();
      expect((await back).status).toBe(200);
    },
    SLOW,
  );

  it(
    'is finished by any process when it erases them: their key goes with it',
    async () => {
      const person = await newPerson();
      const last = await lastOf(person.stream);
      const at = new Date().toISOString();
      const event = {
        id: randomUUID(),
        type: 'CustomerErased' as const,
        version: 1,
        data: { customerId: person.id },
        meta: { ...last.meta, occurredAt: at, recordedAt: at },
      };
      const { rows } = await service.database.query<{ state: never }>(
        'select state from customers where id = $1',
        [person.id],
      );
      const state = customer.evolve(rows[0]?.state, event);
      const expected = { revision: last.revision, hash: last.hash };
      const row = { table: 'customers', id: person.id, projectionVersion: 3, state };
      const intent = createIntent(randomUUID(), {
        accountId: store.accountId,
        writes: [{ stream: person.stream, expected, events: [event], row }],
        erasures: [{ subjectId: person.id, stream: person.stream }],
      });
      await openIntent(getPool(dead.source), await sealIntent(dead.keys, intent));
      const keys = () =>
        service.database.query('select from personal_keys where subject_id = $1', [person.id]);
      expect((await keys()).rowCount).toBe(1);
      await letRecover();
      await eventually(intents, (left) => left === 0, SLOW);
      expect((await keys()).rowCount).toBe(0);
      expect(await show(person)).toMatchObject({ first_name: 'Erased' });
    },
    SLOW,
  );
});
