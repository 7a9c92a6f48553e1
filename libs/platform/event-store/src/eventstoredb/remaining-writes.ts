import { Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { DamagedHistoryError, getErrorMessage, UnknownOutcomeError } from '#kernel/errors.js';
import { RETRY_WITHIN_MS } from '#database/retry-while-unknown.js';
import {
  ConflictError,
  type EventStore,
  type Head,
  type StoredEvent,
  type Write,
} from '../port/event-store.js';

const RETRY_DELAY_MS = 200;

/**
 * Appends the writes after the first one of a commit. They must be written, whatever other processes have appended to
 * their streams since: a write whose stream has moved is decided again.
 */
export class RemainingWrites {
  private readonly log = new Logger(RemainingWrites.name);

  constructor(
    private readonly appender: { append: (write: Write, mustAppend: true) => Promise<unknown> },
    private readonly eventStore: EventStore,
  ) {}

  /**
   * Appends the remaining writes in order.
   * @returns all writes as they were appended
   * @throws UnknownOutcomeError
   * @throws DamagedHistoryError when somebody else has damaged a stream of them
   */
  async append(first: Write, remaining: Write[]): Promise<Write[]> {
    const appended = [first];
    let isAsPlanned = true;
    for (const planned of remaining) {
      const write = await this.appendOne(planned, appended, isAsPlanned);
      appended.push(write);
      // A write that follows from one that was decided again is decided again too.
      isAsPlanned &&= isDeepStrictEqual(getContent(write), getContent(planned));
    }
    return appended;
  }

  private async appendOne(
    planned: Write,
    earlierWrites: Write[],
    isAsPlanned: boolean,
  ): Promise<Write> {
    const deadline = performance.now() + RETRY_WITHIN_MS;
    let write = isAsPlanned || planned.expected === null ? planned : undefined;
    const search = new WriteSearch(this.eventStore, planned);
    while (performance.now() < deadline) {
      try {
        if (!write) {
          write = await this.decideAgain(planned, earlierWrites);
          // The search comes after the decision: an event that is appended later makes the append fail.
          const events = await search.findUpTo(write.expected);
          if (events.length > 0) {
            return { stream: planned.stream, expected: planned.expected, events };
          }
        }
        await this.appender.append(write, true);
        return write;
      } catch (error) {
        if (error instanceof UnknownOutcomeError || error instanceof DamagedHistoryError)
          throw error;
        write = undefined;
        if (error instanceof ConflictError) continue;
        this.log.warn(
          `${planned.stream} has to wait for the rest of a commit: ${getErrorMessage(error)}`,
        );
        await wait(RETRY_DELAY_MS);
      }
    }
    throw new UnknownOutcomeError('the rest of a commit is not written yet');
  }

  private decideAgain(planned: Write, earlierWrites: Write[]): Promise<Write> {
    const { callbacks } = this.eventStore;
    if (!callbacks) throw new Error(`nobody can decide ${planned.stream} again`);
    return callbacks.decideFollowUp(planned, earlierWrites);
  }
}

/**
 * Looks for a write that another process may have appended, as planned or decided again: an event of it keeps its id.
 * Each event is read once, since others may write to the stream faster than all of it could be read again.
 */
class WriteSearch {
  private readonly ids: Set<string>;
  private from: number;

  constructor(
    private readonly eventStore: EventStore,
    private readonly planned: Write,
  ) {
    this.ids = new Set(planned.events.map(({ id }) => id));
    this.from = planned.expected === null ? 0 : planned.expected.revision + 1;
  }

  /**
   * Finds the events of the write up to a head.
   * @returns none when the write is not in the stream
   */
  async findUpTo(head: Head | null): Promise<StoredEvent[]> {
    if (head === null || head.revision < this.from) return [];
    const events: StoredEvent[] = [];
    const range = { from: this.from, to: head.revision };
    for await (const event of this.eventStore.readStream(this.planned.stream, range)) {
      if (this.ids.has(event.id)) events.push(event);
    }
    this.from = head.revision + 1;
    return events;
  }
}

/** Returns the content of events, whichever process appended them. Sealed parts differ by their seal alone. */
function getContent({ events }: Write): unknown {
  return events.map(({ id, type, data }) => {
    const { personal: _, ...plainData } = data;
    return { id, type, plainData };
  });
}
