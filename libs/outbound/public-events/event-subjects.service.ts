import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { parseStreamName, type DomainEvent } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { toStreamName, type ReadModel } from '#platform/event-store/read-models/read-models.js';
import { card } from '#loyalty/cards/card.js';
import { reward } from '#loyalty/rewards/reward.js';
import { posterReadModel } from '#loyalty/posters/poster.entity.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { getEventLocationId, type EventSubject, type SubjectFilter } from './event-subject.js';

/** Finds what events are about. Those of a customer card, a reward or a poster do not name its card. */
@Injectable()
export class EventSubjects {
  constructor(private readonly pool: Pool) {}

  /** Finds the subjects of events, by event id. Reads cards only if a filter is about them. */
  async find(
    events: StoredEvent[],
    filters: Pick<SubjectFilter, 'cardIds'>[],
  ): Promise<Map<string, EventSubject>> {
    const isLimited = filters.some(({ cardIds }) => cardIds !== null);
    const cards = isLimited ? await this.findCards(events) : new Map<string, number>();
    return new Map(
      events.map((event) => [
        event.id,
        { cardId: cards.get(event.stream) ?? null, locationId: getEventLocationId(event) },
      ]),
    );
  }

  /** Lists the cards and locations of a filter that are not the store's. */
  async findForeign(
    accountId: number,
    { cardIds, locationIds }: SubjectFilter,
  ): Promise<SubjectFilter> {
    const [cards, locations] = await Promise.all([
      this.readOwn(
        'select id from cards where account_id = $1 and id = any ($2)',
        accountId,
        cardIds,
      ),
      this.readOwn(
        `select id from locations
         where account_id = $1 and id = any ($2) and deleted_at is null`,
        accountId,
        locationIds,
      ),
    ]);
    return {
      cardIds: cardIds?.filter((id) => !cards.has(id)) ?? null,
      locationIds: locationIds?.filter((id) => !locations.has(id)) ?? null,
    };
  }

  /** Finds the cards that events are about, by stream. */
  private async findCards(events: StoredEvent[]): Promise<Map<string, number>> {
    const streams = [...new Set(events.map(({ stream }) => stream))];
    const groups = await Promise.all([
      this.findCardsOf(customerCardReadModel, streams),
      this.findCardsOf(reward, streams),
      this.findCardsOf(posterReadModel, streams),
    ]);
    const own = listIds(card.name, streams).map((id) => [toStreamName(card, id), id] as const);
    return new Map([...own, ...groups.flat()]);
  }

  private async findCardsOf<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    streams: string[],
  ): Promise<[stream: string, cardId: number][]> {
    const { name, table } = readModel;
    const ids = listIds(name, streams);
    if (ids.length === 0) return [];
    const rows = await query<{ id: number; card_id: number }>(this.pool, {
      name: `webhook_event_cards_of_${table}`,
      text: `select id, card_id from ${table} where id = any ($1)`,
      values: [ids],
    });
    return rows.map(({ id, card_id }) => [toStreamName(readModel, id), card_id]);
  }

  private async readOwn(
    text: string,
    accountId: number,
    ids: number[] | null,
  ): Promise<Set<number>> {
    if (ids === null) return new Set();
    const rows = await query<{ id: number }>(this.pool, { text, values: [accountId, ids] });
    return new Set(rows.map(({ id }) => id));
  }
}

/** Lists the ids of the streams of one aggregate. */
function listIds(aggregateName: string, streams: string[]): number[] {
  return streams
    .map(parseStreamName)
    .flatMap(({ aggregate, id }) => (aggregate === aggregateName ? [id] : []));
}
