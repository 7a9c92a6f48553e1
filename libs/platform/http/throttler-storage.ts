import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getNowMs } from '#platform/kernel/clock.js';

/** Maximum number of callers that a process counts at the same time: a flood of addresses must not fill its memory. */
const MAX_KEYS = 100_000;

export type ThrottlerRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * @property ttl how long the window is, in milliseconds
 * @property hits how much a request counts; default: 1
 */
export type WindowLimit = { key: string; ttl: number; limit: number; hits?: number };

/**
 * The count of the window whose limit a request exceeds, or else of the first.
 * @property secondsLeft at least 1
 */
export type WindowCount<W extends WindowLimit = WindowLimit> = {
  window: W;
  hits: number;
  secondsLeft: number;
  isExceeded: boolean;
};

/** Counts requests. */
export type Counts = ThrottlerStorage & {
  /**
   * Counts a request in all windows, in one step, and at once where this process counts. One that exceeds a limit counts
   * in none of them.
   */
  count: <W extends WindowLimit>(windows: readonly W[]) => Awaitable<WindowCount<W>>;
  /** Whether counts are shared; undefined where every process counts for itself, as the settings say. */
  readonly areShared?: boolean;
};

/** Creates the count of a fixed window, which begins with its first request and which no other prolongs. */
export function createCount<W extends WindowLimit>(
  window: W,
  hits: number,
  msLeft: number,
  isExceeded: boolean,
): WindowCount<W> {
  return { window, hits, secondsLeft: Math.max(1, Math.ceil(msLeft / 1000)), isExceeded };
}

/** Describes a count as the throttler does. Nothing is blocked beyond its window. */
export function toThrottlerRecord({ hits, secondsLeft, isExceeded }: WindowCount): ThrottlerRecord {
  return {
    totalHits: hits,
    timeToExpire: secondsLeft,
    isBlocked: isExceeded,
    timeToBlockExpire: isExceeded ? secondsLeft : 0,
  };
}

/** @property endsAt in ms since 1970 */
type Window = { hits: number; endsAt: number };

/** Counts in this process. With too many callers, the one silent for longest is dropped. */
export class LocalCounts implements Counts {
  private readonly windows: LRUCache<string, Window>;

  constructor(maxKeys = MAX_KEYS) {
    this.windows = new LRUCache({ max: maxKeys });
  }

  count<W extends WindowLimit>(windows: readonly W[]): WindowCount<W> {
    const now = getNowMs();
    let count: WindowCount<W> | undefined;
    for (let i = 0; i < windows.length; i++) {
      const limit = windows[i] as W;
      const window = this.getWindow(limit, now);
      const hits = window.hits + (limit.hits ?? 1);
      if (hits > limit.limit) return createCount(limit, window.hits, window.endsAt - now, true);
      count ??= createCount(limit, hits, window.endsAt - now, false);
    }
    for (let i = 0; i < windows.length; i++) {
      const limit = windows[i] as WindowLimit;
      this.getWindow(limit, now).hits += limit.hits ?? 1;
    }
    if (!count) throw new Error('a request is counted in a window at least');
    return count;
  }

  async increment(key: string, ttl: number, limit: number): Promise<ThrottlerRecord> {
    return toThrottlerRecord(this.count([{ key, ttl, limit }]));
  }

  private getWindow({ key, ttl }: WindowLimit, now: number): Window {
    let window = this.windows.get(key);
    // One that would last longer than a whole one is from before the clock was set back.
    if (window === undefined || window.endsAt <= now || window.endsAt > now + ttl) {
      window = { hits: 0, endsAt: now + ttl };
      this.windows.set(key, window);
    }
    return window;
  }
}
