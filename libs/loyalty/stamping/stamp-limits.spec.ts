import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RejectedError } from '#platform/kernel/errors.js';
import { sampleRuns } from '../../../test/support/jest/sample.js';
import {
  assertWithinLimits,
  isStamping,
  NO_STAMPINGS,
  withoutStamping,
  withStamping,
  type StampLimits,
  type Stampings,
} from './stamp-limits.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

const NO_LIMITS: StampLimits = {
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
};

const at = (time: string) => Date.parse(`2026-03-01T${time}Z`);

function record(...stampings: [at: number, stamps?: number][]): Stampings {
  return stampings.reduce(
    (state, [time, stamps = 1]) => withStamping(state, time, stamps),
    NO_STAMPINGS,
  );
}

function isWithin(
  stampings: Stampings,
  limits: Partial<StampLimits>,
  { stamps = 1, time }: { stamps?: number; time: number },
): boolean {
  try {
    assertWithinLimits(stampings, { ...NO_LIMITS, ...limits }, stamps, new Date(time));
    return true;
  } catch (error) {
    if (error instanceof RejectedError && error.code === 'stamp_limit_reached') return false;
    throw error;
  }
}

describe('min_seconds_between_stamps', () => {
  const minute = { minSecondsBetweenStamps: 60 };

  it.each([
    ['10:07:00', true],
    ['10:01:00', true],
    ['10:13:00', true],
    ['10:00:59.999', false],
    ['10:13:00.001', false],
    ['10:14:59.999', false],
    ['10:15:00', true],
    ['09:59:00', true],
    ['09:59:00.001', false],
    ['10:00:00', false],
  ])('after 10:00 and 10:14 allows a stamping at %s: %s', (time, isAllowed) => {
    const stampings = record([at('10:00:00')], [at('10:14:00')]);
    expect(isWithin(stampings, minute, { time: at(time) })).toBe(isAllowed);
    const reported = record([at('10:14:00')], [at('10:00:00')]);
    expect(isWithin(reported, minute, { time: at(time) })).toBe(isAllowed);
  });

  it('compares with stampings on the other side of a quarter of an hour and of midnight', () => {
    const stampings = record([at('10:14:50')], [at('23:59:50')]);
    expect(isWithin(stampings, minute, { time: at('10:15:10') })).toBe(false);
    expect(isWithin(stampings, minute, { time: at('23:59:50') + 20_000 })).toBe(false);
  });

  it('may be longer than a day', () => {
    const week = { minSecondsBetweenStamps: 7 * 86_400 };
    const stampings = record([at('10:00:00')]);
    expect(isWithin(stampings, week, { time: at('10:00:00') + 7 * DAY_MS - 1 })).toBe(false);
    expect(isWithin(stampings, week, { time: at('10:00:00') + 7 * DAY_MS })).toBe(true);
  });

  it('forgets a stamping that was reversed, and no other of the same quarter', () => {
    const three = record([at('10:00:00')], [at('10:07:00')], [at('10:14:00')]);
    const left = withoutStamping(three, at('10:14:00'), 1);
    expect(isWithin(left, minute, { time: at('10:13:30') })).toBe(true);
    expect(isWithin(left, minute, { time: at('10:07:30') })).toBe(false);
    expect(isWithin(left, minute, { time: at('10:00:30') })).toBe(false);
    const ends = withoutStamping(three, at('10:07:00'), 1);
    expect(isWithin(ends, minute, { time: at('10:07:00') })).toBe(true);
  });

  it('keeps one of two stampings at the same moment when the other is reversed', () => {
    const two = record([at('10:00:00'), 2], [at('10:00:00'), 1]);
    const left = withoutStamping(two, at('10:00:00'), 2);
    expect(isWithin(left, minute, { time: at('10:00:30') })).toBe(false);
    expect(isWithin(left, { maxStampsPerDay: 2 }, { time: at('11:00:00') })).toBe(true);
    expect(isWithin(left, { maxStampsPerDay: 2 }, { time: at('11:00:00'), stamps: 2 })).toBe(false);
  });

  it('finds room between the stampings of a day after hundreds of newer ones', () => {
    const newer = Array.from({ length: 300 }, (_, i): [number] => [
      at('12:00:00') + i * 7 * MINUTE_MS,
    ]);
    const stampings = record(...newer, [at('10:00:00')], [at('10:14:00')]);
    expect(isWithin(stampings, minute, { time: at('10:07:00') })).toBe(true);
    expect(isWithin(stampings, minute, { time: at('10:14:30') })).toBe(false);
  });
});

describe('max_stamps_per_day', () => {
  const once = { maxStampsPerDay: 1 };
  const daily = (days: number) =>
    Array.from({ length: days }, (_, i): [number] => [at('12:00:00') + i * DAY_MS]);

  it('holds for an old day that is reported after any number of newer ones', () => {
    for (const days of [0, 99, 100, 101, 500]) {
      const old = at('09:00:00') - 30 * DAY_MS;
      const stampings = record(...daily(days), [old]);
      expect(isWithin(stampings, once, { time: old })).toBe(false);
      expect(isWithin(stampings, once, { time: old + 3 * 3_600_000 })).toBe(false);
      expect(isWithin(stampings, once, { time: old + DAY_MS })).toBe(true);
    }
  });

  it('holds for each of a hundred days that a till reports twice', () => {
    const days = Array.from({ length: 100 }, (_, i) => at('09:00:00') - (i + 1) * DAY_MS);
    const stampings = record(...daily(300), ...days.map((day): [number] => [day]));
    for (const day of days) expect(isWithin(stampings, once, { time: day + 1 })).toBe(false);
  });

  it('holds for today after hundreds of old days were reported', () => {
    const days = Array.from({ length: 500 }, (_, i): [number] => [
      at('09:00:00') - (i + 1) * DAY_MS,
    ]);
    const stampings = record([at('12:00:00')], ...days);
    expect(isWithin(stampings, once, { time: at('18:00:00') })).toBe(false);
  });

  it('counts every stamping of a day, however many', () => {
    const all = Array.from({ length: 1_440 }, (_, i): [number, number] => [
      at('00:00:00') + i * MINUTE_MS,
      2,
    ]);
    const stampings = record(...all);
    const time = at('23:59:30');
    expect(isWithin(stampings, { maxStampsPerDay: 2_881 }, { time })).toBe(true);
    expect(isWithin(stampings, { maxStampsPerDay: 2_880 }, { time })).toBe(false);
  });

  it('counts the day of 25 hours at the end of summer time', () => {
    const midnight = Date.parse('2026-10-24T22:00:00Z');
    const all = Array.from({ length: 100 }, (_, i): [number] => [midnight + i * 15 * MINUTE_MS]);
    // Those of the day before, and more of the day itself, push them out of the recent ones.
    const before = all.map(([time]): [number] => [time - 2 * DAY_MS]);
    const again = all.map(([time]): [number] => [time + 1]);
    const stampings = record(...before, ...all, ...again);
    const berlin = { timeZone: 'Europe/Berlin' };
    const time = midnight + 25 * 3_600_000 - 1;
    expect(isWithin(stampings, { ...berlin, maxStampsPerDay: 201 }, { time })).toBe(true);
    expect(isWithin(stampings, { ...berlin, maxStampsPerDay: 200 }, { time })).toBe(false);
  });

  it('follows the store into another time zone', () => {
    const stampings = record([at('23:30:00')]);
    const time = at('23:30:00') + 60 * MINUTE_MS;
    expect(isWithin(stampings, once, { time })).toBe(true);
    expect(isWithin(stampings, { ...once, timeZone: 'Europe/Berlin' }, { time })).toBe(false);
    expect(isWithin(stampings, { ...once, timeZone: 'Asia/Kathmandu' }, { time })).toBe(false);
  });
});

it('counts stampings of tills and customers alone', () => {
  const sources = ['api', 'pos', 'app_scan', 'welcome_bonus', 'adjustment'] as const;
  expect(sources.filter(isStamping)).toEqual(['api', 'pos', 'app_scan']);
});

it('keeps a hundred stampings of up to 99 stamps one by one', () => {
  const all = Array.from({ length: 100 }, (_, i): [number, number] => [
    at('12:00:00') + i * MINUTE_MS,
    99,
  ]);
  expect(record(...all).older).toEqual([]);
});

it('keeps a card small and a stamping quick, however many there were', () => {
  const spread = (i: number) => at('12:00:00') + ((i * 7_919) % 5_000) * 7 * MINUTE_MS;
  const all = Array.from({ length: 5_000 }, (_, i): [number] => [spread(i)]);
  const { recent, older } = record(...all);
  expect(recent.length).toBeLessThanOrEqual(1_200);
  expect(older).toHaveLength(100);
  expect(JSON.stringify({ recent, older }).length).toBeLessThan(8_000);
});

describe('the model, which knows every stamping', () => {
  type TimedStamps = { time: number; stamps: number };
  type Step = { time: number; stamps: number; undo: number | null };

  const utcDay = (time: number) => new Date(time).toISOString().slice(0, 10);
  const isAllowed = (
    stampings: TimedStamps[],
    { minSecondsBetweenStamps, maxStampsPerDay }: StampLimits,
    { time, stamps }: TimedStamps,
  ) => {
    const gapMs = (minSecondsBetweenStamps ?? 0) * 1000;
    const today = stampings.filter((one) => utcDay(one.time) === utcDay(time));
    const count = today.reduce((sum, one) => sum + one.stamps, stamps);
    return (
      stampings.every((one) => Math.abs(one.time - time) >= gapMs) &&
      count <= (maxStampsPerDay ?? Infinity)
    );
  };
  const limits = fc.record({
    minSecondsBetweenStamps: fc.option(fc.integer({ min: 1, max: 3_600 })),
    maxStampsPerDay: fc.option(fc.integer({ min: 1, max: 12 })),
  });
  // Few enough days and minutes that stampings meet.
  const time = fc
    .tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 1_439 }), fc.nat(59_999))
    .map(([day, minute, ms]) => at('00:00:00') + day * DAY_MS + minute * MINUTE_MS + ms);
  const stamps = fc.integer({ min: 1, max: 3 });

  /** Plays the steps with and without the limits. Some cards had stampings before the limits came. */
  function play(steps: Step[], cardLimits: Partial<StampLimits>, freeCount: number): void {
    const all = { ...NO_LIMITS, ...cardLimits };
    let state = NO_STAMPINGS;
    const stampings: TimedStamps[] = [];
    steps.forEach((step, index) => {
      const undone =
        step.undo === null ? undefined : stampings[step.undo % Math.max(stampings.length, 1)];
      if (undone) {
        stampings.splice(stampings.indexOf(undone), 1);
        state = withoutStamping(state, undone.time, undone.stamps);
      }
      const expected = isAllowed(stampings, all, step);
      expect(isWithin(state, all, { time: step.time, stamps: step.stamps })).toBe(expected);
      if (!expected && index >= freeCount) return;
      stampings.push({ time: step.time, stamps: step.stamps });
      state = withStamping(state, step.time, step.stamps);
    });
  }

  it('allows the same as the limits, in whatever order stampings are reported and reversed', () => {
    const undo = fc.option(fc.nat(1_000), { freq: 3 });
    const steps = fc.array(fc.record({ time, stamps, undo }), { maxLength: 100 });
    fc.assert(fc.property(steps, limits, fc.nat(40), play), sampleRuns(3_000));
  });

  it('allows the same as the limits after any number of stampings in the order in which they happened', () => {
    const undo = fc.constant(null);
    const steps = fc
      .array(fc.record({ time, stamps, undo }), { minLength: 150, maxLength: 600, size: 'max' })
      .map((all) => all.toSorted((a, b) => a.time - b.time));
    fc.assert(fc.property(steps, limits, fc.nat(600), play), sampleRuns(60));
  });
});
