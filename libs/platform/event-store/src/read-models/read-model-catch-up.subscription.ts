import { Logger } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isPassing, withConnection } from '#database/connection.js';
import { checkpointOf } from '../port/checkpoint.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { formatPosition } from '../port/position.js';
import type { ReadIds, Rows, RowTable } from './read-models.js';

export const ROWS_SUBSCRIPTION = 'rows';
const BATCH = 500;
/** What a writer that lives needs for its row at most, nearly always. */
const OVERDUE_MS = 500;
/** So many streams wait at most; reading the log waits for the rest. */
const MOST_WAITING = 20_000;
const AGAIN_MS = 1_000;

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** Streams, each with its newest revision, and how far the log has been read with them. */
type Overdue = { newest: Map<string, number>; position: Position };

type Arrived = Overdue & { at: number };

/**
 * Where rows may lag behind their streams: reads the log and writes each row whose writer died before it
 * could. It gives the writers half a second, or it would overtake them and write nearly every row a second time.
 */
export class RowCatchUp {
  private readonly log = new Logger('row catch-up');

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly tables: AnyTable[],
  ) {}

  /** Until the signal aborts. Several processes may run it: rows only ever move forward. */
  async run(signal: AbortSignal): Promise<void> {
    if (!this.store.rowsMayLag) return;
    while (!signal.aborted) {
      try {
        await this.follow(signal);
      } catch (error) {
        this.log.warn(`failed, trying again in a second: ${messageOf(error)}`);
        await pause(AGAIN_MS, signal);
      }
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const waiting = new Waiting(either);
    const after = await checkpointOf(this.pool, ROWS_SUBSCRIPTION);
    const ends = await Promise.allSettled(
      [
        this.store.subscribe({
          after,
          batch: BATCH,
          signal: either,
          onEvents: (events, position) => waiting.add(events, position),
        }),
        this.bringUpOverdue(waiting, either),
      ].map((work) => work.finally(() => failed.abort())),
    );
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  private async bringUpOverdue(waiting: Waiting, signal: AbortSignal): Promise<void> {
    for (let due = await waiting.overdue(); due; due = await waiting.overdue()) {
      await this.bringUp(due);
      // While events flow the next ones are due at once; a few more make it worth a statement.
      await pause(OVERDUE_MS, signal);
    }
  }

  /**
   * On one connection, so that nothing is saved when the database has crashed since it was looked at: a row that was seen
   * may not have been on disk yet.
   */
  private async bringUp({ newest, position }: Overdue): Promise<void> {
    const refs = [...newest].map(([stream, revision]) => ({ stream, revision }));
    await withConnection(this.pool, async (client) => {
      const read: ReadIds = async (statement) =>
        (await client.query<{ id: number }>(statement)).rows;
      for (const rows of this.tables) {
        for (const id of await this.rows.behind(rows, refs, read)) await this.bringUpOne(rows, id);
      }
      await this.save(client, position);
    });
  }

  /** A stream that cannot be folded must not block the others; loading it reports the error too. */
  private async bringUpOne(rows: AnyTable, id: number): Promise<void> {
    try {
      await this.rows.load(rows, id, true);
    } catch (error) {
      if (isPassing(error)) throw error;
      this.log.error(`${rows.table} ${id} stays behind its stream: ${String(error)}`);
    }
  }

  private async save(client: PoolClient, position: Position): Promise<void> {
    await client.query(
      `insert into es.checkpoints (subscription, position) values ($1, $2)
       on conflict (subscription) do update
         set position = excluded.position, updated_at = now()
         where es.checkpoints.position < excluded.position`,
      [ROWS_SUBSCRIPTION, formatPosition(position)],
    );
  }
}

/**
 * What has been read of the log and is still the writers'. How long counts from its arrival, by a clock that nobody sets:
 * an event is at least that old.
 */
class Waiting {
  private readonly arrived: Arrived[] = [];
  private count = 0;
  private changed: () => void = () => undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => this.changed(), { once: true });
  }

  async add(events: StoredEvent[], position: Position): Promise<void> {
    const newest = new Map<string, number>();
    for (const { stream, revision } of events) newest.set(stream, revision);
    this.arrived.push({ newest, position, at: performance.now() });
    this.count += newest.size;
    this.changed();
    while (this.count >= MOST_WAITING && !this.signal.aborted) await this.change();
  }

  /** @returns what no writer is expected to write any more, once there is any; undefined: the signal has aborted */
  async overdue(): Promise<Overdue | undefined> {
    while (!this.signal.aborted) {
      const [first] = this.arrived;
      if (!first) {
        await this.change();
        continue;
      }
      const since = performance.now() - OVERDUE_MS;
      if (first.at <= since) return this.take(since);
      await pause(first.at - since, this.signal);
    }
    return undefined;
  }

  private take(since: number): Overdue | undefined {
    const newest = new Map<string, number>();
    let position: Position | undefined;
    for (let [next] = this.arrived; next && next.at <= since; [next] = this.arrived) {
      for (const [stream, revision] of next.newest) newest.set(stream, revision);
      ({ position } = next);
      this.count -= next.newest.size;
      this.arrived.shift();
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
