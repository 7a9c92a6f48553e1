import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { isConnectionLoss } from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import type { ProcessLink } from '#platform/database/process-link.js';
import { ThrottledNotify } from '#platform/database/throttled-notify.js';
import {
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
import type { LogMeasures } from '../port/log-measures.js';
import { refuseForeignPositions } from '../log/positions-check.js';
import { Commits } from './commits.js';
import { measurePostgresLog } from './measure-log.js';
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

/**
 * Writes and reads events in PostgreSQL. Appends run in parallel. Readers go by (transaction id, sequence number) and
 * stop below the oldest transaction still running, so they wait for a late commit and never skip it.
 */
@Injectable()
export class PostgresEventStore extends EventStore implements OnModuleInit, OnApplicationShutdown {
  private readonly log = new Logger(PostgresEventStore.name);
  private readonly commits: Commits;
  private readonly reader: PostgresReader;
  private readonly shared = new SharedLog((after, limit) => this.readAll(after, limit));
  private readonly subscribers = new Set<WakeSignal>();
  private pollTimer: NodeJS.Timeout | undefined;
  private pollAt = Infinity;
  private endListening: (() => void) | undefined;
  private readonly announcements: ThrottledNotify;

  /** @param link without which subscribers poll */
  constructor(
    private readonly pool: DatabasePool,
    private readonly plainTables: PlainTable[] = [],
    private readonly link?: ProcessLink,
  ) {
    super();
    this.reader = new PostgresReader(pool);
    this.announcements = new ThrottledNotify(pool, CHANNEL, (error) =>
      this.log.warn(`subscribers could not be notified and will poll: ${getErrorMessage(error)}`),
    );
    this.commits = new Commits(pool, this.announcements);
  }

  async onModuleInit(): Promise<void> {
    await refuseForeignPositions(this.pool, this.plainTables);
  }

  override commit(commit: Commit): Promise<Head[]> {
    return this.commits.add(commit);
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

  override measure(): Promise<LogMeasures> {
    return measurePostgresLog(this.pool);
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
    this.listen();
    let position = after;
    // After a full batch the next one is read while the subscriber handles this one.
    let ahead: Promise<StoredEvent[]> | undefined;
    const news = new WakeSignal();
    this.subscribers.add(news);
    this.pollIn(POLL_MS.first);
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
          this.pollIn(POLL_MS.first);
          // The queries of the subscriber are sent before the log is read again.
          if (!ahead) await new Promise((resolve) => setImmediate(resolve));
        }
        // What was read ahead may be out of date.
        if (ahead || (prefetched && !last)) continue;
        await news.wait(Infinity, signal);
      }
    } finally {
      this.subscribers.delete(news);
    }
  }

  /**
   * Wakes all subscribers then, who share one read, and later less and less often. Never puts off a poll that is due
   * sooner: others wait for it while one subscriber reads batch after batch.
   */
  private pollIn(milliseconds: number): void {
    const pollAt = performance.now() + milliseconds;
    if (this.pollAt <= pollAt) return;
    this.pollAt = pollAt;
    clearTimeout(this.pollTimer);
    this.pollTimer = setTimeout(() => {
      this.pollAt = Infinity;
      if (this.subscribers.size === 0) return;
      this.wakeAll();
      this.pollIn(Math.min(2 * milliseconds, POLL_MS.longest));
    }, milliseconds).unref();
  }

  private wakeAll(): void {
    this.shared.handleAnnouncement();
    for (const news of this.subscribers) news.wake();
  }

  onApplicationShutdown(): void {
    this.announcements.close();
    this.endListening?.();
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

  private listen(): void {
    if (this.endListening) return;
    const onNews = () => {
      this.wakeAll();
      this.pollIn(POLL_MS.first);
    };
    this.endListening = this.link?.listen(CHANNEL, onNews, onNews);
  }
}
