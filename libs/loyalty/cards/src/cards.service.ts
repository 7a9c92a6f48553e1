import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import type { Range } from '#http/page.js';
import type { Card } from './card.js';
import { cardJson, type CardJson } from './card.dto.js';

type CardRow = { state: Card; rewards: number; customer_cards: number };

const COUNTS = `
  (select count(*) from rewards w
    where w.card_id = c.id and w.deleted_at is null) as rewards,
  (select count(*) from customer_cards k where k.card_id = c.id) as customer_cards`;

const CARDS = `select c.state, ${COUNTS} from cards c`;

@Injectable()
export class CardsService {
  constructor(private readonly pool: Pool) {}

  async list(
    accountId: number,
    scope: 'active' | 'archived' | 'all',
    { after, limit }: Range,
  ): Promise<CardJson[]> {
    const rows = await ask<CardRow>(this.pool, {
      text: `${CARDS} where c.account_id = $1
         and ($2 = 'all' or (c.state ->> 'archivedAt' is null) = ($2 = 'active'))
         and c.id > $3
       order by c.id limit $4`,
      values: [accountId, scope, after?.[0] ?? 0, limit],
    });
    return rows.map(json);
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<CardJson> {
    const [row] = await ask<CardRow>(this.pool, {
      text: `${CARDS} where c.id = $1 and c.account_id = $2`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Card');
    return json(row);
  }

  /** Zeros if there is no such card. */
  async counts(id: number): Promise<{ rewards: number; customerCards: number }> {
    const [row] = await ask<Omit<CardRow, 'state'>>(this.pool, {
      name: 'cards_counts',
      text: `select ${COUNTS} from (select $1::bigint as id) c`,
      values: [id],
    });
    return { rewards: row?.rewards ?? 0, customerCards: row?.customer_cards ?? 0 };
  }
}

function json({ state, rewards, customer_cards }: CardRow): CardJson {
  return cardJson(state, { rewards, customerCards: customer_cards });
}
