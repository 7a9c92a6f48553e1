import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { formatPosition } from '../port/position.js';

/** Pages that are kept for a reader that is behind the others. */
const MAX_PAGES = 4;

/**
 * Lets readers that go through the whole log side by side, in pages of the same size, read each page once. Where reading
 * is most of the work, this halves it. For work that ends: a page is not read again when the log has grown.
 */
export function shareLogReads(store: EventStore): EventStore {
  const pages = new Map<string, Promise<StoredEvent[]>>();
  const readAll = (after: Position, limit: number): Promise<StoredEvent[]> => {
    const name = `${formatPosition(after)} ${limit}`;
    const existing = pages.get(name);
    if (existing) return existing;
    const page = store.readAll(after, limit);
    pages.set(name, page);
    // It is tried again.
    page.catch(() => pages.delete(name));
    const [oldest] = pages.keys();
    if (pages.size > MAX_PAGES && oldest !== undefined) pages.delete(oldest);
    return page;
  };
  return Object.assign(Object.create(store) as EventStore, { readAll });
}
