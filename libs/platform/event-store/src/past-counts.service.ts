import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { ask, asked } from '#database/connection.js';
import type { Past } from './as-of.service.js';
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

  /** @throws UnavailableError */
  async customersOf(accountId: number, past: Past): Promise<number> {
    const rows = await ask<Counted>(this.pool, {
      name: 'past_customers',
      text: `${PLACE}
        select p.reached, $2::bigint as owner, count(h.seq) as count
        from place p
        left join history h on h.account_id = $2 and h.name = 'customer.created' and h.seq <= p.seq
        group by p.reached`,
      values: [formatPosition(past.position), accountId],
    });
    const counts = await this.counted(rows, past, ({ type, meta }) =>
      type === 'CustomerCreated' ? meta.accountId : undefined,
    );
    return counts.get(accountId) ?? 0;
  }

  /** By card; cards without any are left out. @throws UnavailableError */
  async issuedOf(cardIds: number[], past: Past): Promise<Map<number, number>> {
    const rows = await ask<Counted>(this.pool, {
      name: 'past_cards_issued',
      text: `${PLACE}
        select p.reached, h.card_id as owner, count(h.seq) as count
        from place p
        left join history h on h.card_id = any ($2) and h.name = 'customer_card.created' and h.seq <= p.seq
        group by p.reached, h.card_id`,
      values: [formatPosition(past.position), cardIds],
    });
    return this.counted(rows, past, ({ type, data }) =>
      type === 'CustomerCardIssued' ? Number(data['cardId']) : undefined,
    );
  }

  private async counted(
    rows: Counted[],
    { position }: Past,
    ownerOf: (event: StoredEvent) => number | undefined,
  ): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    const add = (owner: number, count: number) =>
      counts.set(owner, (counts.get(owner) ?? 0) + count);
    for (const { owner, count } of rows) if (owner !== null) add(owner, count);
    const reached = rows[0]?.reached ?? null;
    const from = reached === null ? BEGINNING : parsePosition(reached);
    for (const event of await asked(this.tail(from, position))) {
      const owner = ownerOf(event);
      if (owner !== undefined) add(owner, 1);
    }
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
