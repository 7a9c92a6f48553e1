import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { UnavailableError } from '#platform/kernel/errors.js';
import { eventually } from '../../../../test/support/jest/eventually.js';
import { Lanes, type Waiting } from './lane.js';

type Command = Waiting & { text: string };

/** Creates lanes whose batches run until the test ends them. */
function createLanes(startWithinMs = 6_500) {
  const log: string[] = [];
  const ends: (() => void)[] = [];
  const refused: string[] = [];
  const lanes = new Lanes<Command>({
    run: (name, batch) => {
      log.push(`${name}: ${batch.map(({ text }) => text).join(' ')}`);
      ends.push(() => lanes.startNext(name));
    },
    startWithinMs,
  });
  const add = (name: string, text: string, since = performance.now()) =>
    lanes.add(name, { text, since, reject: () => refused.push(text) });
  return { log, lanes, add, refused, endBatch: () => ends.shift()?.() };
}

/** Runs exclusive work that the test ends. */
function createWork(lanes: Lanes<Command>) {
  const running = new Map<number, () => void>();
  const run = (name: string, id: number) =>
    lanes.runExclusively(
      [name],
      () => new Promise<number>((resolve) => running.set(id, () => resolve(id))),
    );
  return { running, run };
}

describe('Lanes', () => {
  it('runs the commands that wait for one stream as one batch', () => {
    const { log, add, endBatch } = createLanes();
    for (const text of ['a', 'b', 'c']) add('s', text);
    endBatch();
    expect(log).toEqual(['s: a', 's: b c']);
  });

  it('runs at most 64 commands as one batch', () => {
    const { log, add, endBatch } = createLanes();
    for (let i = 0; i < 66; i++) add('s', `${i}`);
    endBatch();
    endBatch();
    expect(log.map((line) => line.split(' ').length - 1)).toEqual([1, 64, 1]);
  });

  it('makes exclusive work wait for its streams, and later commands wait for the work', async () => {
    const { log, lanes, add, endBatch } = createLanes();
    add('t', 'before');
    const exclusiveWork = lanes.runExclusively(['t', 's'], async () => {
      log.push('held');
      await nextTurn();
      log.push('released');
    });
    await nextTurn();
    add('s', 'after');
    expect(log).toEqual(['t: before']);
    endBatch();
    await exclusiveWork;
    await nextTurn();
    expect(log).toEqual(['t: before', 'held', 'released', 's: after']);
  });

  it('runs exclusive work one after another, whatever the order of its names', async () => {
    const { log, lanes } = createLanes();
    const hold = (text: string, names: string[]) =>
      lanes.runExclusively(names, async () => {
        log.push(`${text} begins`);
        await nextTurn();
        log.push(`${text} ends`);
      });
    await Promise.all([hold('1', ['a', 'b']), hold('2', ['b', 'a']), hold('3', ['b', 'b'])]);
    expect(log).toHaveLength(6);
    for (let i = 0; i < log.length; i += 2) {
      expect(log[i + 1]).toBe(log[i]?.replace('begins', 'ends'));
    }
  });

  it('runs the exclusive work of one name one after another, and that of others beside it', async () => {
    const { running, run } = createWork(createLanes().lanes);
    const results = Promise.all([run('one', 1), run('one', 2), run('two', 3)]);
    await nextTurn();
    expect([...running.keys()]).toEqual([1, 3]);
    running.get(1)?.();
    await nextTurn();
    expect([...running.keys()]).toEqual([1, 3, 2]);
    running.get(2)?.();
    running.get(3)?.();
    await expect(results).resolves.toEqual([1, 2, 3]);
  });

  it('runs exclusive work without a name at once', async () => {
    const { lanes } = createLanes();
    const { run } = createWork(lanes);
    void run('one', 1);
    await expect(lanes.runExclusively([], () => Promise.resolve('done'))).resolves.toBe('done');
  });

  it('releases the streams when exclusive work fails', async () => {
    const { log, lanes, add } = createLanes();
    const failingWork = lanes.runExclusively(['s'], () => Promise.reject(new Error('no')));
    add('s', 'next');
    const next = lanes.runExclusively(['u'], () => Promise.resolve('done'));
    await expect(failingWork).rejects.toThrow('no');
    await expect(next).resolves.toBe('done');
    await nextTurn();
    expect(log).toEqual(['s: next']);
  });

  it('retries a command that lost a race before later commands', async () => {
    const log: string[] = [];
    const lanes = new Lanes<Command>({
      run: (name, batch, losses) => {
        log.push(`${losses}: ${batch.map(({ text }) => text).join(' ')}`);
        if (losses === 0) void lanes.retry(name, batch, 1);
      },
    });
    for (const text of ['a', 'b']) {
      lanes.add('s', { text, since: performance.now(), reject: () => undefined });
    }
    await eventually(
      () => log.length,
      (batches) => batches === 2,
    );
    expect(log).toEqual(['0: a', '1: a b']);
  });

  it('refuses commands that wait too long, but none that have started', async () => {
    const { log, lanes, add, refused, endBatch } = createLanes();
    add('s', 'started', 0);
    add('s', 'late', -6_600);
    add('s', 'in time', performance.now() + 60_000);
    await eventually(
      () => refused.length,
      (count) => count > 0,
    );
    endBatch();
    endBatch();
    expect(refused).toEqual(['late']);
    expect(log).toEqual(['s: started', 's: in time']);
    expect(lanes.size).toBe(0);
  });

  it('refuses no command that has lost races, however long it has waited', async () => {
    const refused: string[] = [];
    const lanes = new Lanes<Command>({
      run: (name, batch, losses) => {
        if (refused.length === 0) void lanes.retry(name, batch, losses + 1);
        else lanes.startNext(name);
      },
    });
    const reject = () => refused.push('command');
    lanes.add('s', { text: 'command', since: -10_000, reject });
    const lateWork = lanes.runExclusively(['s'], () => Promise.resolve(), { since: -10_000 });
    await lateWork.catch(() => refused.push('late work'));
    await eventually(
      () => lanes.size,
      (size) => size === 0,
    );
    expect(refused).toEqual(['late work']);
  });

  it('lets exclusive work wait for ten seconds in all once it has lost a race', async () => {
    const { lanes, add, endBatch } = createLanes();
    add('s', 'running');
    const wait = (text: string, waitedMs: number, isRetry: boolean) =>
      lanes.runExclusively(['s'], () => Promise.resolve(text), {
        since: performance.now() - waitedMs,
        isRetry,
      });
    const results = Promise.allSettled([wait('again', 7_000, true), wait('first', 7_000, false)]);
    await expect(wait('too late', 10_000, true)).rejects.toThrow('Too many others are changing');
    endBatch();
    expect(await results).toEqual([
      { status: 'fulfilled', value: 'again' },
      { status: 'rejected', reason: new UnavailableError('The database is too busy') },
    ]);
  });

  it('refuses exclusive work that cannot begin in time, never runs it and releases what it held', async () => {
    const { lanes } = createLanes(5);
    const { running, run } = createWork(lanes);
    const first = run('one', 1);
    const both = lanes.runExclusively(['a', 'one'], () => Promise.reject(new Error('it ran')));
    const reason = expect.any(UnavailableError);
    expect(await Promise.allSettled([run('one', 2), both])).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    await expect(lanes.runExclusively(['a'], () => Promise.resolve('done'))).resolves.toBe('done');
    running.get(1)?.();
    await first;
    await nextTurn();
    expect([...running.keys()]).toEqual([1]);
    expect(lanes.size).toBe(0);
  });
});
