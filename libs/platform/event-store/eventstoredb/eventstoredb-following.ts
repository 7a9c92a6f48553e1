import {
  streamNameFilter,
  type AllStreamSubscription,
  type EventStoreDBClient,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { BEGINNING, type Position, type StoredEvent } from '../port/event-store.js';
import { getPosition, type OwnStreams } from './eventstoredb-streams.js';
import { isAfter } from '../port/position.js';

/** Reads the client's subscription in batches. */
export class SubscriptionReader {
  /** Why the subscription ended; undefined while it runs. */
  endReason: string | undefined;
  /** The position up to which the server has read, including events that are filtered out. */
  position: Position | undefined;
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
        fromPosition: streams.getReadStart(after),
        filter: streamNameFilter({
          prefixes: streams.prefixes,
          checkpointReached: (_subscription, reached) => {
            this.pass(reached);
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

  end(reason: string): void {
    this.endReason ??= reason;
    this.wakeUp();
  }

  /**
   * Resolves when there is something to read. Call it before `read`, so that events that arrive in between wake the
   * reader as well.
   */
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
      const recorded = resolved.event as JSONRecordedEvent | undefined;
      const event = recorded && this.streams.toStoredEvent(recorded);
      if (event) events.push(event);
      else if (recorded) this.pass(getPosition(recorded));
    }
    return events;
  }

  private pass(position: Position): void {
    if (isAfter(position, this.position ?? BEGINNING)) this.position = position;
  }

  close(): Promise<void> {
    return this.subscription.unsubscribe();
  }
}
