import { DamagedHistoryError, EventStoreUnavailableError } from '#platform/kernel/errors.js';
import {
  RETRY_WITHIN_MS,
  retryWhileUnknown,
  type IsUnknownAfter,
} from '#platform/database/retry-while-unknown.js';
import { ConflictError, type Head, type Write } from '../port/event-store.js';
import type { EventStoreDbConnection } from './eventstoredb-connection.js';
import { classifyError, isAccessDenied, toUnavailableError } from './eventstoredb-errors.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import { toServerEvent, type OwnStreams } from './eventstoredb-streams.js';
import { hashChain } from '../port/hash-chain.js';

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
  append({ stream, expected, events }: Write, mustAppend = false): Promise<Head> {
    const heads = hashChain(stream, expected, events);
    const head = heads.at(-1);
    if (!head) throw new Error('a write has at least one event');
    const append = {
      streamName: this.streams.getStreamName(stream),
      expectedRevision: expected?.revision,
      events: events.map((event, i) => toServerEvent(event, heads[i]?.hash)),
    };
    const explain = async (error: unknown, isUnknown: boolean): Promise<never> => {
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
      throw error;
    };
    const attempt = (isUnknown: boolean): Promise<Head> =>
      this.connection.append(append).then(
        () => head,
        (error: unknown) => explain(error, isUnknown),
      );
    return retryWhileUnknown(attempt, { isUnknown: mustAppend, isUnknownAfter });
  }
}

const isUnknownAfter: IsUnknownAfter = (error, wasUnknown, elapsedMs) => {
  if (error instanceof ConflictError || error instanceof DamagedHistoryError) throw error;
  const kind = classifyError(error);
  if (wasUnknown || kind === 'no-response') return true;
  if (kind === 'other') throw error;
  if (kind === 'unreachable' || kind === 'refused') throw toUnavailableError(error, 'append');
  if (elapsedMs <= RETRY_WITHIN_MS) return false;
  throw new EventStoreUnavailableError('The event store does not take appends', { cause: error });
};
