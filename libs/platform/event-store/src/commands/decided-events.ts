import type { CommandContext, DomainEvent, EventMeta, RecordedEvent } from '#kernel/aggregate.js';
import { getNow } from '#kernel/clock.js';
import { RejectedError } from '#kernel/errors.js';
import { createId } from '#kernel/randomness.js';
import { getCurrentVersion } from '../port/codec.js';
import type { NewStream } from './command-plan.js';
import type { JsonObject, NewEvent, ReadModelWrite } from '../port/event-store.js';

/**
 * The maximum size of a command's events. Everything that reads an event parses, projects and renders it, and
 * EventStoreDB accepts at most 1 MiB per append.
 */
const MAX_COMMAND_BYTES = 256 * 1024;
/** The maximum size of the events of commands that are committed together. */
export const MAX_COMMIT_BYTES = 3 * MAX_COMMAND_BYTES;

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
 * address, gets into the history.
 */
export function createMeta(
  { accountId, actor, channel, requestId, causationId }: CommandContext,
  now: Date,
  occurredAt = now,
): EventMeta {
  return {
    accountId,
    actor,
    channel,
    requestId,
    commandId: createId(),
    ...(causationId !== undefined && { causationId }),
    occurredAt: occurredAt.toISOString(),
    recordedAt: now.toISOString(),
  };
}

/** Projects a decision: returns its events as they are recorded, and the state after them. */
export function project(
  { aggregate }: NewStream['readModel'],
  from: { accountId: number } | undefined,
  events: DomainEvent[],
  meta: EventMeta,
  getId: (event: DomainEvent) => string = createId,
): { state: { accountId: number } | undefined; recorded: RecordedEvent<DomainEvent>[] } {
  let state = from;
  const recorded = events.map((event) => {
    const fact = { ...event, id: getId(event), meta };
    state = aggregate.evolve(state, fact);
    return fact;
  });
  return { state, recorded };
}

export function toReadModelWrite(
  { readModel, id }: Pick<NewStream, 'readModel' | 'id'>,
  state: { accountId: number },
): ReadModelWrite {
  const subjectId = readModel.findSubjectId?.(state) ?? null;
  return {
    table: readModel.table,
    id,
    projectionVersion: readModel.aggregate.projectionVersion,
    state,
    ...(subjectId !== null && { subjectId }),
  };
}

export function toNewEvent(
  { aggregate }: NewStream['readModel'],
  { id, type, data, meta }: RecordedEvent<DomainEvent>,
): NewEvent {
  return { id, type, version: getCurrentVersion(aggregate, type), data: data as JsonObject, meta };
}

/**
 * Returns the size of events in bytes.
 * @throws RejectedError when one command would write more than MAX_COMMAND_BYTES
 */
export function getBoundedBytes(events: NewEvent[]): number {
  const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0);
  if (bytes <= MAX_COMMAND_BYTES) return bytes;
  throw new RejectedError(
    { base: ['This would write more than 256 KiB to the history at once'] },
    'validation_failed',
    'Do less in one request. Descriptions stand in the history as well: shorten these.',
  );
}
