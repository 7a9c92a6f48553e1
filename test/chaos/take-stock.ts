import { eventually } from '../support/eventually.js';
import type { Arrived, Inbox } from './inbox.js';
import { Difference, shownCard, type Json, type Lane } from './lane.js';
import type { Stack } from './stack.js';

type Stock = { stack: Stack; lanes: Lane[]; always: Inbox; paused: Inbox };

const DELIVERED_WITHIN_MS = 600_000;

/** Compares the model with everything that can be seen from outside. @throws Difference, the first one */
export async function expectNoDifference(stock: Stock): Promise<void> {
  const { stack, lanes, always, paused } = stock;
  for (const lane of lanes) await expectRecords(lane);
  await expectTotals(lanes);
  await expectDelivered(lanes, always);
  await replay(lanes, paused);
  await expectDelivered(lanes, paused);
  for (const { id, digest } of always.arrived.values()) {
    if (paused.arrived.get(id)?.digest !== digest) {
      throw new Difference(`${id} was sent to two subscriptions with different bytes`);
    }
  }
  await expectFeed(lanes, always);
  await expectNothingLeft(stack);
  const verified = stack.run('verify');
  if (!verified.includes('every row is the fold of its stream')) throw new Difference(verified);
}

async function expectRecords(lane: Lane): Promise<void> {
  for (const card of lane.cards) {
    const { id, name, required, rewards } = card;
    await lane.expectShown(`${lane.store}/cards/${id}`, { name, stamps_required: required });
    for (const reward of rewards) {
      const { id: rewardId, name: called, required: stamps_required, active, deleted } = reward;
      const shown = { name: called, stamps_required, active };
      await lane.expectShown(`${lane.store}/rewards/${rewardId}`, deleted ? 404 : shown);
    }
  }
  for (const { id, firstName, email, cards } of lane.customers) {
    const path = `${lane.store}/customers/${id}`;
    const stamp_count = cards.reduce((sum, { count }) => sum + count, 0);
    await lane.expectShown(path, { first_name: firstName, email, stamp_count });
    for (const held of cards) await lane.expectShown(lane.pathOf(held), shownCard(held));
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
    customers_count: sum(({ customers }) => customers.length),
    cards_count: sum(({ cards }) => cards.length),
    locations_count: plain('location'),
    posters_count: plain('poster'),
  });
}

/** Every event of every record arrived, as it happened, once, and in order. */
async function expectDelivered(lanes: Lane[], inbox: Inbox): Promise<void> {
  const expected = new Map<string, Json[]>();
  for (const customer of lanes.flatMap(({ customers }) => customers)) {
    expected.set(`customers/${customer.id}`, customer.events);
    for (const { id, events } of customer.cards) expected.set(`customer_cards/${id}`, events);
  }
  const total = [...expected.values()].reduce((sum, { length }) => sum + length, 0);
  await eventually(
    () => inbox.arrived.size,
    (arrived) => arrived >= total || inbox.faults.length > 0,
    DELIVERED_WITHIN_MS,
  ).catch(() => undefined);
  const [fault] = inbox.faults;
  if (fault !== undefined) throw new Difference(fault);
  const [lane] = lanes;
  for (const [about, events] of expected) {
    const arrived = [...(inbox.about.get(about) ?? [])];
    if (!inbox.inOrder) arrived.sort((a, b) => a.sequence - b.sequence);
    const ordered = (one: Arrived, sequence: number) => ({
      ...one.facts,
      sequence: one.sequence - sequence,
    });
    lane?.expect(
      `what was sent about ${about} to ${inbox.path}`,
      arrived.map(ordered),
      events.map((event) => ({ ...event, sequence: 0 })),
    );
  }
  lane?.expect(`the number of events at ${inbox.path}`, inbox.arrived.size, total);
}

/** What was not sent while it was paused. */
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
