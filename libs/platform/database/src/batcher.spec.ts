import { describe, expect, it } from '@jest/globals';
import { Batcher, BatchSlots } from './batcher.js';

type Settled = PromiseSettledResult<string>[];

/** Creates a batcher whose batches the test resolves. */
function createBatcher(workers: BatchSlots | number, groupSize: number, limits = {}) {
  const groups: {
    items: number[];
    answer: (results: Settled) => void;
    fail: (e: Error) => void;
  }[] = [];
  const batcher = new Batcher<number, string>(
    workers,
    groupSize,
    (items) =>
      new Promise<Settled>((answer, fail) => {
        groups.push({ items, answer, fail });
      }),
    limits,
  );
  return { batcher, groups };
}

const echo = (items: number[]): Settled =>
  items.map((item) => ({ status: 'fulfilled', value: `answer ${item}` }));

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('Batcher', () => {
  it('batches items of one turn of the event loop, in order', async () => {
    const { batcher, groups } = createBatcher(1, 8);
    const answers = Promise.all([1, 2, 3].map((item) => batcher.add(item)));
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    groups[0]?.answer(echo([1, 2, 3]));
    expect(await answers).toEqual(['answer 1', 'answer 2', 'answer 3']);
  });

  it('batches items that arrive while every slot is busy', async () => {
    const { batcher, groups } = createBatcher(1, 2);
    const answers = [batcher.add(1)];
    await nextTurn();
    answers.push(batcher.add(2), batcher.add(3), batcher.add(4));
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1]]);
    groups[0]?.answer(echo([1]));
    await answers[0];
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1], [2, 3]]);
    groups[1]?.answer(echo([2, 3]));
    await answers[1];
    await nextTurn();
    groups[2]?.answer(echo([4]));
    expect(await Promise.all(answers)).toEqual(['answer 1', 'answer 2', 'answer 3', 'answer 4']);
  });

  it('gives each item its own result', async () => {
    const { batcher, groups } = createBatcher(1, 8);
    const answers = Promise.allSettled([batcher.add(1), batcher.add(2), batcher.add(3)]);
    await nextTurn();
    groups[0]?.answer([
      { status: 'rejected', reason: 'refused' },
      { status: 'fulfilled', value: 'done' },
    ]);
    expect(await answers).toEqual([
      { status: 'rejected', reason: 'refused' },
      { status: 'fulfilled', value: 'done' },
      { status: 'rejected', reason: new Error('a batch must have a result for every item') },
    ]);
  });

  it('rejects every item of a failed batch and continues with the next', async () => {
    const { batcher, groups } = createBatcher(1, 2);
    const failed = Promise.allSettled([batcher.add(1), batcher.add(2)]);
    const later = batcher.add(3);
    await nextTurn();
    const reason = new Error('the database is gone');
    groups[0]?.fail(reason);
    expect(await failed).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    await nextTurn();
    groups[1]?.answer(echo([3]));
    expect(await later).toBe('answer 3');
  });

  it('shares one slot in turns, and adds one while a batch is stuck', async () => {
    const slots = new BatchSlots(1, () => 20);
    const [first, second, third] = [0, 1, 2].map(() => createBatcher(slots, 8, { maxRunning: 1 }));
    if (!first || !second || !third) throw new Error('there are three');
    const getGroupCounts = () => [first, second, third].map(({ groups }) => groups.length);
    const answers = [first, second].map(({ batcher }) => batcher.add(1));
    await nextTurn();
    expect(getGroupCounts()).toEqual([1, 0, 0]);
    answers.push(first.batcher.add(2));
    while (second.groups.length === 0) await nextTurn();
    // The one that is stuck waits for itself.
    expect(getGroupCounts()).toEqual([1, 1, 0]);
    second.groups[0]?.answer(echo([1]));
    await answers[1];
    const late = third.batcher.add(1);
    await nextTurn();
    expect(getGroupCounts()).toEqual([1, 1, 1]);
    third.groups[0]?.answer(echo([1]));
    await late;
    first.groups[0]?.answer(echo([1]));
    await answers[0];
    await nextTurn();
    first.groups[1]?.answer(echo([2]));
    expect(await Promise.all(answers)).toEqual(['answer 1', 'answer 1', 'answer 2']);
    expect([slots.busy, slots.isFree]).toEqual([0, true]);
  });

  it('waits for a slot only when more than a few items are in progress', async () => {
    const { batcher, groups } = createBatcher(1, 8, { alwaysRun: 3, maxRunning: 3 });
    const answers: Promise<string>[] = [];
    const sizesAfter = async (...items: number[]) => {
      answers.push(...items.map((item) => batcher.add(item)));
      await nextTurn();
      return groups.map(({ items: some }) => some.length);
    };
    const answer = (i: number) => groups[i]?.answer(echo(groups[i]?.items ?? []));
    expect(await sizesAfter(1, 2)).toEqual([2]);
    expect(await sizesAfter(3, 4)).toEqual([2, 2]);
    expect(await sizesAfter(5)).toEqual([2, 2]);
    answer(0);
    await answers[0];
    expect(await sizesAfter(6)).toEqual([2, 2, 2]);
    for (const i of [1, 2]) answer(i);
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5, 6].map((i) => `answer ${i}`));
  });

  it('decides by its size when a batch is stuck', async () => {
    const { batcher, groups } = createBatcher(
      new BatchSlots(1, (size) => (size === 1 ? 20 : 60_000)),
      2,
    );
    const answers = [batcher.add(1), batcher.add(2)];
    await nextTurn();
    answers.push(batcher.add(3));
    groups[0]?.answer(echo([1, 2]));
    await answers[0];
    await nextTurn();
    answers.push(batcher.add(4));
    while (groups.length < 3) await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3], [4]]);
    for (const i of [1, 2]) groups[i]?.answer(echo(groups[i]?.items ?? []));
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4].map((i) => `answer ${i}`));
  });

  it('rejects items that wait too long, and none in progress', async () => {
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
