import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { EventMeta } from '#platform/kernel/aggregate.js';
import { getPool } from '#platform/database/data-source.js';
import type { Commit, StoredEvent } from '#platform/event-store/port/event-store.js';
import {
  createIntent,
  openIntent,
  sealIntent,
  type Intent,
} from '#platform/event-store/eventstoredb/intents.js';
import { customer } from '#loyalty/customers/customer.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { testConfig } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import {
  Client,
  startService,
  type ApiResponse,
  type LocalService,
} from '../support/services/service.js';
import { readAllEvents, openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * Commits that are recorded as intents before they are appended to EventStoreDB, as a retry, another client and a paused
 * process meet them while they are open.
 */

const SLOW = 300_000;

let server: EventStoreDb;
let service: LocalService;
let store: Client;
/** The event store as a process has it that opens intents and dies. */
let deadProcess: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  deadProcess = await openStore(testConfig(service.database.url, service.environment));
}, SLOW);
afterEach(() => server.fault.clear());
afterAll(async () => {
  await deadProcess.close();
  await service.stop();
  await server.stop();
}, SLOW);

type Card = { path: string; id: number; stream: string };

async function createCard(): Promise<Card> {
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

async function getLastEvent(stream: string): Promise<StoredEvent> {
  for await (const event of deadProcess.store.readStream(stream, { direction: 'backwards' })) {
    return event;
  }
  throw new Error(`${stream} is empty`);
}

/** Simulates a request that opened its intent and died: its claim exists, its event does not. */
async function openAndDie(card: Card, stamps: number, receipt: string): Promise<Intent> {
  const last = await getLastEvent(card.stream);
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
    claims: [deadProcess.keys.createClaim(accountId, 'stamp_receipt', receipt, card.stream)],
  };
  const intent = createIntent(randomUUID(), commit);
  await openIntent(getPool(deadProcess.source), intent);
  return intent;
}

const expireLeases = (): Promise<unknown> =>
  service.database.query(`update es.intents set leased_until = now() - interval '1 hour'`);

const countIntents = async () =>
  (await service.database.query('select id from es.intents')).rowCount;

const readStamps = async (stream: string) =>
  (await readAllEvents(deadProcess.store))
    .filter((event) => event.stream === stream && event.type === 'StampsEarned')
    .map(({ data }) => data['stamps']);

describe('a retry with the receipt number of an intent whose process has died', () => {
  /*
   * till A: claims "r", opens its intent, dies             claim r -> revision n+1, stream ends at n
   * till A again, at another api: finds the claim          must not take revision n for its own stamp
   * recovery: appends what A wanted
   */
  it(
    'waits for the intent to be finished, and the stamps count once',
    async () => {
      const card = await createCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      await expireLeases();
      expect(summarize(await retry)).toEqual([200, 3]);
      expect(summarize(await stamp(card.path, 2, `lost ${card.id}`))).toEqual([200, 3]);
      expect(await readStamps(card.stream)).toEqual([1, 2]);
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
    'adds the stamps itself when another client was faster and the intent is given up',
    async () => {
      const card = await createCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      expect(summarize(await stamp(card.path, 5))).toEqual([200, 6]);
      await expireLeases();
      expect(summarize(await retry)).toEqual([200, 8]);
      expect(await readStamps(card.stream)).toEqual([1, 5, 2]);
    },
    SLOW,
  );

  it(
    'gets the balance with the intent’s stamps on a card that had none before',
    async () => {
      const card = await createCard();
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = stamp(card.path, 2, `lost ${card.id}`);
      await expireLeases();
      expect(summarize(await retry)).toEqual([200, 2]);
    },
    SLOW,
  );

  it(
    'succeeds with the same number of stamps, and gets a 422 with another',
    async () => {
      const card = await createCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const [same, other] = [
        stamp(card.path, 2, `lost ${card.id}`),
        stamp(card.path, 1, `lost ${card.id}`),
      ];
      await expireLeases();
      expect(summarize(await same)).toEqual([200, 3]);
      expect((await other).status).toBe(422);
    },
    SLOW,
  );

  it(
    'gets a 503 and writes nothing while nobody finishes the intent',
    async () => {
      const card = await createCard();
      await stamp(card.path, 1, `first ${card.id}`);
      await openAndDie(card, 2, `lost ${card.id}`);
      const retry = await stamp(card.path, 2, `lost ${card.id}`);
      expect([retry.status, retry.body.code]).toEqual([503, 'unavailable']);
      expect(retry.headers.get('retry-after')).not.toBeNull();
      expect(await readStamps(card.stream)).toEqual([1]);
      await expireLeases();
      await eventually(countIntents, (count) => count === 0);
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
    'two requests with the same receipt number at the same time add one stamp and get the same balance',
    async () => {
      const card = await createCard();
      for (let i = 1; i <= 20; i++) {
        // The claim is there for a while before its event.
        server.fault.failAppends(1);
        const receipt = `twice ${card.id} ${i}`;
        const responses = await Promise.all([
          stamp(card.path, 1, receipt),
          stamp(card.path, 1, receipt, second),
        ]);
        expect(responses.map(summarize)).toEqual([
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
   * second api: sees that the card's stream exists       it wrote it: no rejection, and nothing is done twice
   */
  it(
    'an api that was paused for longer than its lease responds with what another process did for it',
    async () => {
      const { card } = await enrol(store);
      server.fault.delayResponses(4_000);
      const customer = { first_name: 'Paula', email: `paused-${card.id}@example.com` };
      const body = { customer, card_id: card.id };
      const creation = second.post<{ id: number }>(`${store.store}/customers`, body);
      await eventually(countIntents, (count) => count === 1);
      program.signal('SIGSTOP');
      server.fault.clear();
      await expireLeases();
      await eventually(countIntents, (count) => count === 0);
      program.signal('SIGCONT');
      const { status, body: created } = await creation;
      expect(status).toBe(201);
      expect((await store.get(`${store.store}/customers/${created.id}`)).status).toBe(200);
      const writtenEvents = (await readAllEvents(deadProcess.store)).filter(
        ({ stream, data }) =>
          stream === `customer-${created.id}` || data['customerId'] === created.id,
      );
      expect(writtenEvents.map(({ type }) => type)).toEqual([
        'CustomerCreated',
        'CustomerCardIssued',
      ]);
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
    'is given up before its request gets a 503',
    async () => {
      const { card } = await enrol(store);
      const release = server.fault.holdResponses('read');
      const customer = { first_name: 'Ada', email: `given-up-${card.id}@example.com` };
      const creation = store.post(`${store.store}/customers`, { customer, card_id: card.id });
      await eventually(countIntents, (count) => count === 1);
      const allowConnections = await refuseConnections();
      await server.stopListening();
      release();
      const { countRefused, restore } = watchConnections();
      // Giving the intent up is tried five times a second, and little else needs a connection.
      await eventually(countRefused, (count) => count > 4);
      restore();
      await allowConnections();
      const { status } = await creation;
      const remaining = await countIntents();
      server.fault.clear();
      await server.listenAgain();
      expect([status, remaining]).toEqual([503, 0]);
      await eventually(
        async () => (await store.post(`${store.store}/customers`, { customer })).status,
        (now) => now === 201,
      );
    },
    SLOW,
  );

  /** Counts the connections of the api that PostgreSQL refuses. */
  function watchConnections(): { countRefused: () => number; restore: () => void } {
    type Callback = (error: Error | undefined, ...rest: unknown[]) => void;
    const pool = service.app.get(pg.Pool, { strict: false });
    const connect = pool.connect.bind(pool) as (callback: Callback) => void;
    let count = 0;
    const spy = jest.spyOn(pool, 'connect').mockImplementation(((callback: Callback) =>
      connect((error, ...rest) => {
        if (error) count++;
        callback(error, ...rest);
      })) as typeof pool.connect);
    return { countRefused: () => count, restore: () => spy.mockRestore() };
  }

  /** Refuses connections other than the test's own. @returns a function that allows them again */
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
      'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1 and pid <> $2',
      [name, rows[0]?.pid],
    );
    return async () => {
      await admin.query(`alter database ${name} allow_connections true`);
      await admin.end();
    };
  }
});

describe('the intent of a change to a customer', () => {
  type Person = { id: number; path: string; stream: string };

  async function createPerson(): Promise<Person> {
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    return { id: customer.id, path, stream: `customer-${customer.id}` };
  }

  /** Simulates a request that changed the name and the address, opened its intent and died. */
  async function renameAndDie({ id, stream }: Person): Promise<void> {
    const last = await getLastEvent(stream);
    const at = new Date().toISOString();
    const { rows } = await service.database.query<{ state: object }>(
      'select state from customers where id = $1',
      [id],
    );
    const personal = { firstName: 'Zebulon', email: `zebulon${id}@example.com` };
    const events = await deadProcess.keys.sealEvents([
      {
        id: randomUUID(),
        type: 'CustomerUpdated',
        version: 1,
        data: { customerId: id, personal },
        meta: { ...last.meta, occurredAt: at, recordedAt: at },
      },
    ]);
    const state = { ...rows[0]?.state, ...personal, updatedAt: at };
    const row = { table: 'customers', id, projectionVersion: 1, state, subjectId: id };
    const intent = createIntent(randomUUID(), {
      accountId: store.accountId,
      writes: [{ stream, expected: { revision: last.revision, hash: last.hash }, events, row }],
      claims: [deadProcess.keys.createClaim(store.accountId, 'email', personal.email, stream)],
    });
    await openIntent(getPool(deadProcess.source), await sealIntent(deadProcess.keys, intent));
  }

  const readIntents = async () =>
    (await service.database.query<{ content: string }>('select content::text from es.intents')).rows
      .map(({ content }) => content)
      .join();
  const show = async ({ path }: Person) => (await store.get<CustomerJson>(path)).body;

  it(
    'contains no personal data in clear, and the process that finishes it updates the read model',
    async () => {
      const person = await createPerson();
      await renameAndDie(person);
      expect(await readIntents()).toContain(person.stream);
      expect(await readIntents()).not.toMatch(/zebulon/i);
      await expireLeases();
      await eventually(countIntents, (remaining) => remaining === 0, SLOW);
      expect(await show(person)).toMatchObject({ first_name: 'Zebulon' });
    },
    SLOW,
  );

  it(
    'changes nothing when the customer is erased before it is finished',
    async () => {
      const person = await createPerson();
      await renameAndDie(person);
      expect((await store.post(`${person.path}/erase`)).status).toBe(204);
      await expireLeases();
      await eventually(countIntents, (remaining) => remaining === 0, SLOW);
      expect(await show(person)).toMatchObject({ first_name: 'Erased', email: null });
      expect((await getLastEvent(person.stream)).type).toBe('CustomerErased');
    },
    SLOW,
  );

  it(
    'makes a new customer with its e-mail address wait until it is given up, and then succeed',
    async () => {
      const person = await createPerson();
      await renameAndDie(person);
      const response = await store.send('PATCH', person.path, {
        customer: { last_name: 'Ypsilon' },
      });
      expect(response.status).toBe(200);
      const customer = { first_name: 'Ada', email: `zebulon${person.id}@example.com` };
      const creation = store.post(`${store.store}/customers`, { customer });
      await expireLeases();
      expect((await creation).status).toBe(201);
    },
    SLOW,
  );

  it(
    'lets the customer change back to the former e-mail address while it is not closed yet',
    async () => {
      const { query } = service.database;
      const person = await createPerson();
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
      await expireLeases();
      expect((await back).status).toBe(200);
    },
    SLOW,
  );

  it(
    'is finished by another process when it erases the customer, whose key is destroyed too',
    async () => {
      const person = await createPerson();
      const last = await getLastEvent(person.stream);
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
      const row = { table: 'customers', id: person.id, projectionVersion: 1, state };
      const intent = createIntent(randomUUID(), {
        accountId: store.accountId,
        writes: [{ stream: person.stream, expected, events: [event], row }],
        erasures: [{ subjectId: person.id, stream: person.stream }],
      });
      await openIntent(getPool(deadProcess.source), await sealIntent(deadProcess.keys, intent));
      const keys = () =>
        service.database.query('select from personal_keys where subject_id = $1', [person.id]);
      expect((await keys()).rowCount).toBe(1);
      await expireLeases();
      await eventually(countIntents, (remaining) => remaining === 0, SLOW);
      expect((await keys()).rowCount).toBe(0);
      expect(await show(person)).toMatchObject({ first_name: 'Erased' });
    },
    SLOW,
  );
});
