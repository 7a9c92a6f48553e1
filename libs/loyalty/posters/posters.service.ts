import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Pool } from 'pg';
import { IsNull, Repository } from 'typeorm';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query, awaitQuery } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { Card } from '#loyalty/cards/card.js';
import type { CardDesign, Poster } from './poster.js';
import { toPosterJson, type PosterJson } from './poster.dto.js';
import { posterEntity, type PosterRecord } from './poster.entity.js';

@Injectable()
export class PostersService {
  constructor(
    @InjectRepository(posterEntity) private readonly posters: Repository<PosterRecord>,
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async list(
    accountId: number,
    filter: { cardId: number | null; active: boolean | null; updatedSince: Date | null },
    { after, limit }: PageRange,
  ): Promise<PosterJson[]> {
    const query = this.posters
      .createQueryBuilder('p')
      .where('p.account_id = :accountId and p.deleted_at is null', { accountId })
      .andWhere('p.id > :after', { after: after?.[0] ?? 0 })
      .orderBy('p.id')
      .limit(limit ?? undefined);
    if (filter.cardId !== null) query.andWhere('p.card_id = :cardId', { cardId: filter.cardId });
    if (filter.active !== null) {
      query.andWhere("(p.state ->> 'active')::boolean = :active", { active: filter.active });
    }
    if (filter.updatedSince !== null) {
      query.andWhere(`(p.state ->> 'updatedAt') collate "C" >= :since`, {
        since: filter.updatedSince.toISOString(),
      });
    }
    return (await awaitQuery(query.getMany())).map(({ state }) => this.toJson(state));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<PosterJson> {
    const row = await awaitQuery(
      this.posters.findOneBy({ id, account_id: accountId, deleted_at: IsNull() }),
    );
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
    return toPosterJson(poster, this.config.publicUrl);
  }
}
