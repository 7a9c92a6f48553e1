import type { StoredEvent } from '#event-store/event-store.js';
import type { PublicEvent } from './public-events.js';

/** @property customerId whose key the body is sealed with; NOBODY when it is not about a customer */
export type RenderedEvent = { event: PublicEvent; customerId: number };

/** Injection token: the renderers of all aggregates with public events. */
export const RENDERERS = Symbol('event renderers');

/**
 * Makes what receivers get of events.
 * @param events of one aggregate, in the order of the log, decrypted
 * @param isErased whether a customer is to be shown without anything personal. What was read, joined or kept of them may
 *   be from before.
 * @returns by event id
 */
export type Render = (
  events: StoredEvent[],
  isErased: (customerId: number) => boolean,
) => Promise<Map<string, RenderedEvent>>;

/** How the events of one aggregate are shown to receivers. */
export type EventRenderer = {
  /** Its streams are named `<aggregate>-<id>`. */
  readonly aggregate: string;
  /** Whether rendering may have to wait until others have finished what the event is part of. */
  readonly mayHaveToWait: (event: StoredEvent) => boolean;
  /**
   * Reads what can be read before the events are decrypted, and with it the keys that they are decrypted with.
   * @param events that are to be rendered, as stored
   */
  readonly prepare: (events: StoredEvent[]) => Promise<Render>;
};

/** Tells whether the event is of the renderer's aggregate. */
export function belongsTo({ aggregate }: EventRenderer, { stream }: StoredEvent): boolean {
  return stream.startsWith(`${aggregate}-`);
}

/** @throws an Error that says what is missing */
export function getDefined<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`${name} is missing`);
  return value;
}
