import { Logger } from '@nestjs/common';
import {
  START,
  streamNameFilter,
  type AllStreamSubscription,
  type EventStoreDBClient,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { BEGINNING, type Position, type StoredEvent, type Subscriber } from './event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import type { OwnStreams } from './eventstoredb-streams.js';
import { isAfter } from './position.js';

const RECONNECT_MS = { first: 100, longest: 5_000 };

/** Follows the log until the signal aborts; the client itself does not resubscribe. */
export class EventStoreDbSubscription {
  private readonly log = new Logger('EventStoreDB subscription');

  constructor(
    private readonly connection: EventStoreDbConnection,
    private readonly streams: OwnStreams,
  ) {}

  async run({ after, batch, onEvents, signal }: Subscriber): Promise<void> {
    let position = after;
    for (let backOff = RECONNECT_MS.first; !signal.aborted;) {
      const started = position;
      const dropped = await this.follow(position, batch, signal, async (events, to) => {
        await onEvents(events, to);
        position = to;
      });
      if (signal.aborted) return;
      if (isAfter(position, started)) backOff = RECONNECT_MS.first;
      this.log.warn(`a subscription was dropped (${dropped}); resuming in ${backOff} ms`);
      await pause(backOff * (0.5 + Math.random() / 2), signal);
      backOff = Math.min(2 * backOff, RECONNECT_MS.longest);
    }
  }

  /**
   * Follows over one connection. Rejects with what the subscriber threw; otherwise returns why the connection
   * ended.
   */
  private async follow(
    after: Position,
    batch: number,
    signal: AbortSignal,
    onEvents: Subscriber['onEvents'],
  ): Promise<string> {
    const following = new Following(this.connection.client, this.streams, after, batch);
    const onAbort = () => following.end('stopped');
    signal.addEventListener('abort', onAbort, { once: true });
    let position = after;
    try {
      for (;;) {
        const woken = following.nextWake();
        const events = following.read();
        const last = events.at(-1);
        if (last) {
          position = last.position;
          await onEvents(events, position);
        } else if (following.checkpoint && isAfter(following.checkpoint, position)) {
          position = following.checkpoint;
          await onEvents([], position);
        } else if (following.ended !== undefined) {
          return following.ended;
        } else {
          await woken;
        }
        if (signal.aborted) return 'stopped';
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      await following.close().catch((error: unknown) => this.log.debug(messageOf(error)));
    }
  }
}

/** Reads the client's subscription in batches. */
class Following {
  /** Why it ended; undefined while it goes on. */
  ended: string | undefined;
  /** How far the server has read, events that are filtered out included. */
  checkpoint: Position | undefined;
  private wakeUp: () => void = () => undefined;
  private readonly subscription: AllStreamSubscription;

  constructor(
    client: EventStoreDBClient,
    private readonly streams: OwnStreams,
    after: Position,
    private readonly batch: number,
  ) {
    this.subscription = client.subscribeToAll(
      {
        fromPosition: isAfter(after, BEGINNING) ? after : START,
        filter: streamNameFilter({
          prefixes: streams.prefixes,
          checkpointReached: (_subscription, reached) => {
            this.checkpoint = reached;
            this.wakeUp();
          },
        }),
      },
      { highWaterMark: batch },
    );
    this.subscription.on('readable', () => this.wakeUp());
    this.subscription.on('error', (error: Error) => this.end(error.message));
    this.subscription.on('end', () => this.end('the server ended it'));
    this.subscription.on('close', () => this.end('the connection was closed'));
  }

  end(why: string): void {
    this.ended ??= why;
    this.wakeUp();
  }

  /** Call it before `read`, so that events arriving in between wake the reader as well. */
  nextWake(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeUp = resolve;
    });
  }

  read(): StoredEvent[] {
    const events: StoredEvent[] = [];
    while (events.length < this.batch) {
      const resolved: { event?: unknown } | null = this.subscription.read();
      if (resolved === null) break;
      const event = this.streams.stored(resolved.event as JSONRecordedEvent | undefined);
      if (event) events.push(event);
    }
    return events;
  }

  close(): Promise<void> {
    return this.subscription.unsubscribe();
  }
}
