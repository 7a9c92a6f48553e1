import type { CommandContext, DomainEvent, RecordedEvent } from '#platform/kernel/aggregate.js';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import type { Cap, Claim, Erasure, SideEffect } from '../port/event-store.js';
import type { LoadedReadModel, ReadModel } from '../read-models/read-models.js';

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
  events: NoInfer<E>[],
): NewStream {
  return { readModel: readModel as unknown as NewStream['readModel'], id, events };
}

export type Decision<E> = {
  /** Empty when nothing has to change; then nothing is written. */
  events: E[];
  /** When they happened, if not now. */
  occurredAt?: Date | undefined;
  claims?: Claim[];
  releases?: Claim[];
  newStreams?: NewStream[];
  cap?: Cap;
  erasures?: Erasure[];
  sideEffects?: SideEffect[];
};

export type CommandPlan<S extends { accountId: number }, E extends DomainEvent, I, R> = {
  readModel: ReadModel<S, E>;
  id: number;
  /** Whether the command creates the stream. It fails when the stream exists; `withNewId` then tries another id. */
  isNew?: boolean;
  context: CommandContext;
  /** Whether the command is decided even when the person was erased. Any other command is refused then. */
  evenErased?: boolean;
  /**
   * Loads what the decision needs from outside, before it and again before every retry. Never from the command's own
   * stream: what commands before it in its group have decided is only in the state.
   */
  load?: (loaded: LoadedReadModel<S> | undefined) => Awaitable<I>;
  /**
   * Decides. Writes nothing but, in some commands, what they hand to their own error handling, such as the claims that they
   * tried. Runs again before every retry. Throws a kernel error to refuse. `now` becomes the recorded time of the events.
   */
  decide: (state: S | undefined, inputs: I, now: Date) => E[] | Decision<E>;
  /** Builds the response to the caller without side effects, before the commit, so that nothing can fail after it. */
  respond: (handled: HandledCommand<S, E, I>) => R;
};

export type HandledCommand<S, E extends DomainEvent, I> = {
  state: S;
  events: RecordedEvent<E>[];
  inputs: I;
  now: Date;
  /** Finds the state of a stream that was created in the same commit. */
  findNewState: <T extends { accountId: number }, F extends DomainEvent>(
    readModel: ReadModel<T, F>,
  ) => T | undefined;
};
