import type { Aggregate, DomainEvent, RecordedEvent } from '#platform/kernel/aggregate.js';
import { toRecorded } from '../port/codec.js';
import type { EventStore, Head, StoredEvent, UnpositionedEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';

/** The state of a record after the event of a revision. */
export type Snapshot<S> = { state: S; revision: number };

/** From which state to go on, and up to which revision (inclusive); by default the whole stream. */
export type FoldRange<S> = { from?: Snapshot<S> | undefined; to?: number };

/** An event as it is stored, and with its personal data decrypted. */
export type OpenedEvent<E = StoredEvent> = { stored: E; opened: E };

/**
 * Reads a stream and applies its events.
 * @returns undefined when the stream has no event in the range, although the state before it is known
 */
export async function foldStream<S extends { accountId: number }, E extends DomainEvent>(
  eventStore: Pick<EventStore, 'readPages'>,
  keys: Pick<PersonalKeys, 'openEvents'>,
  aggregate: Aggregate<S, E>,
  stream: string,
  { from, to }: FoldRange<S> = {},
): Promise<{ state: S; head: Head } | undefined> {
  let state = from?.state;
  let head: Head | undefined;
  const range = { from: from ? from.revision + 1 : 0, ...(to !== undefined && { to }) };
  for await (const page of eventStore.readPages(stream, range)) {
    for (const { opened } of await openPage(keys, page)) {
      ({ state } = foldEvent(aggregate, state, opened));
      head = { revision: opened.revision, hash: opened.hash };
    }
  }
  return state && head && { state, head };
}

/** Decrypts a page of events that are to be applied. */
export async function openPage<E extends UnpositionedEvent>(
  keys: Pick<PersonalKeys, 'openEvents'>,
  page: E[],
  open = (events: E[]): Promise<E[]> => keys.openEvents(events),
): Promise<OpenedEvent<E>[]> {
  const openedEvents = await open(page);
  return page.map((stored, i) => {
    const opened = openedEvents[i];
    if (!opened) throw new Error('decryption must return every event');
    return { stored, opened };
  });
}

/** Upcasts a decrypted event and applies it to the state before it. */
export function foldEvent<S extends { accountId: number }, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  before: S | undefined,
  opened: UnpositionedEvent,
): { event: RecordedEvent<E>; state: S } {
  const event = toRecorded<E>(aggregate, opened);
  return { event, state: aggregate.evolve(before, event) };
}
