import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { at, createStored } from '../port/event-store.contract.js';
import type { StoredEvent } from '../port/event-store.js';
import { SharedLog } from './shared-log.js';

const revisions = (events: StoredEvent[]) => events.map(({ revision }) => revision);
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Creates a log that can grow, and lists its reads: after which event, and with which limit. */
function createGrowingLog(length: number) {
  const log = { length, reads: [] as [number, number][] };
  const shared = new SharedLog(async (after, limit) => {
    const from = Number(after.commit);
    log.reads.push([from, limit]);
    await Promise.resolve();
    return range(from + 1, Math.min(log.length, from + limit)).map(createStored);
  });
  return { log, shared };
}

/** Reads to the end of the log in batches, as a subscriber does. */
async function follow(shared: SharedLog, from: number, batch: number): Promise<number[]> {
  const all: number[] = [];
  for (let position = at(from); ;) {
    const events = await shared.read(position, batch);
    const last = events.at(-1);
    if (!last) return all;
    all.push(...revisions(events));
    position = last.position;
  }
}

afterEach(() => {
  jest.restoreAllMocks();
});

describe('SharedLog', () => {
  it('reads the log once for concurrent readers', async () => {
    const { log, shared } = createGrowingLog(3);
    const batches = await Promise.all([5, 5, 2].map((limit) => shared.read(at(0), limit)));
    expect(batches.map(revisions)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2],
    ]);
    expect(log.reads).toEqual([[0, 5]]);
  });

  it('reads each part of the log once for readers that come one after another', async () => {
    const { log, shared } = createGrowingLog(3);
    expect(revisions(await shared.read(at(0), 5))).toEqual([1, 2, 3]);
    log.length = 5;
    expect(revisions(await shared.read(at(3), 5))).toEqual([4, 5]);
    expect(revisions(await shared.read(at(0), 9))).toEqual([1, 2, 3, 4, 5]);
    expect(revisions(await shared.read(at(1), 2))).toEqual([2, 3]);
    expect(log.reads).toEqual([
      [0, 5],
      [3, 5],
    ]);
  });

  // A read begins, an event is recorded and announced, then the read ends.
  it('reads the log again for a reader that comes after an announcement', async () => {
    const { log, shared } = createGrowingLog(0);
    const early = shared.read(at(0), 5);
    log.length = 1;
    shared.handleAnnouncement();
    expect(revisions(await shared.read(at(0), 5))).toEqual([1]);
    await early;
    expect(log.reads).toHaveLength(2);
  });

  it('continues reading where its cached events ended at a limit', async () => {
    const { log, shared } = createGrowingLog(9);
    await shared.read(at(0), 4);
    expect(revisions(await shared.read(at(0), 6))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(log.reads).toEqual([
      [0, 4],
      [4, 2],
    ]);
  });

  it('gives every reader each event in order, whatever its batch size and position', async () => {
    const { log, shared } = createGrowingLog(7_000);
    const all = await Promise.all([
      follow(shared, 0, 500),
      follow(shared, 0, 500),
      follow(shared, 0, 2_000),
      follow(shared, 6_500, 100),
      follow(shared, 3_000, 7),
    ]);
    expect(all).toEqual([
      range(1, 7_000),
      range(1, 7_000),
      range(1, 7_000),
      range(6_501, 7_000),
      range(3_001, 7_000),
    ]);
    log.length = 7_010;
    const readCount = log.reads.length;
    for (const batch of [500, 7, 2_000]) {
      expect(await follow(shared, 7_000, batch)).toEqual(range(7_001, 7_010));
    }
    // The first one reads them. Each then reads once more, to find that there are no others.
    expect(log.reads.slice(readCount).filter(([after]) => after < 7_010)).toHaveLength(1);
  });

  it('drops its cached events after a second without reads', async () => {
    const clock = jest.spyOn(performance, 'now').mockReturnValue(5_000);
    const { log, shared } = createGrowingLog(3);
    await shared.read(at(0), 5);
    clock.mockReturnValue(6_001);
    expect(await shared.read(at(3), 5)).toEqual([]);
    await shared.read(at(0), 5);
    expect(log.reads).toEqual([
      [0, 5],
      [3, 5],
      [0, 5],
    ]);
  });

  it('passes a failure on to every reader that shares the read, and reads again afterwards', async () => {
    let fails = true;
    const shared = new SharedLog(async () => {
      await Promise.resolve();
      if (fails) throw new Error('no connection');
      return [createStored(1)];
    });
    const both = await Promise.allSettled([shared.read(at(0), 5), shared.read(at(0), 5)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fails = false;
    expect(revisions(await shared.read(at(0), 5))).toEqual([1]);
  });
});
