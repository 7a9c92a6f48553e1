import { Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool, type PoolClient } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { isTransient, withConnection } from '#platform/database/connection.js';
import { READ_MODELS_SUBSCRIPTION, readPosition } from '../port/subscription-position.js';
import type {
  EventStore,
  Position,
  StoredEvent,
  EngineCallbacks,
  ReadIds,
} from '../port/event-store.js';
import { formatPosition } from '../port/position.js';

const BATCH = 500;
/** Grace period for the process that appended the events. */
const OVERDUE_MS = 500;
/** How long a reader waits before each poll in that period. */
const POLL_DELAYS_MS = [20, 80, 400];
/** Maximum number of waiting streams. */
const MAX_WAITING = 20_000;
const RETRY_MS = 1_000;

/** Streams with their newest revisions, and the position of the log up to which they are known. */
type Overdue = { newest: Map<string, number>; position: Position };

type ArrivedStreams = Overdue & { arrivedAt: number };

/**
 * Writes read models whose writer died before it could, where they may lag behind their streams. It reads the log and
 * gives the writers half a second, or it would overtake them and write nearly every read model a second time.
 */
export class ReadModelCatchUp {
  private readonly log = new Logger('read model catch-up');
  /** Events that read models show. All subscribers of a process get the same ones from the end of the log. */
  private readonly projected = new WeakSet<StoredEvent>();

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
  ) {}

  /**
   * Waits for the writers of these events, and catches up the streams of those that do not write.
   * @throws what keeps a read model behind
   */
  async waitUntilProjected(events: StoredEvent[]): Promise<void> {
    const unchecked = events.filter((event) => !this.projected.has(event));
    if (unchecked.length === 0) return;
    let behind = await this.callbacks.findBehind(unchecked);
    for (const milliseconds of POLL_DELAYS_MS) {
      if (behind.length === 0) break;
      await wait(milliseconds);
      behind = await this.callbacks.findBehind(unchecked);
    }
    for (const stream of behind) await this.callbacks.catchUp(stream);
    for (const event of unchecked) this.projected.add(event);
  }

  /** Runs until the signal aborts. Several processes may run it: read models only ever move forward. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.follow(signal);
      } catch (error) {
        this.log.warn(`failed, trying again in a second: ${getErrorMessage(error)}`);
        await pause(RETRY_MS, signal);
      }
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const failure = new AbortController();
    const either = AbortSignal.any([signal, failure.signal]);
    const queue = new OverdueQueue(either);
    const after = await readPosition(this.pool, READ_MODELS_SUBSCRIPTION);
    const results = await Promise.allSettled(
      [
        this.eventStore.subscribe({
          after,
          batch: BATCH,
          signal: either,
          onEvents: (events, position) => queue.add(events, position),
        }),
        this.catchUpOverdue(queue, either),
      ].map((work) => work.finally(() => failure.abort())),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  private async catchUpOverdue(queue: OverdueQueue, signal: AbortSignal): Promise<void> {
    for (let due = await queue.waitForOverdue(); due; due = await queue.waitForOverdue()) {
      await this.catchUpBatch(due);
      // While events arrive the next streams are overdue at once; a few more make the statement worthwhile.
      await pause(OVERDUE_MS, signal);
    }
  }

  /**
   * Catches up a batch on one connection, so that nothing is saved when the database has crashed since it was read: a
   * read model that was found may not have been on disk yet.
   */
  private async catchUpBatch({ newest, position }: Overdue): Promise<void> {
    const refs = [...newest].map(([stream, revision]) => ({ stream, revision }));
    await withConnection(this.pool, async (client) => {
      const read: ReadIds = async (statement) =>
        (await client.query<{ id: number }>(statement)).rows;
      for (const stream of await this.callbacks.findBehind(refs, read))
        await this.catchUpOne(stream);
      await this.savePosition(client, position);
    });
  }

  /**
   * Catches up one stream. One that cannot be projected must not block the others; readers of it get the error too.
   */
  private async catchUpOne(stream: string): Promise<void> {
    try {
      await this.callbacks.catchUp(stream);
    } catch (error) {
      if (isTransient(error)) throw error;
      this.log.error(`the read model of ${stream} stays behind: ${String(error)}`);
    }
  }

  private get callbacks(): EngineCallbacks {
    const { callbacks } = this.eventStore;
    if (!callbacks) throw new Error('nobody projects the streams');
    return callbacks;
  }

  private async savePosition(client: PoolClient, position: Position): Promise<void> {
    await client.query(
      `insert into es.positions (subscription, position) values ($1, $2)
       on conflict (subscription) do update
         set position = excluded.position, updated_at = now()
         where es.positions.position < excluded.position`,
      [READ_MODELS_SUBSCRIPTION, formatPosition(position)],
    );
  }
}

/**
 * Queues streams while their writers still have time to write them. The time counts from the arrival of the events, by
 * a monotonic clock: an event is at least that old.
 */
class OverdueQueue {
  private readonly arrivedStreams: ArrivedStreams[] = [];
  private count = 0;
  private changed: () => void = () => undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => this.changed(), { once: true });
  }

  async add(events: StoredEvent[], position: Position): Promise<void> {
    const newest = new Map<string, number>();
    for (const { stream, revision } of events) newest.set(stream, revision);
    this.arrivedStreams.push({ newest, position, arrivedAt: performance.now() });
    this.count += newest.size;
    this.changed();
    while (this.count >= MAX_WAITING && !this.signal.aborted) await this.change();
  }

  /**
   * Waits for read models that the writers of the events should have written.
   * @returns undefined when the signal has aborted
   */
  async waitForOverdue(): Promise<Overdue | undefined> {
    while (!this.signal.aborted) {
      const [first] = this.arrivedStreams;
      if (!first) {
        await this.change();
        continue;
      }
      const since = performance.now() - OVERDUE_MS;
      if (first.arrivedAt <= since) return this.take(since);
      await pause(first.arrivedAt - since, this.signal);
    }
    return undefined;
  }

  private take(since: number): Overdue | undefined {
    const newest = new Map<string, number>();
    let position: Position | undefined;
    for (
      let [next] = this.arrivedStreams;
      next && next.arrivedAt <= since;
      [next] = this.arrivedStreams
    ) {
      for (const [stream, revision] of next.newest) newest.set(stream, revision);
      ({ position } = next);
      this.count -= next.newest.size;
      this.arrivedStreams.shift();
    }
    this.changed();
    return position && { newest, position };
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.changed = resolve;
    });
  }
}
