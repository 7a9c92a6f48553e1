import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/jest/eventually.js';
import { StreamQueues } from './stream-queues.js';

type Command = { name: string };

/** Creates queues whose batches run until the test ends them. */
function createQueues() {
  const log: string[] = [];
  const ends: (() => void)[] = [];
  const streams = new StreamQueues<Command>(async (stream, batch) => {
    log.push(`${stream}: ${batch.map(({ name }) => name).join(' ')}`);
    await new Promise<void>((end) => ends.push(end));
    return { retry: [], isRaceLost: false };
  });
  return { log, streams, endTurn: () => ends.shift()?.() };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('StreamQueues', () => {
  it('runs the commands that wait for one stream as one batch', async () => {
    const { log, streams, endTurn } = createQueues();
    for (const name of ['a', 'b', 'c']) streams.add('s', { name });
    endTurn();
    await nextTurn();
    expect(log).toEqual(['s: a', 's: b c']);
  });

  it('makes exclusive work wait for its streams, and later commands wait for the work', async () => {
    const { log, streams, endTurn } = createQueues();
    streams.add('t', { name: 'before' });
    const exclusiveWork = streams.runExclusively(['t', 's'], async () => {
      log.push('held');
      await nextTurn();
      log.push('released');
    });
    await nextTurn();
    streams.add('s', { name: 'after' });
    expect(log).toEqual(['t: before']);
    endTurn();
    await exclusiveWork;
    await nextTurn();
    expect(log).toEqual(['t: before', 'held', 'released', 's: after']);
  });

  it('runs exclusive work one after another, whatever the order of its stream names', async () => {
    const { log, streams } = createQueues();
    const hold = (name: string, names: string[]) =>
      streams.runExclusively(names, async () => {
        log.push(`${name} begins`);
        await nextTurn();
        log.push(`${name} ends`);
      });
    await Promise.all([hold('1', ['a', 'b']), hold('2', ['b', 'a']), hold('3', ['b', 'b'])]);
    expect(log).toHaveLength(6);
    for (let i = 0; i < log.length; i += 2) {
      expect(log[i + 1]).toBe(log[i]?.replace('begins', 'ends'));
    }
  });

  it('releases the streams when exclusive work fails', async () => {
    const { log, streams } = createQueues();
    const failingWork = streams.runExclusively(['s'], async () => Promise.reject(new Error('no')));
    streams.add('s', { name: 'next' });
    await expect(failingWork).rejects.toThrow('no');
    await nextTurn();
    expect(log).toEqual(['s: next']);
  });

  it('retries a command that lost a race before later commands', async () => {
    const log: string[] = [];
    const streams = new StreamQueues<Command>(async (_stream, batch, losses) => {
      log.push(`${losses}: ${batch.map(({ name }) => name).join(' ')}`);
      return losses === 0 ? { retry: batch, isRaceLost: true } : { retry: [], isRaceLost: false };
    });
    streams.add('s', { name: 'a' });
    streams.add('s', { name: 'b' });
    await eventually(
      () => log.length,
      (turns) => turns === 2,
    );
    expect(log).toEqual(['0: a', '1: a b']);
  });

  it('refuses commands that wait too long, but none that have started', async () => {
    const refusedNames: string[] = [];
    const ends: (() => void)[] = [];
    const streams = new StreamQueues<Command>(
      async () => {
        await new Promise<void>((end) => ends.push(end));
        return { retry: [], isRaceLost: false };
      },
      { isLate: ({ name }) => name !== 'in time', refuse: ({ name }) => refusedNames.push(name) },
    );
    streams.add('s', { name: 'started' });
    streams.add('s', { name: 'late' });
    streams.add('s', { name: 'in time' });
    await eventually(
      () => refusedNames.length,
      (count) => count > 0,
    );
    ends.shift()?.();
    await eventually(
      () => ends.length,
      (count) => count > 0,
    );
    ends.shift()?.();
    await eventually(
      () => streams.size,
      (size) => size === 0,
    );
    expect(refusedNames).toEqual(['late']);
  });
});
