import { Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf, UnknownOutcomeError } from '#kernel/errors.js';
import { ConflictError, type EventStore, type StoredEvent, type Write } from './event-store.js';
import type { EventStoreDbAppender } from './eventstoredb-appender.js';

const SETTLE_WITHIN_MS = 30_000;
const AGAIN_MS = 200;

/**
 * What comes after the first append of a commit. It must be written, whoever may have written to its streams since: a
 * write that finds its stream elsewhere is decided again.
 */
export class FollowingWrites {
  private readonly log = new Logger(FollowingWrites.name);

  constructor(
    private readonly appender: EventStoreDbAppender,
    private readonly store: EventStore,
  ) {}

  /** @returns all writes as they were appended. @throws UnknownOutcomeError */
  async append(first: Write, rest: Write[]): Promise<Write[]> {
    const appended = [first];
    let asPlanned = true;
    for (const planned of rest) {
      const write = await this.appendOne(planned, appended, asPlanned);
      appended.push(write);
      // What follows from a write that was decided again is decided again too.
      asPlanned &&= isDeepStrictEqual(contentOf(write), contentOf(planned));
    }
    return appended;
  }

  private async appendOne(planned: Write, earlier: Write[], asPlanned: boolean): Promise<Write> {
    const deadline = Date.now() + SETTLE_WITHIN_MS;
    let write = asPlanned || planned.expected === null ? planned : undefined;
    while (Date.now() < deadline) {
      try {
        if (!write) {
          write = await this.again(planned, earlier);
          // Looked for after the decision: whatever comes later makes the append fail.
          const done = await this.findAppended(planned);
          if (done) return done;
        }
        await this.appender.append(write, true);
        return write;
      } catch (error) {
        if (error instanceof UnknownOutcomeError) throw error;
        write = undefined;
        if (error instanceof ConflictError) continue;
        this.log.warn(
          `${planned.stream} has to wait for the rest of a commit: ${messageOf(error)}`,
        );
        await wait(AGAIN_MS);
      }
    }
    throw new UnknownOutcomeError('the rest of a commit is not written yet');
  }

  private again(planned: Write, earlier: Write[]): Promise<Write> {
    const { redecider } = this.store;
    if (!redecider) throw new Error(`nobody can decide ${planned.stream} again`);
    return redecider.again(planned, earlier);
  }

  /** Another process may have appended the same write, as planned or decided again: an event of it keeps its id. */
  private async findAppended({ stream, expected, events }: Write): Promise<Write | undefined> {
    const ids = new Set(events.map(({ id }) => id));
    const found: StoredEvent[] = [];
    const from = expected === null ? 0 : expected.revision + 1;
    for await (const event of this.store.readStream(stream, { from })) {
      if (ids.has(event.id)) found.push(event);
    }
    return found.length > 0 ? { stream, expected, events: found } : undefined;
  }
}

/** What the events say, whoever has appended them; sealed parts differ by their seal alone. */
function contentOf({ events }: Write): unknown {
  return events.map(({ id, type, data }) => {
    const { personal: _, ...told } = data;
    return { id, type, told };
  });
}
