import { binaryEvent, jsonEvent, type EventData } from '@eventstore/db-client';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { ErrorJson } from '#platform/http/error-response.js';
import { Browser } from '../support/browser/browser.js';
import { createTestEnvironment } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import {
  startOnSharedEventStore,
  type SharedEventStore,
} from '../support/services/shared-event-store.js';
import { subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/** What the scripts, the history and webhooks make of a history to which others have appended, or from which events are lost. */

const SLOW = 300_000;
const SOLD = { type: 'Sold', data: { amount: 5 } };

let parts: SharedEventStore;
let server: SharedEventStore['server'];
let database: SharedEventStore['database'];
let service: SharedEventStore['service'];
let store: SharedEventStore['store'];
let client: SharedEventStore['client'];
const webhooks = useWebhooks(() => service);

beforeAll(async () => {
  parts = await startOnSharedEventStore();
  ({ server, database, service, store, client } = parts);
}, SLOW);
afterAll(() => parts.stop(), SLOW);

async function run(
  script: string,
  ...args: string[]
): Promise<{ code: number | null; output: string }> {
  const environment = createTestEnvironment(database.url, {
    DATABASE_MIGRATION_URL: database.ownerUrl,
    ...service.environment,
  });
  const program = startProgram(`dist/apps/cli/${script}.js`, environment, args);
  const code = await program.exitCode;
  const output = program.output();
  expect(output).not.toMatch(/\n\s+at /);
  return { code, output };
}

async function enrolAndStamp() {
  const enrolled = await enrol(store);
  for (let i = 0; i < 3; i++) await store.stamp(enrolled.path);
  const stream = `customer_card-${enrolled.customerCard.id}`;
  return { ...enrolled, stream, name: `inkpad_${stream}` };
}

const append = (name: string, event: EventData) => client.appendToStream(name, event);

const findCode = async (path: string) => {
  const { status, body } = await store.get<ErrorJson>(path);
  return status === 200 ? status : [status, body.code];
};

it(
  'webhooks of a record are delivered up to its damage, and those of all others go on',
  async () => {
    const receiver = await webhooks.receive();
    await subscribe(store, receiver);
    const damaged = await enrolAndStamp();
    await append(damaged.name, jsonEvent(SOLD));
    const otherHolder = await enrolAndStamp();
    await webhooks.startDispatcher();
    const getIds = () =>
      receiver.events.map(({ body }) => (body['data'] as { customer_id: number }).customer_id);
    await eventually(getIds, (ids) => ids.length === 6);
    expect(getIds().toSorted()).toEqual(
      [damaged, otherHolder].flatMap(({ customer: { id } }) => [id, id, id]).toSorted(),
    );
  },
  SLOW,
);

it(
  'webhooks of a record whose events are hidden go on after a restart of the dispatcher, and those of all others',
  async () => {
    const receiver = await webhooks.receive();
    await subscribe(store, receiver);
    const trimmed = await enrolAndStamp();
    const deleted = await enrolAndStamp();
    const otherHolder = await enrolAndStamp();
    const dispatcher = await webhooks.startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 9,
    );
    await dispatcher.kill('SIGTERM');
    const all = [trimmed, deleted, otherHolder];
    for (let i = 0; i < 2; i++) for (const { path } of all) await store.stamp(path);
    await client.setStreamMetadata(trimmed.name, { maxCount: 1 });
    await client.tombstoneStream(deleted.name);
    await webhooks.startDispatcher();
    await eventually(
      () => receiver.events.length,
      (count) => count === 15,
    );
    const balances = receiver.events
      .slice(9)
      .map(({ body }) => body['data'] as { customer_id: number; stamps_count: number })
      .filter(({ customer_id }) => customer_id === otherHolder.customer.id)
      .map(({ stamps_count }) => stamps_count);
    expect(balances).toEqual([4, 5]);
    await client.setStreamMetadata(trimmed.name, {});
  },
  SLOW,
);

it(
  'webhooks of a tombstoned customer go on whose key was renewed, and those of all others',
  async () => {
    const receiver = await webhooks.receive();
    await subscribe(store, receiver, { event: 'customer.updated' });
    const [{ customer: survivor }, { customer: gone }, { customer: otherCustomer }] = [
      await enrol(store),
      await enrol(store),
      await enrol(store),
    ];
    const getPath = ({ id }: { id: number }) => `${store.store}/customers/${id}`;
    const rename = ({ id }: { id: number }, first_name: string) =>
      store.send('PATCH', getPath({ id }), { customer: { first_name } });
    await rename(gone, 'Ada');
    for (const action of ['merge', 'unmerge'])
      await store.post(`${getPath(survivor)}/${action}`, { from_customer_id: gone.id });
    await rename(survivor, 'Bea');
    await store.post(`${getPath(gone)}/erase`);
    expect(await service.app.get(PersonalKeys).findRenewed([survivor.id])).toEqual([survivor.id]);
    await client.tombstoneStream(`inkpad_customer-${survivor.id}`);
    await rename(otherCustomer, 'Cleo');
    await webhooks.startDispatcher();
    await eventually(
      () => receiver.events.map(({ body }) => (body['data'] as { first_name?: string }).first_name),
      (names) => names.includes('Bea') && names.includes('Cleo'),
    );
    expect(await webhooks.queryRows('select from es.postponed_events')).toEqual([]);
  },
  SLOW,
);

const FOREIGN: [what: string, damage: (name: string) => Promise<unknown>, type: string][] = [
  ['an event without metadata', (name) => append(name, jsonEvent(SOLD)), 'Sold'],
  [
    'metadata of somebody else',
    (name) => append(name, jsonEvent({ ...SOLD, metadata: { userId: 5 } })),
    'Sold',
  ],
  [
    'bytes',
    (name) => append(name, binaryEvent({ type: 'Photo', data: Buffer.from([0, 1]) })),
    'Photo',
  ],
  ['a link', (name) => append(name, binaryEvent({ type: '$>', data: Buffer.from('0@x-1') })), '$>'],
  ['a tombstone', (name) => client.tombstoneStream(name), '$streamDeleted'],
];

it(
  'verify names each foreign event with stream, revision, type and time, and what to do',
  async () => {
    const streams = new Map<string, string>();
    for (const [, damage, type] of FOREIGN) {
      const { name } = await enrolAndStamp();
      await damage(name);
      streams.set(name, type);
    }
    await append('inkpad_card-x', jsonEvent(SOLD));
    const { code, output } = await run('verify');
    expect(code).toBe(1);
    for (const [name, type] of streams) {
      const line = output.split('\n').find((candidate) => candidate.startsWith(`${name}: event `));
      expect(line).toMatch(/: event \d+ \(\S+, \d{4}-\d\d-\d\dT[\d:.]+Z\) .*move the history/);
      expect(line).toContain(`(${type}, `);
    }
    expect(output).toMatch(/^inkpad_card-x: event 0 \(Sold, .*there is nothing to do/m);
  },
  SLOW,
);

it(
  'the history lists what a record with foreign events has, and names the part that is damaged once events are hidden',
  async () => {
    const foreign = await enrolAndStamp();
    await append(foreign.name, jsonEvent(SOLD));
    const trimmed = await enrolAndStamp();
    await webhooks.startDispatcher();
    await eventually(
      () => webhooks.queryRows('select from history where stream = $1', trimmed.stream),
      ({ length }) => length === 4,
    );
    const getPaths = ({ customer, path }: typeof foreign) => [
      `${store.store}/history?customer_id=${customer.id}`,
      `${path}/explain`,
    ];
    for (const path of [...getPaths(foreign), ...getPaths(trimmed)])
      expect([path, await findCode(path)]).toEqual([path, 200]);
    await client.setStreamMetadata(trimmed.name, { maxCount: 1 });
    const [history = '', explain = ''] = getPaths(trimmed);
    expect(await findCode(explain)).toEqual([503, 'history_damaged']);
    for (const path of [history, ...getPaths(foreign)])
      expect([path, await findCode(path)]).toEqual([path, 200]);

    const browser = new Browser(service);
    await browser.signIn(store.email, 'correct horse');
    const base = `/app/stores/${store.accountId}`;
    const show = (path: string) => browser.get(base + path, { 'accept-language': 'de' });
    for (const path of ['/customers/', '/history?customer_id=']) {
      const pages = [
        await show(path + foreign.customer.id),
        await show(path + trimmed.customer.id),
      ];
      expect(pages.map(({ status }) => status)).toEqual([200, 200]);
      const isDamaged = ({ text }: { text: string }) =>
        text.includes('Teil des Verlaufs ist beschädigt');
      expect(pages.map(isDamaged)).toEqual([false, true]);
    }
    await client.setStreamMetadata(trimmed.name, {});
  },
  SLOW,
);

it(
  'rebuild and move-events take all of a history that is trimmed, and nothing of others, until a scavenge',
  async () => {
    const { name } = await enrolAndStamp();
    await client.setStreamMetadata(name, { maxCount: 1 });
    const rebuilt = await run('rebuild');
    expect(rebuilt).toMatchObject({ code: 0, output: expect.stringContaining('no difference') });

    await client.setStreamMetadata(name, {});
    const lost = await enrolAndStamp();
    await client.setStreamMetadata(lost.name, { maxCount: 1 });
    server.fault.scavenge();
    const readRows = async () =>
      (await database.query('select * from customer_cards order by id')).rows;
    const before = await readRows();
    const rebuiltAgain = await run('rebuild');
    expect(rebuiltAgain.code).toBe(1);
    expect(rebuiltAgain.output).toContain(`${lost.stream}: events 0 to 2 are missing`);
    // What is left of records without events is in their read models.
    expect(rebuiltAgain.output).toContain('the read model has no stream');
    expect(await readRows()).toEqual(before);
    expect(await findCode(lost.path)).toBe(200);
    await service.stop();
    const move = await run('move-events', '--to', 'postgres');
    expect(move.code).toBe(1);
    expect(move.output).toMatch(
      new RegExp(
        `${lost.stream}: event \\d .*follows on one that is missing. Nothing was switched`,
      ),
    );
  },
  SLOW,
);
