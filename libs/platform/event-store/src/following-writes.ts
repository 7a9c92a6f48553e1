import { Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf, UnknownOutcomeError } from '#kernel/errors.js';
import type { EventStore, StoredEvent, Write } from './event-store.js';
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
    for (const write of rest) appended.push(await this.appendOne(write, appended));
    return appended;
  }

  private async appendOne(planned: Write, earlier: Write[]): Promise<Write> {
    const deadline = Date.now() + SETTLE_WITHIN_MS;
    for (let write = planned, cause: unknown; Date.now() < deadline;) {
      try {
        await this.appender.append(write, true);
        return write;
      } catch (error) {
        if (error instanceof UnknownOutcomeError) throw error;
        cause = error;
      }
      try {
        const done = await this.findAppended(planned);
        if (done) return done;
        const { redecider } = this.store;
        if (!redecider) throw new Error(`nobody can decide ${planned.stream} again`, { cause });
        write = await redecider.again(planned, earlier);
      } catch (error) {
        this.log.warn(
          `${planned.stream} has to wait for the rest of a commit: ${messageOf(error)}`,
        );
        await wait(AGAIN_MS);
      }
    }
    throw new UnknownOutcomeError('the rest of a commit is not written yet');
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
