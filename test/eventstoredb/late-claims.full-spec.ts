import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import {
  createIntent,
  openIntent,
  sealIntent,
} from '#platform/event-store/eventstoredb/intents.js';
import {
  EventStore,
  type Commit,
  type Head,
  type StoredEvent,
  type Write,
} from '#platform/event-store/port/event-store.js';
import { testConfig, createTestEnvironment } from '../support/database/database.js';
import { openStore } from '../support/database/event-store.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Others stamp cards while a commit to them is written, so that what it claims gets a later revision than planned. */

const SLOW = 120_000;

let server: EventStoreDb;
let service: LocalService;
let store: Client;
/** The event store as another process opens it. */
let otherStore: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  otherStore = await openStore(testConfig(service.database.url, service.environment));
}, SLOW);
afterAll(async () => {
  await otherStore.close();
  await service.stop();
  await server.stop();
}, SLOW);

async function readEvents(stream: string): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const event of otherStore.store.readStream(stream)) events.push(event);
  return events;
}

const isToCard = ({ stream }: Write) => stream.startsWith('customer_card-');

/** Appends as a process that writes no read model. */
async function append({ accountId }: Commit, write: Write): Promise<void> {
  const { row: _, ...events } = write;
  await otherStore.store.commit({ accountId, writes: [events] });
}

/** Stamps the cards of a commit, as another process does. */
async function stamp(commit: Commit): Promise<void> {
  for (const { stream } of commit.writes.slice(1).filter(isToCard)) {
    const last = (await readEvents(stream)).at(-1);
    if (!last) throw new Error(`${stream} is empty`);
    const { customerId = 0 } = last.data;
    const details = { externalRef: null, receiptUse: 0, reverses: null, personal: null };
    const event = {
      id: randomUUID(),
      type: 'StampsEarned',
      version: 1,
      data: { customerId, stamps: 1, source: 'api', ...details },
      meta: { ...last.meta, commandId: randomUUID() },
    };
    await append(commit, { stream, expected: last, events: [event] });
  }
}

/** Does what a process does that is killed once it has appended the first write. */
async function beginCommit(commit: Commit): Promise<void> {
  const [first] = commit.writes;
  if (!first) throw new Error('a commit writes something');
  await openIntent(
    otherStore.pool,
    await sealIntent(otherStore.keys, createIntent(randomUUID(), commit)),
  );
  await append(commit, first);
  await stamp(commit);
}

/** Appends the later writes: those to stamped cards are decided again. */
async function appendRest(commit: Commit): Promise<void> {
  const appended = commit.writes.slice(0, 1);
  for (const planned of commit.writes.slice(1)) {
    const write = isToCard(planned)
      ? await otherStore.store.callbacks?.decideFollowUp(planned, appended)
      : planned;
    if (!write) throw new Error('nobody can decide it again');
    await append(commit, write);
    appended.push(write);
  }
}

async function recover(): Promise<void> {
  await service.database.query(`update es.intents set leased_until = now() - interval '1 hour'`);
  await eventually(
    async () => (await service.database.query('select from es.intents')).rowCount,
    (count) => count === 0,
  );
}

type Execute = (commit: Commit, commitNow: EventStore['commit']) => Promise<Head[]>;

/** Sends a request whose commit is executed in another way. */
async function send(path: string, body: object, execute: Execute): Promise<void> {
  const eventStore = service.app.get(EventStore);
  const commitNow = eventStore.commit.bind(eventStore);
  const spy = jest.spyOn(eventStore, 'commit');
  spy.mockImplementationOnce((commit) => execute(commit, commitNow));
  await store.post(path, body);
  expect(spy).toHaveBeenCalled();
  spy.mockRestore();
}

it.each<[string, Execute]>([
  [
    'its process decides again',
    async (commit, commitNow) => {
      await stamp(commit);
      return commitNow(commit);
    },
  ],
  [
    'another process decides again, since its own was killed',
    async (commit) => {
      await beginCommit(commit);
      throw new Error('killed');
    },
  ],
  [
    'another process finds decided again, since its own was killed after it',
    async (commit) => {
      await beginCommit(commit);
      await appendRest(commit);
      await stamp(commit);
      throw new Error('killed');
    },
  ],
])(
  'the claims of a write that %s have the revision of its last event',
  async (_, execute) => {
    const [into, from] = [await enrol(store), await enrol(store)];
    await store.stamp(from.path, 2);
    const merge = `${store.store}/customers/${into.customer.id}/merge`;
    await send(merge, { from_customer_id: from.customer.id }, execute);
    await recover();

    const stamped = await enrol(store);
    const redeemed = await enrol(store, { rewards: [3, 5], card: { initial_stamps: 4 } });
    const external_ref = randomUUID();
    await store.post(`${stamped.path}/stamp`, { stamps: 2, external_ref });
    const redemption = { reward_id: redeemed.rewards[0]?.id, external_ref };
    await store.post(`${redeemed.path}/redeem`, redemption);
    const reverse = `${store.store}/receipts/reverse`;
    await send(reverse, { external_ref, reason: 'A void sale' }, execute);
    await recover();

    const moved = `customer_card-${from.customerCard.id}`;
    const reversed = `customer_card-${redeemed.customerCard.id}`;
    const { rows } = await service.database.query<{ stream_id: string; revision: number }>(
      `select stream_id, revision::int from es.claims
       where (kind, stream_id) in (('enrolment', $1), ('reversal', $2)) order by kind`,
      [moved, reversed],
    );
    const findLast = async (stream: string, type: string) =>
      (await readEvents(stream)).findLast((event) => event.type === type)?.revision;
    expect(rows).toEqual([
      { stream_id: moved, revision: await findLast(moved, 'CustomerCardMoved') },
      // Which the stamp of somebody else has made possible.
      { stream_id: reversed, revision: await findLast(reversed, 'RewardUnlocked') },
    ]);
    const environment = createTestEnvironment(service.database.url, service.environment);
    const verify = startProgram('dist/apps/cli/verify.js', environment);
    expect({ code: await verify.exitCode, output: verify.output() }).toEqual({
      code: 0,
      output: expect.stringContaining('every read model matches'),
    });
  },
  SLOW,
);
