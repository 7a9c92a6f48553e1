import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { Config } from '#configuration/config.js';
import type { Card } from '#loyalty/cards/card.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { createStripDesign, toStripUrl } from '#outbound/card-images/strip-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { takePage } from '#web/pages/page-query.js';
import type { CardPage, ListedCard } from './designed-card.js';

const PAGE_SIZE = 24;
/** How much of a card is filled in its picture, so that both kinds of stamps are seen. */
const FILLED_SHARE = 0.4;

const FIND = {
  name: 'card_pages_states',
  text: `
    select c.id, c.state as card,
      coalesce((select jsonb_agg(w.state) from rewards w
        where w.card_id = c.id and w.deleted_at is null), '[]') as rewards,
      coalesce(e.count, 0) as "erasedCount"
    from cards c left join (
      select k.card_id, count(*) from es.erasures e join customer_cards k on k.customer_id = e.subject_id
      where e.account_id = $2 and k.card_id = any ($1) and k.merged_into is null group by 1
    ) e on e.card_id = c.id
    where c.id = any ($1)`,
};

/** @property erasedCount of the customers who had the card, and were erased */
type StateRow = { id: number; card: Card; rewards: Reward[]; erasedCount: number };

/** Lists the cards of a store with their pictures. */
@Injectable()
export class CardLists {
  constructor(
    private readonly pool: Pool,
    private readonly cards: CardsService,
    private readonly images: CardImages,
    private readonly config: Config,
  ) {}

  /** @param after the cursor of the page; null: the first one */
  async list(accountId: number, isArchive: boolean, after: number[] | null): Promise<CardPage> {
    const filter = { scope: isArchive ? ('archived' as const) : ('active' as const) };
    const listed = await this.cards.list(
      accountId,
      { ...filter, updatedSince: null },
      { after, limit: PAGE_SIZE + 1 },
    );
    const { page, last } = takePage(listed, PAGE_SIZE);
    const ids = page.map(({ id }) => id);
    const rows = await query<StateRow>(this.pool, { ...FIND, values: [ids, accountId] });
    const states = new Map(rows.map((row) => [row.id, row]));
    const cards = await Promise.all(
      page.flatMap((json) => {
        const row = states.get(json.id);
        return row ? [this.toListed(accountId, json, row)] : [];
      }),
    );
    return { cards, next: last?.id ?? null };
  }

  private async toListed(
    accountId: number,
    { rewards_count: rewardCount, customer_cards_count: issuedCount }: CardJson,
    { card, rewards, erasedCount }: StateRow,
  ): Promise<ListedCard> {
    const design = createStripDesign(card, rewards);
    const hash = await this.images.remember(accountId, design);
    const filled = Math.ceil(design.stamps * FILLED_SHARE);
    const strip = toStripUrl(this.config.publicUrl, hash, filled, '2x');
    return { card, rewardCount, holderCount: issuedCount - erasedCount, strip };
  }
}
