import { beforeEach, describe, expect, it } from '@jest/globals';
import { Clock } from './clock.js';

const HOUR = 3_600_000;
const NOON = Date.parse('2026-01-31T12:00:00Z');

let monotonicMs: number;
let machineMs: number;
let databaseMs: number;
let clock: Clock;

beforeEach(() => {
  monotonicMs = 5_000;
  machineMs = NOON + 2 * HOUR;
  databaseMs = NOON;
  clock = new Clock(
    () => monotonicMs,
    () => machineMs,
  );
});

function pass(ms: number): void {
  monotonicMs += ms;
  machineMs += ms;
  databaseMs += ms;
}

/** Reads the database's clock, which takes some time each way. */
function measure(thereMs = 1, backMs = thereMs): number {
  const sentAt = monotonicMs;
  pass(thereMs);
  const sample = { databaseMs, sentAt };
  pass(backMs);
  return clock.addSample({ ...sample, receivedAt: monotonicMs });
}

describe('the clock', () => {
  it('is that of the machine until the first measurement', () => {
    expect(clock.getMs()).toBe(machineMs);
    expect(clock.getMachineOffsetMs()).toBe(0);
  });

  it.each([2, -2])('tells the time of the database on a machine that is %i hours off', (hours) => {
    machineMs = NOON + hours * HOUR;
    expect(measure()).toBe(0);
    expect(clock.getMs()).toBe(databaseMs);
    expect(clock.getMachineOffsetMs()).toBe(hours * HOUR);
    pass(90_000);
    expect(clock.getMs()).toBe(databaseMs);
  });

  it('does not follow a jump of the clock of the machine', () => {
    measure();
    machineMs -= 3 * HOUR;
    expect(clock.getMs()).toBe(databaseMs);
    expect(clock.getMachineOffsetMs()).toBe(-HOUR);
  });

  it('is off by at most half of the quickest round trip', () => {
    measure(0, 40);
    expect(Math.abs(clock.getMs() - databaseMs)).toBeLessThanOrEqual(20);
    measure(3, 1);
    const error = clock.getMs() - databaseMs;
    expect(Math.abs(error)).toBeLessThanOrEqual(2);
    expect(measure(0, 400)).toBe(0);
    expect(clock.getMs() - databaseMs).toBe(error);
  });

  it('trusts an old measurement less, because clocks drift', () => {
    measure(0.2);
    pass(60_000);
    measure(7, 1);
    // The newer one.
    expect(clock.getMs() - databaseMs).toBeCloseTo(3, 0);
  });

  it('follows a database that jumps forward at once', () => {
    measure();
    databaseMs += HOUR;
    expect(measure()).toBeCloseTo(HOUR);
    expect(clock.getMs()).toBe(databaseMs);
  });

  it('runs at half speed after a database has jumped back, until it agrees', () => {
    measure();
    pass(10_000);
    const before = clock.getMs();
    databaseMs -= 1_000;
    expect(measure()).toBeCloseTo(-1_000);
    expect(clock.getMs()).toBe(before + 1);
    pass(1_000);
    expect(clock.getMs()).toBe(before + 501);
    pass(998);
    expect(clock.getMs()).toBe(databaseMs);
    pass(1_000);
    expect(clock.getMs()).toBe(databaseMs);
  });

  it('goes back with a database whose clock was more than a minute ahead', () => {
    measure();
    pass(10_000);
    clock.getMs();
    databaseMs -= HOUR;
    measure();
    expect(clock.getMs()).toBe(databaseMs);
  });

  it('never goes back otherwise, whatever it measures', () => {
    const times: number[] = [];
    for (let i = 0; i < 2_000; i++) {
      if (i % 50 === 0) databaseMs += ((i * 7919) % 4_001) - 2_000;
      measure((i * 31) % 7, (i * 17) % 11);
      times.push(clock.getMs());
      pass(i % 13);
    }
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
