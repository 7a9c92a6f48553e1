import { describe, expect, it } from '@jest/globals';
import { runInOrder } from './ordered-operations.js';

type Operation = { name: string; keys: string[] };

/** Runs operations that end when the test says so. */
function start(operations: Operation[], concurrency: number) {
  const started: string[] = [];
  const ends = new Map<string, { resolve: (result: string) => void; reject: (e: Error) => void }>();
  const results = runInOrder(operations, {
    getKeys: ({ keys }) => keys,
    concurrency,
    run: ({ name }) => {
      started.push(name);
      return new Promise<string>((resolve, reject) => ends.set(name, { resolve, reject }));
    },
  });
  results.catch(() => undefined);
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const end = async (name: string, error?: Error) => {
    if (error) ends.get(name)?.reject(error);
    else ends.get(name)?.resolve(`${name} done`);
    await settled();
  };
  return { started, results, settled, end };
}

const on = (name: string, ...keys: string[]): Operation => ({ name, keys });

describe('runInOrder', () => {
  it('runs operations together, and returns their results in the order of the operations', async () => {
    const { started, results, settled, end } = start([on('a', '1'), on('b', '2'), on('c', '3')], 8);
    await settled();
    expect(started).toEqual(['a', 'b', 'c']);
    for (const name of ['c', 'a', 'b']) await end(name);
    expect(await results).toEqual(['a done', 'b done', 'c done']);
  });

  it('runs those with the same key one after another, whichever key they share', async () => {
    const { started, settled, end } = start(
      [on('a', 'card', 'r1'), on('b', 'card', 'r2'), on('c', 'other', 'r2'), on('d', 'third')],
      8,
    );
    await settled();
    expect(started).toEqual(['a', 'd']);
    await end('a');
    expect(started).toEqual(['a', 'd', 'b']);
    await end('b');
    expect(started).toEqual(['a', 'd', 'b', 'c']);
  });

  it('runs no more at a time than it may, and none waits that could run', async () => {
    const operations = [on('a', '1'), on('b', '1'), on('c', '2'), on('d', '3')];
    const { started, settled, end } = start(operations, 2);
    await settled();
    expect(started).toEqual(['a', 'c']);
    await end('a');
    expect(started).toEqual(['a', 'c', 'd']);
    await end('c');
    expect(started).toEqual(['a', 'c', 'd', 'b']);
  });

  it('runs all others to their end when one fails, also those after it with the same key', async () => {
    const { started, results, settled, end } = start([on('a', '1'), on('b', '1'), on('c', '3')], 8);
    await settled();
    await end('a', new Error('lost'));
    expect(started).toEqual(['a', 'c', 'b']);
    let isSettled = false;
    void results.catch(() => (isSettled = true));
    await settled();
    expect(isSettled).toBe(false);
    for (const name of ['c', 'b']) await end(name);
    await expect(results).rejects.toThrow('lost');
  });

  it('returns nothing for nothing', async () => {
    expect(await start([], 1).results).toEqual([]);
  });
});
