import type { EventStore, StoredEvent } from '#platform/event-store/port/event-store.js';

/** Reads all events of a stream at once: a customer and a customer card have few. */
export async function readWholeStream(
  eventStore: EventStore,
  stream: string,
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const event of eventStore.readStream(stream)) events.push(event);
  return events;
}
