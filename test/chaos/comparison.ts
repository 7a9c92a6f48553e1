import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyCheckpoint, verifyProof } from '../../clients/verifier/verifier.mjs';
import { eventually } from '../support/jest/eventually.js';
import { STORE, type ReceivedEvent, type WebhookReceiver } from './webhook-receiver.js';
import { Difference, toCardJson, type Json, type Worker } from './worker.js';
import { findOpenCard, sumStamps } from './model.js';
import { expectPasses } from './passes.js';
import { report } from './report.js';
import type { Stack } from './stack.js';

/** @property hasGaps whether there are events in between that are not sent to anybody */
type CardHistory = { events: Json[]; erased: boolean; hasGaps: boolean };

export type Receivers = {
  always: WebhookReceiver;
  paused: WebhookReceiver;
  failing: WebhookReceiver;
};

type Comparison = { stack: Stack; workers: Worker[] } & Receivers;

/** Longer than the longest interval between retries. */
const NEXT_EVENT_WITHIN_MS = 600_000;
/** How many events are checked with a proof. */
const PROOF_COUNT = 20;

/** Compares the model with everything that is visible from outside. @throws Difference, the first one */
export async function compareWithModel(comparison: Comparison): Promise<void> {
  const { stack, workers, always, paused, failing } = comparison;
  failing.recover();
  const steps: Record<string, () => unknown> = {
    records: () => Promise.all(workers.map(expectRecords)),
    totals: () => expectTotals(workers),
    passes: () => expectPasses(workers),
    'sent at once': () => expectDelivered(workers, always),
    replayed: async () => {
      await replay(workers, paused);
      await expectDelivered(workers, paused);
    },
    'sent again': () => expectDelivered(workers, failing),
    bytes: () =>
      [paused, failing].forEach((otherReceiver) => expectSameBytes(workers, always, otherReceiver)),
    feed: () => expectFeed(workers, always),
    queues: () => expectNothingPending(stack),
    checkpoint: () => stack.waitForCheckpoint(),
    proofs: () => expectProofs(comparison),
    verify: () => expectVerified(stack),
  };
  for (const [name, check] of Object.entries(steps)) {
    const startedAt = Date.now();
    await check();
    report(`${name}: ${Date.now() - startedAt} ms`);
  }
}

function expectVerified(stack: Stack): void {
  const output = stack.run('verify', '--checkpoints', stack.checkpointDir);
  if (!output.includes('every read model matches its events')) throw new Difference(output);
}

async function expectRecords(worker: Worker): Promise<void> {
  for (const card of worker.cards) {
    const { id, name, required, rewards } = card;
    await worker.expectFields(`${worker.store}/cards/${id}`, { name, stamps_required: required });
    for (const reward of rewards) {
      const { id: rewardId, name: rewardName, required: stamps_required, active, deleted } = reward;
      const expected = { name: rewardName, stamps_required, active };
      await worker.expectFields(`${worker.store}/rewards/${rewardId}`, deleted ? 404 : expected);
    }
  }
  for (const customer of worker.customers) {
    const { id, firstName, email, issued, mergedInto } = customer;
    const path = `${worker.store}/customers/${id}`;
    await worker.expectFields(path, {
      first_name: firstName,
      email,
      stamp_count: sumStamps(customer),
      merged_into: mergedInto?.id ?? null,
    });
    for (const issuedCard of issued) {
      const customerCard = findOpenCard(issuedCard);
      const expectedCard = toCardJson(customerCard);
      await worker.expectFields(worker.getPath(customerCard), expectedCard);
      await worker.expectFields(`${path}/customer_cards/${issuedCard.id}`, expectedCard);
    }
  }
  for (const { kind, id, fields } of worker.simpleRecords) {
    await worker.expectFields(`${worker.store}/${kind}s/${id}`, fields);
  }
}

/** Expects the totals of the store, so that no record exists twice. */
async function expectTotals(workers: Worker[]): Promise<void> {
  const [worker] = workers;
  if (!worker) return;
  const sum = (count: (worker: Worker) => number) =>
    workers.reduce((all, worker) => all + count(worker), 0);
  const countRecords = (kind: string) =>
    sum(({ simpleRecords: all }) => all.filter((record) => record.kind === kind).length);
  await worker.expectFields(worker.store, {
    customers_count: sum(
      ({ customers }) => customers.filter(({ mergedInto }) => !mergedInto).length,
    ),
    cards_count: sum(({ cards }) => cards.length),
    locations_count: countRecords('location'),
    posters_count: countRecords('poster'),
  });
}

/** Expects every event of every record at a receiver, as the model has it, once and in order. */
async function expectDelivered(workers: Worker[], receiver: WebhookReceiver): Promise<void> {
  const expected = new Map<string, CardHistory>();
  for (const customer of workers.flatMap(({ customers }) => customers)) {
    const { id, events, erased, issued, wasMerged } = customer;
    expected.set(`customers/${id}`, { events, erased, hasGaps: wasMerged });
    for (const card of issued) {
      const history = { events: card.events, erased, hasGaps: card.wasMerged };
      expected.set(`customer_cards/${card.id}`, history);
    }
  }
  for (const [about, events] of workers.flatMap(({ recordEvents }) => [...recordEvents])) {
    expected.set(about, { events, erased: false, hasGaps: about === STORE });
  }
  const total = [...expected.values()].reduce((sum, { events }) => sum + events.length, 0);
  const isComplete = () => receiver.events.size >= total || receiver.errors.length > 0;
  for (let lastCount = -1; !isComplete() && receiver.events.size > lastCount;) {
    lastCount = receiver.events.size;
    await eventually(
      () => receiver.events.size,
      (arrived) => arrived > lastCount || isComplete(),
      NEXT_EVENT_WITHIN_MS,
    ).catch(() => undefined);
  }
  const [error] = receiver.errors;
  if (error !== undefined) throw new Difference(error);
  const [worker] = workers;
  for (const [about, { events, erased, hasGaps }] of expected) {
    const arrived = [...(receiver.eventsAbout.get(about) ?? [])];
    if (!receiver.isOrdered) arrived.sort((a, b) => a.sequence - b.sequence);
    const toComparable = (event: ReceivedEvent, sequence: number) => ({
      ...event.view,
      sequence: hasGaps ? 0 : event.sequence - sequence,
    });
    // After an erasure an event may have the name or not, depending on when it was sent. Where a merge gave a customer
    // another key, an event that is sent late has the name as of then.
    const withName = (event: Json, i: number) => {
      const firstName = arrived[i]?.view['firstName'];
      const later =
        hasGaps &&
        events.slice(i).some((otherEvent: Json) => otherEvent['firstName'] === firstName);
      return firstName !== undefined && ((erased && firstName === 'Erased') || later)
        ? { ...event, firstName }
        : event;
    };
    worker?.expect(
      `what was sent about ${about} to ${receiver.path}`,
      arrived.map(toComparable),
      events.map((event, i) => ({ ...withName(event, i), sequence: 0 })),
    );
  }
  worker?.expect(`the number of events at ${receiver.path}`, receiver.events.size, total);
}

/** Expects the same bytes of an event at two receivers, unless its customer was erased or merged. */
function expectSameBytes(workers: Worker[], always: WebhookReceiver, some: WebhookReceiver): void {
  const erased = new Set(
    workers
      .flatMap(({ customers }) => customers)
      .filter((customer) => customer.erased || customer.wasMerged)
      .flatMap(({ id, everHeld }) => [
        `customers/${id}`,
        ...[...everHeld].map((card) => `customer_cards/${card.id}`),
      ]),
  );
  for (const { id, digest, about, text } of always.events.values()) {
    const otherEvent = some.events.get(id);
    if (otherEvent?.digest !== digest && !erased.has(about)) {
      throw new Difference(
        `${id} was sent to two subscriptions with different bytes\n  ${text}\n  ${otherEvent?.text}`,
      );
    }
  }
  for (const about of [...always.rewritten, ...some.rewritten]) {
    if (!erased.has(about)) throw new Difference(`an event about ${about} came with other bytes`);
  }
}

/** Requests the events that were not sent while the subscription was paused. */
async function replay([worker]: Worker[], paused: WebhookReceiver): Promise<void> {
  await worker?.write('POST', `${paused.path}/replay`, { from: '2020-01-01T00:00:00Z' });
}

/** Expects the same events in the feed, with the same ids. */
async function expectFeed([worker]: Worker[], always: WebhookReceiver): Promise<void> {
  if (!worker) return;
  const missing = new Set(always.events.keys());
  for (let after = ''; ;) {
    const path = `${worker.store}/events?limit=250${after && `&after=${after}`}`;
    const page = (await worker.client.sendUntilDone({ method: 'GET', path })).body as {
      id: string;
    }[];
    for (const { id } of page) {
      if (!missing.delete(id))
        throw new Difference(`the feed has ${id} twice, or no receiver has it`);
    }
    after = page.at(-1)?.id ?? '';
    if (page.length < 250) break;
  }
  worker.expect('events that are not in the feed', [...missing].slice(0, 5), []);
}

/** The tables with one row for each stream. */
const READ_MODELS = [
  'accounts',
  'cards',
  'rewards',
  'customers',
  'customer_cards',
  'locations',
  'posters',
];

/** Waits until no commit and no delivery is pending, and the history table has every event once. */
async function expectNothingPending(stack: Stack): Promise<void> {
  const events = READ_MODELS.map(
    (table) => `(select coalesce(sum(revision + 1), 0) from ${table})`,
  );
  const countPending = async () => {
    const [row] = await stack.query<Record<string, number>>(
      `select (select count(*) from es.intents)::int as intents,
         (select count(*) from webhook_pending)::int as deliveries,
         (${events.join(' + ')} - (select count(*) from history))::int as unlisted,
         (select coalesce(max(seq) + 1, 0) - count(*) from history)::int as gaps`,
    );
    return row;
  };
  const isNothing = (row: Record<string, number> | undefined) =>
    row !== undefined && Object.values(row).every((count) => count === 0);
  await eventually(countPending, isNothing, 240_000);
}

/** Verifies the signature of each checkpoint, and that events are in the newest one, with the independent verifier. */
async function expectProofs({ stack, workers: [worker], always }: Comparison): Promise<void> {
  if (!worker) return;
  const { verifier_key: key } = JSON.parse(stack.run('cli', 'checkpoint:key')) as Json;
  const files = readdirSync(stack.checkpointDir).filter((name) => name.endsWith('.checkpoint'));
  for (const name of files) {
    verifyCheckpoint(readFileSync(join(stack.checkpointDir, name), 'utf8'), String(key));
  }
  const ids = [...always.events.keys()];
  for (let i = 0; i < PROOF_COUNT; i++) {
    const path = `${worker.store}/history/${worker.random.pick(ids)}/proof`;
    const { body } = await worker.client.sendUntilDone({ method: 'GET', path });
    const { index, size } = verifyProof(body as object, String(key));
    worker.expect(`the tree that ${path} is about`, index < size, true);
  }
}
