import { afterEach, describe, expect, it } from '@jest/globals';
import { mock } from 'node:test';
import { Batcher, BatchSlots } from './batcher.js';
import { DatabaseWait, runWithWait } from './database-waits.js';

type Settled = PromiseSettledResult<string>[];

/** Creates a batcher whose batches the test resolves. */
function createBatcher(workers: BatchSlots | number, groupSize: number, limits = {}) {
  const groups: {
    items: number[];
    resolve: (outcomes: Settled) => void;
    fail: (e: Error) => void;
  }[] = [];
  const batcher = new Batcher<number, string>(
    workers,
    groupSize,
    (items) =>
      new Promise<Settled>((resolve, fail) => {
        groups.push({ items, resolve, fail });
      }),
    limits,
  );
  return { batcher, groups };
}

const echo = (items: number[]): Settled =>
  items.map((item) => ({ status: 'fulfilled', value: `result ${item}` }));

/** Longer than any timer of others in this process. */
const HOUR_MS = 3_600_000;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => mock.reset());

describe('Batcher', () => {
  it('batches items of one turn of the event loop, in order', async () => {
    const { batcher, groups } = createBatcher(1, 8);
    const results = Promise.all([1, 2, 3].map((item) => batcher.add(item)));
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    groups[0]?.resolve(echo([1, 2, 3]));
    expect(await results).toEqual(['result 1', 'result 2', 'result 3']);
  });

  it('batches items that arrive while every slot is busy', async () => {
    const { batcher, groups } = createBatcher(1, 2);
    const results = [batcher.add(1)];
    await nextTurn();
    results.push(batcher.add(2), batcher.add(3), batcher.add(4));
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1]]);
    groups[0]?.resolve(echo([1]));
    await results[0];
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1], [2, 3]]);
    groups[1]?.resolve(echo([2, 3]));
    await results[1];
    await nextTurn();
    groups[2]?.resolve(echo([4]));
    expect(await Promise.all(results)).toEqual(['result 1', 'result 2', 'result 3', 'result 4']);
  });

  it('takes as many items of each owner when not all fit into a batch', async () => {
    const { batcher, groups } = createBatcher(1, 3);
    const addFor = (owner: number, item: number) => {
      const wait = new DatabaseWait();
      wait.owner = owner;
      return new Promise<string>((resolve, reject) => {
        runWithWait(wait, () => void batcher.add(item).then(resolve, reject));
      });
    };
    const results = [11, 12, 13, 14, 15].map((item) => addFor(1, item));
    results.push(addFor(2, 21), addFor(2, 22), batcher.add(31));
    for (const items of [
      [11, 21, 31],
      [12, 22, 13],
      [14, 15],
    ]) {
      await nextTurn();
      expect(groups.at(-1)?.items).toEqual(items);
      groups.at(-1)?.resolve(echo(items));
      await nextTurn();
    }
    expect(await Promise.all(results)).toHaveLength(8);
  });

  it('gives each item its own result, and rejects an item that has none', async () => {
    const { batcher, groups } = createBatcher(1, 8);
    const results = Promise.allSettled([batcher.add(1), batcher.add(2), batcher.add(3)]);
    await nextTurn();
    groups[0]?.resolve([
      { status: 'rejected', reason: 'refused' },
      { status: 'fulfilled', value: 'done' },
    ]);
    expect(await results).toEqual([
      { status: 'rejected', reason: 'refused' },
      { status: 'fulfilled', value: 'done' },
      { status: 'rejected', reason: new Error('a batch must have a result for every item') },
    ]);
  });

  it('rejects every item of a failed batch and continues with the next', async () => {
    const { batcher, groups } = createBatcher(1, 2);
    const outcomes = Promise.allSettled([batcher.add(1), batcher.add(2)]);
    const laterResult = batcher.add(3);
    await nextTurn();
    const reason = new Error('the database is gone');
    groups[0]?.fail(reason);
    expect(await outcomes).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    await nextTurn();
    groups[1]?.resolve(echo([3]));
    expect(await laterResult).toBe('result 3');
  });

  it('lets batchers take turns on one slot, and adds a slot while a batch is stuck', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const slots = new BatchSlots(1, () => 20);
    const [first, second, third] = [0, 1, 2].map(() => createBatcher(slots, 8, { maxRunning: 1 }));
    if (!first || !second || !third) throw new Error('there are three');
    const getGroupCounts = () => [first, second, third].map(({ groups }) => groups.length);
    const results = [first, second].map(({ batcher }) => batcher.add(1));
    await nextTurn();
    expect(getGroupCounts()).toEqual([1, 0, 0]);
    results.push(first.batcher.add(2));
    mock.timers.tick(20);
    await nextTurn();
    // The batcher whose batch is stuck waits for that batch.
    expect(getGroupCounts()).toEqual([1, 1, 0]);
    second.groups[0]?.resolve(echo([1]));
    await results[1];
    const late = third.batcher.add(1);
    await nextTurn();
    expect(getGroupCounts()).toEqual([1, 1, 1]);
    third.groups[0]?.resolve(echo([1]));
    await late;
    first.groups[0]?.resolve(echo([1]));
    await results[0];
    await nextTurn();
    first.groups[1]?.resolve(echo([2]));
    expect(await Promise.all(results)).toEqual(['result 1', 'result 1', 'result 2']);
    expect(slots.isFree).toBe(true);
  });

  it('sets no timer for a batch while nothing waits', async () => {
    const { batcher, groups } = createBatcher(new BatchSlots(1, () => HOUR_MS), 8);
    const start = mock.method(globalThis, 'setTimeout').mock;
    const stop = mock.method(globalThis, 'clearTimeout').mock;
    const countTimers = () => {
      const own = start.calls.filter(({ arguments: [, ms = 0] }) => ms > HOUR_MS / 2);
      const stopped = new Set(stop.calls.map(({ arguments: [timer] }) => timer));
      return own.filter(({ result }) => !stopped.has(result)).length;
    };
    const results = [batcher.add(1)];
    await nextTurn();
    expect(countTimers()).toBe(0);
    results.push(batcher.add(2));
    expect(countTimers()).toBe(1);
    groups[0]?.resolve(echo([1]));
    await results[0];
    while (groups.length < 2) await nextTurn();
    expect(countTimers()).toBe(0);
    groups[1]?.resolve(echo([2]));
    expect(await Promise.all(results)).toEqual(['result 1', 'result 2']);
  });

  it('waits for a slot only while alwaysRun items or more are in progress', async () => {
    const { batcher, groups } = createBatcher(1, 8, { alwaysRun: 3, maxRunning: 3 });
    const results: Promise<string>[] = [];
    const addAndGetSizes = async (...items: number[]) => {
      results.push(...items.map((item) => batcher.add(item)));
      await nextTurn();
      return groups.map(({ items: some }) => some.length);
    };
    const finish = (i: number) => groups[i]?.resolve(echo(groups[i]?.items ?? []));
    expect(await addAndGetSizes(1, 2)).toEqual([2]);
    expect(await addAndGetSizes(3, 4)).toEqual([2, 2]);
    expect(await addAndGetSizes(5)).toEqual([2, 2]);
    finish(0);
    await results[0];
    expect(await addAndGetSizes(6)).toEqual([2, 2, 2]);
    for (const i of [1, 2]) finish(i);
    expect(await Promise.all(results)).toEqual([1, 2, 3, 4, 5, 6].map((i) => `result ${i}`));
  });

  it('decides by the size of a batch when the batch is stuck', async () => {
    const { batcher, groups } = createBatcher(
      new BatchSlots(1, (size) => (size === 1 ? 20 : 60_000)),
      2,
    );
    const results = [batcher.add(1), batcher.add(2)];
    await nextTurn();
    results.push(batcher.add(3));
    groups[0]?.resolve(echo([1, 2]));
    await results[0];
    await nextTurn();
    results.push(batcher.add(4));
    while (groups.length < 3) await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3], [4]]);
    for (const i of [1, 2]) groups[i]?.resolve(echo(groups[i]?.items ?? []));
    expect(await Promise.all(results)).toEqual([1, 2, 3, 4].map((i) => `result ${i}`));
  });

  it('rejects an item that waits too long, but not one in progress', async () => {
    const release: (() => void)[] = [];
    const batcher = new Batcher<number, number>(
      1,
      1,
      async (items) => {
        await new Promise<void>((resolve) => release.push(resolve));
        return items.map((value) => ({ status: 'fulfilled', value }));
      },
      { waitMs: 1 },
    );
    const first = batcher.add(1);
    await expect(batcher.add(2)).rejects.toThrow('The database is too busy');
    release.shift()?.();
    expect(await first).toBe(1);
  });
});
