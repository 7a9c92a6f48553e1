import { ConfigError } from '#platform/kernel/config-error.js';
import type { Head, NewEvent, StoredEvent } from './event-store.js';
import { hashEvent } from './hash-chain.js';

/** An engine to which a history is copied. It has the same events in the same order afterwards. */
export type HistoryWriter = {
  /**
   * Appends events as they were recorded, in this order. May have appended some of them, from the first on, if it fails.
   * @param heads the ends of their streams before, by name; null: the stream does not exist
   * @throws UnavailableError, ConflictError
   */
  append: (events: StoredEvent[], heads: Map<string, Head | null>) => Promise<void>;
};

/**
 * Checks that events continue their streams, and moves the heads of these forward. Checked before writing: an append
 * cannot be undone.
 * @returns the heads before
 * @throws ConfigError
 */
export function continueStreams(
  events: StoredEvent[],
  heads: Map<string, Head>,
): Map<string, Head | null> {
  const before = new Map<string, Head | null>();
  for (const event of events) {
    const { stream, revision, hash } = event;
    const head = heads.get(stream) ?? null;
    if (!before.has(stream)) before.set(stream, head);
    const next = head === null ? 0 : head.revision + 1;
    if (revision !== next || hashEvent(stream, head, toNewEvent(event)) !== hash) {
      throw new ConfigError(
        `${stream}: event ${revision} breaks the hash chain, or follows on one that is missing. Nothing was switched.`,
      );
    }
    heads.set(stream, { revision, hash });
  }
  return before;
}

function toNewEvent({ id, type, version, data, meta }: StoredEvent): NewEvent {
  return { id, type, version, data, meta };
}

/** What every engine accepts at once: EventStoreDB 1 MiB, and it counts slightly more per event than this does. */
const MAX_GROUP = { events: 500, bytes: 768 * 1024 };

type Sized = Pick<StoredEvent, 'stream' | 'type' | 'data' | 'meta'>;

/** Groups consecutive events of one stream, as many as fit into one append, for copying a history. */
export async function* groupAppends<E extends Sized>(
  events: AsyncIterable<E> | Iterable<E>,
): AsyncIterable<[E, ...E[]]> {
  let group: [E, ...E[]] | undefined;
  let bytes = 0;
  for await (const event of events) {
    const size =
      Buffer.byteLength(JSON.stringify([event.data, event.meta])) + 2 * event.type.length;
    const fits = group && group.length < MAX_GROUP.events && bytes + size <= MAX_GROUP.bytes;
    if (group && fits && group[0].stream === event.stream) {
      group.push(event);
      bytes += size;
    } else {
      if (group) yield group;
      group = [event];
      bytes = size;
    }
  }
  if (group) yield group;
}
