import { retryUntilAvailable } from '#platform/kernel/retry-until.js';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';

/**
 * Reads the log from its beginning to its end in pages, each while the caller handles the one before.
 * @param retry repeats a read that fails; by default, while the event store is unavailable
 */
export async function* readLog(
  eventStore: EventStore,
  pageSize: number,
  retry: <R>(read: () => Promise<R>) => Promise<R> = retryUntilAvailable,
): AsyncGenerator<StoredEvent[]> {
  const read = (after: Position) => retry(() => eventStore.readAll(after, pageSize));
  for (let ahead = read(BEGINNING); ;) {
    const page = await ahead;
    const last = page.at(-1);
    if (!last) return;
    ahead = read(last.position);
    ahead.catch(() => undefined);
    yield page;
  }
}
