import { LRUCache } from 'lru-cache';

/** Interval of sweeps; one over a large cache takes a few milliseconds. */
const SWEEP_MS = 5_000;

/**
 * Caches values for a time and releases them after it. The library removes an expired entry only when it is read or
 * evicted, so until the cache is full everything would stay. Its `ttlAutopurge` uses a timer for each entry.
 */
export class ExpiringCache<
  K extends NonNullable<unknown>,
  V extends NonNullable<unknown>,
> extends LRUCache<K, V> {
  private sweeper: NodeJS.Timeout | undefined;

  constructor(options: LRUCache.Options<K, V, unknown>) {
    // Otherwise the library remembers the time until a timer of 1 ms expires, which wakes the process once more.
    super({ ttlResolution: 0, ...options });
  }

  override set(...entry: Parameters<LRUCache<K, V>['set']>): this {
    super.set(...entry);
    // None while it is empty: a timer would keep a cache that nobody uses any more.
    this.sweeper ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    return this;
  }

  private sweep(): void {
    this.purgeStale();
    if (this.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }
}
