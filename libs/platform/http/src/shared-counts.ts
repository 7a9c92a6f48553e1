import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { getErrorMessage } from '#kernel/errors.js';
import {
  counted,
  LocalCounts,
  type Counted,
  type Counts,
  type WindowLimit,
} from './throttler-storage.js';

const REDIS_ANSWERS_WITHIN_MS = 150;
const REDIS_CONNECTS_WITHIN_MS = 2_000;
const ASK_AGAIN_EVERY_MS = 1_000;
const PREFIX = 'inkpad:';

/**
 * Counts a request in one window after another, and ends with the first whose limit it exceeds. One step for Redis and
 * one round trip, however many windows there are. A window begins with its first request and is made longer by none.
 * KEYS the windows, ARGV for each its length in milliseconds and its limit. Returns for each that it got to the requests
 * in it and the milliseconds that are left of it.
 */
const COUNT = `
  local counts = {}
  for i, key in ipairs(KEYS) do
    local hits = redis.call('incr', key)
    local left = redis.call('pttl', key)
    if left < 0 then
      left = tonumber(ARGV[2 * i - 1])
      redis.call('pexpire', key, left)
    end
    counts[2 * i - 1] = hits
    counts[2 * i] = left
    if hits > tonumber(ARGV[2 * i]) then break end
  end
  return counts`;

type CountingRedis = Redis & {
  countWindows: (keyCount: number, ...keysAndArguments: (string | number)[]) => Promise<number[]>;
};

/**
 * Counts in Redis for all processes together. A Redis that is unavailable or hangs delays a request by at
 * most REDIS_ANSWERS_WITHIN_MS, and only requests in flight when that is noticed: from then on this process
 * counts by itself, until Redis is back.
 */
export class SharedCounts implements Counts, OnApplicationShutdown {
  private readonly log = new Logger('limits');
  private readonly redis: CountingRedis;
  private readonly local = new LocalCounts();
  private asking: NodeJS.Timeout | undefined;

  constructor(redisUrl: string) {
    this.redis = new Redis(redisUrl, {
      scripts: { countWindows: { lua: COUNT } },
      lazyConnect: true,
      connectTimeout: REDIS_CONNECTS_WITHIN_MS,
      socketTimeout: REDIS_CONNECTS_WITHIN_MS,
      retryStrategy: () => ASK_AGAIN_EVERY_MS,
      // A request counted in this process must not be counted in Redis later.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
    }) as CountingRedis;
    // An error is handled by the request that it occurs in.
    this.redis.on('error', () => undefined);
  }

  /** The service runs without Redis too, so it does not wait long. */
  async open(): Promise<void> {
    try {
      await within(REDIS_CONNECTS_WITHIN_MS, this.redis.connect());
    } catch (error) {
      this.countHere(error);
    }
  }

  count(windows: readonly WindowLimit[]): Counted[] | Promise<Counted[]> {
    return this.asking ? this.local.count(windows) : this.countInRedis(windows);
  }

  async increment(key: string, ttl: number, limit: number): Promise<Counted> {
    const [count] = await this.count([{ key, ttl, limit }]);
    if (!count) throw new Error('a window was given and not counted');
    return count;
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

  private async countInRedis(windows: readonly WindowLimit[]): Promise<Counted[]> {
    try {
      const results = await within(REDIS_ANSWERS_WITHIN_MS, this.run(windows));
      return windows
        .slice(0, results.length / 2)
        .map(({ limit }, i) => counted(results[2 * i] ?? 0, results[2 * i + 1] ?? 0, limit));
    } catch (error) {
      this.countHere(error);
      return this.local.count(windows);
    }
  }

  private run(windows: readonly WindowLimit[]): Promise<number[]> {
    const keys = windows.map(({ key }) => PREFIX + key);
    return this.redis.countWindows(
      keys.length,
      ...keys,
      ...windows.flatMap(({ ttl, limit }) => [ttl, limit]),
    );
  }

  private countHere(error: unknown): void {
    if (this.asking) return;
    this.asking = setInterval(() => void this.ask(), ASK_AGAIN_EVERY_MS).unref();
    this.log.warn(
      `Redis is unavailable (${getErrorMessage(error)}): until it is back, this process counts by itself`,
    );
  }

  private async ask(): Promise<void> {
    try {
      // A write and not a PING: a Redis that is full answers, but refuses to write.
      await within(REDIS_ANSWERS_WITHIN_MS, this.run([{ key: 'asked', ttl: 1_000, limit: 1 }]));
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
