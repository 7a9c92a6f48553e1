import { beforeEach, describe, expect, it } from '@jest/globals';
import { setImmediate as nextTick } from 'node:timers/promises';
import { UnavailableError } from '#kernel/errors.js';
import type { Cap } from '../port/event-store.js';
import { CapTurns } from './cap-turns.js';

const createCap = (owner: number): Cap => ({
  kind: { table: 'records', ownerColumn: 'owner_id', label: '', resolution: '' },
  owner,
  id: 1,
  max: 10,
});

let turns: CapTurns;
let running: Map<number, () => void>;

beforeEach(() => {
  turns = new CapTurns();
  running = new Map();
});

const run = (owner: number, id: number): Promise<number> =>
  turns.run(
    createCap(owner),
    () => new Promise<number>((resolve) => running.set(id, () => resolve(id))),
  );

describe('CapTurns', () => {
  it('runs the commits of one owner one after another, and those of others beside them', async () => {
    const results = Promise.all([run(1, 1), run(1, 2), run(2, 3)]);
    await nextTick();
    expect([...running.keys()]).toEqual([1, 3]);
    running.get(1)?.();
    await nextTick();
    expect([...running.keys()]).toEqual([1, 3, 2]);
    running.get(2)?.();
    running.get(3)?.();
    await expect(results).resolves.toEqual([1, 2, 3]);
  });

  it('goes on after a commit that failed', async () => {
    const failed = turns.run(createCap(1), () => Promise.reject(new Error('full')));
    const next = turns.run(createCap(1), () => Promise.resolve('done'));
    await expect(failed).rejects.toThrow('full');
    await expect(next).resolves.toBe('done');
  });

  it('refuses a commit whose turn does not come in time, and never runs it', async () => {
    turns = new CapTurns(5);
    const first = run(1, 1);
    await expect(run(1, 2)).rejects.toThrow(UnavailableError);
    running.get(1)?.();
    await first;
    await nextTick();
    expect([...running.keys()]).toEqual([1]);
  });

  it('runs a commit without a cap at once', async () => {
    void run(1, 1);
    await expect(turns.run(undefined, () => Promise.resolve('done'))).resolves.toBe('done');
  });
});
