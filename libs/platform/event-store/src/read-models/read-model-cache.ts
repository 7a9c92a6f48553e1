import { LRUCache } from 'lru-cache';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { roughBytes } from '#kernel/rough-bytes.js';

const KEPT_BYTES = 16 * 1024 * 1024;
/** A caller reads a record and changes it well within that. No key of somebody who was erased is held for longer. */
const KEPT_MS = 60_000;
/** A stale row costs a statement and a second try. */
const LOADS_AFTER_STALE = 16;
const MOST_LOADS = 256;
const ACCOUNTS_DOUBTED = 10_000;

type Keepable = { row: { state: { accountId: number } } };

/**
 * What this process has read or written a moment ago, by stream, for the next command on it. Another process may have
 * written since: what is decided on a kept row counts only if the commit finds everything as it was.
 */
export class KeptRows<R extends Keepable> {
  private readonly rows = new ExpiringCache<string, R>({
    maxSize: KEPT_BYTES,
    ttl: KEPT_MS,
    sizeCalculation: roughBytes,
  });
  /**
   * By account, how many of its rows are still to be loaded, kept or not: where several processes change the same records, or
   * somebody changes them all the time, keeping them is of no use.
   */
  private readonly doubted = new LRUCache<number, number>({ max: ACCOUNTS_DOUBTED });

  keep(stream: string, row: R): void {
    this.rows.set(stream, row);
  }

  /** As it was kept, even while rows are doubted. */
  peek(stream: string): R | undefined {
    return this.rows.peek(stream);
  }

  forget(stream: string): void {
    this.rows.delete(stream);
  }

  find(stream: string): R | undefined {
    const row = this.rows.get(stream);
    if (!row) return undefined;
    const { accountId } = row.row.state;
    const left = this.doubted.get(accountId);
    if (left === undefined) return row;
    if (left > 1) this.doubted.set(accountId, left - 1);
    else this.doubted.delete(accountId);
    return undefined;
  }

  /** The commit did not find everything as it was. */
  wasStale(stream: string): void {
    const accountId = this.peek(stream)?.row.state.accountId;
    this.forget(stream);
    if (accountId === undefined) return;
    const left = (this.doubted.get(accountId) ?? 0) + LOADS_AFTER_STALE;
    this.doubted.set(accountId, Math.min(left, MOST_LOADS));
  }
}
