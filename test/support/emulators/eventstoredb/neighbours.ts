import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

const EVENTS_PER_APPEND = 2_000;

/** Writes so many events of another application, some in streams that it deletes, before a history begins there. */
export async function writeNeighboursEvents(
  connectionString: string,
  count: number,
): Promise<void> {
  const client = EventStoreDBClient.connectionString(connectionString);
  try {
    for (let written = 0; written < count; written += EVENTS_PER_APPEND) {
      const stream = `orders-${written}`;
      const events = Array.from({ length: Math.min(EVENTS_PER_APPEND, count - written) }, (_, n) =>
        jsonEvent({ type: 'Ordered', data: { number: written + n } }),
      );
      await client.appendToStream(stream, events);
      if (written % (10 * EVENTS_PER_APPEND) === 0) await client.deleteStream(stream);
    }
  } finally {
    await client.dispose();
  }
}
