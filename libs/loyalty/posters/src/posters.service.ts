import { Injectable } from '@nestjs/common';
import pg from 'pg';
import { Config } from '#kernel/config.js';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import type { Range } from '#http/page.js';
import type { Card } from '#cards/card.js';
import type { CardDesign, Poster } from './poster.js';
import { posterJson, type PosterJson } from './poster.dto.js';

type PosterRow = { state: Poster };

@Injectable()
export class PostersService {
  constructor(
    private readonly pool: pg.Pool,
    private readonly config: Config,
  ) {}

  async list(
    accountId: number,
    filter: { cardId: number | null; active: boolean | null },
    { after, limit }: Range,
  ): Promise<PosterJson[]> {
    const rows = await ask<PosterRow>(this.pool, {
      text: `select state from posters
       where account_id = $1 and state ->> 'deletedAt' is null
         and ($2::bigint is null or card_id = $2)
         and ($3::boolean is null or (state ->> 'active')::boolean = $3)
         and id > $4
       order by id limit $5`,
      values: [accountId, filter.cardId, filter.active, after?.[0] ?? 0, limit],
    });
    return rows.map(({ state }) => this.shown(state));
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<PosterJson> {
    const [row] = await ask<PosterRow>(this.pool, {
      text: `select state from posters
       where id = $1 and account_id = $2 and state ->> 'deletedAt' is null`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Poster');
    return this.shown(row.state);
  }

  /** What a new poster copies. @throws NotFoundError when the store has no such card */
  async designOf(accountId: number, cardId: number): Promise<CardDesign> {
    const [row] = await ask<{ state: Card }>(this.pool, {
      text: 'select state from cards where id = $1 and account_id = $2',
      values: [cardId, accountId],
    });
    if (!row) throw new NotFoundError('Card');
    return row.state;
  }

  shown(poster: Poster): PosterJson {
    return posterJson(poster, this.config.publicUrl);
  }
}
