import { getLocalDay } from '#platform/kernel/zoned-time.js';
import type { StampSource } from './customer-card.events.js';
import { createStampingError } from './stamping-errors.js';
import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** A time in ms since 1970, and the stamps that were earned then. */
type TimedStamps = { at: number; stamps: number };

/** Stampings within a quarter of an hour, of which only the ends are known. No midnight falls inside of one. */
type StampedQuarter = { first: number; last: number; stamps: number };

/** What a card knows of its stampings. Its size is bounded, whatever happens to the card. */
export type Stampings = {
  /**
   * The stampings that were recorded last, in that order: what a client reports late stays, however much newer there is. Each
   * is its time to the base 36, a colon, its stamps and a space. As a list of objects, they made each stamp of a busy card a
   * sixth dearer.
   */
  recent: string;
  /** The newest quarters of those before, newest last: a whole day, which may have 25 hours. */
  older: StampedQuarter[];
};

export type StampLimits = {
  maxStampsPerRequest: number | null;
  maxStampsPerDay: number | null;
  minSecondsBetweenStamps: number | null;
  timeZone: string;
};

export const NO_STAMPINGS: Stampings = { recent: '', older: [] };

/** Room for at least as many as a batch reports at once, a hundred, if none has more than 99 stamps. */
const MAX_RECENT_CHARACTERS = 1_200;
const QUARTER_MS = 15 * 60_000;
const MAX_QUARTERS = 100;
/** Longer than any day, so that few calendar days are worked out, which takes longer than the rest of the check. */
const MAX_DAY_MS = 48 * 3_600_000;

/** @throws RejectedError with the code stamp_limit_reached */
export function assertWithinLimits(
  stampings: Stampings,
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
    const isTooClose = listTimes(stampings).some((time) => Math.abs(at.getTime() - time) < gapMs);
    if (isTooClose) {
      throwLimitReached(ISSUES.stamped_too_soon({ seconds: minSecondsBetweenStamps }));
    }
  }
  if (maxStampsPerDay !== null) {
    const today = countStamps(stampings, timeZone, at);
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

export function withStamping(stampings: Stampings, at: number, stamps: number): Stampings {
  const recent = `${stampings.recent}${at.toString(36)}:${stamps} `;
  if (recent.length <= MAX_RECENT_CHARACTERS) return { ...stampings, recent };
  const end = recent.indexOf(' ') + 1;
  return {
    recent: recent.slice(end),
    older: parseRecent(recent.slice(0, end)).reduce(addToQuarter, stampings.older),
  };
}

/** Removes a stamping that was reversed. */
export function withoutStamping(stampings: Stampings, at: number, stamps: number): Stampings {
  const { recent, older } = stampings;
  const { recent: reversed } = withStamping(NO_STAMPINGS, at, stamps);
  const index = ` ${recent}`.lastIndexOf(` ${reversed}`);
  if (index !== -1) {
    return { recent: recent.slice(0, index) + recent.slice(index + reversed.length), older };
  }
  return { recent, older: removeFromQuarter(older, { at, stamps }) };
}

function parseRecent(recent: string): TimedStamps[] {
  return recent
    .split(' ')
    .slice(0, -1)
    .map((stamping) => {
      const [at = '', stamps] = stamping.split(':');
      return { at: Number.parseInt(at, 36), stamps: Number(stamps) };
    });
}

function listTimes({ recent, older }: Stampings): number[] {
  return [
    ...parseRecent(recent).map(({ at }) => at),
    ...older.flatMap(({ first, last }) => [first, last]),
  ];
}

function countStamps({ recent, older }: Stampings, timeZone: string, at: Date): number {
  const time = at.getTime();
  const day = getLocalDay(timeZone, time);
  return [...parseRecent(recent), ...older.map(({ last, stamps }) => ({ at: last, stamps }))]
    .filter((stamping) => Math.abs(time - stamping.at) < MAX_DAY_MS)
    .filter((stamping) => getLocalDay(timeZone, stamping.at) === day)
    .reduce((sum, { stamps }) => sum + stamps, 0);
}

function addToQuarter(quarters: StampedQuarter[], { at, stamps }: TimedStamps): StampedQuarter[] {
  const same = findQuarter(quarters, at);
  const added = same
    ? {
        first: Math.min(same.first, at),
        last: Math.max(same.last, at),
        stamps: same.stamps + stamps,
      }
    : { first: at, last: at, stamps };
  const next = [...quarters.filter((quarter) => quarter !== same), added];
  return next.sort((a, b) => a.first - b.first).slice(-MAX_QUARTERS);
}

/**
 * Removes stamps from a quarter. Between its first and its last no times are kept: when one of these two goes, the
 * other time stands for the rest, so that the right stamping does not have to wait for the wrong one.
 */
function removeFromQuarter(
  quarters: StampedQuarter[],
  { at, stamps }: TimedStamps,
): StampedQuarter[] {
  const same = findQuarter(quarters, at);
  if (!same) return quarters;
  if (same.stamps <= stamps) return quarters.filter((quarter) => quarter !== same);
  const { first, last } = same;
  const left = {
    first: first === at ? last : first,
    last: last === at ? first : last,
    stamps: same.stamps - stamps,
  };
  return quarters.map((quarter) => (quarter === same ? left : quarter));
}

function findQuarter(quarters: StampedQuarter[], at: number): StampedQuarter | undefined {
  const number = Math.floor(at / QUARTER_MS);
  return quarters.find(({ first }) => Math.floor(first / QUARTER_MS) === number);
}

function throwLimitReached(issue: Issue): never {
  throw createStampingError({ base: [issue] }, 'stamp_limit_reached');
}
