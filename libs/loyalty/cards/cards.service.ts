import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { parseStreamName } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import {
  PastStates,
  type PointInTime,
  type PastRecord,
} from '#platform/event-store/log/past-states.service.js';
import { PastCounts, type PastCount } from '#platform/event-store/log/past-counts.service.js';
import type { PageRange } from '#platform/http/page.js';
import { card, type Card } from './card.js';
import { toCardJson, type CardFilter, type CardJson } from './card.dto.js';

type CardRow = { state: Card; rewards: number; customer_cards: number };

/** SQL over `c`, something with the id of a card: what is counted of the card. */
export const CARD_COUNTS = `
  (select count(*) from rewards w
    where w.card_id = c.id and w.deleted_at is null) as rewards,
  (select count(*) from customer_cards k
    where k.card_id = c.id and k.merged_into is null) as customer_cards`;

const CARDS = `select c.state, ${CARD_COUNTS} from cards c`;

@Injectable()
export class CardsService {
  constructor(
    private readonly pool: Pool,
    private readonly pastStates: PastStates,
    private readonly pastCounts: PastCounts,
  ) {}

  async list(
    accountId: number,
    { scope, updatedSince }: CardFilter,
    { after, limit }: PageRange,
  ): Promise<CardJson[]> {
    const rows = await query<CardRow>(this.pool, {
      name: 'cards_list',
      text: `${CARDS} where c.account_id = $1
         and ($2 = 'all' or (c.state ->> 'archivedAt' is null) = ($2 = 'active'))
         and ($3::text is null or (c.state ->> 'updatedAt') collate "C" >= $3)
         and c.id > $4
       order by c.id limit $5`,
      values: [accountId, scope, updatedSince?.toISOString() ?? null, after?.[0] ?? 0, limit],
    });
    return rows.map(toJson);
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<CardJson> {
    const [row] = await query<CardRow>(this.pool, {
      name: 'cards_find',
      text: `${CARDS} where c.id = $1 and c.account_id = $2`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Card');
    return toJson(row);
  }

  /** Finds the card with its state at that time. @throws NotFoundError when it did not exist yet */
  async getPast(accountId: number, id: number, time: Date): Promise<CardJson> {
    const past = await this.pastStates.toMoment(time);
    const state = await this.pastStates.projectOne(card, id, past);
    const [json] =
      state?.accountId === accountId ? await this.addPastCounts(accountId, [state], past) : [];
    if (!json) throw new NotFoundError('Card');
    return json;
  }

  /** Lists the cards as they were, by id. */
  async listPast(
    accountId: number,
    { scope, updatedSince }: CardFilter,
    time: Date,
  ): Promise<CardJson[]> {
    const past = await this.pastStates.toMoment(time);
    const rows = await query<{ id: number }>(this.pool, {
      text: 'select id from cards where account_id = $1 order by id',
      values: [accountId],
    });
    const ids = rows.map(({ id }) => id);
    const cards = await this.pastStates.projectAll(card, ids, past);
    const selected = cards.filter(
      ({ archivedAt, updatedAt }) =>
        (scope === 'all' || (archivedAt === null) === (scope === 'active')) &&
        (updatedSince === null || updatedAt >= updatedSince.toISOString()),
    );
    return this.addPastCounts(accountId, selected, past);
  }

  /** Counts the customers who have a card, without those who were merged into others. */
  private readonly issuedCards: PastCount = {
    name: 'past_cards_issued',
    ownerColumn: 'card_id',
    changes: {
      'customer_card.created': 1,
      'customer_card.merged': -1,
      'customer_card.restored': 1,
    },
    findOwners: async (events) => {
      const ids = events.map(({ stream }) => parseStreamName(stream).id);
      if (ids.length === 0) return [];
      const rows = await query<{ id: number; card_id: number }>(this.pool, {
        name: 'past_cards_of_customer_cards',
        text: 'select id, card_id from customer_cards where id = any ($1)',
        values: [ids],
      });
      const cards = new Map(rows.map((row) => [row.id, row.card_id]));
      return ids.map((id) => cards.get(id));
    },
  };

  private async addPastCounts(
    accountId: number,
    cards: Card[],
    past: PointInTime,
  ): Promise<CardJson[]> {
    const ids = cards.map(({ id }) => id);
    const rows = await query<{ id: number }>(this.pool, {
      text: 'select id from rewards where card_id = any ($1)',
      values: [ids],
    });
    const rewards = await this.pastStates.projectRecords<PastRecord & { cardId: number }>(
      'rewards',
      rows.map(({ id }) => id),
      past,
    );
    const issued = await this.pastCounts.count(accountId, ids, this.issuedCards, past);
    return cards.map((card) =>
      toCardJson(card, {
        rewards: rewards.filter(({ cardId }) => cardId === card.id).length,
        customerCards: issued.get(card.id) ?? 0,
      }),
    );
  }

  /** Counts the rewards and customer cards of a card. Zeros if there is no such card. */
  async findCounts(id: number): Promise<{ rewards: number; customerCards: number }> {
    const [row] = await query<Omit<CardRow, 'state'>>(this.pool, {
      name: 'cards_counts',
      text: `select ${CARD_COUNTS} from (select $1::bigint as id) c`,
      values: [id],
    });
    return { rewards: row?.rewards ?? 0, customerCards: row?.customer_cards ?? 0 };
  }
}

function toJson({ state, rewards, customer_cards }: CardRow): CardJson {
  return toCardJson(state, { rewards, customerCards: customer_cards });
}
