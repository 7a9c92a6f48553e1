import type { StoredEvent } from '#event-store/event-store.js';
import type { PublicEvent } from './public-events.js';

/** @property customerId whose key the body is sealed with; NOBODY where it is about no person */
export type Rendered = { event: PublicEvent; customerId: number };

/** How the events of one aggregate are shown to receivers. */
export type EventRenderer = {
  /** Its streams are called `<aggregate>-<id>`. */
  readonly aggregate: string;
  /** @param events of this aggregate, in the order of the log, opened. @returns by event id */
  render: (events: StoredEvent[]) => Promise<Map<string, Rendered>>;
};

/** @throws Error that says what is missing */
export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is not there`);
  return value;
}
