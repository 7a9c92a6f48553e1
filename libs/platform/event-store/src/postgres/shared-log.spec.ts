import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { at, stored } from '../port/event-store.contract.js';
import type { StoredEvent } from '../port/event-store.js';
import { SharedLog } from './shared-log.js';

const revisions = (events: StoredEvent[]) => events.map(({ revision }) => revision);
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** A log that grows, and what was asked of it: after which event, and how many at most. */
function growing(length: number) {
  const log = { length, asked: [] as [number, number][] };
  const shared = new SharedLog(async (after, limit) => {
    const from = Number(after.commit);
    log.asked.push([from, limit]);
    await Promise.resolve();
    return range(from + 1, Math.min(log.length, from + limit)).map(stored);
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

describe('the log that subscribers share', () => {
  it('is read once for those that ask at the same time', async () => {
    const { log, shared } = growing(3);
    const read = await Promise.all([5, 5, 2].map((limit) => shared.read(at(0), limit)));
    expect(read.map(revisions)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2],
    ]);
    expect(log.asked).toEqual([[0, 5]]);
  });

  it('is read once for those that come one after another', async () => {
    const { log, shared } = growing(3);
    expect(revisions(await shared.read(at(0), 5))).toEqual([1, 2, 3]);
    log.length = 5;
    expect(revisions(await shared.read(at(3), 5))).toEqual([4, 5]);
    expect(revisions(await shared.read(at(0), 9))).toEqual([1, 2, 3, 4, 5]);
    expect(revisions(await shared.read(at(1), 2))).toEqual([2, 3]);
    expect(log.asked).toEqual([
      [0, 5],
      [3, 5],
    ]);
  });

  // one reads | an event is recorded and announced | the answer to the one comes
  it('is read anew by those that ask after an announcement', async () => {
    const { log, shared } = growing(0);
    const early = shared.read(at(0), 5);
    log.length = 1;
    shared.announced();
    expect(revisions(await shared.read(at(0), 5))).toEqual([1]);
    await early;
    expect(log.asked).toHaveLength(2);
  });

  it('is read on where what was kept ended at a limit', async () => {
    const { log, shared } = growing(9);
    await shared.read(at(0), 4);
    expect(revisions(await shared.read(at(0), 6))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(log.asked).toEqual([
      [0, 4],
      [4, 2],
    ]);
  });

  it('gives everybody every event in its order, whatever their batches, however far behind', async () => {
    const { log, shared } = growing(7_000);
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
    const readCount = log.asked.length;
    for (const batch of [500, 7, 2_000]) {
      expect(await follow(shared, 7_000, batch)).toEqual(range(7_001, 7_010));
    }
    // The first reads them; each asks once more whether there are others.
    expect(log.asked.slice(readCount).filter(([after]) => after < 7_010)).toHaveLength(1);
  });

  it('is forgotten after a quiet second', async () => {
    const clock = jest.spyOn(performance, 'now').mockReturnValue(5_000);
    const { log, shared } = growing(3);
    await shared.read(at(0), 5);
    clock.mockReturnValue(6_001);
    expect(await shared.read(at(3), 5)).toEqual([]);
    await shared.read(at(0), 5);
    expect(log.asked).toEqual([
      [0, 5],
      [3, 5],
      [0, 5],
    ]);
  });

  it('passes a failure on to those that share it, and reads again afterwards', async () => {
    let fails = true;
    const shared = new SharedLog(async () => {
      await Promise.resolve();
      if (fails) throw new Error('no connection');
      return [stored(1)];
    });
    const both = await Promise.allSettled([shared.read(at(0), 5), shared.read(at(0), 5)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fails = false;
    expect(revisions(await shared.read(at(0), 5))).toEqual([1]);
  });
});
