import { Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { getCommandKey } from '#platform/kernel/aggregate.js';
import {
  DamagedHistoryError,
  getErrorMessage,
  UnknownOutcomeError,
} from '#platform/kernel/errors.js';
import { RETRY_WITHIN_MS } from '#platform/database/retry-while-unknown.js';
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
          const appended = await search.findUpTo(write.expected);
          if (appended) return appended;
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
 * Looks for a write that another process may have appended, as planned or decided again: all its events are of one
 * command. Each event is read once, since others may write to the stream faster than all of it could be read again.
 */
class WriteSearch {
  /** The last event before the write, among those that were read. */
  private before: Head | null;

  constructor(
    private readonly eventStore: EventStore,
    private readonly planned: Write,
  ) {
    this.before = planned.expected;
  }

  /**
   * Finds the write up to a head.
   * @returns undefined when it is not in the stream
   */
  async findUpTo(head: Head | null): Promise<Write | undefined> {
    const from = this.before === null ? 0 : this.before.revision + 1;
    if (head === null || head.revision < from) return undefined;
    const { stream } = this.planned;
    const events: StoredEvent[] = [];
    for await (const event of this.eventStore.readStream(stream, { from, to: head.revision })) {
      if (this.isPlanned(event)) events.push(event);
      else if (events.length === 0) this.before = event;
    }
    return events.length > 0 ? { stream, expected: this.before, events } : undefined;
  }

  private isPlanned({ meta }: StoredEvent): boolean {
    const [first] = this.planned.events;
    return first !== undefined && getCommandKey(first.meta) === getCommandKey(meta);
  }
}

/** Returns the content of events, whichever process appended them. Sealed parts differ by their seal alone. */
function getContent({ events }: Write): unknown {
  return events.map(({ id, type, data }) => {
    const { personal: _, ...plainData } = data;
    return { id, type, plainData };
  });
}
