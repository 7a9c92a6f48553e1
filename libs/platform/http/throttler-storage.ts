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
 * @property remaining what is left of the window that has least
 * @property secondsLeft until that window ends; at least 1
 */
export type WindowCount<W extends WindowLimit = WindowLimit> = {
  window: W;
  hits: number;
  remaining: number;
  secondsLeft: number;
  isExceeded: boolean;
};

/** What a request has come to in a window. */
type WindowHits<W extends WindowLimit> = { window: W; hits: number; msLeft: number };

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

/**
 * Creates the count of fixed windows, each of which begins with its first request and none of which another prolongs.
 * @param windowHits in the order of the windows, up to the one whose limit is exceeded
 */
export function createCount<W extends WindowLimit>(
  windowHits: readonly WindowHits<W>[],
  isExceeded: boolean,
): WindowCount<W> {
  const own = isExceeded ? windowHits.at(-1) : windowHits[0];
  if (!own) throw new Error('a request is counted in a window at least');
  let tightest = own;
  for (const other of isExceeded ? [] : windowHits) {
    if (countRemaining(other) < countRemaining(tightest)) tightest = other;
  }
  return {
    window: own.window,
    hits: own.hits,
    remaining: Math.max(0, countRemaining(tightest)),
    secondsLeft: Math.max(1, Math.ceil(tightest.msLeft / 1000)),
    isExceeded,
  };
}

function countRemaining({ window, hits }: WindowHits<WindowLimit>): number {
  return window.limit - hits;
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
    const windowHits: WindowHits<W>[] = [];
    for (let i = 0; i < windows.length; i++) {
      const limit = windows[i] as W;
      const window = this.getWindow(limit, now);
      const hits = window.hits + (limit.hits ?? 1);
      const msLeft = window.endsAt - now;
      if (hits > limit.limit)
        return createCount([{ window: limit, hits: window.hits, msLeft }], true);
      windowHits.push({ window: limit, hits, msLeft });
    }
    for (let i = 0; i < windows.length; i++) {
      const limit = windows[i] as WindowLimit;
      this.getWindow(limit, now).hits += limit.hits ?? 1;
    }
    return createCount(windowHits, false);
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
