import { expect, it } from '@jest/globals';
import { runConcurrently } from './row-concurrency.js';

it('does no more than some at once', async () => {
  let running = 0;
  let maximum = 0;
  const done: number[] = [];
  await runConcurrently([1, 2, 3, 4, 5], 2, async (item) => {
    maximum = Math.max(maximum, ++running);
    await Promise.resolve();
    running--;
    done.push(item);
  });
  expect([done, maximum]).toEqual([[1, 2, 3, 4, 5], 2]);
});

it('begins no more after an error, and throws it once the others have ended', async () => {
  const ended: number[] = [];
  const work = async (item: number) => {
    await Promise.resolve();
    if (item === 1) throw new Error('no');
    ended.push(item);
  };
  await expect(runConcurrently([1, 2, 3, 4], 2, work)).rejects.toThrow('no');
  expect(ended).toEqual([2]);
});

it('begins no more once the signal aborts, and lets those end that have begun', async () => {
  const stopping = new AbortController();
  const ended: number[] = [];
  const work = async (item: number) => {
    if (item === 2) stopping.abort();
    await Promise.resolve();
    ended.push(item);
  };
  await runConcurrently([1, 2, 3, 4], 2, work, stopping.signal);
  expect(ended).toEqual([1, 2]);
});
