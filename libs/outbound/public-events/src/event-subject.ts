import type { StoredEvent } from '#event-store/port/event-store.js';
import { customerCard } from '#stamping/customer-card.js';

/** What an event is about, besides its customer. Null: no card, or no location. */
export type EventSubject = { cardId: number | null; locationId: number | null };

/** Limits a subscription to events about these, and about none. Null: no limit. */
export type SubjectFilter = { cardIds: number[] | null; locationIds: number[] | null };

const CARD_STREAM_PREFIX = `${customerCard.name}-`;

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
 * Renders the same condition in SQL over `e`, a row of `webhook_events`. Each card is looked up by its id: PostgreSQL may
 * read the cards of all stores for an `exists`.
 * @param cardIds SQL of a nullable `bigint[]`
 * @param locationIds the same
 */
export function renderSubjectCondition(cardIds: string, locationIds: string): string {
  const id = `case when starts_with(e.stream, '${CARD_STREAM_PREFIX}')
        then substr(e.stream, ${CARD_STREAM_PREFIX.length + 1})::bigint end`;
  return `(${cardIds} is null or coalesce(
        (select c.card_id = any (${cardIds}) from customer_cards c where c.id = ${id}), true))
      and (${locationIds} is null or e.location_id is null or e.location_id = any (${locationIds}))`;
}

/** Returns the customer card that an event is about; undefined when it is about a customer. */
export function findCustomerCardId({ stream }: StoredEvent): number | undefined {
  return stream.startsWith(CARD_STREAM_PREFIX)
    ? Number(stream.slice(CARD_STREAM_PREFIX.length))
    : undefined;
}

/** Returns where an event happened; null when that is not known. */
export function getEventLocationId({ data: { locationId } }: StoredEvent): number | null {
  return typeof locationId === 'number' ? locationId : null;
}
