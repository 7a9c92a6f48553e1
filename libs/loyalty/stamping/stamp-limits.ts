import { getLocalDay } from '#platform/kernel/zoned-time.js';
import type { StampSource } from './customer-card.events.js';
import { createStampingError } from './stamping-errors.js';
import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** A card's stampings within a quarter of an hour. Times in ms since 1970. No midnight falls inside of one. */
export type Stamping = { first: number; last: number; stamps: number };

export type StampLimits = {
  maxStampsPerRequest: number | null;
  maxStampsPerDay: number | null;
  minSecondsBetweenStamps: number | null;
  timeZone: string;
};

const QUARTER_MS = 15 * 60_000;
const MAX_QUARTERS = 100;

/** @throws RejectedError with the code stamp_limit_reached */
export function assertWithinLimits(
  stampings: Stamping[],
  limits: StampLimits,
  stamps: number,
  at: Date,
): void {
  const { maxStampsPerRequest, maxStampsPerDay, minSecondsBetweenStamps, timeZone } = limits;
  if (maxStampsPerRequest !== null && stamps > maxStampsPerRequest) {
    throwLimitReached(ISSUES.too_many_stamps_at_once({ max: maxStampsPerRequest }));
  }
  if (minSecondsBetweenStamps !== null) {
    const gapMs = minSecondsBetweenStamps * 1000;
    const tooClose = stampings.some(
      ({ first, last }) => at.getTime() > first - gapMs && at.getTime() < last + gapMs,
    );
    if (tooClose) {
      throwLimitReached(ISSUES.stamped_too_soon({ seconds: minSecondsBetweenStamps }));
    }
  }
  if (maxStampsPerDay !== null) {
    const day = getLocalDay(timeZone, at.getTime());
    const today = stampings
      .filter(({ last }) => getLocalDay(timeZone, last) === day)
      .reduce((sum, stamping) => sum + stamping.stamps, 0);
    if (today + stamps > maxStampsPerDay) {
      const max = maxStampsPerDay;
      if (today === 0) throwLimitReached(ISSUES.too_many_stamps_a_day({ max }));
      if (today === 1) throwLimitReached(ISSUES.one_stamp_today({ max }));
      throwLimitReached(ISSUES.too_many_stamps_today({ max, stamps: today }));
    }
  }
}

/** Tells whether the limits count it: not welcome stamps (STAMP-33) and adjustments (FIX-09). */
export function isStamping(source: StampSource): boolean {
  return source === 'api' || source === 'pos' || source === 'app_scan';
}

export function withStamping(stampings: Stamping[], at: number, stamps: number): Stamping[] {
  const same = findInQuarter(stampings, at);
  const added = same
    ? {
        first: Math.min(same.first, at),
        last: Math.max(same.last, at),
        stamps: same.stamps + stamps,
      }
    : { first: at, last: at, stamps };
  const next = [added];
  for (const stamping of stampings) if (stamping !== same) next.push(stamping);
  return next.sort((a, b) => a.first - b.first).slice(-MAX_QUARTERS);
}

/**
 * Removes a stamping that was reversed. Between the first and the last of a quarter no times are kept: when one of
 * these two goes, the other time stands for the rest, so that the right stamping does not have to wait for the wrong
 * one.
 */
export function withoutStamping(stampings: Stamping[], at: number, stamps: number): Stamping[] {
  const same = findInQuarter(stampings, at);
  if (!same) return stampings;
  if (same.stamps <= stamps) return stampings.filter((stamping) => stamping !== same);
  const { first, last } = same;
  const left = {
    first: first === at ? last : first,
    last: last === at ? first : last,
    stamps: same.stamps - stamps,
  };
  return stampings.map((stamping) => (stamping === same ? left : stamping));
}

function findInQuarter(stampings: Stamping[], at: number): Stamping | undefined {
  const quarter = Math.floor(at / QUARTER_MS);
  for (const stamping of stampings) {
    if (Math.floor(stamping.first / QUARTER_MS) === quarter) return stamping;
  }
  return undefined;
}

function throwLimitReached(issue: Issue): never {
  throw createStampingError({ base: [issue] }, 'stamp_limit_reached');
}
