import { LRUCache } from 'lru-cache';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { estimateBytes } from '#kernel/rough-bytes.js';
import type { Head, Precondition } from '../port/event-store.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';

const MAX_BYTES = 16 * 1024 * 1024;
/** A caller reads a record and changes it well within that time. No key of an erased person is held for longer. */
const MAX_AGE_MS = 60_000;
/** Number of loads that bypass the cache after a stale read model, which costs a statement and a second try. */
const LOADS_AFTER_STALE = 16;
const MAX_FORCED_LOADS = 256;
const MAX_BYPASSED_ACCOUNTS = 10_000;

/**
 * A read model as a load returns it.
 * @property accountVersion of its account (`account_versions`); 0 for a read model that is never cached
 * @property flag `ReadModel.flagSql`
 * @property subjectId the person whom the record is about, if any
 * @property isErased that person's key is destroyed
 */
export type Loaded<S> = {
  state: S;
  head: Head;
  accountVersion: number;
  flag: boolean;
  subjectId: number | null;
  isErased: boolean;
};

/** @property keys of its people, valid for a commit that has the precondition */
export type CachedReadModel<S> = {
  row: Loaded<S>;
  keys: Map<number, PersonalKey>;
  precondition: Precondition;
};

type Kind = { table: string; flagSql?: Precondition['flagSql'] };

/**
 * Caches the read models that this process has just read or written, for the next command on them. A client has nearly
 * always read a record right before it changes it.
 *
 * Another process may have changed it since. So such a command commits with a precondition: besides stream and hash,
 * the account's version and the flag must be the same. Otherwise the commit is a conflict, and the command starts again
 * from a load. Refusals and commands that change nothing have no commit, so they are decided on a load as well.
 *
 * The account's version rises with whatever else a command is decided on, and when a person's key changes. A conflict
 * makes the account's next loads bypass the cache, for where several processes change the same records (ADR-0077).
 */
export class ReadModelCache<S extends { accountId: number }> {
  private readonly entries = new ExpiringCache<string, CachedReadModel<S>>({
    maxSize: MAX_BYTES,
    ttl: MAX_AGE_MS,
    sizeCalculation: estimateBytes,
  });
  /** Number of loads by account that still bypass the cache. */
  private readonly forcedLoads = new LRUCache<number, number>({ max: MAX_BYPASSED_ACCOUNTS });

  find({ table }: Kind, id: number): CachedReadModel<S> | undefined {
    const cached = this.entries.get(toKey(table, id));
    if (!cached) return undefined;
    const { accountId } = cached.row.state;
    const remaining = this.forcedLoads.get(accountId);
    if (remaining === undefined) return cached;
    if (remaining > 1) this.forcedLoads.set(accountId, remaining - 1);
    else this.forcedLoads.delete(accountId);
    return undefined;
  }

  /** @param keys undefined: one was destroyed or is being replaced, so nothing is cached */
  set(
    { table, flagSql = () => 'false' }: Kind,
    id: number,
    row: Loaded<S>,
    keys: CachedReadModel<S>['keys'] | undefined,
  ): void {
    if (!keys) {
      this.entries.delete(toKey(table, id));
      return;
    }
    const { accountVersion, flag } = row;
    const precondition = { table, flagSql, id, accountVersion, flag };
    this.entries.set(toKey(table, id), { row, keys, precondition });
  }

  /** Replaces a cached read model by the one that a commit has led to. */
  update(kind: Kind, id: number, row: Loaded<S>): void {
    const cached = this.entries.peek(toKey(kind.table, id));
    if (cached) this.set(kind, id, row, cached.keys);
  }

  /** Drops a read model that a commit found to be outdated, and bypasses the cache for the account for a while. */
  markStale({ table }: Kind, id: number): void {
    const accountId = this.entries.peek(toKey(table, id))?.row.state.accountId;
    this.entries.delete(toKey(table, id));
    if (accountId === undefined) return;
    const remaining = (this.forcedLoads.get(accountId) ?? 0) + LOADS_AFTER_STALE;
    this.forcedLoads.set(accountId, Math.min(remaining, MAX_FORCED_LOADS));
  }
}

function toKey(table: string, id: number): string {
  return `${table} ${id}`;
}
