import { Logger } from '@nestjs/common';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import type { Position, StoredEvent, Subscriber } from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { SubscriptionReader } from './eventstoredb-following.js';
import type { OwnStreams } from './eventstoredb-streams.js';
import { LogTail } from '../log/log-tail.js';
import { isAfter } from '../port/position.js';

const RECONNECT_MS = { first: 100, longest: 5_000 };
/** Minimum interval between batches while events arrive. The first batch after a quiet time comes at once. */
const GATHER_MS = 200;
const PAGE = 500;

/**
 * Follows the log until the signal aborts; the client itself does not resubscribe. The server sends the end of the log
 * to each process once, however many subscribers it has. A subscriber that is further behind reads up to there alone.
 */
export class EventStoreDbSubscription {
  private readonly log = new Logger('EventStoreDB subscription');
  private readonly tail = new LogTail();
  private tailReading: { stop: AbortController; done: Promise<void> } | undefined;
  private subscribers = 0;

  /** @param head returns the end of the log (`EventStore.head`) */
  constructor(
    private readonly connection: EventStoreDbConnection,
    private readonly streams: OwnStreams,
    private readonly head: () => Promise<Position>,
  ) {}

  async run({ after, batch, onEvents, signal }: Subscriber): Promise<void> {
    let position = after;
    const deliver = async (events: StoredEvent[], to: Position) => {
      await onEvents(events, to);
      position = to;
    };
    this.join();
    try {
      while (!signal.aborted) {
        if (this.tail.covers(position)) {
          await this.followTail(position, batch, signal, deliver);
        } else {
          const isInTail = () => this.tail.covers(position);
          await this.followAlone(() => position, batch, signal, deliver, isInTail);
        }
      }
    } finally {
      await this.leave();
    }
  }

  private join(): void {
    if (this.subscribers++ > 0) return;
    const stop = new AbortController();
    const previous = this.tailReading?.done;
    const done = (async () => {
      await previous;
      await this.readTail(stop.signal);
    })();
    this.tailReading = { stop, done };
  }

  private async leave(): Promise<void> {
    if (--this.subscribers > 0) return;
    this.tailReading?.stop.abort();
    await this.tailReading?.done;
  }

  private async readTail(signal: AbortSignal): Promise<void> {
    const add = async (events: StoredEvent[], to: Position) => this.tail.add(events, to);
    while (!signal.aborted) {
      try {
        this.tail.begin(await this.head());
        await this.followAlone(() => this.tail.end, PAGE, signal, add);
      } catch (error) {
        this.log.warn(`the end of the log cannot be read: ${getErrorMessage(error)}`);
        await pause(RECONNECT_MS.longest, signal);
      }
    }
    this.tail.clear();
  }

  private async followTail(
    after: Position,
    batch: number,
    signal: AbortSignal,
    deliver: Subscriber['onEvents'],
  ): Promise<void> {
    for (let position = after; !signal.aborted && this.tail.covers(position);) {
      const changed = this.tail.waitForChange(signal);
      const events = this.tail.getAfter(position, batch);
      const to = events.at(-1)?.position ?? this.tail.end;
      if (!isAfter(to, position)) {
        await changed;
        continue;
      }
      const began = performance.now();
      await deliver(events, to);
      position = to;
      const remainingMs = began + GATHER_MS - performance.now();
      if (events.length < batch && remainingMs > 0) await pause(remainingMs, signal);
    }
  }

  /** Follows over connections of its own, until the signal aborts or the subscriber has come far enough. */
  private async followAlone(
    reached: () => Position,
    batch: number,
    signal: AbortSignal,
    deliver: Subscriber['onEvents'],
    isFarEnough = () => false,
  ): Promise<void> {
    for (let backOff = RECONNECT_MS.first; !signal.aborted;) {
      const started = reached();
      const dropped = await this.followOnce(started, batch, signal, deliver, isFarEnough);
      if (signal.aborted || dropped === undefined) return;
      if (isAfter(reached(), started)) backOff = RECONNECT_MS.first;
      this.log.warn(`a subscription was dropped (${dropped}); resuming in ${backOff} ms`);
      await pause(backOff * (0.5 + Math.random() / 2), signal);
      backOff = Math.min(2 * backOff, RECONNECT_MS.longest);
    }
  }

  /**
   * Follows over one connection. Rejects with the error of the subscriber.
   * @returns why the connection ended; undefined when the subscriber has come far enough
   */
  private async followOnce(
    after: Position,
    batch: number,
    signal: AbortSignal,
    deliver: Subscriber['onEvents'],
    isFarEnough: () => boolean,
  ): Promise<string | undefined> {
    const following = new SubscriptionReader(this.connection.client, this.streams, after, batch);
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
          await deliver(events, position);
        } else if (following.position && isAfter(following.position, position)) {
          position = following.position;
          await deliver([], position);
        } else if (following.endReason !== undefined) {
          return following.endReason;
        } else {
          await woken;
        }
        if (signal.aborted) return 'stopped';
        if (isFarEnough()) return undefined;
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      await following.close().catch((error: unknown) => this.log.debug(getErrorMessage(error)));
    }
  }
}
