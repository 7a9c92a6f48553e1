import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { computeEffectiveTimes } from './log-times.js';

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 2, 1, 12);
const at = (...seconds: number[]) => seconds.map((second) => NOON + second * 1_000);
const times = (recorded: number[], { start = 0, end = Number.MAX_SAFE_INTEGER } = {}) =>
  computeEffectiveTimes(start, recorded, end);

describe('computeEffectiveTimes', () => {
  it('keeps times that are already in order', () => {
    expect(times(at(1, 2, 2, 9))).toEqual(at(1, 2, 2, 9));
  });

  it('raises the time of a slow commit to that of the event before it', () => {
    expect(times(at(1, 7, 4, 9))).toEqual(at(1, 7, 7, 9));
  });

  it('clamps times to the start and the end', () => {
    const [start = 0, end = 0] = at(3, 8);
    expect(times(at(1, 4, 9), { start, end })).toEqual(at(3, 4, 8));
  });

  it('keeps the times of other events when one clock is an hour ahead', () => {
    const [ahead = 0] = at(2 + 3_600);
    expect(times([...at(1), ahead, ...at(3, 4), ahead + 3_000, ...at(6)])).toEqual(
      at(1, 3, 3, 4, 6, 6),
    );
  });

  it('takes the time of the later event when two clocks disagree', () => {
    expect(times([NOON + HOUR, NOON])).toEqual([NOON, NOON]);
  });

  it('keeps the times of other events when one clock is an hour behind', () => {
    const [behind = 0] = at(2 - 3_600);
    expect(times([...at(0, 1), behind, ...at(3, 4)])).toEqual(at(0, 1, 1, 3, 4));
  });

  it('lowers a time in the future to that of the next event, or to the end', () => {
    const [end = 0] = at(9);
    expect(times([...at(1), NOON + HOUR, ...at(3), NOON + HOUR], { end })).toEqual(at(1, 3, 3, 9));
  });

  it('returns times that never decrease, lie between start and end, and keep equal neighbours equal', () => {
    const time = fc.integer({ min: 0, max: 200_000 });
    fc.assert(
      fc.property(fc.array(time), time, time, (recorded, a, b) => {
        const [start, end] = [Math.min(a, b), Math.max(a, b)];
        const effectiveTimes = computeEffectiveTimes(start, recorded, end);
        expect(effectiveTimes).toHaveLength(recorded.length);
        effectiveTimes.forEach((at, i) => {
          expect(at).toBeGreaterThanOrEqual(i === 0 ? start : (effectiveTimes[i - 1] ?? 0));
          expect(at).toBeLessThanOrEqual(end);
          expect(recorded[i] !== recorded[i - 1] || at === effectiveTimes[i - 1]).toBe(true);
        });
      }),
    );
  });
});
