import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';

/** Callers that a process counts at the same time: a flood of addresses must not fill its memory. */
const MOST_KEYS = 100_000;
const REDIS_ANSWERS_WITHIN_MS = 150;
const REDIS_CONNECTS_WITHIN_MS = 2_000;
const ASK_AGAIN_EVERY_MS = 1_000;

export type Counted = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** Answers at once where it counts in this process: every request is counted. */
export type Counts = ThrottlerStorage & {
  /** @param ttl how long a window is, in milliseconds */
  count: (key: string, ttl: number, limit: number) => Counted | Promise<Counted>;
};

/** In Redis where the settings name one, else in this process. */
export async function openCounts({ redisUrl }: Config): Promise<LocalCounts | SharedCounts> {
  if (redisUrl === null) return new LocalCounts();
  const shared = new SharedCounts(redisUrl);
  await shared.open();
  return shared;
}

/**
 * A fixed window from the first request in it; every request counts, refused ones too, and none makes the
 * window longer. Nothing is blocked beyond it.
 */
function counted(hits: number, msLeft: number, limit: number): Counted {
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

  constructor(mostKeys = MOST_KEYS) {
    this.windows = new LRUCache({ max: mostKeys });
  }

  count(key: string, ttl: number, limit: number): Counted {
    const now = Date.now();
    let window = this.windows.get(key);
    // One that would last longer than a whole one is from before the clock was set back.
    if (window === undefined || window.endsAt <= now || window.endsAt > now + ttl) {
      window = { hits: 0, endsAt: now + ttl };
      this.windows.set(key, window);
    }
    window.hits++;
    return counted(window.hits, window.endsAt - now, limit);
  }

  async increment(key: string, ttl: number, limit: number): Promise<Counted> {
    return this.count(key, ttl, limit);
  }

  onApplicationShutdown(): void {
    this.windows.clear();
  }
}

/**
 * Counts in Redis for all processes together. A Redis that is unavailable or hangs delays a request by at
 * most REDIS_ANSWERS_WITHIN_MS, and only requests in flight when that is noticed: from then on this process
 * counts by itself, until Redis is back.
 */
export class SharedCounts implements Counts, OnApplicationShutdown {
  private readonly log = new Logger('limits');
  private readonly redis: Redis;
  private readonly limiter: RateLimiterRedis;
  private readonly local = new LocalCounts();
  private asking: NodeJS.Timeout | undefined;

  constructor(redisUrl: string) {
    this.redis = new Redis(redisUrl, {
      lazyConnect: true,
      connectTimeout: REDIS_CONNECTS_WITHIN_MS,
      socketTimeout: REDIS_CONNECTS_WITHIN_MS,
      retryStrategy: () => ASK_AGAIN_EVERY_MS,
      // A request counted in this process must not be counted in Redis later.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
    });
    // An error is handled by the request that it occurs in.
    this.redis.on('error', () => undefined);
    this.limiter = new RateLimiterRedis({
      storeClient: this.redis,
      keyPrefix: 'inkpad',
      // The library's own limit and window are not used: ours differ by key.
      points: 1,
      duration: 1,
    });
  }

  /** The service runs without Redis too, so it does not wait long. */
  async open(): Promise<void> {
    try {
      await within(REDIS_CONNECTS_WITHIN_MS, this.redis.connect());
    } catch (error) {
      this.countHere(error);
    }
  }

  count(key: string, ttl: number, limit: number): Counted | Promise<Counted> {
    return this.asking ? this.local.count(key, ttl, limit) : this.increment(key, ttl, limit);
  }

  async increment(key: string, ttl: number, limit: number): Promise<Counted> {
    if (this.asking) return this.local.count(key, ttl, limit);
    try {
      const penalty = this.limiter.penalty(key, 1, { customDuration: ttl / 1000 });
      const { consumedPoints, msBeforeNext } = await within(REDIS_ANSWERS_WITHIN_MS, penalty);
      return counted(consumedPoints, msBeforeNext, limit);
    } catch (error) {
      this.countHere(error);
      return this.local.count(key, ttl, limit);
    }
  }

  /** False while this process counts by itself. */
  get areShared(): boolean {
    return this.asking === undefined;
  }

  onApplicationShutdown(): void {
    clearInterval(this.asking);
    this.redis.disconnect();
    this.local.onApplicationShutdown();
  }

  private countHere(error: unknown): void {
    if (this.asking) return;
    this.asking = setInterval(() => void this.ask(), ASK_AGAIN_EVERY_MS).unref();
    this.log.warn(
      `Redis is unavailable (${messageOf(error)}): until it is back, this process counts by itself`,
    );
  }

  private async ask(): Promise<void> {
    try {
      // A write and not a PING: a Redis that is full answers, but refuses to write.
      await within(REDIS_ANSWERS_WITHIN_MS, this.limiter.penalty('asked', 1));
    } catch {
      // Still unavailable, which has been logged.
      return;
    }
    clearInterval(this.asking);
    this.asking = undefined;
    this.log.log('Redis is back: limits are shared again');
  }
}

async function within<R>(ms: number, answer: Promise<R>): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const expire = () => reject(new Error(`no answer within ${ms} ms`));
    // One more turn of the event loop: an answer that arrived while this process was busy is read first.
    timer = setTimeout(() => setImmediate(expire), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    // Results after the deadline are ignored.
    answer.catch(() => undefined);
  }
}
