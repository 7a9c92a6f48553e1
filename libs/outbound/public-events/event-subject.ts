import { parseStreamName } from '#platform/kernel/aggregate.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { card } from '#loyalty/cards/card.js';
import { location } from '#loyalty/locations/location.js';
import { poster } from '#loyalty/posters/poster.js';
import { reward } from '#loyalty/rewards/reward.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';

/** What an event is about, besides its customer. Null: no card, or no location. */
export type EventSubject = { cardId: number | null; locationId: number | null };

/** Limits a subscription to events about these, and about none. Null: no limit. */
export type SubjectFilter = { cardIds: number[] | null; locationIds: number[] | null };

/** Aggregates whose records belong to one card for good, which their events do not name, and the tables that name it. */
const CARD_TABLES = {
  [customerCard.name]: 'customer_cards',
  [reward.name]: 'rewards',
  [poster.name]: 'posters',
};

const LOCATION_STREAM_PREFIX = `${location.name}-`;

export function matchesSubject(
  { cardIds, locationIds }: SubjectFilter,
  { cardId, locationId }: EventSubject,
): boolean {
  return isAmong(cardId, cardIds) && isAmong(locationId, locationIds);
}

function isAmong(id: number | null, ids: number[] | null): boolean {
  return id === null || ids === null || ids.includes(id);
}

/**
 * Renders the same condition in SQL over `e`, a row of `webhook_events`. Each record is looked up by its id: PostgreSQL
 * may read those of all stores for an `exists`.
 * @param cardIds SQL of a nullable `bigint[]`, of a table that is not called `record`
 * @param locationIds the same
 */
export function renderSubjectCondition(cardIds: string, locationIds: string): string {
  const id = `split_part(e.stream, '-', 2)::bigint`;
  const lookups = Object.entries(CARD_TABLES).map(
    ([aggregate, table]) =>
      `when '${aggregate}' then (select record.card_id = any (${cardIds}) from ${table} record where record.id = ${id})`,
  );
  return `(${cardIds} is null or coalesce(case split_part(e.stream, '-', 1)
        when '${card.name}' then ${id} = any (${cardIds})
        ${lookups.join('\n        ')} end, true))
      and (${locationIds} is null or e.location_id is null or e.location_id = any (${locationIds}))`;
}

/** Returns the location that an event is about, or where it happened; null when that is not known. */
export function getEventLocationId({ stream, data: { locationId } }: StoredEvent): number | null {
  if (stream.startsWith(LOCATION_STREAM_PREFIX)) return parseStreamName(stream).id;
  return typeof locationId === 'number' ? locationId : null;
}
