import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { Card } from '#loyalty/cards/card.js';
import type { CardDesign, Poster } from './poster.js';
import { PosterFonts } from './poster-fonts.service.js';
import { toPosterJson, toSignupUrls, type PosterJson } from './poster.dto.js';

type PosterRow = { state: Poster };

@Injectable()
export class PostersService {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
    private readonly fonts: PosterFonts,
  ) {}

  async list(
    accountId: number,
    filter: { cardId: number | null; active: boolean | null; updatedSince: Date | null },
    { after, limit }: PageRange,
  ): Promise<PosterJson[]> {
    const rows = await query<PosterRow>(this.pool, {
      name: 'posters_list',
      text: `select state from posters
       where account_id = $1 and deleted_at is null and id > $2
         and ($3::bigint is null or card_id = $3)
         and ($4::boolean is null or (state ->> 'active')::boolean = $4)
         and ($5::text is null or (state ->> 'updatedAt') collate "C" >= $5)
       order by id limit $6`,
      values: [
        accountId,
        after?.[0] ?? 0,
        filter.cardId,
        filter.active,
        filter.updatedSince?.toISOString() ?? null,
        limit,
      ],
    });
    return rows.map(({ state }) => this.toJson(state));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<PosterJson> {
    const [row] = await query<PosterRow>(this.pool, {
      name: 'posters_find',
      text: `select state from posters
       where id = $1 and account_id = $2 and deleted_at is null`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Poster');
    return this.toJson(row.state);
  }

  /** Gets the attributes that a new poster copies. @throws NotFoundError if the store has no such card */
  async getCardDesign(accountId: number, cardId: number): Promise<CardDesign> {
    const [row] = await query<{ state: Card }>(this.pool, {
      text: 'select state from cards where id = $1 and account_id = $2',
      values: [cardId, accountId],
    });
    if (!row) throw new NotFoundError('Card');
    return row.state;
  }

  toJson(poster: Poster): PosterJson {
    return toPosterJson(poster, {
      publicUrl: this.config.publicUrl,
      illegible: this.fonts.listIllegible(poster.title),
    });
  }

  toUrls(slug: string): ReturnType<typeof toSignupUrls> {
    return toSignupUrls(slug, this.config.publicUrl);
  }
}
