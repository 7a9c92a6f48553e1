import type { StoredEvent } from './event-store.js';

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
