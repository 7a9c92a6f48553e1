import { ConfigError } from '#platform/kernel/config-error.js';
import { groupAppends, type HistoryWriter } from '../port/history-writer.js';
import {
  BEGINNING,
  ConflictError,
  type Head,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';
import { isAfter } from '../port/position.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';
import { classifyError, toUnavailableError } from './eventstoredb-errors.js';
import { toServerEvent } from './eventstoredb-streams.js';

/** Appends that wait for their responses at the same time. The server takes them in the order in which they are sent. */
const WINDOW = 256;

/**
 * Copies a history to EventStoreDB. Sends the appends of a batch without waiting for each response, over one stream of
 * requests, and checks that the server has stored them in that order.
 */
export class EventStoreDbHistoryWriter implements HistoryWriter {
  private readonly connection: EventStoreDbConnection;
  private end: Position = BEGINNING;
  /** Whether an append of the batch has failed: one that is sent now could be stored before it. */
  private hasFailed = false;

  constructor(
    url: string,
    private readonly prefix: string,
  ) {
    this.connection = new EventStoreDbConnection(url);
  }

  async append(events: StoredEvent[], before: Map<string, Head | null>): Promise<void> {
    const revisions = new Map([...before].map(([stream, head]) => [stream, head?.revision]));
    const running: Promise<Position | undefined>[] = [];
    this.hasFailed = false;
    try {
      for await (const group of groupAppends(events)) {
        const { stream } = group[0];
        while (this.hasFailed) await this.settleNext(running);
        running.push(this.send(stream, group, revisions.get(stream)));
        revisions.set(stream, group.at(-1)?.revision);
        if (running.length >= WINDOW) await this.settleNext(running);
      }
      while (running.length > 0) await this.settleNext(running);
    } catch (error) {
      // What has been sent may still be written: the caller must find out only after that.
      await Promise.allSettled(running);
      if (error instanceof ConfigError) throw error;
      if (classifyError(error) === 'conflict') throw new ConflictError();
      throw toUnavailableError(error, 'append');
    }
  }

  async close(): Promise<void> {
    await this.connection.dispose();
  }

  private send(
    stream: string,
    events: StoredEvent[],
    revision: number | undefined,
  ): Promise<Position | undefined> {
    const result = this.connection.append({
      streamName: this.prefix + stream,
      expectedRevision: revision,
      events: events.map((event) => toServerEvent(event, event.hash)),
    });
    // Each is awaited in turn.
    result.catch(() => {
      this.hasFailed = true;
    });
    return result;
  }

  /** @throws ConfigError when the server has stored appends in another order than they were sent */
  private async settleNext(running: Promise<Position | undefined>[]): Promise<void> {
    const position = await running[0];
    running.shift();
    if (!position) return;
    if (!isAfter(position, this.end)) {
      throw new ConfigError(
        'KurrentDB (EventStoreDB) has stored events in another order than they were sent, as after a change of its leader. Copy them to an empty server, or with another EVENT_STORE_STREAM_PREFIX. Nothing was switched.',
      );
    }
    this.end = position;
  }
}
