import type { DomainEvent, RecordedEvent, Upcast } from '#platform/kernel/aggregate.js';
import type { UnpositionedEvent } from './event-store.js';

/** The part of an aggregate that the codec needs. */
export type EventShapes = {
  readonly events: { readonly [type: string]: { readonly upcasts?: readonly Upcast[] } };
};

/** Reports an event that a newer version of Inkpad wrote, and that only that version can read. */
export class NewerEventError extends Error {
  /** What the message says after the name of the stream. */
  readonly problem: string;

  constructor({ id, stream, type, version }: UnpositionedEvent, knownVersion: number) {
    const problem = `event ${id} is a ${type} of version ${version}, and this program knows only version ${knownVersion}: upgrade it`;
    super(`${stream}: ${problem}`);
    this.problem = problem;
  }
}

/** Finds the error that `toRecorded` would throw. */
export function findNewerEventError(
  aggregate: EventShapes,
  event: UnpositionedEvent,
): NewerEventError | undefined {
  const knownVersion = getCurrentVersion(aggregate, event.type);
  return event.version > knownVersion ? new NewerEventError(event, knownVersion) : undefined;
}

/** Returns the version in which events of a type are written: one more than there are upcasts (ADR-0039). */
export function getCurrentVersion(aggregate: EventShapes, type: string): number {
  return getUpcasts(aggregate, type).length + 1;
}

/**
 * Converts a stored event to what projections and renderers read: the shape that its type has now, whichever version
 * wrote it. Hashes cover what was stored, so they are computed without this.
 * @param event with personal data decrypted
 * @throws NewerEventError
 */
export function toRecorded<E extends DomainEvent>(
  aggregate: EventShapes,
  event: UnpositionedEvent,
): RecordedEvent<E> {
  const { id, type, version, meta } = event;
  const error = findNewerEventError(aggregate, event);
  if (error) throw error;
  let data: object = event.data;
  for (const step of getUpcasts(aggregate, type).slice(version - 1))
    data = (step as (data: object) => object)(data);
  return { id, type, data, meta } as unknown as RecordedEvent<E>;
}

function getUpcasts({ events }: EventShapes, type: string): readonly Upcast[] {
  return (Object.hasOwn(events, type) && events[type]?.upcasts) || [];
}
