import type { AsyncResource } from 'node:async_hooks';
import type { Context } from '@opentelemetry/api';
import type {
  CommandContext,
  DomainEvent,
  EventMeta,
  RecordedEvent,
} from '#platform/kernel/aggregate.js';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import type { DatabaseWait } from '#platform/database/database-waits.js';
import { IdTakenError } from '#platform/database/ids.js';
import { sortNames } from '../port/canonical-json.js';
import { getCurrentVersion } from '../port/codec.js';
import type {
  Commit,
  EventStore,
  JsonObject,
  NewEvent,
  ReadModelWrite,
  SealedResponse,
  Write,
} from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';
import {
  toStreamName,
  type AnyReadModel,
  type LoadedReadModel,
} from '../read-models/read-models.js';
import type { CommandPlan } from './command-plan.js';
import type { Waiting } from './lane.js';
import type { StoredResponses } from './stored-responses.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';

/**
 * The maximum size of a command's events. Everything that reads an event parses, projects and renders it, and
 * EventStoreDB accepts at most 1 MiB per append.
 */
const MAX_COMMAND_BYTES = 256 * 1024;
/** The maximum size of the events of commands that are committed together. */
export const MAX_COMMIT_BYTES = 3 * MAX_COMMAND_BYTES;

type State = { accountId: number };
type WriteWithRow = Write & { row: ReadModelWrite };

/** A command that waits to be decided or committed. @property trace of its request */
export type PendingCommand = Waiting & {
  command: CommandPlan<State, DomainEvent, unknown, unknown>;
  trace: Context;
  wait: DatabaseWait | undefined;
  /** The asynchronous context of its caller. */
  caller: AsyncResource;
  resolve: (response: unknown) => void;
};

/** The parts of a commit besides its writes and responses. */
export type CommitExtras = Pick<Commit, 'claims' | 'releases' | 'cap' | 'erasures' | 'sideEffects'>;

/** What a command writes. @property bytes the size of all its events as JSON */
type DecidedWrites = {
  state: State;
  own: Write;
  created: Write[];
  extras: CommitExtras;
  storedResponse: SealedResponse | undefined;
  bytes: number;
};

/**
 * The result of a decision. Without writes, the command was refused or nothing had to change.
 * @property isAlone the command must not share its commit with others
 */
export type DecidedCommand = {
  pending: PendingCommand;
  isAlone: boolean;
  writes?: DecidedWrites;
} & ({ response: unknown } | { error: unknown });

/**
 * The state that a decision is based on.
 * @property isRetry another process won the race before
 * @property heldKeys keys by person whose change would make the commit a conflict
 */
export type LoadedState = {
  loaded: LoadedReadModel<State> | undefined;
  state: State | undefined;
  head: Write['expected'];
  isRetry: boolean;
  heldKeys: Map<number, PersonalKey> | undefined;
};

const NONE: never[] = [];

/** A decision whose events and response are not sealed yet. */
type Draft = Omit<DecidedWrites, 'bytes' | 'storedResponse'> & {
  pending: PendingCommand;
  response: unknown;
};

/** Decides single commands, at once while everything that they need is cached. The caller commits the results. */
export class CommandDecider {
  constructor(
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
  ) {}

  /** Decides one command on a state. Does not throw: an error is for the command's own caller. */
  decide(pending: PendingCommand, on: LoadedState): Awaitable<DecidedCommand> {
    try {
      const { readModel, id, isNew, load, context } = pending.command;
      const { loaded, state, head } = on;
      const { keyed, accountId } = context;
      if (state && isNew) throw new IdTakenError(readModel.table, id);
      if (state && state.accountId !== accountId) throw new NotFoundError('Record');
      if (keyed) keyed.subjectId = loaded?.subjectId ?? keyed.subjectId;
      const current = loaded && state && { ...loaded, state, head: head ?? loaded.head };
      const inputs = load?.(current);
      const decided =
        inputs instanceof Promise
          ? inputs.then((values) => this.decideOn(pending, on, values))
          : this.decideOn(pending, on, inputs);
      if (!(decided instanceof Promise)) return decided;
      return decided.catch((error: unknown) => ({ pending, isAlone: false, error }));
    } catch (error) {
      return { pending, isAlone: false, error };
    }
  }

  private decideOn(
    pending: PendingCommand,
    { loaded, state, isRetry, heldKeys, head }: LoadedState,
    inputs: unknown,
  ): Awaitable<DecidedCommand> {
    const { command } = pending;
    if (loaded?.isErased && !command.evenErased) throw this.keys.subjects.createErasedError();
    const now = getDecisionTime([state]);
    const decision = command.decide(state, inputs, now);
    const { events, occurredAt, newStreams, ...extras } = Array.isArray(decision)
      ? { events: decision }
      : decision;
    const meta = createMeta(command.context, now, occurredAt);
    const own = createWrite(command, { state, head }, events, meta);
    const created = (newStreams ?? NONE).map((stream) =>
      createWrite(stream, { state: undefined, head: null }, stream.events, meta),
    );
    const response = command.respond({
      state: own.state,
      events: own.recorded,
      inputs,
      now,
      findNewState: <T>({ table }: { table: string }) =>
        created.find(({ write }) => write.row.table === table)?.state as T | undefined,
    });
    const draft = {
      pending,
      state: own.state,
      own: own.write,
      created: created.map(({ write }) => write),
      extras,
      response,
    };
    if (!isRetry || !(command.isNew || newStreams)) return this.seal(draft, heldKeys);
    const streams = command.isNew ? [command, ...(newStreams ?? [])] : (newStreams ?? []);
    return this.assertNoneExists(streams).then(() => this.seal(draft, heldKeys));
  }

  private seal(draft: Draft, heldKeys: LoadedState['heldKeys']): Awaitable<DecidedCommand> {
    const events =
      draft.created.length > 0
        ? this.sealAll(draft)
        : this.keys.sealEvents(draft.own.events, heldKeys);
    return events instanceof Promise
      ? events.then((sealed) => this.sealResponse(draft, sealed, heldKeys))
      : this.sealResponse(draft, events, heldKeys);
  }

  /** Seals the events of new streams as well. */
  private async sealAll({ own, created }: Draft): Promise<NewEvent[]> {
    for (const write of created) write.events = await this.keys.sealEvents(write.events);
    return this.keys.sealEvents(own.events);
  }

  /** Seals the response for a repetition of the request, if it can be repeated. */
  private sealResponse(
    draft: Draft,
    events: NewEvent[],
    heldKeys: LoadedState['heldKeys'],
  ): Awaitable<DecidedCommand> {
    const { pending, own, response } = draft;
    own.events = events;
    const { keyed, dryRun } = pending.command.context;
    if (!keyed || dryRun || events.length === 0) return toDecidedCommand(draft, undefined);
    keyed.subjectId ??= this.keys.subjects.find(events);
    const sealing = this.responses.seal(keyed, own.stream, response, { heldKeys });
    return sealing instanceof Promise
      ? sealing.then((sealed) => toDecidedCommand(draft, sealed))
      : toDecidedCommand(draft, sealing);
  }

  /**
   * Refuses to create a stream that exists, on a shared server even one of somebody else. Otherwise it would lose every
   * race for its creation.
   */
  private async assertNoneExists(
    newStreams: { readModel: AnyReadModel; id: number }[],
  ): Promise<void> {
    await Promise.all(
      newStreams.map(async ({ readModel, id }) => {
        const stream = toStreamName(readModel, id);
        if (!(await this.eventStore.isUnused(stream))) throw new IdTakenError(readModel.table, id);
      }),
    );
  }
}

function toDecidedCommand(
  { pending, response, ...writes }: Draft,
  storedResponse: SealedResponse | undefined,
): DecidedCommand {
  const { own, created, extras } = writes;
  const { claims, releases, cap, erasures, sideEffects } = extras;
  const bytes = getBoundedBytes([own, ...created]);
  if (pending.command.context.dryRun) return { pending, response, isAlone: false };
  const isAlone =
    created.length > 0 ||
    cap !== undefined ||
    (claims?.length || releases?.length || erasures?.length || sideEffects?.length || 0) > 0;
  if (own.events.length > 0) {
    return { pending, response, isAlone, writes: { ...writes, storedResponse, bytes } };
  }
  if (isAlone) throw new Error('claims and new streams need an event that causes them');
  return { pending, response, isAlone };
}

/**
 * Returns the time of a decision on these states. It is not before their last change, even when the clock of the
 * database has gone back since: `recorded_at` never falls along a stream (ADR-0098).
 */
export function getDecisionTime(states: Iterable<object | undefined>): Date {
  let now = getNow();
  for (const state of states) {
    if (state === undefined || !('updatedAt' in state)) continue;
    const updatedAt = new Date(String(state.updatedAt));
    if (updatedAt > now) now = updatedAt;
  }
  return now;
}

/**
 * Creates the metadata of a command's events. Names each field, so that nothing else of the context, such as an IP
 * address, gets into the history. In the order of their names, as they are hashed.
 */
export function createMeta(
  { accountId, actor, channel, requestId, causationId }: CommandContext,
  now: Date,
  occurredAt = now,
): EventMeta {
  const { id, name, type } = actor;
  return {
    accountId,
    actor: name === undefined ? { id, type } : { id, name, type },
    ...(causationId !== undefined && { causationId }),
    channel,
    commandId: createId(),
    occurredAt: occurredAt.toISOString(),
    recordedAt: now.toISOString(),
    requestId,
  };
}

/**
 * Creates the write of events to a stream.
 * @param before what they follow
 * @returns the write, not sealed, its events as they are recorded, and the state after them
 * @throws NotFoundError when there is none
 */
export function createWrite(
  { readModel, id }: { readModel: AnyReadModel; id: number },
  before: { state: State | undefined; head: Write['expected'] },
  events: DomainEvent[],
  meta: EventMeta,
  getId: (event: DomainEvent) => string = createId,
): { write: WriteWithRow; recorded: RecordedEvent<DomainEvent>[]; state: State } {
  const { table, projectionVersion } = readModel;
  let { state } = before;
  const recorded: RecordedEvent<DomainEvent>[] = [];
  const newEvents: NewEvent[] = [];
  for (const event of events) {
    const fact = { ...event, id: getId(event), meta };
    const { id: eventId, type } = fact;
    state = readModel.evolve(state, fact);
    recorded.push(fact);
    const version = getCurrentVersion(readModel, type);
    const data = sortNames(event.data as JsonObject);
    newEvents.push({ id: eventId, type, version, data, meta });
  }
  if (!state) throw new NotFoundError('Record');
  const subjectId = readModel.findSubjectId?.(state) ?? null;
  const row = { table, id, projectionVersion, state, ...(subjectId !== null && { subjectId }) };
  const stream = toStreamName(readModel, id);
  return { write: { stream, expected: before.head, events: newEvents, row }, recorded, state };
}

/**
 * Returns the size of the events of a command in bytes.
 * @throws RejectedError when it would write more than MAX_COMMAND_BYTES
 */
export function getBoundedBytes(writes: Write[]): number {
  let bytes = 0;
  for (const { events } of writes) {
    for (const event of events) bytes += Buffer.byteLength(JSON.stringify(event));
  }
  if (bytes <= MAX_COMMAND_BYTES) return bytes;
  throw new RejectedError(
    { base: [PLATFORM_ISSUES.command_too_large] },
    'validation_failed',
    'Do less in one request. Descriptions stand in the history as well: shorten these.',
  );
}
