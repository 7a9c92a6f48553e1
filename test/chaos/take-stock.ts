import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyCheckpoint, verifyProof } from '../../clients/verifier/verifier.mjs';
import { eventually } from '../support/jest/eventually.js';
import type { Arrived, Inbox } from './inbox.js';
import { Difference, shownCard, type Json, type Lane } from './lane.js';
import { reached, stampsOf } from './model.js';
import { expectPasses } from './passes.js';
import { say } from './say.js';
import type { Stack } from './stack.js';

/** @property gaps whether there are events in between that nobody is sent */
type CardHistory = { events: Json[]; erased: boolean; gaps: boolean };

export type Inboxes = { always: Inbox; paused: Inbox; failing: Inbox };

type Stock = { stack: Stack; lanes: Lane[] } & Inboxes;

/** Longer than the longest wait for a retry. */
const NEXT_WITHIN_MS = 600_000;
/** Of so many events a proof is asked for. */
const PROVEN = 20;

/** Compares the model with everything that can be seen from outside. @throws Difference, the first one */
export async function expectNoDifference(stock: Stock): Promise<void> {
  const { stack, lanes, always, paused, failing } = stock;
  failing.recover();
  const steps: Record<string, () => unknown> = {
    records: () => Promise.all(lanes.map(expectRecords)),
    totals: () => expectTotals(lanes),
    passes: () => expectPasses(lanes),
    'sent at once': () => expectDelivered(lanes, always),
    replayed: async () => {
      await replay(lanes, paused);
      await expectDelivered(lanes, paused);
    },
    'sent again': () => expectDelivered(lanes, failing),
    bytes: () => [paused, failing].forEach((other) => expectSameBytes(lanes, always, other)),
    feed: () => expectFeed(lanes, always),
    queues: () => expectNothingLeft(stack),
    checkpoint: () => stack.signed(),
    proofs: () => expectProofs(stock),
    verify: () => expectVerified(stack),
  };
  for (const [name, check] of Object.entries(steps)) {
    const began = Date.now();
    await check();
    say(`${name}: ${Date.now() - began} ms`);
  }
}

function expectVerified(stack: Stack): void {
  const verified = stack.run('verify', '--checkpoints', stack.checkpoints);
  if (!verified.includes('every read model matches its events')) throw new Difference(verified);
}

async function expectRecords(lane: Lane): Promise<void> {
  for (const card of lane.cards) {
    const { id, name, required, rewards } = card;
    await lane.expectShown(`${lane.store}/cards/${id}`, { name, stamps_required: required });
    for (const reward of rewards) {
      const { id: rewardId, name: called, required: stamps_required, active, deleted } = reward;
      const expected = { name: called, stamps_required, active };
      await lane.expectShown(`${lane.store}/rewards/${rewardId}`, deleted ? 404 : expected);
    }
  }
  for (const customer of lane.customers) {
    const { id, firstName, email, issued, mergedInto } = customer;
    const path = `${lane.store}/customers/${id}`;
    await lane.expectShown(path, {
      first_name: firstName,
      email,
      stamp_count: stampsOf(customer),
      merged_into: mergedInto?.id ?? null,
    });
    for (const one of issued) {
      const customerCard = reached(one);
      const expectedCard = shownCard(customerCard);
      await lane.expectShown(lane.pathOf(customerCard), expectedCard);
      await lane.expectShown(`${path}/customer_cards/${one.id}`, expectedCard);
    }
  }
  for (const { kind, id, fields } of lane.plain) {
    await lane.expectShown(`${lane.store}/${kind}s/${id}`, fields);
  }
}

/** Nothing is there twice. */
async function expectTotals(lanes: Lane[]): Promise<void> {
  const [lane] = lanes;
  if (!lane) return;
  const sum = (count: (one: Lane) => number) => lanes.reduce((all, one) => all + count(one), 0);
  const plain = (kind: string) =>
    sum(({ plain: all }) => all.filter((one) => one.kind === kind).length);
  await lane.expectShown(lane.store, {
    customers_count: sum(
      ({ customers }) => customers.filter(({ mergedInto }) => !mergedInto).length,
    ),
    cards_count: sum(({ cards }) => cards.length),
    locations_count: plain('location'),
    posters_count: plain('poster'),
  });
}

/** Every event of every record arrived, as it happened, once, and in order. */
async function expectDelivered(lanes: Lane[], inbox: Inbox): Promise<void> {
  const expected = new Map<string, CardHistory>();
  for (const customer of lanes.flatMap(({ customers }) => customers)) {
    const { id, events, erased, issued, wasMerged } = customer;
    expected.set(`customers/${id}`, { events, erased, gaps: wasMerged });
    for (const card of issued) {
      const history = { events: card.events, erased, gaps: card.wasMerged };
      expected.set(`customer_cards/${card.id}`, history);
    }
  }
  const total = [...expected.values()].reduce((sum, { events }) => sum + events.length, 0);
  const isComplete = () => inbox.arrived.size >= total || inbox.faults.length > 0;
  for (let seen = -1; !isComplete() && inbox.arrived.size > seen;) {
    seen = inbox.arrived.size;
    await eventually(
      () => inbox.arrived.size,
      (arrived) => arrived > seen || isComplete(),
      NEXT_WITHIN_MS,
    ).catch(() => undefined);
  }
  const [fault] = inbox.faults;
  if (fault !== undefined) throw new Difference(fault);
  const [lane] = lanes;
  for (const [about, { events, erased, gaps }] of expected) {
    const arrived = [...(inbox.about.get(about) ?? [])];
    if (!inbox.inOrder) arrived.sort((a, b) => a.sequence - b.sequence);
    const ordered = (one: Arrived, sequence: number) => ({
      ...one.facts,
      sequence: gaps ? 0 : one.sequence - sequence,
    });
    // Once a person is erased, an event has the name or not, by when it was sent. Where a merge gave somebody another
    // key, an event that is sent late has the name as of then.
    const named = (event: Json, i: number) => {
      const firstName = arrived[i]?.facts['firstName'];
      const later = gaps && events.slice(i).some((other: Json) => other['firstName'] === firstName);
      return firstName !== undefined && ((erased && firstName === 'Erased') || later)
        ? { ...event, firstName }
        : event;
    };
    lane?.expect(
      `what was sent about ${about} to ${inbox.path}`,
      arrived.map(ordered),
      events.map((event, i) => ({ ...named(event, i), sequence: 0 })),
    );
  }
  lane?.expect(`the number of events at ${inbox.path}`, inbox.arrived.size, total);
}

/** An event has the same bytes whenever and wherever it is sent, unless somebody was erased, or merged with them. */
function expectSameBytes(lanes: Lane[], always: Inbox, some: Inbox): void {
  const erased = new Set(
    lanes
      .flatMap(({ customers }) => customers)
      .filter((customer) => customer.erased || customer.wasMerged)
      .flatMap(({ id, everHeld }) => [
        `customers/${id}`,
        ...[...everHeld].map((card) => `customer_cards/${card.id}`),
      ]),
  );
  for (const { id, digest, about, text } of always.arrived.values()) {
    const other = some.arrived.get(id);
    if (other?.digest !== digest && !erased.has(about)) {
      throw new Difference(
        `${id} was sent to two subscriptions with different bytes\n  ${text}\n  ${other?.text}`,
      );
    }
  }
  for (const about of [...always.rewritten, ...some.rewritten]) {
    if (!erased.has(about)) throw new Difference(`an event about ${about} came with other bytes`);
  }
}

/** Events that were not sent while the subscription was paused. */
async function replay([lane]: Lane[], paused: Inbox): Promise<void> {
  await lane?.write('POST', `${paused.path}/replay`, { from: '2020-01-01T00:00:00Z' });
}

/** The feed has the same events, with the same ids. */
async function expectFeed([lane]: Lane[], always: Inbox): Promise<void> {
  if (!lane) return;
  const missing = new Set(always.arrived.keys());
  for (let after = ''; ;) {
    const path = `${lane.store}/events?limit=250${after && `&after=${after}`}`;
    const page = (await lane.caller.settle({ method: 'GET', path })).body as { id: string }[];
    for (const { id } of page) {
      if (!missing.delete(id)) throw new Difference(`the feed shows ${id} twice, or nobody got it`);
    }
    after = page.at(-1)?.id ?? '';
    if (page.length < 250) break;
  }
  lane.expect('events that the feed does not show', [...missing].slice(0, 5), []);
}

/** One row for each record with a history of its own. */
const ROWS = [
  'accounts',
  'cards',
  'rewards',
  'customers',
  'customer_cards',
  'locations',
  'posters',
];

/** No commit is half done, no delivery is forgotten, and the table of the history lists every event once. */
async function expectNothingLeft(stack: Stack): Promise<void> {
  const events = ROWS.map((table) => `(select coalesce(sum(revision + 1), 0) from ${table})`);
  const left = async () => {
    const [row] = await stack.ask<Record<string, number>>(
      `select (select count(*) from es.intents)::int as intents,
         (select count(*) from webhook_pending)::int as deliveries,
         (${events.join(' + ')} - (select count(*) from history))::int as unlisted,
         (select coalesce(max(seq) + 1, 0) - count(*) from history)::int as gaps`,
    );
    return row;
  };
  const nothing = (row: Record<string, number> | undefined) =>
    row !== undefined && Object.values(row).every((count) => count === 0);
  await eventually(left, nothing, 240_000);
}

/** By the verifier, which knows nothing of the service: each checkpoint is signed, and events are in the newest. */
async function expectProofs({ stack, lanes: [lane], always }: Stock): Promise<void> {
  if (!lane) return;
  const { verifier_key: key } = JSON.parse(stack.run('cli', 'checkpoint:key')) as Json;
  const files = readdirSync(stack.checkpoints).filter((name) => name.endsWith('.checkpoint'));
  for (const name of files) {
    verifyCheckpoint(readFileSync(join(stack.checkpoints, name), 'utf8'), String(key));
  }
  const ids = [...always.arrived.keys()];
  for (let i = 0; i < PROVEN; i++) {
    const path = `${lane.store}/history/${lane.random.pick(ids)}/proof`;
    const { body } = await lane.caller.settle({ method: 'GET', path });
    const { index, size } = verifyProof(body as object, String(key));
    lane.expect(`the tree that ${path} is about`, index < size, true);
  }
}
