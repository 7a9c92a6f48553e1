import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Aggregate } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError, UnavailableError } from '#platform/kernel/errors.js';
import { PastStates } from '#platform/event-store/log/past-states.service.js';
import { event } from '#platform/event-store/port/event-store.contract.js';
import type { EventStore, Head, NewEvent } from '#platform/event-store/port/event-store.js';
import { LogTimes } from '#platform/event-store/log/log-times.service.js';
import { isAfter } from '#platform/event-store/port/position.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { openHistory } from '../support/services/history.js';
import { startService } from '../support/services/service.js';
import {
  readAllEvents,
  openStore,
  streamKinds,
  waitUntilReadable,
} from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

type Moments = ReturnType<EventStore['readMoments']>;
type Counter = { accountId: number; values: number[] };
type CountEvent = { type: 'Counted'; data: { value: number } };

const counter: Aggregate<Counter, CountEvent> = {
  name: 'counter',
  table: 'counters',
  events: { Counted: { name: 'counter.counted', publishedAs: null } },
  projectionVersion: 1,
  evolve: (state, { data }) => ({ accountId: 1, values: [...(state?.values ?? []), data.value] }),
};

const SECOND = 1_000;
const HOUR = 3_600_000;
const isPostgres = process.env['TEST_ENGINE'] !== 'eventstoredb';

let database: TestDatabase;
let service: Awaited<ReturnType<typeof openStore>>;
let heads: Map<string, Head>;

beforeEach(async () => {
  database = await createTestDatabase();
  service = await openStore(testConfig(database.url), streamKinds('counter'));
  heads = new Map();
});
afterEach(async () => {
  await service.close();
  await database.close();
});

/** Two new instances share nothing, as in two processes. */
const newTimes = () => new LogTimes(service.pool, service.store);
const newAsOf = () => new PastStates(service.store, newTimes(), service.keys, []);

function createCountEvent(value: number, time: number): NewEvent {
  const storedCount = event('Counted', { value });
  const recordedAt = new Date(time).toISOString();
  return { ...storedCount, meta: { ...storedCount.meta, recordedAt } };
}

/** Commits events to a counter; each was recorded by the clock of the process that writes it. */
async function commit(id: number, ...events: NewEvent[]): Promise<void> {
  const stream = `counter-${id}`;
  const expected = heads.get(stream) ?? null;
  const [head] = await service.store.commit({
    accountId: 1,
    writes: [{ stream, expected, events }],
  });
  if (head) heads.set(stream, head);
}

/** Reads the values of all counters as of a moment, in ascending order. */
async function readValues(time: number, asOf = newAsOf()): Promise<number[]> {
  const past = await asOf.toMoment(new Date(time));
  const ids = [...heads.keys()].map((stream) => Number(stream.slice('counter-'.length)));
  const states = await asOf.projectAll(counter, ids, past);
  return states.flatMap(({ values }) => values).sort((a, b) => a - b);
}

describe('an as-of query', () => {
  it('includes events in the order of the log when their recorded times are out of order', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    await commit(2, createCountEvent(2, now - 5 * SECOND));
    await commit(3, createCountEvent(3, now - 7 * SECOND));
    await commit(4, createCountEvent(4, now - 3 * SECOND));
    expect(await readValues(now - 8 * SECOND)).toEqual([1]);
    expect(await readValues(now - 6 * SECOND)).toEqual([1]);
    expect(await readValues(now - 5 * SECOND)).toEqual([1, 2, 3]);
    expect(await readValues(now)).toEqual([1, 2, 3, 4]);
  });

  it('returns the same result after a commit with an earlier recorded time', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    const time = now - 4 * SECOND;
    expect(await readValues(time)).toEqual([1]);
    await commit(2, createCountEvent(2, time - SECOND));
    expect(await readValues(time)).toEqual([1]);
    expect(await readValues(time + 1)).toEqual([1, 2]);
  });

  it('includes the events of other processes when one clock is an hour ahead', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    await commit(2, createCountEvent(2, now - 8 * SECOND + HOUR));
    await commit(3, createCountEvent(3, now - 7 * SECOND));
    expect(await readValues(now - 8 * SECOND)).toEqual([1]);
    expect(await readValues(now - 7 * SECOND)).toEqual([1, 2, 3]);
    await commit(2, createCountEvent(4, now - 6 * SECOND + HOUR));
    expect(await readValues(now - 6 * SECOND)).toEqual([1, 2, 3]);
    const next = Date.now();
    await commit(1, createCountEvent(5, next));
    expect(await readValues(next)).toEqual([1, 2, 3, 4, 5]);
  });

  it('includes every event when log times are computed hours later and one clock was ahead', async () => {
    const past = Date.now() - 10 * HOUR;
    for (let value = 0; value < 40; value++) {
      const ahead = value % 4 === 3 ? HOUR : 0;
      await commit(1 + (value % 4), createCountEvent(value, past + value * SECOND + ahead));
    }
    expect(await readValues(past + 10 * SECOND)).toEqual(Array.from({ length: 11 }, (_, i) => i));
    expect(await readValues(past + 38 * SECOND)).toEqual(Array.from({ length: 39 }, (_, i) => i));
  });

  it('includes all events of a commit or none', async () => {
    const past = Date.now() - HOUR;
    await commit(
      1,
      createCountEvent(1, past),
      createCountEvent(2, past),
      createCountEvent(3, past),
    );
    await commit(1, createCountEvent(4, past + 5), createCountEvent(5, past + 5));
    expect(await readValues(past - 1)).toEqual([]);
    expect(await readValues(past)).toEqual([1, 2, 3]);
    expect(await readValues(past + 4)).toEqual([1, 2, 3]);
    expect(await readValues(past + 5)).toEqual([1, 2, 3, 4, 5]);
  });

  it('rejects a moment ten seconds ahead, but allows 100 ms of clock skew', async () => {
    await commit(1, createCountEvent(1, Date.now()));
    await expect(readValues(Date.now() + 10 * SECOND)).rejects.toThrow(InvalidFieldsError);
    expect(await readValues(Date.now() + 100)).toEqual([1]);
  });

  it('adds no row to es.log_times when it is repeated', async () => {
    await commit(1, createCountEvent(1, Date.now() - SECOND));
    for (let i = 0; i < 5; i++) await readValues(Date.now());
    const { rows } = await database.query('select n from es.log_times');
    expect(rows).toHaveLength(2);
  });

  it('returns the same result to concurrent requests', async () => {
    const time = Date.now() - SECOND;
    await commit(1, createCountEvent(1, time));
    await commit(2, createCountEvent(2, time + 5 * HOUR));
    const results = await Promise.all(Array.from({ length: 8 }, () => readValues(time)));
    expect(new Set(results.map(String)).size).toBe(1);
  });
});

describe('a long history', () => {
  const LENGTH = 1_700;
  let past: number;

  /** Commits two events a second in groups, some recorded a little late. @returns their times in the order of the log */
  async function commitHistory(): Promise<number[]> {
    past = Date.now() - HOUR;
    const times = Array.from(
      { length: LENGTH },
      (_, i) => past + i * 500 - (i % 7 === 3 ? 900 : 0),
    );
    for (let i = 0; i < LENGTH; i += 100) {
      await commit(1, ...times.slice(i, i + 100).map((time, at) => createCountEvent(i + at, time)));
    }
    if (isPostgres) await waitUntilReadable(database);
    return times;
  }

  /** Counts the events recorded by each moment, in the order of the log. */
  function countExpected(times: number[], positions: number[]): number[] {
    let latest = 0;
    const order = times.map((time) => (latest = Math.max(latest, time)));
    return positions.map((time) => order.filter((at) => at <= time).length);
  }

  async function countEvents(positions: number[]): Promise<number[]> {
    const log = await readAllEvents(service.store);
    const counts: number[] = [];
    for (const time of positions) {
      const last = await newTimes().findPositionAt(time);
      counts.push(log.filter(({ position }) => !isAfter(position, last)).length);
    }
    return counts;
  }

  it('has the same counts with log times that are computed on demand or stored by the follower', async () => {
    const times = await commitHistory();
    const positions = [0, 1, 249, 250, 251, 499, 500, 501, 1_003, LENGTH - 1].map(
      (i) => (times[i] ?? 0) + (i % 2),
    );
    const onDemand = await countEvents(positions);
    expect(onDemand).toEqual(countExpected(times, positions));
    await database.query('delete from es.log_times');
    const stop = new AbortController();
    const followers = [1, 2].map(() => newTimes().run(stop.signal));
    try {
      const entries = 'select n from es.log_times';
      await eventually(
        () => database.query(entries),
        ({ rows }) => rows.length > 0,
      );
      expect(await countEvents(positions)).toEqual(onDemand);
    } finally {
      stop.abort();
      await Promise.all(followers);
    }
  });

  it('is read once by the follower, which stores at most one log time for 150 events', async () => {
    await commitHistory();
    const times = newTimes();
    const readMoments = jest.spyOn(service.store, 'readMoments');
    while (await times.addDueEntry());
    const moments = await Promise.all(
      readMoments.mock.results.map(({ value }) => value as Moments),
    );
    expect(moments.flat()).toHaveLength(LENGTH);
    const { rows } = await database.query('select n from es.log_times');
    expect(rows.length).toBeGreaterThan(LENGTH / 500 - 1);
    expect(rows.length).toBeLessThanOrEqual(LENGTH / 150);
  });
});

describe('the follower of log times', () => {
  it('dates an event of a fast clock by the moment at which it was read', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - SECOND));
    await commit(2, createCountEvent(2, now + HOUR));
    const times = newTimes();
    await times.addDueEntry();
    const readAt = Date.now();
    expect(await readValues(now - SECOND)).toEqual([1]);
    expect(await readValues(readAt)).toEqual([1, 2]);
    await commit(3, createCountEvent(3, readAt + 1));
    expect(await readValues(Math.max(Date.now(), readAt + 1))).toEqual([1, 2, 3]);
  });
});

if (isPostgres) {
  it('an as-of query is unavailable while a transaction is open, and succeeds after its commit', async () => {
    await commit(1, createCountEvent(1, Date.now() - HOUR));
    await database.query('begin');
    await database.query('select pg_current_xact_id()');
    await commit(2, createCountEvent(2, Date.now()));
    await expect(readValues(Date.now())).rejects.toThrow(UnavailableError);
    const pending = readValues(Date.now()).catch(() => null);
    await database.query('commit');
    // Other transactions of this server may be open for longer than a query waits.
    const values =
      (await pending) ??
      (await eventually(
        () => readValues(Date.now()).catch(() => null),
        (values) => values !== null,
      ));
    expect(values).toEqual([1, 2]);
  });
}

describe('counts as of a past moment', () => {
  it('are the same before and after the history table is filled', async () => {
    const ownService = await startService();
    const history = await openHistory(testConfig(ownService.database.url, ownService.environment));
    const stop = new AbortController();
    let filling: Promise<void> | undefined;
    try {
      const store = await ownService.newStore();
      const { card } = await enrol(store);
      const time = encodeURIComponent(new Date().toISOString());
      await eventually(Date.now, (now) => now > Date.parse(decodeURIComponent(time)));
      await enrol(store);
      expect((await store.get(store.store)).body).toMatchObject({ customers_count: 2 });
      const readCounts = async () => [
        (await store.get(`${store.store}?as_of=${time}`)).body,
        (await store.get(`${store.store}/cards/${card.id}?as_of=${time}`)).body,
      ];
      const before = await readCounts();
      expect(before).toMatchObject([{ customers_count: 1 }, { customer_cards_count: 1 }]);
      filling = history.subscription.run(stop.signal);
      const events = await ownService.history();
      await eventually(
        () => ownService.database.query('select from history'),
        ({ rowCount }) => rowCount === events.length,
      );
      expect(await readCounts()).toEqual(before);
    } finally {
      stop.abort();
      await filling;
      await history.close();
      await ownService.stop();
    }
  });
});
