import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { messageOf } from '#kernel/errors.js';
import { counted, LocalCounts, type Counted, type Counts } from './throttler-storage.js';

const REDIS_ANSWERS_WITHIN_MS = 150;
const REDIS_CONNECTS_WITHIN_MS = 2_000;
const ASK_AGAIN_EVERY_MS = 1_000;

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
