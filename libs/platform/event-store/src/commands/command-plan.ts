import type { CommandContext, DomainEvent, Recorded } from '#kernel/aggregate.js';
import type { Cap, Claim, Erasure, SideEffect } from '../port/event-store.js';
import type { Loaded, RowTable } from '../read-models/read-models.js';

/** A new stream that is created in the same commit. */
export type Start = {
  // Each new stream has an aggregate of its own; `start()` makes sure that the parts belong together.
  rows: RowTable<{ accountId: number }, DomainEvent>;
  id: number;
  events: DomainEvent[];
};

/** Ties the events of a new stream to its aggregate, so that the compiler checks the pair. */
export function start<S extends { accountId: number }, E extends DomainEvent>(
  rows: RowTable<S, E>,
  id: number,
  events: E[],
): Start {
  return { rows: rows as unknown as Start['rows'], id, events };
}

export type Decision<E> = {
  /** Empty when nothing has to change; then nothing is written. */
  events: E[];
  claims?: Claim[];
  releases?: Claim[];
  starts?: Start[];
  cap?: Cap;
  erasures?: Erasure[];
  sideEffects?: SideEffect[];
};

export type CommandPlan<S extends { accountId: number }, E extends DomainEvent, G, A> = {
  rows: RowTable<S, E>;
  id: number;
  /** The command creates the stream, and fails when it already exists: `withNewId` then tries another id. */
  isNew?: boolean;
  context: CommandContext;
  /** When it happened, if that is not now. */
  occurredAt?: Date | undefined;
  /** The decision is also made when the person was erased; any other command is refused then. */
  evenErased?: boolean;
  /** What the decision needs from outside, fetched before it and again before every retry. */
  load: (loaded: Loaded<S> | undefined) => Promise<G>;
  /** Pure. Throws a kernel error to refuse. `now` becomes the recorded time of the events. */
  decide: (state: S | undefined, given: G, now: Date) => E[] | Decision<E>;
  /** Pure. The answer to the caller, made before the commit so that nothing can fail after it. */
  answer: (handled: Handled<S, E, G>) => A;
};

export type Handled<S, E extends DomainEvent, G> = {
  state: S;
  events: Recorded<E>[];
  given: G;
  now: Date;
  /** The state of a stream that was created in the same commit. */
  started: <T extends { accountId: number }, F extends DomainEvent>(
    rows: RowTable<T, F>,
  ) => T | undefined;
};
