import type { OnApplicationShutdown } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';
import { getNowMs } from '#kernel/clock.js';

/** Maximum number of callers that a process counts at the same time: a flood of addresses must not fill its memory. */
const MAX_KEYS = 100_000;

export type WindowCount = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * @property ttl how long the window is, in milliseconds
 * @property hits how much a request counts; default: 1
 */
export type WindowLimit = { key: string; ttl: number; limit: number; hits?: number };

/** Counts requests. */
export type Counts = ThrottlerStorage & {
  /**
   * Counts a request in all windows, in one step. One that exceeds a limit counts in none of them.
   * @returns one count for each window, or for those up to the first whose limit is exceeded
   */
  count: (windows: readonly WindowLimit[]) => Promise<WindowCount[]>;
  /** Whether counts are shared; undefined where every process counts for itself, as the settings say. */
  readonly areShared?: boolean;
};

/**
 * Renders the count of a fixed window, which begins with its first request and which no other prolongs. Nothing is
 * blocked beyond it.
 */
export function toWindowCount(hits: number, msLeft: number, isBlocked: boolean): WindowCount {
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
    const now = getNowMs();
    const current = windows.map((window) => this.getWindow(window, now));
    const exceeded = windows.findIndex(
      ({ limit, hits = 1 }, i) => (current[i]?.hits ?? 0) + hits > limit,
    );
    if (exceeded >= 0) {
      return current
        .slice(0, exceeded + 1)
        .map(({ hits, endsAt }, i) => toWindowCount(hits, endsAt - now, i === exceeded));
    }
    return current.map((window, i) => {
      window.hits += windows[i]?.hits ?? 1;
      return toWindowCount(window.hits, window.endsAt - now, false);
    });
  }

  async increment(key: string, ttl: number, limit: number): Promise<WindowCount> {
    const [count] = await this.count([{ key, ttl, limit }]);
    if (!count) throw new Error('a window was passed and not counted');
    return count;
  }

  onApplicationShutdown(): void {
    this.windows.clear();
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
