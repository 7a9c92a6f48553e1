import { setTimeout as wait } from 'node:timers/promises';
import {
  DamagedHistoryError,
  EventStoreUnavailableError,
  UnknownOutcomeError,
} from '#kernel/errors.js';
import { ConflictError, type Head, type Write } from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { classifyError, isAccessDenied, toUnavailableError } from './eventstoredb-errors.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import { toServerEvent, type OwnStreams } from './eventstoredb-streams.js';
import { hashChain } from '../port/hash-chain.js';

const SETTLE_WITHIN_MS = 30_000;

/**
 * Appends to one stream. Repeats an append identically when its outcome is unknown: the server then returns the first
 * result, or reports that the stream has moved.
 */
export class EventStoreDbAppender {
  constructor(
    private readonly connection: EventStoreDbConnection,
    private readonly streams: OwnStreams,
    private readonly reader: EventStoreDbReader,
  ) {}

  /**
   * Appends the events of a write.
   * @param mustAppend the commit has already appended to another stream, so this one must be appended to as well; only
   *   a stream that existed before may have moved
   * @throws ConflictError, DamagedHistoryError, UnavailableError: not appended
   * @throws UnknownOutcomeError
   * @returns the new head of the stream
   */
  async append({ stream, expected, events }: Write, mustAppend = false): Promise<Head> {
    const deadline = performance.now() + SETTLE_WITHIN_MS;
    const heads = hashChain(stream, expected, events);
    const head = heads.at(-1);
    if (!head) throw new Error('a write has at least one event');
    const append = {
      streamName: this.streams.getStreamName(stream),
      expectedRevision: expected?.revision,
      events: events.map((event, i) => toServerEvent(event, heads[i]?.hash)),
    };
    let isUnknown = mustAppend;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.connection.append(append);
        return head;
      } catch (error) {
        const kind = classifyError(error);
        if (kind === 'deleted') {
          throw new DamagedHistoryError('change', `${stream} is deleted for good`);
        }
        if (kind === 'conflict') {
          // Nobody ever wins a race against an event that stays there and is not ours. A new record takes another number.
          if (expected ?? mustAppend)
            await this.reader.assertUntouchedAfter(stream, expected?.revision ?? -1);
          if (expected ?? !mustAppend) throw new ConflictError();
        }
        if (isAccessDenied(error) && (mustAppend || !isUnknown)) {
          await this.reader.assertNoSettings(stream, ['$acl']);
        }
        if (kind === 'other' && !isUnknown) throw error;
        if ((kind === 'unreachable' || kind === 'refused') && !isUnknown) {
          throw toUnavailableError(error, 'append');
        }
        if (kind === 'no-response') isUnknown = true;
        if (performance.now() > deadline) {
          if (isUnknown) {
            throw new UnknownOutcomeError('the outcome of an append stays unknown', {
              cause: error,
            });
          }
          throw new EventStoreUnavailableError('The event store does not take appends', {
            cause: error,
          });
        }
        await wait(Math.min(50 * 2 ** attempt, 1_000));
      }
    }
  }
}
