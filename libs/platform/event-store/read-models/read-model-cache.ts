import { LRUCache } from 'lru-cache';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import type { Head } from '../port/event-store.js';

/** Counted, because estimating the size of each takes longer than all else that the cache does. */
const MAX_READ_MODELS = 5_000;
/** A caller reads a record and changes it well within that time. No key of an erased person is held for longer. */
const MAX_AGE_MS = 60_000;
/** Number of loads that bypass the cache after a stale read model, which costs a statement and a second try. */
const LOADS_AFTER_STALE = 16;
const MAX_FORCED_LOADS = 256;
const MAX_BYPASSED_ACCOUNTS = 10_000;

type Cacheable = { row: { state: { accountId: number }; head: Head } };

/**
 * Caches the read models that this process has just read or written, by stream, for the next command on them. Another
 * process may have changed them since: a decision on a cached read model counts only if the commit finds everything as
 * it was.
 */
export class ReadModelCache<R extends Cacheable> {
  private readonly entries = new ExpiringCache<string, R>({
    max: MAX_READ_MODELS,
    ttl: MAX_AGE_MS,
  });
  /**
   * Number of loads by account that still bypass the cache. Where several processes change the same records, or one
   * changes all the time, caching them is of no use.
   */
  private readonly forcedLoads = new LRUCache<number, number>({ max: MAX_BYPASSED_ACCOUNTS });

  set(stream: string, row: R): void {
    this.entries.set(stream, row);
  }

  /** Changes a cached read model to the state that a commit has led to. */
  update(stream: string, state: object, head: Head): void {
    const row = this.entries.peek(stream)?.row;
    if (!row || row.head.revision >= head.revision) return;
    row.state = state as typeof row.state;
    row.head = head;
  }

  delete(stream: string): void {
    this.entries.delete(stream);
  }

  /** Finds what this process has loaded or committed last. Other processes may have changed it since. */
  find(stream: string): R | undefined {
    const row = this.entries.get(stream);
    if (!row) return undefined;
    const { accountId } = row.row.state;
    const remaining = this.forcedLoads.get(accountId);
    if (remaining === undefined) return row;
    if (remaining > 1) this.forcedLoads.set(accountId, remaining - 1);
    else this.forcedLoads.delete(accountId);
    return undefined;
  }

  /** Drops a read model that a commit found to be outdated, and bypasses the cache for the account for a while. */
  markStale(stream: string): void {
    const accountId = this.entries.peek(stream)?.row.state.accountId;
    this.delete(stream);
    if (accountId === undefined) return;
    const remaining = (this.forcedLoads.get(accountId) ?? 0) + LOADS_AFTER_STALE;
    this.forcedLoads.set(accountId, Math.min(remaining, MAX_FORCED_LOADS));
  }
}
