import { jsonEvent } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { ErrorJson } from '#platform/http/error-response.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { Client, type LocalService } from '../support/services/service.js';
import {
  startOnSharedEventStore,
  type SharedEventStore,
} from '../support/services/shared-event-store.js';
import { subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/** Somebody else damages a stream between the appends of a commit to several: a part of it is written, and stays. */

const SLOW = 300_000;
const PREFIX = 'inkpad_';
const BOTH_KEYS = {
  MASTER_KEY: Buffer.alloc(32, 8).toString('base64'),
  MASTER_KEY_PREVIOUS: Buffer.alloc(32, 7).toString('base64'),
};

let parts: SharedEventStore;
let server: SharedEventStore['server'];
let database: SharedEventStore['database'];
let service: LocalService;
let store: Client;
let client: SharedEventStore['client'];

beforeAll(async () => {
  parts = await startOnSharedEventStore();
  ({ server, database, service, store, client } = parts);
}, SLOW);
afterAll(() => parts.stop(), SLOW);

const webhooks = useWebhooks(() => service);

type Incomplete = { id: string; damage: string | null; isForToday: boolean; streams: string[] };

async function findIntents(): Promise<Incomplete[]> {
  const { rows } = await database.query<Incomplete>(
    `select id, damage, leased_until < now() + interval '12 hours' as "isForToday",
       array(select w ->> 'stream' from json_array_elements(content -> 'writes') w) as streams
     from es.intents order by created_at`,
  );
  return rows;
}

/**
 * Sends a request, and damages a stream of its commit once the first one is written.
 * @param at which of the commit's streams
 */
async function interrupt(
  path: string,
  body: object,
  damage: (stream: string) => Promise<unknown>,
  at = -1,
): Promise<Incomplete> {
  const earlier = new Set((await findIntents()).map(({ id }) => id));
  const { appended } = server;
  const release = server.fault.holdResponses('append');
  // Whether it was done cannot be said, so the connection ends.
  const response = store.post(path, body).catch(() => 'lost');
  const isNew = ({ id }: Incomplete) => !earlier.has(id);
  const intents = await eventually(findIntents, (rows) => rows.some(isNew));
  await eventually(
    () => server.appended,
    (now) => now > appended,
  );
  const stream = intents.find(isNew)?.streams.at(at) ?? '';
  server.fault.clear();
  await damage(PREFIX + stream);
  release();
  expect(await response).toBe('lost');
  const intent = (await findIntents()).find(isNew);
  if (!intent) throw new Error('the intent is gone');
  return intent;
}

async function run(script: string, environment: NodeJS.ProcessEnv, ...args: string[]) {
  const program = startProgram(
    `dist/apps/cli/${script}.js`,
    createTestEnvironment(database.url, environment),
    args,
  );
  return { code: await program.exitCode, output: program.output() };
}

const appendForeign = (stream: string) =>
  client.appendToStream(stream, jsonEvent({ type: 'Sold', data: {} }));
const tombstone = (stream: string) => client.tombstoneStream(stream);

async function mergeInto(damage: (stream: string) => Promise<unknown>, at = -1) {
  const from = await enrol(store);
  const into = await enrol(store, { on: from.card });
  await store.stamp(from.path, 3);
  await store.stamp(into.path);
  const merge = `${store.store}/customers/${into.customer.id}/merge`;
  const intent = await interrupt(merge, { from_customer_id: from.customer.id }, damage, at);
  return { from, into, merge, intent };
}

/** Starts the intent's next try, as a day later. */
async function tryAgain({ id }: Incomplete): Promise<void> {
  await database.query('update es.intents set leased_until = now() where id = $1', [id]);
  await eventually(findIntents, (rows) =>
    rows.every((row) => row.id !== id || row.isForToday === false),
  );
}

/** Makes a move fail that completes the last of several commits, as if it were killed before. */
async function failAtLastCommit(): Promise<void> {
  await database.query(
    `create or replace function es.fail_at_last() returns trigger language plpgsql as $$
     begin
       if (select count(*) from es.intents) > 1 then return old; end if;
       raise exception 'killed here';
     end $$`,
  );
  await database.query(
    'create trigger fail_at_last before delete on es.intents for each row execute function es.fail_at_last()',
  );
}

describe.each([
  ['an event', appendForeign, -1, /event \d+ of customer\S* is not ours/],
  ['a tombstone', tombstone, -1, /customer\S* is deleted for good/],
  ['an event to the other customer', appendForeign, 1, /event \d+ of customer-\d+ is not ours/],
] as const)('a merge between whose appends somebody else appends %s', (_, damage, at, reason) => {
  it(
    'stays incomplete, is tried again once a day, and is named by verify, while all others go on',
    async () => {
      const { from, into, merge, intent } = await mergeInto(damage, at);
      expect(intent).toMatchObject({ damage: expect.stringMatching(reason), isForToday: false });
      await tryAgain(intent);

      const otherHolder = await enrol(store);
      expect((await store.stamp(otherHolder.path)).status).toBe(200);
      // It writes the read models of what is appended.
      await webhooks.startDispatcher();
      const mergeAgain = () =>
        store.post<ErrorJson>(merge, { from_customer_id: otherHolder.customer.id });
      expect((await mergeAgain()).body.code).toBe('history_damaged');
      const unmerge = `${store.store}/customers/${into.customer.id}/unmerge`;
      const unmerged = await store.post<ErrorJson>(unmerge, {
        from_customer_id: from.customer.id,
      });
      expect(unmerged.body.code).toBe('history_damaged');
      expect((await store.get(into.path)).status).toBe(200);

      const receiver = await webhooks.receive();
      await subscribe(store, receiver);
      await store.stamp(otherHolder.path);
      await eventually(
        () => receiver.events.length,
        (count) => count > 0,
      );

      const { code, output } = await run('verify', service.environment);
      expect(code).toBe(1);
      expect(output).toMatch(
        new RegExp(`a commit of \\S+Z is incomplete, since ${reason.source}: it is completed once`),
      );
      expect(output).not.toMatch(/\n\s+at /);
    },
    SLOW,
  );
});

it(
  'a new record with an event of somebody else between its appends stays incomplete, and is completed by a move to PostgreSQL, as all others are, although it is killed between two of them',
  async () => {
    const { card } = await enrol(store);
    const customer = { first_name: 'Ada', email: 'incomplete@example.com' };
    const body = { customer, card_id: card.id };
    const created = await interrupt(`${store.store}/customers`, body, appendForeign);
    expect(created.damage).toMatch(/^event 0 of \S+ is not ours$/);
    const { into } = await mergeInto(appendForeign);
    const repeated = await store.post<ErrorJson>(`${store.store}/customers`, body);
    expect(repeated.status).toBe(422);

    await service.stop();
    const keys = { ...service.environment, ...BOTH_KEYS };
    const refused = await run('cli', keys, 'key:rotate');
    expect(refused).toEqual({
      code: 1,
      output: expect.stringMatching(
        /^A commit of \S+Z is incomplete, since event \d+ of \S+ is not ours,.* move-events /,
      ),
    });
    const move = () => run('move-events', service.environment, '--to', 'postgres');
    const { length } = await findIntents();
    await failAtLastCommit();
    expect(await move()).toMatchObject({ code: 1, output: expect.stringContaining('killed here') });
    expect(await findIntents()).toHaveLength(1);
    expect(length).toBeGreaterThan(1);
    await database.query('drop trigger fail_at_last on es.intents');
    for (const run of [await move(), await move()])
      expect(run).toMatchObject({
        code: 0,
        output: expect.stringContaining('every commit is complete'),
      });
    expect(await findIntents()).toEqual([]);
    const { code, output } = await run('verify', { EVENT_STORE_URL: '' });
    expect([code, output]).toEqual([0, expect.stringContaining('every read model matches')]);
    expect(await run('cli', { ...BOTH_KEYS, EVENT_STORE_URL: '' }, 'key:rotate')).toMatchObject({
      code: 0,
    });

    service = await parts.start({ ...BOTH_KEYS, EVENT_STORE_URL: '' });
    const toClient = new Client(service.baseUrl, store.accountId, store.token);
    const { body: merged } = await toClient.get<CustomerCardDetailJson>(into.path);
    expect(merged.stamps_count).toBe(4);
    const { body: listed } = await toClient.get<{ customers: CustomerJson[] }>(
      `${store.store}/customers?email=incomplete@example.com`,
    );
    expect(listed.customers).toHaveLength(1);
  },
  SLOW,
);
