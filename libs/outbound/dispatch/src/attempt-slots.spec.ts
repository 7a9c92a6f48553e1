import { describe, expect, it } from '@jest/globals';
import { AttemptSlots, MAX_UNRECORDED, SLOW_MS } from './attempt-slots.js';

describe('slots', () => {
  it('are counted by tier, and full at their number', () => {
    const slots = new AttemptSlots();
    for (let i = 0; i < 64; i++) slots.begin('probe', 0);
    expect([slots.isFree('probe'), slots.isFree('fast')]).toEqual([false, true]);
    expect(slots.usedByTier).toEqual({ fast: 0, slow: 0, probe: 64 });
  });

  it('are free again when an attempt ends', () => {
    const slots = new AttemptSlots();
    const startedSlots = Array.from({ length: 64 }, () => slots.begin('probe', 0));
    for (const slot of startedSlots.slice(0, 1)) slots.end(slot, true);
    expect([slots.isFree('probe'), slots.inFlight, slots.unrecorded]).toEqual([true, 63, 1]);
  });

  it('of fast queues that take long become slow ones, and end as such', () => {
    const slots = new AttemptSlots();
    const slow = slots.begin('fast', 0);
    slots.begin('fast', 1);
    slots.moveSlowAttempts(SLOW_MS - 1);
    expect(slots.usedByTier).toEqual({ fast: 2, slow: 0, probe: 0 });
    slots.moveSlowAttempts(SLOW_MS);
    expect([slow.tier, slots.usedByTier]).toEqual(['slow', { fast: 1, slow: 1, probe: 0 }]);
    slots.end(slow, true);
    expect(slots.usedByTier).toEqual({ fast: 1, slow: 0, probe: 0 });
  });
});

describe('attempts that are not recorded', () => {
  it('stop others from beginning at the bound, until one is recorded', () => {
    const slots = new AttemptSlots();
    for (let i = 0; i < MAX_UNRECORDED; i++) slots.end(slots.begin('fast', 0), true);
    expect(slots.canBegin).toBe(false);
    expect([slots.markRecorded(), slots.canBegin]).toEqual([true, true]);
    expect(slots.markRecorded()).toBe(false);
  });

  it('are only those that were made', () => {
    const slots = new AttemptSlots();
    slots.end(slots.begin('fast', 0), false);
    expect(slots.unrecorded).toBe(0);
  });
});

it('more at once are allowed while the process has time left, with less when many are in flight', () => {
  const slots = new AttemptSlots();
  expect([slots.canGrow(0.8), slots.canGrow(0.9)]).toEqual([true, false]);
  for (let i = 0; i < 256; i++) slots.begin('fast', 0);
  expect([slots.canGrow(0.4), slots.canGrow(0.8)]).toEqual([true, false]);
});
