import {
  ConflictError,
  type StoredEvent,
  type Write,
  type EngineCallbacks,
} from '../port/event-store.js';
import { HIDING, type EventStoreDbReader } from './eventstoredb-reader.js';

/** Tells whether a write is in its stream. */
export async function isAppended(
  reader: Pick<EventStoreDbReader, 'readStream'>,
  { stream, expected, events }: Write,
): Promise<boolean> {
  const from = expected === null ? 0 : expected.revision + 1;
  for await (const { id } of reader.readStream(stream, { from })) return id === events[0]?.id;
  return false;
}

/**
 * Checks that a stream is where the write expects it. Accepts a stream that has moved if the write can be decided
 * again: some records change all the time, and a commit might never find all of them standing still.
 * @throws ConflictError
 * @throws DamagedHistoryError when nothing could be appended to the stream
 */
export async function assertHead(
  reader: EventStoreDbReader,
  callbacks: EngineCallbacks | undefined,
  { stream, expected }: Write,
): Promise<void> {
  if (expected === null) {
    if (!(await reader.isUnused(stream))) throw new ConflictError();
    return;
  }
  const events: StoredEvent[] = [];
  const { revision: from } = expected;
  for await (const event of reader.readStream(stream, { from })) events.push(event);
  const [head, ...otherEvents] = events;
  if (!head) {
    await reader.assertNoSettings(stream, HIDING);
    throw new ConflictError();
  }
  await reader.assertUntouchedAfter(stream, from + otherEvents.length);
  if (otherEvents.length > 0 && !callbacks?.canFollow(stream, otherEvents))
    throw new ConflictError();
}
