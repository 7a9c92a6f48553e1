import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { OverloadError } from './errors.js';
import { FairQueue } from './fair-queue.js';

/** Creates tasks that run until the test ends them. */
function createTasks(queue: FairQueue) {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const add = (owner: string, name: string) =>
    queue.run(owner, () => {
      started.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { started, add, end };
}

const QUEUE = { concurrency: 1, maxWaiting: 3, waitMs: 60_000 };

describe('FairQueue', () => {
  it('alternates between owners, however many tasks one has', async () => {
    const { started, add, end } = createTasks(new FairQueue(QUEUE));
    const all = [
      add('flood', 'f1'),
      add('flood', 'f2'),
      add('flood', 'f3'),
      add('flood', 'f4'),
      add('other', 'o1'),
      add('third', 't1'),
    ];
    for (const name of ['f1', 'o1', 't1', 'f2', 'f3', 'f4']) await end(name);
    expect(await Promise.all(all)).toHaveLength(6);
    expect(started).toEqual(['f1', 'o1', 't1', 'f2', 'f3', 'f4']);
  });

  it('makes an occasional owner wait for the running task only', async () => {
    let now = 0;
    const { started, add, end } = createTasks(new FairQueue({ ...QUEUE, now: () => now }));
    const endAfter = async (ms: number, name: string) => {
      now += ms;
      await end(name);
    };
    const all = ['a', 'b', 'c'].flatMap((owner) =>
      [1, 2, 3].map((i) => add(owner, `${owner}${i}`)),
    );
    for (const name of ['a1', 'b1', 'c1']) await endAfter(10_000, name);
    for (let round = 1; round <= 6; round++) {
      const flood = started.at(-1) ?? '';
      all.push(add('rare', `r${round}`));
      await endAfter(10_000, flood);
      expect([flood, started.at(-1)]).toEqual([flood, `r${round}`]);
      await endAfter(100, `r${round}`);
    }
    expect(await Promise.all(all)).toHaveLength(15);
  });

  it('charges an owner nothing for time in which no other owner waited', async () => {
    let now = 0;
    const { started, add, end } = createTasks(new FairQueue({ ...QUEUE, now: () => now }));
    const alone = add('a', 'a1');
    now += 60_000;
    await end('a1');
    await alone;
    const all = [add('b', 'b1'), add('a', 'a2'), add('b', 'b2')];
    for (const name of ['b1', 'a2', 'b2']) await end(name);
    await Promise.all(all);
    expect(started).toEqual(['a1', 'b1', 'a2', 'b2']);
  });

  it('limits the number of running tasks', async () => {
    const { started, add, end } = createTasks(new FairQueue({ ...QUEUE, concurrency: 2 }));
    const all = [add('a', '1'), add('b', '2'), add('c', '3')];
    expect(started).toEqual(['1', '2']);
    for (const name of ['2', '1', '3']) await end(name);
    expect(await Promise.all(all)).toEqual(['1', '2', '3']);
  });

  it('limits the number of running tasks of an owner', async () => {
    const { started, add, end } = createTasks(
      new FairQueue({ ...QUEUE, concurrency: 2, getMaxRunning: () => 1 }),
    );
    const all = [add('a', 'a1'), add('a', 'a2'), add('b', 'b1')];
    expect(started).toEqual(['a1', 'b1']);
    await end('b1');
    expect(started).toEqual(['a1', 'b1']);
    await end('a1');
    await end('a2');
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'b1']);
  });

  it('refuses a task of an owner who has too many waiting, but not of another owner', async () => {
    const { add, end } = createTasks(new FairQueue({ ...QUEUE, maxWaiting: 1 }));
    const results = [add('a', '1'), add('a', '2'), add('b', '3')];
    await expect(add('a', '4')).rejects.toThrow(OverloadError);
    for (const name of ['1', '3', '2']) await end(name);
    expect(await Promise.all(results)).toEqual(['1', '2', '3']);
  });

  it('rejects a task that has waited too long, and continues', async () => {
    const { started, add, end } = createTasks(new FairQueue({ ...QUEUE, waitMs: 1 }));
    const first = add('a', '1');
    await expect(add('b', '2')).rejects.toThrow(OverloadError);
    await end('1');
    expect(await first).toBe('1');
    const third = add('b', '3');
    await end('3');
    expect(await third).toBe('3');
    expect(started).toEqual(['1', '3']);
  });

  it("never starts a task that has given up waiting, nor counts it among its owner's", async () => {
    const queue = new FairQueue({ ...QUEUE, maxWaiting: 1 });
    const { started, add, end } = createTasks(queue);
    const first = add('a', '1');
    const giveUp = queue.acquire('a', () => started.push('2'));
    giveUp();
    giveUp();
    const third = add('a', '3');
    for (const name of ['1', '3']) await end(name);
    expect(await Promise.all([first, third])).toEqual(['1', '3']);
    expect([started, queue.waitingCount]).toEqual([['1', '3'], 0]);
  });

  it('starts the next task when one fails', async () => {
    const queue = new FairQueue(QUEUE);
    const failingTask = queue.run('a', () => Promise.reject(new Error('broken')));
    const next = queue.run('a', async () => 'done');
    await expect(failingTask).rejects.toThrow('broken');
    expect(await next).toBe('done');
  });

  it('lets an owner have fewer tasks the fewer may start, and more again as others end', async () => {
    const { started, add, end } = createTasks(
      new FairQueue({ ...QUEUE, concurrency: 6, getMaxRunning: (freeCount) => freeCount - 1 }),
    );
    const all = [1, 2, 3, 4].map((i) => add('a', `a${i}`));
    all.push(...[1, 2].map((i) => add('b', `b${i}`)), add('c', 'c1'));
    expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'c1']);
    await end('a1');
    expect(started.slice(5)).toEqual([]);
    await end('b1');
    expect(started.slice(5)).toEqual(['b2']);
    await end('c1');
    await end('b2');
    expect(started.slice(6)).toEqual(['a4']);
    for (const name of ['a2', 'a3', 'a4']) await end(name);
    expect(await Promise.all(all)).toHaveLength(7);
  });

  it('starts work of no owner before that of owners, whatever they have', async () => {
    const queue = new FairQueue({ ...QUEUE, concurrency: 2, getMaxRunning: () => 1 });
    const { started, add, end } = createTasks(queue);
    const releases: (() => void)[] = [];
    const acquire = (name: string) =>
      queue.acquire(undefined, (_, release) => {
        started.push(name);
        releases.push(release);
      });
    const all = [add('a', 'a1')];
    acquire('u1');
    all.push(add('b', 'b1'));
    acquire('u2');
    expect([started, queue.waitingCount]).toEqual([['a1', 'u1'], 2]);
    await end('a1');
    releases[0]?.();
    expect([started.slice(2), queue.waitingCount]).toEqual([['u2', 'b1'], 0]);
    releases[1]?.();
    await end('b1');
    expect(await Promise.all(all)).toEqual(['a1', 'b1']);
  });

  it('runs a task that waited in the context of its caller', async () => {
    const context = new AsyncLocalStorage<string>();
    const { add, end } = createTasks(new FairQueue(QUEUE));
    const queue = new FairQueue(QUEUE);
    const read = (name: string) =>
      context.run(name, () =>
        queue.run(name, async () => {
          await add(name, name);
          return context.getStore();
        }),
      );
    const all = [read('a'), read('b')];
    for (const name of ['a', 'b']) await end(name);
    expect(await Promise.all(all)).toEqual(['a', 'b']);
  });
});
