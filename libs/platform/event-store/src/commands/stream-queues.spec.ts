import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/jest/eventually.js';
import { StreamQueues } from './stream-queues.js';

type Command = { name: string };

/** Queues whose turns last until the test lets them end. */
function queues() {
  const log: string[] = [];
  const ends: (() => void)[] = [];
  const streams = new StreamQueues<Command>(async (stream, batch) => {
    log.push(`${stream}: ${batch.map(({ name }) => name).join(' ')}`);
    await new Promise<void>((end) => ends.push(end));
    return { retry: [], isRaceLost: false };
  });
  return { log, streams, endTurn: () => ends.shift()?.() };
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

describe('the queues of streams', () => {
  it('takes single commands that wait for one stream together', async () => {
    const { log, streams, endTurn } = queues();
    for (const name of ['a', 'b', 'c']) streams.add('s', { name });
    endTurn();
    await soon();
    expect(log).toEqual(['s: a', 's: b c']);
  });

  it('lets a holder of several streams wait its turn, and others wait for it', async () => {
    const { log, streams, endTurn } = queues();
    streams.add('t', { name: 'before' });
    const holding = streams.runExclusively(['t', 's'], async () => {
      log.push('held');
      await soon();
      log.push('released');
    });
    await soon();
    streams.add('s', { name: 'after' });
    expect(log).toEqual(['t: before']);
    endTurn();
    await holding;
    await soon();
    expect(log).toEqual(['t: before', 'held', 'released', 's: after']);
  });

  it('lets holders follow one another, whatever order they name their streams in', async () => {
    const { log, streams } = queues();
    const hold = (name: string, names: string[]) =>
      streams.runExclusively(names, async () => {
        log.push(`${name} begins`);
        await soon();
        log.push(`${name} ends`);
      });
    await Promise.all([hold('1', ['a', 'b']), hold('2', ['b', 'a']), hold('3', ['b', 'b'])]);
    expect(log).toHaveLength(6);
    for (let i = 0; i < log.length; i += 2) {
      expect(log[i + 1]).toBe(log[i]?.replace('begins', 'ends'));
    }
  });

  it('releases the streams when the work fails', async () => {
    const { log, streams } = queues();
    const failing = streams.runExclusively(['s'], async () => Promise.reject(new Error('no')));
    streams.add('s', { name: 'next' });
    await expect(failing).rejects.toThrow('no');
    await soon();
    expect(log).toEqual(['s: next']);
  });

  it('starts what has lost its race again before what came later', async () => {
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

  it('refuses what waits too long for its turn, and nothing that has had it', async () => {
    const refused: string[] = [];
    const ends: (() => void)[] = [];
    const streams = new StreamQueues<Command>(
      async () => {
        await new Promise<void>((end) => ends.push(end));
        return { retry: [], isRaceLost: false };
      },
      { isLate: ({ name }) => name !== 'in time', refuse: ({ name }) => refused.push(name) },
    );
    streams.add('s', { name: 'taken' });
    streams.add('s', { name: 'late' });
    streams.add('s', { name: 'in time' });
    await eventually(
      () => refused.length,
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
    expect(refused).toEqual(['late']);
  });
});
