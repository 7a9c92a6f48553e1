import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { ask, asked } from '#database/connection.js';
import type { Past } from './as-of.service.js';
import { checkpointOf } from './checkpoint.js';
import { BEGINNING, EventStore, type Position, type StoredEvent } from './event-store.js';
import { formatPosition, isAfter, parsePosition } from './position.js';

const BATCH = 500;
const MOST_BATCHES = 50;

/** The history's last entry at or before a position, and how far the history goes. */
const PLACE = `
  with place as (
    select (select seq from history where position <= $1 order by position desc limit 1) as seq,
      (select position from es.checkpoints where subscription = 'history') as reached
  )`;

/** By how much an event changes the number of a store's customers; one who is merged into another is not counted. */
const CUSTOMERS: Partial<Record<string, number>> = {
  CustomerCreated: 1,
  CustomerMergedAway: -1,
  CustomerRestored: 1,
};

/** The same for the customers who have a card. */
const ISSUED: Partial<Record<string, number>> = {
  CustomerCardIssued: 1,
  CustomerCardMerged: -1,
  CustomerCardRestored: 1,
};

const customerCardOf = ({ stream }: StoredEvent): number =>
  Number(stream.slice(stream.lastIndexOf('-') + 1));

type Counted = { reached: string | null; owner: number | null; count: number };

/**
 * How many records there were, of kinds that a store has too many of to fold each: counted in the history, and in the
 * log where the history has not come that far.
 */
@Injectable()
export class PastCounts {
  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
  ) {}

  /** The events up to a moment that the history has not taken in yet. @throws UnavailableError */
  async beyondHistory({ position }: Past): Promise<StoredEvent[]> {
    return asked(
      checkpointOf(this.pool, 'history').then((reached) => this.tail(reached, position)),
    );
  }

  /** @throws UnavailableError */
  async customersOf(accountId: number, past: Past): Promise<number> {
    const rows = await ask<Counted>(this.pool, {
      name: 'past_customers',
      text: `${PLACE}
        select p.reached, $2::bigint as owner,
          coalesce(sum(case h.name when 'customer.merged_away' then -1 else 1 end)
            filter (where h.seq is not null), 0) as count
        from place p
        left join history h on h.account_id = $2 and h.seq <= p.seq
          and h.name in ('customer.created', 'customer.merged_away', 'customer.restored')
        group by p.reached`,
      values: [formatPosition(past.position), accountId],
    });
    const counts = await this.counted(rows, past, async (events) =>
      events.map(({ type, meta }) => ({ owner: meta.accountId, by: CUSTOMERS[type] ?? 0 })),
    );
    return counts.get(accountId) ?? 0;
  }

  /** By card; cards without any are left out. @throws UnavailableError */
  async issuedOf(cardIds: number[], past: Past): Promise<Map<number, number>> {
    const rows = await ask<Counted>(this.pool, {
      name: 'past_cards_issued',
      text: `${PLACE}
        select p.reached, h.card_id as owner,
          coalesce(sum(case h.name when 'customer_card.merged' then -1 else 1 end)
            filter (where h.seq is not null), 0) as count
        from place p
        left join history h on h.card_id = any ($2) and h.seq <= p.seq
          and h.name in ('customer_card.created', 'customer_card.merged', 'customer_card.restored')
        group by p.reached, h.card_id`,
      values: [formatPosition(past.position), cardIds],
    });
    return this.counted(rows, past, async (events) => {
      const counting = events.filter(({ type }) => type in ISSUED);
      const cards = await this.cardsOf(counting.map(customerCardOf));
      return counting.map((event) => ({
        owner: cards.get(customerCardOf(event)) ?? 0,
        by: ISSUED[event.type] ?? 0,
      }));
    });
  }

  private async cardsOf(customerCardIds: number[]): Promise<Map<number, number>> {
    if (customerCardIds.length === 0) return new Map();
    const rows = await ask<{ id: number; card_id: number }>(this.pool, {
      name: 'past_cards_of_customer_cards',
      text: 'select id, card_id from customer_cards where id = any ($1)',
      values: [customerCardIds],
    });
    return new Map(rows.map(({ id, card_id: cardId }) => [id, cardId]));
  }

  private async counted(
    rows: Counted[],
    { position }: Past,
    changesIn: (events: StoredEvent[]) => Promise<{ owner: number; by: number }[]>,
  ): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    const add = (owner: number, count: number) =>
      counts.set(owner, (counts.get(owner) ?? 0) + count);
    for (const { owner, count } of rows) if (owner !== null) add(owner, count);
    const reached = rows[0]?.reached ?? null;
    const from = reached === null ? BEGINNING : parsePosition(reached);
    const changes = await changesIn(await asked(this.tail(from, position)));
    for (const { owner, by } of changes) add(owner, by);
    return counts;
  }

  /** What the history has not taken in yet. */
  private async tail(reached: Position, until: Position): Promise<StoredEvent[]> {
    const found: StoredEvent[] = [];
    let after = reached;
    for (let batches = 0; isAfter(until, after); batches++) {
      if (batches === MOST_BATCHES) {
        throw new UnavailableError('The history is still being taken in; try again in a minute');
      }
      const events = await this.store.readAll(after, BATCH);
      const last = events.at(-1);
      if (!last) break;
      found.push(...events.filter((event) => !isAfter(event.position, until)));
      after = last.position;
    }
    return found;
  }
}
