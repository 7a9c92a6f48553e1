import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';

export const WINDOW_SECONDS = 60;

/** Callers that a process counts at a time: a flood of addresses must not fill its memory. */
const MOST_KEYS = 100_000;
const REDIS_ANSWERS_WITHIN_MS = 150;
const REDIS_CONNECTS_WITHIN_MS = 2_000;
const ASK_AGAIN_EVERY_MS = 1_000;

export type Usage = { limit: number; remaining: number; resetSeconds: number; exceeded: boolean };

/** One more request of a caller: how many that makes in the window, and when it ends. */
export type Counts = { add: (key: string) => Promise<RateLimiterRes> };

/** A fixed window of 60 s from the first request in it; every request counts, refused ones too. */
export class RateLimit {
  constructor(private readonly counts: Counts) {}

  /** @param key whose requests are counted together */
  async count(key: string, limit: number): Promise<Usage> {
    const { consumedPoints, msBeforeNext } = await this.counts.add(key);
    return {
      limit,
      remaining: Math.max(0, limit - consumedPoints),
      resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      exceeded: consumedPoints > limit,
    };
  }
}

/** Where the settings say that requests are counted. */
export async function openCounts({ redisUrl }: Config): Promise<LocalCounts | SharedCounts> {
  if (redisUrl === null) return new LocalCounts();
  const shared = new SharedCounts(redisUrl);
  await shared.open();
  return shared;
}

/** In this process. When there are too many callers, the one silent for longest is forgotten. */
export class LocalCounts implements Counts {
  // The library's own limit stays out of it, here and below: ours differs from token to token.
  private readonly limiter = new RateLimiterMemory({ points: 1, duration: WINDOW_SECONDS });
  private readonly keys: LRUCache<string, true>;

  constructor(mostKeys = MOST_KEYS) {
    this.keys = new LRUCache({
      max: mostKeys,
      dispose: (_, key, reason) => {
        if (reason === 'evict') void this.limiter.delete(key);
      },
    });
  }

  add(key: string): Promise<RateLimiterRes> {
    this.keys.set(key, true);
    return this.limiter.penalty(key, 1);
  }

  close(): void {
    this.keys.clear();
  }
}

/**
 * In Redis, for all processes together. A Redis that is away or hangs costs a request at most
 * REDIS_ANSWERS_WITHIN_MS, and only those under way when that is noticed: from then on this process
 * counts by itself, until Redis counts again.
 */
export class SharedCounts implements Counts {
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
      // A request that was counted here meanwhile must not be counted there later.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
    });
    // What goes wrong is told by the request that it goes wrong for.
    this.redis.on('error', () => undefined);
    this.limiter = new RateLimiterRedis({
      storeClient: this.redis,
      keyPrefix: 'inkpad',
      points: 1,
      duration: WINDOW_SECONDS,
    });
  }

  /** Waits for Redis, but not long: the service does without it. */
  async open(): Promise<void> {
    try {
      await within(REDIS_CONNECTS_WITHIN_MS, this.redis.connect());
    } catch (error) {
      this.countHere(error);
    }
  }

  async add(key: string): Promise<RateLimiterRes> {
    if (this.asking) return this.local.add(key);
    try {
      return await within(REDIS_ANSWERS_WITHIN_MS, this.limiter.penalty(key, 1));
    } catch (error) {
      this.countHere(error);
      return this.local.add(key);
    }
  }

  /** Not so: this process counts by itself for the time being. */
  get areShared(): boolean {
    return this.asking === undefined;
  }

  close(): void {
    clearInterval(this.asking);
    this.redis.disconnect();
    this.local.close();
  }

  private countHere(error: unknown): void {
    if (this.asking) return;
    this.asking = setInterval(() => void this.ask(), ASK_AGAIN_EVERY_MS).unref();
    this.log.warn(
      `Redis does not count (${messageOf(error)}): until it does, this process counts by itself`,
    );
  }

  private async ask(): Promise<void> {
    try {
      // Counted and not only pinged: a Redis that is full answers, and refuses to write.
      await within(REDIS_ANSWERS_WITHIN_MS, this.limiter.penalty('asked', 1));
    } catch {
      // Still away, which was said.
      return;
    }
    clearInterval(this.asking);
    this.asking = undefined;
    this.log.log('Redis counts again: limits are shared');
  }
}

/** All addresses of one caller: whoever has IPv6 has at least a /64 of it to choose from. */
export function addressKey(ip: string): string {
  // A proxy may say `unknown`, or nothing that makes sense.
  if (!ipaddr.isValid(ip)) return ip.slice(0, 64);
  const address = ipaddr.process(ip);
  if (address instanceof ipaddr.IPv6) {
    const network = address.parts.slice(0, 4).map((part) => part.toString(16));
    return `${network.join(':')}::/64`;
  }
  return address.toString();
}

async function within<R>(ms: number, answer: Promise<R>): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const expire = () => reject(new Error(`no answer within ${ms} ms`));
    // One turn more: what came while this process was busy itself is read before that.
    timer = setTimeout(() => setImmediate(expire), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    // Whatever becomes of it after its time is of no interest.
    answer.catch(() => undefined);
  }
}
