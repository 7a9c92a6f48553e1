import type { OnApplicationShutdown } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';
import { getNowMs } from '#kernel/clock.js';

/** Maximum number of callers that a process counts at the same time: a flood of addresses must not fill its memory. */
const MAX_KEYS = 100_000;

export type WindowCount = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** @property ttl how long the window is, in milliseconds */
export type WindowLimit = { key: string; ttl: number; limit: number };

/** Counts requests. */
export type Counts = ThrottlerStorage & {
  /**
   * Counts a request in one window after another, in one step, and ends with the first whose limit it exceeds. So a
   * request that a token's own limit refuses uses nothing of its account's limit.
   * @returns one count for each counted window
   */
  count: (windows: readonly WindowLimit[]) => Promise<WindowCount[]>;
  /** Whether counts are shared; undefined where every process counts for itself, as the settings say. */
  readonly areShared?: boolean;
};

/**
 * Renders the count of a fixed window, which begins with its first request. Every request counts, refused ones too,
 * and none prolongs the window. Nothing is blocked beyond it.
 */
export function toWindowCount(hits: number, msLeft: number, limit: number): WindowCount {
  const isBlocked = hits > limit;
  const timeToExpire = Math.max(1, Math.ceil(msLeft / 1000));
  return {
    totalHits: hits,
    timeToExpire,
    isBlocked,
    timeToBlockExpire: isBlocked ? timeToExpire : 0,
  };
}

/** @property endsAt in ms since 1970 */
type Window = { hits: number; endsAt: number };

/** Counts in this process. With too many callers, the one silent for longest is dropped. */
export class LocalCounts implements Counts, OnApplicationShutdown {
  private readonly windows: LRUCache<string, Window>;

  constructor(maxKeys = MAX_KEYS) {
    this.windows = new LRUCache({ max: maxKeys });
  }

  async count(windows: readonly WindowLimit[]): Promise<WindowCount[]> {
    const counts: WindowCount[] = [];
    for (const window of windows) {
      const count = this.countOne(window);
      counts.push(count);
      if (count.isBlocked) break;
    }
    return counts;
  }

  async increment(key: string, ttl: number, limit: number): Promise<WindowCount> {
    return this.countOne({ key, ttl, limit });
  }

  onApplicationShutdown(): void {
    this.windows.clear();
  }

  private countOne({ key, ttl, limit }: WindowLimit): WindowCount {
    const now = getNowMs();
    let window = this.windows.get(key);
    // One that would last longer than a whole one is from before the clock was set back.
    if (window === undefined || window.endsAt <= now || window.endsAt > now + ttl) {
      window = { hits: 0, endsAt: now + ttl };
      this.windows.set(key, window);
    }
    window.hits++;
    return toWindowCount(window.hits, window.endsAt - now, limit);
  }
}
