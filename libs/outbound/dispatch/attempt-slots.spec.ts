import { describe, expect, it } from '@jest/globals';
import { AttemptSlots, MAX_WAITING_RESULTS, SLOW_MS } from './attempt-slots.js';

describe('AttemptSlots', () => {
  it('counts slots by tier, and reports a tier as full when all its slots are in use', () => {
    const slots = new AttemptSlots();
    for (let i = 0; i < 64; i++) slots.begin('probe', 0);
    expect([slots.isFree('probe'), slots.isFree('fast')]).toEqual([false, true]);
    expect(slots.usedByTier).toEqual({ fast: 0, slow: 0, probe: 64 });
  });

  it('frees a slot when its attempt ends', () => {
    const slots = new AttemptSlots();
    const startedSlots = Array.from({ length: 64 }, () => slots.begin('probe', 0));
    for (const slot of startedSlots.slice(0, 1)) slots.end(slot, true);
    expect([slots.isFree('probe'), slots.inFlight, slots.unrecorded]).toEqual([true, 63, 1]);
  });

  it('moves an attempt of a fast queue to a slow slot after two seconds, and frees that one at its end', () => {
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

  it('lets no attempt begin while too many results wait to be recorded', () => {
    const slots = new AttemptSlots();
    for (let i = 0; i < MAX_WAITING_RESULTS; i++) slots.end(slots.begin('fast', 0), true);
    expect(slots.canBegin).toBe(false);
    expect([slots.markRecorded(), slots.canBegin]).toEqual([true, true]);
    expect(slots.markRecorded()).toBe(false);
  });

  it('lets attempts begin again once a statement records the results, unless it fails', () => {
    const slots = new AttemptSlots();
    for (let i = 0; i < 2 * MAX_WAITING_RESULTS; i++) slots.end(slots.begin('fast', 0), true);
    expect(slots.startRecording(MAX_WAITING_RESULTS)).toBe(false);
    expect([slots.startRecording(1), slots.canBegin]).toEqual([true, true]);
    expect(slots.startRecording(1)).toBe(false);
    slots.endRecording(MAX_WAITING_RESULTS);
    expect(slots.canBegin).toBe(false);
  });

  it('does not count an attempt that was not made as unrecorded', () => {
    const slots = new AttemptSlots();
    slots.end(slots.begin('fast', 0), false);
    expect(slots.unrecorded).toBe(0);
  });

  it('allows more attempts at once up to a busy share, which is lower with many in flight', () => {
    const slots = new AttemptSlots();
    expect([slots.canGrow(0.8), slots.canGrow(0.9)]).toEqual([true, false]);
    for (let i = 0; i < 256; i++) slots.begin('fast', 0);
    expect([slots.canGrow(0.4), slots.canGrow(0.8)]).toEqual([true, false]);
  });
});
