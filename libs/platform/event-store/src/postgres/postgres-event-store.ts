import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool, type PoolClient } from 'pg';
import { PlatformConfig } from '#kernel/platform-config.js';
import { WakeSignal } from '#kernel/wake-signal.js';
import { getErrorMessage, UnavailableError, UnknownOutcomeError } from '#kernel/errors.js';
import { inTransaction, isConnectionLoss, isOutage, withConnection } from '#database/connection.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import { Notifications } from '#database/notifications.js';
import { ThrottledNotify } from '#database/throttled-notify.js';
import {
  ConflictError,
  EventStore,
  type Commit,
  type Head,
  type EventRef,
  type UnpositionedEvent,
  type EventTime,
  type Position,
  type StoredEvent,
  type Subscriber,
} from '../port/event-store.js';
import { checkCap } from '../port/caps.js';
import { createEraseStatement, getHeads, getLastHead, prepareWrites } from './commit-arguments.js';
import { TURN_WITHIN_MS } from '../commands/stream-queues.js';
import { Batcher, type BatchLimits, BatchSlots } from '#database/batcher.js';
import { CapTurns } from '../commands/cap-turns.js';
import { createCommitStatement } from './commit-statement.js';
import { isRefusal, toCommitError } from '../port/refusals.js';
import { refuseForeignPositions } from '../log/positions-check.js';
import { PostgresReader } from './postgres-reader.js';
import type { PlainTable } from '../read-models/read-models.js';
import { SharedLog } from './shared-log.js';

const CHANNEL = 'inkpad_events';
/**
 * A commit is announced, but an older transaction may hide it from the read that follows. After a quiet time, polls only
 * make up for announcements that got lost.
 */
const POLL_MS = { first: 500, longest: 5_000 };
const REACHES_EVERY_MS = 10;
const SETTLE_WITHIN_MS = 30_000;
/** How long a commit is retried that others cause to be rolled back. PostgreSQL itself waits as long for a lock. */
const RETRY_FOR_MS = 10_000;
/**
 * A call of `es.commit` costs as much as dozens of commits, so commits that wait for one share the next. Not while only
 * a few are in progress, nor while a group takes longer than PostgreSQL works on it: because of a slow disk or a lock.
 */
const GROUPS: BatchLimits = { alwaysRun: 4, maxRunning: 4, waitMs: TURN_WITHIN_MS };
const GROUP_SIZE = 64;
const getStuckMs = (size: number) => 2 + size / 10;

/**
 * Writes and reads events in PostgreSQL. Appends run in parallel. Readers go by (transaction id, sequence number) and
 * stop below the oldest transaction still running, so they wait for a late commit and never skip it.
 */
@Injectable()
export class PostgresEventStore extends EventStore implements OnModuleInit, OnApplicationShutdown {
  override readonly readModelsMayLag = false;
  private readonly log = new Logger(PostgresEventStore.name);
  private readonly commits = new Batcher<Commit, Head[]>(
    new BatchSlots(1, getStuckMs),
    GROUP_SIZE,
    (group) => this.commitGroup(group),
    GROUPS,
  );
  private readonly reader: PostgresReader;
  private readonly shared = new SharedLog((after, limit) => this.readAll(after, limit));
  private readonly capTurns = new CapTurns();
  private readonly wakers = new Set<() => void>();
  private listening: Notifications | undefined;
  private readonly announcements: ThrottledNotify;

  constructor(
    private readonly pool: Pool,
    private readonly config: PlatformConfig,
    private readonly plainTables: PlainTable[] = [],
  ) {
    super();
    this.reader = new PostgresReader(pool);
    this.announcements = new ThrottledNotify(pool, CHANNEL, (error) =>
      this.log.warn(`subscribers could not be notified and will poll: ${getErrorMessage(error)}`),
    );
  }

  async onModuleInit(): Promise<void> {
    await refuseForeignPositions(this.pool, this.plainTables);
  }

  override async commit(commit: Commit): Promise<Head[]> {
    if (commit.writes.some((write) => write.events.length === 0)) {
      throw new Error('an empty append is refused');
    }
    return isIndependent(commit) ? this.commits.add(commit) : this.commitAlone(commit);
  }

  override readStream(
    ...[stream, options]: Parameters<EventStore['readStream']>
  ): AsyncIterable<StoredEvent> {
    return this.reader.readStream(stream, options);
  }

  override readStreams(ranges: { stream: string; to: number }[]): AsyncIterable<StoredEvent[]> {
    return this.reader.readStreams(ranges, (long) => super.readStreams([long]));
  }

  override readFacts(streams: string[], until: Position): AsyncIterable<UnpositionedEvent[]> {
    return this.reader.readFacts(streams, until);
  }

  override findRevisions(streams: string[], until: Position): Promise<Map<string, number>> {
    return this.reader.findRevisions(streams, until);
  }

  override readEvents(refs: EventRef[]): Promise<StoredEvent[]> {
    return this.reader.readEvents(refs);
  }

  override findEvent(stream: string, id: string): Promise<StoredEvent | undefined> {
    return this.reader.findEvent(stream, id);
  }

  override readAll(after: Position, limit: number): Promise<StoredEvent[]> {
    return this.reader.readAll(after, limit);
  }

  override readUntil(head: Position, after: Position, limit: number): Promise<StoredEvent[]> {
    return this.reader.readUntil(head, after, limit);
  }

  override readMoments(after: Position, limit: number): Promise<EventTime[]> {
    return this.reader.readMoments(after, limit);
  }

  override async reaches(head: Position, withinMs: number): Promise<boolean> {
    for (const deadline = performance.now() + withinMs; ; await wait(REACHES_EVERY_MS)) {
      if (await this.reader.reaches(head)) return true;
      if (performance.now() > deadline) return false;
    }
  }

  override async head(): Promise<Position> {
    const { rows } = await this.pool.query<{ next: string }>(
      'select pg_snapshot_xmax(pg_current_snapshot())::text as next',
    );
    return { commit: BigInt(rows[0]?.next ?? 0), prepare: 0n };
  }

  override async findSettledPosition(): Promise<Position> {
    const { rows } = await this.pool.query<{ oldest: string }>(
      'select pg_snapshot_xmin(pg_current_snapshot())::text as oldest',
    );
    return { commit: BigInt(rows[0]?.oldest ?? 0), prepare: 0n };
  }

  override async subscribe({ after, batch, onEvents, signal }: Subscriber): Promise<void> {
    await this.listen();
    let position = after;
    // After a full batch the next one is read while the subscriber handles this one.
    let ahead: Promise<StoredEvent[]> | undefined;
    let pollMs = POLL_MS.first;
    const news = new WakeSignal();
    const waker = () => news.wake();
    this.wakers.add(waker);
    try {
      while (!signal.aborted) {
        const prefetched = ahead;
        ahead = undefined;
        const events = await (prefetched ?? this.read(position, batch));
        const last = events.at(-1);
        if (last !== undefined) {
          if (events.length === batch) {
            ahead = this.read(last.position, batch);
            // Its failure is reported where it is awaited, unless the subscriber has ended the subscription.
            ahead.catch(() => undefined);
          }
          await onEvents(events, last.position);
          position = last.position;
          pollMs = POLL_MS.first;
          // The queries of the subscriber are sent before the log is read again.
          if (!ahead) await new Promise((resolve) => setImmediate(resolve));
        }
        // What was read ahead may be out of date.
        if (ahead || (prefetched && !last)) continue;
        const isWoken = await news.wait(pollMs, signal);
        pollMs = isWoken ? POLL_MS.first : Math.min(2 * pollMs, POLL_MS.longest);
      }
    } finally {
      this.wakers.delete(waker);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    this.announcements.close();
    await this.listening?.close();
  }

  /** Reads events. Returns none while the database is unavailable; the caller reads again later. */
  private async read(after: Position, limit: number): Promise<StoredEvent[]> {
    try {
      return await this.shared.read(after, limit);
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      this.log.warn(`the log could not be read, trying again: ${getErrorMessage(error)}`);
      return [];
    }
  }

  /**
   * Commits independent commits in one transaction. Rejects those that lost a race or whose claim is taken; the others
   * succeed. With claims or a commit to several streams it is all or nothing, because nobody may claim for a stream that
   * has moved, nor write a part of a commit; after that each is committed alone.
   */
  private async commitGroup(group: Commit[]): Promise<PromiseSettledResult<Head[]>[]> {
    const deadline = performance.now() + SETTLE_WITHIN_MS;
    let isUnknown = false;
    let refusal: UnavailableError | undefined;
    const claims = group.flatMap((commit) => toClaimKeys(commit));
    const isAtomic = claims.length > 0 || group.some(({ writes }) => writes.length > 1);
    if (group.length > 1 && new Set(claims).size === claims.length) {
      try {
        return await this.append(group, isAtomic);
      } catch (error) {
        // Nothing was sent. Retrying each alone would add up their waiting times.
        if (error instanceof UnavailableError) throw error;
        this.log.debug(
          `a group of ${group.length} appends failed and is repeated one by one: ${getErrorMessage(error)}`,
        );
        isUnknown = isConnectionLoss(error);
        if (isOutage(error)) refusal = toUnavailableError(error);
      }
    }
    return Promise.allSettled(
      group.map((commit) =>
        this.commitAlone(commit, deadline, { unknown: isUnknown, refused: refusal }),
      ),
    );
  }

  /**
   * Commits alone, and repeats that after a lost connection, when it is unknown whether the commit happened. Repeating
   * the identical append settles that: either it succeeds now, or the stream has moved and our event ids show by whom.
   */
  private async commitAlone(
    commit: Commit,
    deadline = performance.now() + SETTLE_WITHIN_MS,
    earlier: { unknown: boolean; refused: UnavailableError | undefined } = {
      unknown: false,
      refused: undefined,
    },
  ): Promise<Head[]> {
    const startedAt = performance.now();
    let refusal: unknown = earlier.refused;
    let isUnknown = earlier.unknown || refusal !== undefined;
    for (let attempt = 0; ; attempt++) {
      try {
        if (isUnknown && (await this.isStored(commit))) {
          this.announcements.notifyInBackground();
          return getHeads(commit);
        }
        if (refusal) throw refusal;
        const [result] = await this.append([commit], true);
        if (result?.status === 'fulfilled') return result.value;
        throw result?.reason ?? new Error('a commit has one result');
      } catch (error) {
        if (refusal && error === refusal) throw error;
        if (isRefusal(error)) {
          if (!isUnknown || refusal) throw error;
          refusal = error;
          continue;
        }
        if (isOutage(error) && !isUnknown) {
          refusal = toUnavailableError(error);
          isUnknown = true;
          continue;
        }
        const isLost = isConnectionLoss(error);
        const isUnreachable = error instanceof UnavailableError || isOutage(error);
        if (isUnreachable && !isUnknown) throw error;
        if (!isLost && !isUnreachable && !isRolledBackForRetry(error)) throw error;
        isUnknown ||= isLost;
        if (!isUnknown && performance.now() > startedAt + RETRY_FOR_MS) {
          throw new UnavailableError('The database is too busy', { cause: error });
        }
        if (isUnknown && performance.now() > deadline) {
          throw new UnknownOutcomeError('the outcome of a commit stays unknown', { cause: error });
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(50 * 2 ** attempt, 1_000)));
      }
    }
  }

  private async append(
    commits: Commit[],
    atomic: boolean,
  ): Promise<PromiseSettledResult<Head[]>[]> {
    const prepared = commits.map(prepareWrites);
    const [cap] = commits.flatMap((commit) => commit.cap ?? []);
    const erasing = commits.filter(({ erasures }) => erasures?.length);
    const sideEffects = commits.flatMap((commit) => commit.sideEffects ?? []);
    const needsTransaction = cap !== undefined || erasing.length + sideEffects.length > 0;
    const write = async (client: PoolClient): Promise<PromiseSettledResult<Head[]>[]> => {
      try {
        if (cap) await checkCap((text, values) => client.query(text, values), cap);
        const { rows } = await client.query<{ won: string[] }>(
          createCommitStatement(commits, prepared, atomic),
        );
        const won = new Set(rows[0]?.won);
        if (atomic && won.size === 0) throw new ConflictError();
        for (const { accountId, erasures = [] } of erasing) {
          await client.query(createEraseStatement(accountId, erasures));
        }
        for (const { text, values } of sideEffects) await client.query(text, values);
        return prepared.map((writes) =>
          writes.every(({ write }) => won.has(write.stream))
            ? { status: 'fulfilled', value: writes.map(getLastHead) }
            : { status: 'rejected', reason: new ConflictError() },
        );
      } catch (error) {
        throw toCommitError(error);
      }
    };
    if (needsTransaction) {
      const results = await this.capTurns.run(cap, () => inTransaction(this.pool, write));
      if (results.some(isFulfilled)) this.announcements.notifyInBackground();
      return results;
    }
    return new Promise((resolve, reject) => {
      withConnection(this.pool, async (client) => {
        const results = await write(client);
        resolve(results);
        // Sent before the caller continues: building a response takes long enough for it to arrive.
        if (results.some(isFulfilled)) await this.announcements.notify(client);
      }).catch(reject);
    });
  }

  private async isStored(commit: Commit): Promise<boolean> {
    const ids = commit.writes.flatMap((write) => write.events.map((event) => event.id));
    const { rows } = await this.pool.query<{ n: number }>(
      'select count(*) as n from es.events where event_id = any ($1)',
      [ids],
    );
    return rows[0]?.n === ids.length;
  }

  private async listen(): Promise<void> {
    if (this.listening) return;
    const wakeAll = () => {
      this.shared.handleAnnouncement();
      this.wakers.forEach((wake) => wake());
    };
    this.listening = new Notifications(this.config.databaseUrl, CHANNEL, wakeAll, wakeAll);
    await this.listening.listen();
  }
}

function isFulfilled({ status }: PromiseSettledResult<Head[]>): boolean {
  return status === 'fulfilled';
}

/** Tells whether a commit may share a transaction with others: it writes streams, and at most claims values for them. */
function isIndependent({ releases, cap, erasures, sideEffects }: Commit): boolean {
  return !cap && [releases, erasures, sideEffects].every((list) => !list?.length);
}

/** Lists what a commit claims. Two of a group must not claim the same: one statement would not notice. */
function toClaimKeys({ accountId, claims = [] }: Commit): string[] {
  return claims.map(({ kind, value }) => `${accountId} ${kind} ${value.toString('hex')}`);
}

/**
 * Creates the error for a commit that wrote nothing, unless the server stopped in the middle of it: the caller checks
 * that first.
 */
function toUnavailableError(cause: unknown): UnavailableError {
  return new UnavailableError('The database cannot take changes now', { cause });
}
