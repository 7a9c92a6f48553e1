import { EventStoreDBClient } from '@eventstore/db-client';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { EventStore, type NewEvent } from '#platform/event-store/port/event-store.js';
import { createId } from '#platform/kernel/randomness.js';
import { RequestCardLinks } from '#loyalty/customers/card-links.commands.js';
import type { ExplanationJson } from '#loyalty/history/explanation.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type Failure,
} from '../support/http/contract.js';
import { testConfig } from '../support/database/database.js';
import { startEventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { openHistory } from '../support/services/history.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const service = useService();
const store = service.useStore();
/** A card with one of everything that can happen on it, in a store of its own. */
let day: Awaited<ReturnType<typeof aDay>>;

beforeAll(async () => {
  day = await aDay();
});

const FIELDS =
  'id type occurred_at recorded_at channel actor request_id customer_id customer_card_id card_id stamps balance reward_id location_id staff_ref external_ref note reverses reversed_by';

async function aDay() {
  const enrolled = await enrol(store, { card: { initial_stamps: 1 }, rewards: [3] });
  const { path, rewards } = enrolled;
  const { body: location } = await store.post<{ id: number }>(`${store.store}/locations`, {
    location: { name: 'Old Town', address: 'Main Street 1' },
  });
  const action = { location_id: location.id, staff_ref: 'Kim', note: 'a cake for Anna' };
  await store.send(
    'POST',
    `${path}/stamp`,
    { stamps: 4, external_ref: 'R-1', source: 'pos', ...action },
    { 'x-request-id': 'till-7.42' },
  );
  await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id, ...action, note: null });
  await store.post(`${store.store}/cards/${enrolled.card.id}/archive`);
  return { ...enrolled, location };
}

type Entries = HistoryEntryJson[];

const events = async (path: string, query = '') =>
  (await store.get<Entries>(`${path}/events${query}`)).body;
const history = async (query = '', client: Client = store) =>
  (await client.get<Entries>(`${client.store}/history${query}`)).body;
const types = (entries: Entries) => entries.map(({ type }) => type);

async function pagesOf(path: string): Promise<{ pages: Entries[]; all: Entries }> {
  const pages: Entries[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Awaited<ReturnType<typeof store.get<Entries>>> = await store.get(next);
    expect(response.status).toBe(200);
    pages.push(response.body);
    const link = /<https:\/\/cards\.example([^>]*)>; rel="next"/.exec(
      response.headers.get('link') ?? '',
    );
    next = link?.[1];
  }
  return { pages, all: pages.flat() };
}

/** Fills the table until it is complete. */
async function fill(running: LocalService = service.running): Promise<void> {
  const opened = await openHistory(testConfig(running.database.url, running.environment));
  const stopping = new AbortController();
  const filling = opened.subscription.run(stopping.signal);
  const { length } = await running.history();
  await eventually(
    async () => (await running.database.query('select from history')).rowCount ?? 0,
    (filled) => filled >= length,
  );
  stopping.abort();
  await filling;
  await opened.close();
}

/** Undoes a redemption of three stamps, the last event of a card, as a reversal writes it. */
async function undo(id: number): Promise<void> {
  const stream = `customer_card-${id}`;
  const written = (await service.running.history()).filter((event) => event.stream === stream);
  const last = written.at(-1);
  if (!last) throw new Error('nothing was redeemed');
  const undoing: NewEvent = {
    id: createId(),
    type: 'StampsEarned',
    version: 2,
    data: {
      customerId: last.data['customerId'] ?? null,
      stamps: 3,
      source: 'adjustment',
      reverses: last.id,
      locationId: null,
      staffRef: null,
      externalRef: null,
      silent: true,
      personal: null,
      templateVersion: 1,
    },
    meta: last.meta,
  };
  const expected = { revision: last.revision, hash: last.hash };
  const log = service.running.app.get(EventStore, { strict: false });
  await log.commit({
    accountId: store.accountId,
    writes: [{ stream, expected, events: [undoing] }],
  });
}

describe('the history', () => {
  it('HIST-01 An entry of the history has exactly the documented fields', async () => {
    for (const entries of [await events(day.path), await history()]) {
      expect(entries.length).toBeGreaterThan(4);
      for (const entry of entries) expect(Object.keys(entry)).toEqual(FIELDS.split(' '));
    }
  });

  it('HIST-02 The history of a customer card is newest first, each entry with its change and the balance after it', async () => {
    const entries = (await events(day.path)).map(({ type, stamps, balance }) => [
      type,
      stamps,
      balance,
    ]);
    expect(entries).toEqual([
      ['reward.redeemed', -3, 2],
      ['reward.unlocked', null, 5],
      ['stamp.earned', 4, 5],
      ['stamp.earned', 1, 1],
      ['customer_card.created', null, 0],
    ]);
    const { customer, customerCard, path } = await enrol(store);
    const context = { ...cli, accountId: store.accountId };
    const ids = { customerId: customer.id, id: customerCard.id };
    expect(await service.running.execute(new RequestCardLinks(context, ids))).toBe(true);
    await fill();
    expect((await events(path))[0]).toMatchObject({
      type: 'customer.card_links_requested',
      balance: null,
    });
  });

  it('HIST-03 The history of a store has every change of any of its records, also those that are no public events', async () => {
    const otherStore = await service.newStore();
    const { customer } = await enrol(otherStore);
    const references = [{ source: 'pos', external_id: '77' }];
    await otherStore.patch(`${otherStore.store}/customers/${customer.id}`, {
      customer: { external_references: references },
    });
    expect(types(await history('', otherStore))).toEqual([
      'customer.references_updated',
      'customer_card.created',
      'customer.created',
      'card.created',
      'account.created',
    ]);
    expect(types(await history())).toContain('card.archived');
  });

  it('HIST-04 An entry of the history says who it was, through which channel, with which request and what they wrote', async () => {
    const [, , stamped] = await events(day.path);
    expect(stamped).toMatchObject({
      channel: 'pos',
      actor: { type: 'token', name: 'till' },
      request_id: 'till-7.42',
      customer_id: day.customer.id,
      customer_card_id: day.customerCard.id,
      card_id: day.card.id,
      location_id: day.location.id,
      staff_ref: 'Kim',
      external_ref: 'R-1',
      note: 'a cake for Anna',
      reverses: null,
      reversed_by: null,
    });
  });

  it('HIST-05 `occurred_at` is when it happened, `recorded_at` when it was recorded', async () => {
    const { path } = await enrol(store);
    const soon = new Date(Date.now() + 60_000).toISOString();
    await store.stamp(path, { occurred_at: soon });
    const [late] = await events(path);
    expect(late?.occurred_at).toBe(soon);
    expect(late && late.recorded_at < soon).toBe(true);
  });

  it('HIST-06 `id` is the same as that of the webhook and in the feed', async () => {
    const dispatcher = await startDispatcher(service.running);
    const [newest] = await events(day.path);
    const feed = await eventually(
      async () => (await store.get<EnvelopeJson[]>(`${store.store}/events`)).body,
      (sentEvents) => sentEvents.some(({ type }) => type === 'reward.redeemed'),
    );
    await dispatcher.kill('SIGTERM');
    expect(feed.find(({ type }) => type === 'reward.redeemed')?.id).toBe(newest?.id);
  });

  it('HIST-07 `type` filters by type; for a type that there is none of, the list is empty', async () => {
    expect(types(await events(day.path, '?type=stamp.earned'))).toEqual([
      'stamp.earned',
      'stamp.earned',
    ]);
    expect(new Set(types(await history('?type=card.archived')))).toEqual(
      new Set(['card.archived']),
    );
    expect(await history('?type=card.painted')).toEqual([]);
  });

  it('HIST-08 `from` (inclusive) and `to` (exclusive) filter by `recorded_at`', async () => {
    const all = await events(day.path);
    const at = all[1]?.recorded_at ?? '';
    const since = all.filter(({ recorded_at }) => recorded_at >= at);
    const until = all.filter(({ recorded_at }) => recorded_at < at);
    expect(await events(day.path, `?from=${at}`)).toEqual(since);
    expect(await events(day.path, `?to=${at}`)).toEqual(until);
    expect(await events(day.path, `?from=${at}&to=${at}`)).toEqual([]);
    await fill();
    expect(await events(day.path, `?from=${at}`)).toEqual(since);
    expect(await events(day.path, `?to=${at}`)).toEqual(until);
    expect(await history('?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z')).toEqual([]);
    expect(await history('?from=2100-01-01T00:00:00Z')).toEqual([]);
  });

  it('HIST-09 The history of a store is also filtered by `customer_id`, `customer_card_id`, `card_id`, `location_id`, `channel` and `actor`, alone and together', async () => {
    const all = await history('?limit=250');
    const [, , stamped] = await events(day.path);
    if (!stamped) throw new Error('nobody has stamped');
    const filters: [string, (entry: HistoryEntryJson) => boolean][] = [
      [`customer_id=${day.customer.id}`, (e) => e.customer_id === day.customer.id],
      [
        `customer_card_id=${day.customerCard.id}`,
        (e) => e.customer_card_id === day.customerCard.id,
      ],
      [`card_id=${day.card.id}`, (e) => e.card_id === day.card.id],
      [`location_id=${day.location.id}`, (e) => e.location_id === day.location.id],
      ['channel=pos', (e) => e.channel === 'pos'],
      [`actor=token:${stamped.actor.id}`, (e) => e.actor.id === stamped.actor.id],
      ['actor=system:0', (e) => e.actor.type === 'system'],
    ];
    for (const filled of [false, true]) {
      if (filled) await fill();
      for (const [query, holds] of filters) {
        const expected = all.filter(holds);
        expect([query, expected.length > 0]).toEqual([query, true]);
        expect(await history(`?limit=250&${query}`)).toEqual(expected);
      }
      const together = filters.slice(0, 6).map(([query]) => query);
      expect(await history(`?type=stamp.earned&${together.join('&')}`)).toEqual([stamped]);
    }
    expect(await history('?actor=user:999999999')).toEqual([]);
  });

  it('HIST-10 A filter that is invalid is 422 on its name; all invalid ones are reported at once', async () => {
    const response = await store.get(
      `${store.store}/history?channel=fax&actor=Kim&customer_id=x&from=yesterday`,
    );
    expectRefused(response, ['channel', 'actor', 'customer_id', 'from']);
    expectRefused(await store.get(`${day.path}/events?to=x&limit=0`), ['to', 'limit']);
  });

  it('HIST-11 Without `limit` a page has a hundred entries, and a `Link` to the next page while there are more', async () => {
    const { path } = await enrol(store);
    for (let i = 0; i < 110; i++) await store.stamp(path);
    const { pages, all } = await pagesOf(`${path}/events`);
    expect(pages.map(({ length }) => length)).toEqual([100, 11]);
    expect(all.map(({ balance }) => balance)).toEqual(
      Array.from({ length: 111 }, (_, i) => 110 - i),
    );
    await fill();
    expect((await pagesOf(`${path}/events`)).all).toEqual(all);
    const some = await pagesOf(
      `${store.store}/history?type=stamp.earned&card_id=${all[0]?.card_id}&limit=40`,
    );
    expect(some.pages.map(({ length }) => length)).toEqual([40, 40, 30]);
    expect(some.all).toEqual(all.filter(({ type }) => type === 'stamp.earned'));
  });

  it('HIST-12 `limit` and `cursor` page through all entries, each once, whatever happens in the meantime; a cursor of another list is 422 `cursor`', async () => {
    const { path } = await enrol(store);
    for (let i = 0; i < 3; i++) await store.stamp(path);
    for (const list of [`${path}/events`, `${store.store}/history`]) {
      const first = await store.get<Entries>(`${list}?limit=2`);
      const [, link = ''] =
        /<https:\/\/cards\.example([^>]*)>/.exec(first.headers.get('link') ?? '') ?? [];
      const [next] = (await store.get<Entries>(link)).body;
      await store.stamp(path);
      await fill();
      await store.stamp(path);
      expect((await store.get<Entries>(link)).body[0]).toEqual(next);
    }
    expectRefused(await store.get(`${store.store}/history?cursor=mine`), 'cursor');
  });

  it('HIST-13 What a caller has done is in the history of the card and of the store at once, whether or not a dispatcher runs', async () => {
    const { path } = await enrol(store);
    for (const filled of [false, true]) {
      if (filled) await fill();
      await store.stamp(path, 2);
      const balance = filled ? 4 : 2;
      expect((await events(path))[0]).toMatchObject({ type: 'stamp.earned', balance });
      expect((await history())[0]).toMatchObject({ type: 'stamp.earned', balance });
    }
  });

  it('HIST-14 Customer cards of another customer or another store are 404, and nothing of another store is listed', async () => {
    const otherStore = await service.newStore();
    expect(types(await history('', otherStore))).toEqual(['account.created']);
    expect(await history(`?customer_id=${day.customer.id}`, otherStore)).toEqual([]);
    expect(await history(`?customer_card_id=${day.customerCard.id}`, otherStore)).toEqual([]);
    const foreign = day.path.replace(store.store, otherStore.store);
    expectFailure(await otherStore.get(`${foreign}/events`), 404, 'not_found');
    const unknown = day.path.replace(/\d+$/, '999999999');
    expectFailure(await store.get(`${unknown}/events?limit=0`), 404, 'not_found');
    const { customer } = await enrol(store);
    const another = day.path.replace(`customers/${day.customer.id}/`, `customers/${customer.id}/`);
    expectFailure(await store.get(`${another}/events`), 404, 'not_found');
  });

  it("HIST-15 `reverses` and `reversed_by` name each other's entries", async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 3);
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    await undo(customerCard.id);
    for (const filled of [false, true]) {
      if (filled) await fill();
      const [undoing, undone] = await events(path);
      expect(undoing).toMatchObject({ reverses: undone?.id, reversed_by: null, balance: 3 });
      expect(undone).toMatchObject({ reverses: null, reversed_by: undoing?.id, balance: 0 });
      expect((await history())[1]).toEqual(undone);
    }
  });

  it("HIST-16 `note` is null once the customer's personal data is destroyed; everything else stays", async () => {
    const { path, customer } = await enrol(store);
    await store.post(`${path}/stamp`, { stamps: 3, note: 'allergic to nuts' });
    const [noted] = await events(path);
    expect(noted?.note).toBe('allergic to nuts');
    const { database } = service.running;
    await database.query('delete from personal_keys where subject_id = $1', [customer.id]);
    const after = await eventually(
      () => events(path),
      ([first]) => first?.note === null,
    );
    expect(after[0]).toEqual({ ...noted, note: null });
  });
});

const explain = async (path: string) => (await store.get<ExplanationJson>(`${path}/explain`)).body;

/** Judged by the thresholds of now it would be another redemption, or none. */
async function expectSinceWhateverTheThreshold() {
  const { path, rewards } = await enrol(store, { rewards: [1, 5] });
  const [cheap, dear] = rewards.map(({ id }) => id);
  await store.stamp(path, 6);
  await store.post(`${path}/redeem`, { reward_id: cheap });
  await store.post(`${path}/redeem`, { reward_id: cheap });
  const [locked] = await events(path);
  for (const stamps_required of [4, 6]) {
    await store.patch(`${store.store}/rewards/${dear}`, { reward: { stamps_required } });
    for (const filled of [false, true]) {
      if (filled) await fill();
      const reward = (await explain(path)).rewards.find(({ id }) => id === dear);
      expect(reward).toMatchObject({ state: 'locked', since: locked?.occurred_at });
    }
  }
}

describe('explaining a balance', () => {
  it('EXPLAIN-01 `balance` is the present one, and `steps` are all that led to it, oldest first, each with its change and the balance after it', async () => {
    const { balance, steps, ...rest } = await explain(day.path);
    expect(balance).toBe(2);
    expect(Object.keys(rest)).toEqual(['rewards']);
    const entries = (await events(day.path)).toReversed();
    expect(steps.map(({ event_id, stamps, balance: after }) => [event_id, stamps, after])).toEqual(
      entries.map(({ id, stamps, balance: after }) => [id, stamps, after]),
    );
  });

  it('EXPLAIN-02 `text` of a step says in words when it was, what happened, where, by whom, on which receipt of a till, and what was noted', async () => {
    const { steps } = await explain(day.path);
    const texts = steps.map(({ text }) => text.replace(/^.*?[AP]M: /, ''));
    expect(texts).toEqual([
      'card issued, by till',
      '1 welcome stamp, by till',
      '4 stamps added, at Old Town, by Kim, receipt R-1 (a cake for Anna)',
      'reward “Reward at 3” unlocked, by till',
      'reward “Reward at 3” redeemed for 3 stamps, at Old Town, by Kim',
    ]);
    expect(steps[0]?.text).toMatch(/^[A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d{2}\s[AP]M: /);
  });

  it("EXPLAIN-03 `text` is in the language of the store's `locale`, or in English where there are no texts in that, with times in the store's time zone", async () => {
    const otherStore = await service.newStore({ timeZone: 'Asia/Tokyo' });
    const { path } = await enrol(otherStore);
    const responses: Record<string, RegExp> = {
      de: /: Karte ausgestellt/,
      'fr-CA': /: carte créée/,
      es: /: tarjeta emitida/,
      nl: /: kaart uitgegeven/,
      pl: /: card issued/,
    };
    for (const [locale, text] of Object.entries(responses)) {
      await otherStore.patch(otherStore.store, { account: { locale } });
      const { body } = await otherStore.get<ExplanationJson>(`${path}/explain`);
      expect(body.steps[0]?.text).toMatch(text);
    }
    const { body } = await otherStore.get<ExplanationJson>(`${path}/explain`);
    const [issued] = (await otherStore.get<Entries>(`${path}/events`)).body;
    const day = new Intl.DateTimeFormat('en', { timeZone: 'Asia/Tokyo', dateStyle: 'medium' });
    expect(body.steps[0]?.text).toContain(day.format(new Date(issued?.occurred_at ?? '')));
  });

  it('EXPLAIN-04 A reward is `locked`, `unlocked` or `redeemed`', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1, 2, 3, 9] });
    await store.stamp(path, 4);
    await store.post(`${path}/redeem`, { reward_id: rewards[1]?.id });
    for (const filled of [false, true]) {
      if (filled) await fill();
      const [redeemed, ...unlocks] = (await events(path)).filter(({ type }) =>
        type.startsWith('reward'),
      );
      const response = await explain(path);
      expect(response.rewards).toEqual([
        {
          id: rewards[0]?.id,
          name: 'Reward at 1',
          stamps_required: 1,
          state: 'unlocked',
          since: unlocks[2]?.occurred_at,
        },
        {
          id: rewards[1]?.id,
          name: 'Reward at 2',
          stamps_required: 2,
          state: 'unlocked',
          since: unlocks[1]?.occurred_at,
        },
        {
          id: rewards[2]?.id,
          name: 'Reward at 3',
          stamps_required: 3,
          state: 'locked',
          since: redeemed?.occurred_at,
        },
        {
          id: rewards[3]?.id,
          name: 'Reward at 9',
          stamps_required: 9,
          state: 'locked',
          since: null,
        },
      ]);
    }
    await store.post(`${path}/redeem`, { reward_id: rewards[1]?.id });
    const [redeemed] = await events(path);
    expect((await explain(path)).rewards[1]).toMatchObject({
      state: 'redeemed',
      since: redeemed?.occurred_at,
    });
    await expectSinceWhateverTheThreshold();
  });

  it('EXPLAIN-05 An undone entry says when it was undone, and the entry that undoes it says which one and why', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 3);
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    await undo(customerCard.id);
    for (const filled of [false, true]) {
      if (filled) await fill();
      const [undone, undoing] = (await explain(path)).steps.slice(-2);
      expect(undone?.text).toMatch(/redeemed for 3 stamps, by till, undone on [A-Z]/);
      expect(undoing?.text).toMatch(/: correction: 3 stamps added, by till, undoes the entry of /);
      expect(undoing?.balance).toBe(3);
    }
  });

  it('EXPLAIN-06 Of a history of more than 250 steps the last 250 are shown one by one', async () => {
    const { path } = await enrol(store);
    for (let i = 0; i < 260; i++) await store.stamp(path, 2);
    for (const filled of [false, true]) {
      if (filled) await fill();
      const { balance, steps } = await explain(path);
      expect([balance, steps.length]).toEqual([520, 251]);
      expect(steps[0]).toMatchObject({ text: '11 earlier entries', stamps: 20, balance: 20 });
      expect(steps.reduce((sum, { stamps }) => sum + (stamps ?? 0), 0)).toBe(balance);
    }
  });

  it('EXPLAIN-07 Customer cards of another customer or another store are 404', async () => {
    const otherStore = await service.newStore();
    const foreign = day.path.replace(store.store, otherStore.store);
    expectFailure(await otherStore.get(`${foreign}/explain`), 404, 'not_found');
    const { customer } = await enrol(store);
    const another = day.path.replace(`customers/${day.customer.id}/`, `customers/${customer.id}/`);
    expectFailure(await store.get(`${another}/explain`), 404, 'not_found');
  });
});

it('HIST-17 An entry whose event the event store has lost, or hides, has null for `request_id`, `staff_ref`, `external_ref` and `note`, and all others are listed as ever', async () => {
  const server = await startEventStoreDb();
  const damaged = await startService({
    EVENT_STORE_URL: server.connectionString,
    EVENT_STORE_STREAM_PREFIX: 'inkpad_',
  });
  const own = await damaged.newStore();
  const [one, other] = [await enrol(own, { rewards: [1] }), await enrol(own)];
  const details = { staff_ref: 'Kim', note: 'a cake', external_ref: 'R-1' };
  await own.stamp(one.path, { ...details });
  await own.post(`${one.path}/redeem`, { reward_id: one.rewards[0]?.id });
  await own.post(`${other.path}/stamp`, { stamps: 2, ...details, external_ref: 'R-2' });
  await fill(damaged);
  const whole = await history('', own);
  const client = EventStoreDBClient.connectionString(server.connectionString);
  await client.deleteStream(`inkpad_customer_card-${one.customerCard.id}`);
  await client.dispose();
  const isOfOne = (entry: HistoryEntryJson) =>
    entry.customer_card_id === one.customerCard.id &&
    entry.type !== 'customer.card_links_requested';
  const unknown = { request_id: null, staff_ref: null, external_ref: null, note: null };
  const expected = whole.map((entry) => (isOfOne(entry) ? { ...entry, ...unknown } : entry));
  expect(expected).not.toEqual(whole);
  expect(await history('', own)).toEqual(expected);
  expect((await own.get<Entries>(`${one.path}/events`)).body).toEqual(expected.filter(isOfOne));
  expectFailure(await own.get<Failure>(`${own.store}/redemptions`), 503, 'history_damaged');
  await damaged.stop();
  await server.stop();
});
