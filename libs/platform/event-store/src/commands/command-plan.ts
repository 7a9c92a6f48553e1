import type { CommandContext, DomainEvent, Recorded } from '#kernel/aggregate.js';
import type { Cap, Claim, Erasure, SideEffect } from '../port/event-store.js';
import type { Loaded, ReadModel } from '../read-models/read-models.js';

/** A new stream that is created in the same commit. */
export type NewStream = {
  // Each new stream has an aggregate of its own; `startStream()` makes sure that the parts belong together.
  readModel: ReadModel<{ accountId: number }, DomainEvent>;
  id: number;
  events: DomainEvent[];
};

/** Ties the events of a new stream to its aggregate, so that the compiler checks the pair. */
export function startStream<S extends { accountId: number }, E extends DomainEvent>(
  readModel: ReadModel<S, E>,
  id: number,
  events: E[],
): NewStream {
  return { readModel: readModel as unknown as NewStream['readModel'], id, events };
}

export type Decision<E> = {
  /** Empty when nothing has to change; then nothing is written. */
  events: E[];
  claims?: Claim[];
  releases?: Claim[];
  newStreams?: NewStream[];
  cap?: Cap;
  erasures?: Erasure[];
  sideEffects?: SideEffect[];
};

export type CommandPlan<S extends { accountId: number }, E extends DomainEvent, G, A> = {
  readModel: ReadModel<S, E>;
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
  decide: (state: S | undefined, inputs: G, now: Date) => E[] | Decision<E>;
  /** Pure. The response to the caller, built before the commit so that nothing can fail after it. */
  respond: (handled: Handled<S, E, G>) => A;
};

export type Handled<S, E extends DomainEvent, G> = {
  state: S;
  events: Recorded<E>[];
  inputs: G;
  now: Date;
  /** The state of a stream that was created in the same commit. */
  findNewState: <T extends { accountId: number }, F extends DomainEvent>(
    readModel: ReadModel<T, F>,
  ) => T | undefined;
};
