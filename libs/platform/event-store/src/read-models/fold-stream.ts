import type { Aggregate, DomainEvent, RecordedEvent } from '#kernel/aggregate.js';
import { toRecorded } from '../port/codec.js';
import type { EventStore, Head, StoredEvent, UnpositionedEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';

/** The state of a record after the event of a revision. */
export type Snapshot<S> = { state: S; revision: number };

/** An event as it is stored, and with its personal data decrypted. */
export type OpenedEvent<E = StoredEvent> = { stored: E; opened: E };

/**
 * Reads a stream and applies its events, up to a revision (inclusive) and to an earlier state, if they are given.
 * @returns undefined when there are none
 */
export async function foldStream<S extends { accountId: number }, E extends DomainEvent>(
  { eventStore, keys }: { eventStore: EventStore; keys: PersonalKeys },
  aggregate: Aggregate<S, E>,
  stream: string,
  { from, to }: { from?: Snapshot<S> | undefined; to?: number } = {},
): Promise<{ state: S; head: Head } | undefined> {
  let state = from?.state;
  let head: Head | undefined;
  const range = { from: from ? from.revision + 1 : 0, ...(to !== undefined && { to }) };
  for await (const page of eventStore.readPages(stream, range)) {
    for (const { opened } of await openPage(keys, page)) {
      state = foldEvent(aggregate, state, opened);
      head = { revision: opened.revision, hash: opened.hash };
    }
  }
  return state && head && { state, head };
}

/** Decrypts a page of events that are to be applied. @param how lazily, for states that read few personal parts */
export async function openPage<E extends UnpositionedEvent>(
  keys: PersonalKeys,
  page: E[],
  how: 'openEvents' | 'openEventsLazily' = 'openEvents',
): Promise<OpenedEvent<E>[]> {
  const openedEvents = await keys[how](page);
  return page.map((stored, i) => {
    const opened = openedEvents[i];
    if (!opened) throw new Error('decryption must return every event');
    return { stored, opened };
  });
}

/**
 * Upcasts a decrypted event and applies it to the state before it.
 * @param onEvent receives the upcast event first
 */
export function foldEvent<S extends { accountId: number }, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  before: S | undefined,
  opened: UnpositionedEvent,
  onEvent?: (event: RecordedEvent<E>) => void,
): S {
  const event = toRecorded<E>(aggregate, opened);
  onEvent?.(event);
  return aggregate.evolve(before, event);
}
