import type { CommandContext, DomainEvent, EventMeta, Recorded } from '#kernel/aggregate.js';
import { RejectedError } from '#kernel/errors.js';
import { newId } from '#kernel/randomness.js';
import { versionOf } from '../port/codec.js';
import type { Start } from './command-plan.js';
import type { JsonObject, NewEvent, RowWrite } from '../port/event-store.js';

/** Others have to parse, fold and render every event; and EventStoreDB takes at most 1 MiB per append. */
const MOST_BYTES = 256 * 1024;
/** For commands that are committed together. */
export const MOST_BYTES_TOGETHER = 3 * MOST_BYTES;

/** Names each field: what else a context has, such as an IP address, must not get into the history. */
export function metaOf(
  { accountId, actor, channel, requestId }: CommandContext,
  now: Date,
  occurredAt = now,
): EventMeta {
  return {
    accountId,
    actor,
    channel,
    requestId,
    occurredAt: occurredAt.toISOString(),
    recordedAt: now.toISOString(),
  };
}

/** The facts that a decision becomes, and the state after them. */
export function foldOn(
  { aggregate }: Start['rows'],
  from: { accountId: number } | undefined,
  events: DomainEvent[],
  meta: EventMeta,
  idOf: (event: DomainEvent) => string = newId,
): { state: { accountId: number } | undefined; recorded: Recorded<DomainEvent>[] } {
  let state = from;
  const recorded = events.map((event) => {
    const fact = { ...event, id: idOf(event), meta };
    state = aggregate.evolve(state, fact);
    return fact;
  });
  return { state, recorded };
}

export function rowOf(
  { rows, id }: Pick<Start, 'rows' | 'id'>,
  state: { accountId: number },
): RowWrite {
  const shows = rows.shows?.(state) ?? null;
  return {
    table: rows.table,
    id,
    foldVersion: rows.aggregate.foldVersion,
    state,
    ...(shows !== null && { shows }),
  };
}

export function newEvent(
  { aggregate }: Start['rows'],
  { id, type, data, meta }: Recorded<DomainEvent>,
): NewEvent {
  return { id, type, version: versionOf(aggregate, type), data: data as JsonObject, meta };
}

/** @throws RejectedError when one command would write more than MOST_BYTES */
export function boundedBytes(events: NewEvent[]): number {
  const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0);
  if (bytes <= MOST_BYTES) return bytes;
  throw new RejectedError(
    { base: ['This would write more than 256 KiB to the history at once'] },
    'validation_failed',
    'Do less in one request. Descriptions stand in the history as well: shorten these.',
  );
}
