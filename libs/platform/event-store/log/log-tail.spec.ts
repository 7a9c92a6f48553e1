import { describe, expect, it } from '@jest/globals';
import { at, createStored } from '../port/event-store.contract.js';
import type { StoredEvent } from '../port/event-store.js';
import { LogTail } from './log-tail.js';

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => createStored(from + i));
const revisions = (events: StoredEvent[]) => events.map(({ revision }) => revision);

describe('LogTail', () => {
  it('returns the events after any position that it covers', () => {
    const tail = new LogTail();
    tail.begin(at(10));
    tail.add(range(11, 13), at(13));
    tail.add(range(15, 16), at(16));
    expect(revisions(tail.getAfter(at(10), 9))).toEqual([11, 12, 13, 15, 16]);
    expect(revisions(tail.getAfter(at(12), 2))).toEqual([13, 15]);
    expect(revisions(tail.getAfter(at(14), 9))).toEqual([15, 16]);
    expect(tail.getAfter(at(16), 9)).toEqual([]);
  });

  it('covers positions from its beginning on, and none once cleared', () => {
    const tail = new LogTail();
    expect(tail.covers(at(10))).toBe(false);
    tail.begin(at(10));
    expect([9, 10, 11].map((n) => tail.covers(at(n)))).toEqual([false, true, true]);
    tail.clear();
    expect(tail.covers(at(10))).toBe(false);
  });

  it('drops the oldest events and no longer covers the positions before them', () => {
    const tail = new LogTail();
    tail.begin(at(0));
    tail.add(range(1, 3_000), at(3_000));
    expect(tail.covers(at(0))).toBe(false);
    expect(tail.covers(at(1_000))).toBe(true);
    expect(revisions(tail.getAfter(at(1_000), 1))).toEqual([1_001]);
  });

  it('resolves waitForChange at the next change, or when its signal is aborted', async () => {
    const tail = new LogTail();
    tail.begin(at(0));
    const controller = new AbortController();
    const change = tail.waitForChange(new AbortController().signal);
    const abortedWait = tail.waitForChange(controller.signal);
    controller.abort();
    await abortedWait;
    tail.add([], at(5));
    await change;
    expect(tail.end).toEqual(at(5));
  });
});
