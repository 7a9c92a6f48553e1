import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { describeTlsError } from '#platform/kernel/tls-errors.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import {
  createCount,
  LocalCounts,
  toThrottlerRecord,
  type Counts,
  type ThrottlerRecord,
  type WindowCount,
  type WindowLimit,
} from './throttler-storage.js';

const REDIS_TIMEOUT_MS = 150;
const REDIS_CONNECT_TIMEOUT_MS = 2_000;
const RETRY_INTERVAL_MS = 1_000;
const PREFIX = 'inkpad:';

/**
 * Counts a request in all windows, or in none when it exceeds the limit of one. It is one step for Redis and one round
 * trip, however many windows there are. A window begins with its first request and none prolongs it. KEYS are the
 * windows, ARGV for each its length in milliseconds, its limit and the hits of the request. Returns 1 when a limit is
 * exceeded, and for each window up to the exceeded one its hits and the milliseconds that are left.
 */
const COUNT = `
  local counts = { 0 }
  for i, key in ipairs(KEYS) do
    local hits = tonumber(redis.call('get', key) or 0)
    counts[2 * i] = hits
    counts[2 * i + 1] = redis.call('pttl', key)
    if hits + tonumber(ARGV[3 * i]) > tonumber(ARGV[3 * i - 1]) then
      counts[1] = 1
      return counts
    end
  end
  for i, key in ipairs(KEYS) do
    counts[2 * i] = redis.call('incrby', key, ARGV[3 * i])
    if counts[2 * i + 1] < 0 then
      counts[2 * i + 1] = tonumber(ARGV[3 * i - 2])
      redis.call('pexpire', key, counts[2 * i + 1])
    end
  end
  return counts`;

type CountingRedis = Redis & {
  countWindows: (keyCount: number, ...keysAndArguments: (string | number)[]) => Promise<number[]>;
};

/**
 * Counts in Redis for all processes together. A Redis that is unavailable or hangs delays a request by at most
 * REDIS_TIMEOUT_MS. Only requests in flight at that time wait: from then on this process counts by itself, until
 * Redis is back (ADR-0014).
 */
export class SharedCounts implements Counts, OnApplicationShutdown {
  private readonly log = new Logger('limits');
  private readonly redis: CountingRedis;
  private readonly local = new LocalCounts();
  private retryTimer: NodeJS.Timeout | undefined;
  private connectError: Error | undefined;

  constructor(redisUrl: string) {
    this.redis = new Redis(redisUrl, {
      scripts: { countWindows: { lua: COUNT } },
      lazyConnect: true,
      connectTimeout: REDIS_CONNECT_TIMEOUT_MS,
      socketTimeout: REDIS_CONNECT_TIMEOUT_MS,
      retryStrategy: () => RETRY_INTERVAL_MS,
      // A request counted in this process must not be counted in Redis later.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
    }) as CountingRedis;
    // The request that it occurs in handles an error, which then says only that the connection is closed.
    this.redis.on('error', (error) => {
      this.connectError = error;
    });
    this.redis.on('ready', () => {
      this.connectError = undefined;
    });
  }

  /** Connects to Redis. The service runs without it too, so it does not wait long. */
  async open(): Promise<void> {
    try {
      await withTimeout(this.redis.connect(), REDIS_CONNECT_TIMEOUT_MS);
    } catch (error) {
      this.fallBack(error);
    }
  }

  count<W extends WindowLimit>(windows: readonly W[]): Awaitable<WindowCount<W>> {
    return this.retryTimer ? this.local.count(windows) : this.countInRedis(windows);
  }

  async increment(key: string, ttl: number, limit: number): Promise<ThrottlerRecord> {
    return toThrottlerRecord(await this.count([{ key, ttl, limit }]));
  }

  /** Whether counts are shared; false while this process counts by itself. */
  get areShared(): boolean {
    return this.retryTimer === undefined;
  }

  onApplicationShutdown(): void {
    clearInterval(this.retryTimer);
    this.redis.disconnect();
  }

  private async countInRedis<W extends WindowLimit>(
    windows: readonly W[],
  ): Promise<WindowCount<W>> {
    try {
      const [isExceeded, ...counts] = await withTimeout(this.run(windows), REDIS_TIMEOUT_MS);
      const windowHits = windows
        .slice(0, counts.length / 2)
        .map((window, i) => ({ window, hits: counts[2 * i] ?? 0, msLeft: counts[2 * i + 1] ?? 0 }));
      return createCount(windowHits, isExceeded === 1);
    } catch (error) {
      this.fallBack(error);
      return this.local.count(windows);
    }
  }

  private run(windows: readonly WindowLimit[]): Promise<number[]> {
    const keys = windows.map(({ key }) => PREFIX + key);
    return this.redis.countWindows(
      keys.length,
      ...keys,
      ...windows.flatMap(({ ttl, limit, hits = 1 }) => [ttl, limit, hits]),
    );
  }

  private fallBack(error: unknown): void {
    if (this.retryTimer) return;
    this.retryTimer = setInterval(() => void this.probe(), RETRY_INTERVAL_MS).unref();
    const reason = describeTlsError(this.connectError) ?? getErrorMessage(error);
    this.log.warn(
      `Redis is unavailable (${reason}): until it is back, this process counts by itself`,
    );
  }

  private async probe(): Promise<void> {
    try {
      // A write and not a PING: a full Redis responds, but refuses to write.
      await withTimeout(this.run([{ key: 'probe', ttl: 1_000, limit: 1 }]), REDIS_TIMEOUT_MS);
    } catch {
      // Still unavailable, which has been logged.
      return;
    }
    clearInterval(this.retryTimer);
    this.retryTimer = undefined;
    this.log.log('Redis is back: limits are shared again');
  }
}
