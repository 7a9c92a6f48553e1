import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Aggregate } from '#kernel/aggregate.js';
import { InvalidFieldsError, UnavailableError } from '#kernel/errors.js';
import { PastStates } from '#event-store/log/past-states.service.js';
import { event } from '#event-store/port/event-store.contract.js';
import type { EventStore, Head, NewEvent } from '#event-store/port/event-store.js';
import { LogTimes } from '#event-store/log/log-times.service.js';
import { LogTimesFollower } from '#event-store/log/log-times.subscription.js';
import { isAfter } from '#event-store/port/position.js';
import {
  testConfig,
  testDatabase,
  testEngine,
  type TestDatabase,
} from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { openHistory } from './support/services/history.js';
import { startService } from './support/services/service.js';
import {
  readAllEvents,
  openStore,
  streamKinds,
  untilReadable,
} from './support/database/event-store.js';
import { enrol } from './support/fixtures/enrolled-customer.js';

type Moments = ReturnType<EventStore['readMoments']>;
type Counter = { accountId: number; values: number[] };
type CountEvent = { type: 'Counted'; data: { value: number } };

const counter: Aggregate<Counter, CountEvent> = {
  name: 'counter',
  names: { Counted: 'counter.counted' },
  projectionVersion: 1,
  evolve: (state, { data }) => ({ accountId: 1, values: [...(state?.values ?? []), data.value] }),
};

const SECOND = 1_000;
const HOUR = 3_600_000;
const isPostgres = process.env['TEST_ENGINE'] !== 'eventstoredb';

let database: TestDatabase;
let engine: Awaited<ReturnType<typeof testEngine>>;
let service: Awaited<ReturnType<typeof openStore>>;
let heads: Map<string, Head>;

beforeEach(async () => {
  engine = await testEngine();
  database = await testDatabase();
  service = await openStore(testConfig(database.url, engine.environment), streamKinds('counter'));
  heads = new Map();
});
afterEach(async () => {
  await service.close();
  await engine.stop();
  await database.close();
});

/** Each as a process of its own would have it. */
const newTimes = () => new LogTimes(service.pool, service.store);
const newAsOf = () => new PastStates(service.store, newTimes(), service.keys, []);

function createCountEvent(value: number, time: number): NewEvent {
  const one = event('Counted', { value });
  const recordedAt = new Date(time).toISOString();
  return { ...one, meta: { ...one.meta, recordedAt } };
}

/** One commit. The time is that of the process which writes it. */
async function commit(id: number, ...events: NewEvent[]): Promise<void> {
  const stream = `counter-${id}`;
  const expected = heads.get(stream) ?? null;
  const [head] = await service.store.commit({
    accountId: 1,
    writes: [{ stream, expected, events }],
  });
  if (head) heads.set(stream, head);
}

/** The values of all counters, as a question finds them. */
async function valuesAt(time: number, asOf = newAsOf()): Promise<number[]> {
  const past = await asOf.toMoment(new Date(time));
  const ids = [...heads.keys()].map((stream) => Number(stream.slice('counter-'.length)));
  const states = await asOf.projectAll({ aggregate: counter }, ids, past);
  return states.flatMap(({ values }) => values).sort((a, b) => a - b);
}

describe('a question about the past', () => {
  it('follows the order of the log when recorded times differ', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    await commit(2, createCountEvent(2, now - 5 * SECOND));
    await commit(3, createCountEvent(3, now - 7 * SECOND));
    await commit(4, createCountEvent(4, now - 3 * SECOND));
    expect(await valuesAt(now - 8 * SECOND)).toEqual([1]);
    expect(await valuesAt(now - 6 * SECOND)).toEqual([1]);
    expect(await valuesAt(now - 5 * SECOND)).toEqual([1, 2, 3]);
    expect(await valuesAt(now)).toEqual([1, 2, 3, 4]);
  });

  it('returns the same result after a late commit', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    const time = now - 4 * SECOND;
    expect(await valuesAt(time)).toEqual([1]);
    await commit(2, createCountEvent(2, time - SECOND));
    expect(await valuesAt(time)).toEqual([1]);
    expect(await valuesAt(time + 1)).toEqual([1, 2]);
  });

  it('does not lose the events of others to a clock that is an hour ahead', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - 9 * SECOND));
    await commit(2, createCountEvent(2, now - 8 * SECOND + HOUR));
    await commit(3, createCountEvent(3, now - 7 * SECOND));
    expect(await valuesAt(now - 8 * SECOND)).toEqual([1]);
    expect(await valuesAt(now - 7 * SECOND)).toEqual([1, 2, 3]);
    await commit(2, createCountEvent(4, now - 6 * SECOND + HOUR));
    expect(await valuesAt(now - 6 * SECOND)).toEqual([1, 2, 3]);
    const next = Date.now();
    await commit(1, createCountEvent(5, next));
    expect(await valuesAt(next)).toEqual([1, 2, 3, 4, 5]);
  });

  it('does not lose them when the times are worked out long after either', async () => {
    const past = Date.now() - 10 * HOUR;
    for (let value = 0; value < 40; value++) {
      const ahead = value % 4 === 3 ? HOUR : 0;
      await commit(value % 4, createCountEvent(value, past + value * SECOND + ahead));
    }
    expect(await valuesAt(past + 10 * SECOND)).toEqual(Array.from({ length: 11 }, (_, i) => i));
    expect(await valuesAt(past + 38 * SECOND)).toEqual(Array.from({ length: 39 }, (_, i) => i));
  });

  it('never shows a part of a command', async () => {
    const past = Date.now() - HOUR;
    await commit(
      1,
      createCountEvent(1, past),
      createCountEvent(2, past),
      createCountEvent(3, past),
    );
    await commit(1, createCountEvent(4, past + 5), createCountEvent(5, past + 5));
    expect(await valuesAt(past - 1)).toEqual([]);
    expect(await valuesAt(past)).toEqual([1, 2, 3]);
    expect(await valuesAt(past + 4)).toEqual([1, 2, 3]);
    expect(await valuesAt(past + 5)).toEqual([1, 2, 3, 4, 5]);
  });

  it('is refused about the future, but allows a clock that is slightly ahead', async () => {
    await commit(1, createCountEvent(1, Date.now()));
    await expect(valuesAt(Date.now() + 10 * SECOND)).rejects.toThrow(InvalidFieldsError);
    expect(await valuesAt(Date.now() + 100)).toEqual([1]);
  });

  it('uses no space, however often it is repeated', async () => {
    await commit(1, createCountEvent(1, Date.now() - SECOND));
    for (let i = 0; i < 5; i++) await valuesAt(Date.now());
    const { rows } = await database.query('select n from es.log_times');
    expect(rows).toHaveLength(2);
  });

  it('runs once for many concurrent requests', async () => {
    const time = Date.now() - SECOND;
    await commit(1, createCountEvent(1, time));
    await commit(2, createCountEvent(2, time + 5 * HOUR));
    const answers = await Promise.all(Array.from({ length: 8 }, () => valuesAt(time)));
    expect(new Set(answers.map(String)).size).toBe(1);
  });
});

describe('a long history', () => {
  const LENGTH = 1_700;
  let past: number;

  /** Two events a second in groups, in part a little late. @returns their times in the order of the log */
  async function fill(): Promise<number[]> {
    past = Date.now() - HOUR;
    const times = Array.from(
      { length: LENGTH },
      (_, i) => past + i * 500 - (i % 7 === 3 ? 900 : 0),
    );
    for (let i = 0; i < LENGTH; i += 100) {
      await commit(1, ...times.slice(i, i + 100).map((time, at) => createCountEvent(i + at, time)));
    }
    if (isPostgres) await untilReadable(database);
    return times;
  }

  /** How many had been recorded by each time, when nobody's clock is wrong. */
  function expected(times: number[], positions: number[]): number[] {
    let latest = 0;
    const order = times.map((time) => (latest = Math.max(latest, time)));
    return positions.map((time) => order.filter((at) => at <= time).length);
  }

  async function count(positions: number[]): Promise<number[]> {
    const log = await readAllEvents(service.store);
    const counts: number[] = [];
    for (const time of positions) {
      const last = await newTimes().findPositionAt(time);
      counts.push(log.filter(({ position }) => !isAfter(position, last)).length);
    }
    return counts;
  }

  it('returns the same whether it was followed or is read on demand', async () => {
    const times = await fill();
    const positions = [0, 1, 249, 250, 251, 499, 500, 501, 1_003, LENGTH - 1].map(
      (i) => (times[i] ?? 0) + (i % 2),
    );
    const read = await count(positions);
    expect(read).toEqual(expected(times, positions));
    await database.query('delete from es.log_times');
    const stop = new AbortController();
    const following = [1, 2].map(() => new LogTimesFollower(newTimes()).run(stop.signal));
    try {
      const entries = 'select n from es.log_times';
      await eventually(
        () => database.query(entries),
        ({ rows }) => rows.length > 0,
      );
      expect(await count(positions)).toEqual(read);
    } finally {
      stop.abort();
      await Promise.all(following);
    }
  });

  it('is followed with few entries, and read once for them', async () => {
    await fill();
    const times = newTimes();
    const reading = jest.spyOn(service.store, 'readMoments');
    while (await times.addDueEntry());
    const read = await Promise.all(reading.mock.results.map(({ value }) => value as Moments));
    expect(read.flat()).toHaveLength(LENGTH);
    const { rows } = await database.query('select n from es.log_times');
    expect(rows.length).toBeGreaterThan(LENGTH / 500 - 1);
    expect(rows.length).toBeLessThanOrEqual(LENGTH / 150);
  });
});

describe('the follower', () => {
  it('counts an event of a fast clock from when it was seen', async () => {
    const now = Date.now();
    await commit(1, createCountEvent(1, now - SECOND));
    await commit(2, createCountEvent(2, now + HOUR));
    const times = newTimes();
    await times.addDueEntry();
    const seen = Date.now();
    expect(await valuesAt(now - SECOND)).toEqual([1]);
    expect(await valuesAt(seen)).toEqual([1, 2]);
    await commit(3, createCountEvent(3, seen + 1));
    expect(await valuesAt(Math.max(Date.now(), seen + 1))).toEqual([1, 2, 3]);
  });
});

if (isPostgres) {
  it('waits for an open transaction, because a part of the history cannot be read yet', async () => {
    await commit(1, createCountEvent(1, Date.now() - HOUR));
    await database.query('begin');
    await database.query('select pg_current_xact_id()');
    await commit(2, createCountEvent(2, Date.now()));
    await expect(valuesAt(Date.now())).rejects.toThrow(UnavailableError);
    const waiting = valuesAt(Date.now()).catch(() => null);
    await database.query('commit');
    // The server may have other transactions, which it may have to wait for longer than it does.
    const answer =
      (await waiting) ??
      (await eventually(
        () => valuesAt(Date.now()).catch(() => null),
        (values) => values !== null,
      ));
    expect(answer).toEqual([1, 2]);
  });
}

describe('counts of the past', () => {
  it('are the same whether the history is filled or not', async () => {
    const running = await startService();
    const history = await openHistory(testConfig(running.database.url, running.environment));
    const stop = new AbortController();
    let filling: Promise<void> | undefined;
    try {
      const store = await running.newStore();
      const { card } = await enrol(store);
      const time = encodeURIComponent(new Date().toISOString());
      await eventually(Date.now, (now) => now > Date.parse(decodeURIComponent(time)));
      await enrol(store);
      expect((await store.get(store.store)).body).toMatchObject({ customers_count: 2 });
      const ask = async () => [
        (await store.get(`${store.store}?as_of=${time}`)).body,
        (await store.get(`${store.store}/cards/${card.id}?as_of=${time}`)).body,
      ];
      const before = await ask();
      expect(before).toMatchObject([{ customers_count: 1 }, { customer_cards_count: 1 }]);
      filling = history.subscription.run(stop.signal);
      const events = await running.history();
      await eventually(
        () => running.database.query('select from history'),
        ({ rowCount }) => rowCount === events.length,
      );
      expect(await ask()).toEqual(before);
    } finally {
      stop.abort();
      await filling;
      await history.close();
      await running.stop();
    }
  });
});
