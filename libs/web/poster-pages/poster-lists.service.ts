import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { takePage } from '#web/pages/page-query.js';
import type { CardChoice, ListedPoster } from './listed-poster.js';

const PAGE_SIZE = 24;
/** The cap of a store's cards keeps the list short, unless an operator raises it far. */
const MAX_CHOICES = 500;

/** SQL to join to `p`, a poster. It reads only the entries of the poster in an index. */
const COUNTS = `
  cross join lateral (
    select count(*) as signups, count(*) filter (where u.poster_scanned) as scanned
    from customers u where u.poster_id = p.id
  ) s`;

const LIST = {
  name: 'poster_console_list',
  text: `
    select p.state as poster, c.state as card, s.signups, s.scanned
    from posters p join cards c on c.id = p.card_id ${COUNTS}
    where p.account_id = $1 and p.deleted_at is null and p.id > $2
    order by p.id limit ${PAGE_SIZE + 1}`,
};

const FIND = {
  name: 'poster_console_find',
  text: `
    select p.state as poster, c.state as card, s.signups, s.scanned
    from posters p join cards c on c.id = p.card_id ${COUNTS}
    where p.id = $1 and p.account_id = $2 and p.deleted_at is null`,
};

/** Lists posters for the console, with what has come of them. */
@Injectable()
export class PosterLists {
  constructor(
    private readonly pool: Pool,
    private readonly cards: CardsService,
  ) {}

  /** @param after the cursor of the page; null: the first one */
  async list(
    accountId: number,
    after: number[] | null,
  ): Promise<{ posters: ListedPoster[]; next: number | null }> {
    const rows = await query<ListedPoster>(this.pool, {
      ...LIST,
      values: [accountId, after?.[0] ?? 0],
    });
    const { page, last } = takePage(rows, PAGE_SIZE);
    return { posters: page, next: last?.poster.id ?? null };
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<ListedPoster> {
    const [row] = await query<ListedPoster>(this.pool, { ...FIND, values: [id, accountId] });
    if (!row) throw new NotFoundError('Poster');
    return row;
  }

  /** Lists the cards that a new poster can be for. */
  async listCards(accountId: number): Promise<CardChoice[]> {
    const filter = { scope: 'active', updatedSince: null } as const;
    return this.cards.list(accountId, filter, { after: null, limit: MAX_CHOICES });
  }
}
