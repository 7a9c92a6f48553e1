import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { customerCardReadModel } from '#stamping/customer-card.entity.js';
import {
  findCustomerCardId,
  getEventLocationId,
  type EventSubject,
  type SubjectFilter,
} from './event-subject.js';

const FIND_CARDS = {
  name: 'webhook_event_cards',
  text: 'select id, card_id from customer_cards where id = any ($1)',
};

/** Finds what events are about. The events of a customer card do not name the card that it is one of. */
@Injectable()
export class EventSubjects {
  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
  ) {}

  /** Finds the subjects of events, by event id. Reads cards only if a filter is about them. */
  async find(
    events: StoredEvent[],
    filters: Pick<SubjectFilter, 'cardIds'>[],
  ): Promise<Map<string, EventSubject>> {
    const isLimited = filters.some(({ cardIds }) => cardIds !== null);
    const ids = isLimited ? events.flatMap((event) => findCustomerCardId(event) ?? []) : [];
    const cards = await this.findCards([...new Set(ids)]);
    return new Map(
      events.map((event) => {
        const cardId = cards.get(findCustomerCardId(event) ?? 0) ?? null;
        return [event.id, { cardId, locationId: getEventLocationId(event) }];
      }),
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

  private async findCards(ids: number[]): Promise<Map<number, number>> {
    if (ids.length === 0) return new Map();
    const cards = await this.readCards(ids);
    const missing = ids.filter((id) => !cards.has(id));
    if (missing.length === 0) return cards;
    await this.readModels.ensureWritten(customerCardReadModel, missing);
    return new Map([...cards, ...(await this.readCards(missing))]);
  }

  private async readCards(ids: number[]): Promise<Map<number, number>> {
    const rows = await query<{ id: number; card_id: number }>(this.pool, {
      ...FIND_CARDS,
      values: [ids],
    });
    return new Map(rows.map(({ id, card_id }) => [id, card_id]));
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
