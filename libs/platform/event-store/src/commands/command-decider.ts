import type { DomainEvent, EventMeta, KeyedRequest } from '#kernel/aggregate.js';
import { NotFoundError } from '#kernel/errors.js';
import type { Context } from '#kernel/tracing.js';
import { IdTakenError } from '#database/ids.js';
import type { Commit, EventStore, NewEvent, SealedResponse, Write } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';
import { toStreamName, type LoadedReadModel } from '../read-models/read-models.js';
import type { CommandPlan, NewStream } from './command-plan.js';
import {
  createMeta,
  getBoundedBytes,
  getDecisionTime,
  project,
  toNewEvent,
  toReadModelWrite,
} from './decided-events.js';
import type { StoredResponses } from './stored-responses.js';

/** A command that waits for its turn or its commit. */
export type PendingCommand = {
  command: CommandPlan<{ accountId: number }, DomainEvent, unknown, unknown>;
  since: number;
  /** The trace of the request. */
  trace: Context;
  resolve: (response: unknown) => void;
  reject: (error: unknown) => void;
};

/** The parts of a commit besides its writes and responses. */
export type CommitExtras = Pick<Commit, 'claims' | 'releases' | 'cap' | 'erasures' | 'sideEffects'>;

/** The writes that a decision leads to. */
export type DecidedWrites = {
  state: { accountId: number };
  events: NewEvent[];
  newStreams: Write[];
  extras: CommitExtras;
  response: SealedResponse | undefined;
  /** The size of all its events as JSON. */
  bytes: number;
};

/**
 * The result of a decision. Without writes, the command was refused or nothing had to change.
 * @property respond settles the caller's promise, once the commit is done
 * @property isAlone the command must not share its commit with others
 */
export type DecidedCommand = { respond: () => void; isAlone: boolean; writes?: DecidedWrites };

/**
 * The state that a decision is based on.
 * @property isFresh the stream itself was read, not only its read model
 * @property heldKeys keys by person whose change would make the commit a conflict
 */
export type LoadedState = {
  loaded: LoadedReadModel<{ accountId: number }> | undefined;
  state: { accountId: number } | undefined;
  isFresh: boolean;
  heldKeys: Map<number, PersonalKey> | undefined;
};

/** Decides single commands. The caller commits the results. */
export class CommandDecider {
  constructor(
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
  ) {}

  /** Decides one command on a state. Rejects only the command's own caller when that fails. */
  async decide(pending: PendingCommand, basis: LoadedState): Promise<DecidedCommand> {
    try {
      return await this.decideOrThrow(pending, basis);
    } catch (error) {
      return { respond: () => pending.reject(error), isAlone: false };
    }
  }

  private async decideOrThrow(
    pending: PendingCommand,
    { loaded, state, isFresh, heldKeys }: LoadedState,
  ): Promise<DecidedCommand> {
    const { command } = pending;
    const { keyed, accountId } = command.context;
    if (state && command.isNew) throw new IdTakenError(command.readModel.table, command.id);
    if (state && state.accountId !== accountId) throw new NotFoundError('Record');
    if (keyed) keyed.subjectId = loaded?.subjectId ?? keyed.subjectId;

    const inputs = await command.load?.(loaded && state ? { ...loaded, state } : undefined);
    if (loaded?.isErased && !command.evenErased) throw this.keys.subjects.createErasedError();

    const now = getDecisionTime([state]);
    const result = command.decide(state, inputs, now);
    const decision = Array.isArray(result) ? { events: result } : result;
    const { events: decidedEvents, occurredAt, newStreams = [], ...extras } = decision;

    const meta = createMeta(command.context, now, occurredAt);
    const projected = project(command.readModel, state, decidedEvents, meta);
    if (!projected.state) throw new NotFoundError('Record');
    if (isFresh || this.eventStore.readModelsMayLag) {
      await this.assertNoneExists(command.isNew ? [command, ...newStreams] : newStreams);
    }
    const created = createStreams(newStreams, meta);

    const response = command.respond({
      state: projected.state,
      events: projected.recorded,
      inputs,
      now,
      findNewState: <T>({ table }: { table: string }) => created.states.get(table) as T | undefined,
    });
    const events = await this.keys.sealEvents(
      projected.recorded.map((event) => toNewEvent(command.readModel, event)),
      heldKeys,
    );
    for (const write of created.writes) write.events = await this.keys.sealEvents(write.events);
    const bytes = getBoundedBytes([...events, ...created.writes.flatMap((write) => write.events)]);
    const isRepeatable = keyed && events.length > 0 && !command.context.dryRun;
    return toDecidedCommand(pending, response, {
      state: projected.state,
      events,
      newStreams: created.writes,
      extras,
      bytes,
      response: isRepeatable
        ? await this.sealResponse(pending, keyed, { events, response })
        : undefined,
    });
  }

  /** Seals the response for a repetition of the request. */
  private sealResponse(
    { command: { readModel, id } }: PendingCommand,
    keyed: KeyedRequest,
    { events, response }: { events: NewEvent[]; response: unknown },
  ): Promise<SealedResponse> {
    keyed.subjectId ??= this.keys.subjects.find(events);
    return this.responses.seal(keyed, toStreamName(readModel.aggregate, id), response);
  }

  /**
   * Refuses to create a stream that exists, on a shared server even one of somebody else. Otherwise it would lose every
   * race for its creation, and where read models may lag, that would only be noticed after another part of the commit was
   * written.
   */
  private async assertNoneExists(newStreams: Pick<NewStream, 'readModel' | 'id'>[]): Promise<void> {
    await Promise.all(
      newStreams.map(async ({ readModel, id }) => {
        const stream = toStreamName(readModel.aggregate, id);
        if (!(await this.eventStore.isUnused(stream))) throw new IdTakenError(readModel.table, id);
      }),
    );
  }
}

/** Creates the writes of new streams, and their states by table. */
function createStreams(
  newStreams: NewStream[],
  meta: EventMeta,
): { writes: Write[]; states: Map<string, object> } {
  const writes: Write[] = [];
  const states = new Map<string, object>();
  for (const { readModel, id, events } of newStreams) {
    const { state, recorded } = project(readModel, undefined, events, meta);
    if (!state) throw new Error('a new stream needs an event');
    states.set(readModel.table, state);
    writes.push({
      stream: toStreamName(readModel.aggregate, id),
      expected: null,
      events: recorded.map((event) => toNewEvent(readModel, event)),
      row: toReadModelWrite({ readModel, id }, state),
    });
  }
  return { writes, states };
}

function toDecidedCommand(
  { command, resolve }: PendingCommand,
  response: unknown,
  writes: DecidedWrites,
): DecidedCommand {
  const { keyed, dryRun } = command.context;
  const respond = () => {
    if (keyed && writes.response) keyed.isStored = true;
    resolve(response);
  };
  if (dryRun) return { respond, isAlone: false };
  const isAlone = writes.newStreams.length > 0 || hasExtras(writes.extras);
  if (writes.events.length > 0) return { respond, isAlone, writes };
  if (isAlone) throw new Error('claims and new streams need an event that causes them');
  return { respond, isAlone };
}

function hasExtras({ cap, ...lists }: CommitExtras): boolean {
  return cap !== undefined || Object.values(lists).some((list) => list.length > 0);
}
