import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import type { PublicEvent } from './public-events.js';

export const INITIAL_BATCH_SIZE = 32;
/** Rendering more at once would block the process for too long. */
const MAX_BATCH_SIZE = 250;
const MAX_BATCH_BYTES = 1024 * 1024;

/** @property customerId the customer whose key seals the body; NOBODY when it is not about a customer */
export type RenderedEvent = { event: PublicEvent; customerId: number };

/** Injection token: the renderers of all aggregates with public events. */
export const RENDERERS = Symbol('event renderers');

/**
 * Renders events for receivers.
 * @param events of one aggregate, in the order of the log, decrypted
 * @param isErased whether to render a customer without personal data. Data that was read or cached may be older than
 *   the erasure.
 * @returns by event id
 */
export type Render = (
  events: StoredEvent[],
  isErased: (customerId: number) => boolean,
) => Promise<Map<string, RenderedEvent>>;

/** Renders the events of one aggregate. */
export type EventRenderer = {
  /** Its streams are named `<aggregate>-<id>`. */
  readonly aggregate: string;
  /**
   * Tells whether rendering may take long: it waits until an operation of several streams is finished, or counts records.
   * Such an event is not rendered ahead, because nothing of any store is enqueued meanwhile.
   */
  readonly mayTakeLong: (event: StoredEvent) => boolean;
  /**
   * Reads everything that can be read before the events are decrypted, including their keys.
   * @param events to render, as stored
   */
  readonly prepare: (events: StoredEvent[]) => Promise<Render>;
};

/** Tells whether the event is of the renderer's aggregate. */
export function belongsTo({ aggregate }: EventRenderer, { stream }: StoredEvent): boolean {
  return stream.startsWith(`${aggregate}-`);
}

/** Returns the value. @throws Error with the name when it is missing */
export function getDefined<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`${name} is missing`);
  return value;
}

/** Chooses how many events to render at once, by the sizes of the bodies that were rendered before. */
export function chooseBatchSize(bodies: unknown[]): number {
  const sizes = bodies.map((body) => (Buffer.isBuffer(body) ? body.length : 0));
  const average = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  const count = Math.floor(MAX_BATCH_BYTES / Math.max(1, average));
  return Math.max(1, Math.min(MAX_BATCH_SIZE, count));
}
