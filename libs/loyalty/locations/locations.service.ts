import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { awaitQuery } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import { toLocationJson, type LocationJson } from './location.dto.js';
import type { Location } from './location.js';
import { locationEntity, type LocationRecord } from './location.entity.js';

type LocationSelection = PageRange & { updatedSince: Date | null };

@Injectable()
export class LocationsService {
  constructor(
    @InjectRepository(locationEntity) private readonly locations: Repository<LocationRecord>,
  ) {}

  async list(accountId: number, selection: LocationSelection): Promise<LocationJson[]> {
    return (await this.listStates(accountId, selection)).map(toLocationJson);
  }

  /** Lists the locations as they are stored; all of them without a selection. */
  async listStates(
    accountId: number,
    { after, limit, updatedSince }: Partial<LocationSelection> = {},
  ): Promise<Location[]> {
    const query = this.locations
      .createQueryBuilder('l')
      .where('l.account_id = :accountId and l.deleted_at is null', { accountId })
      .andWhere('l.id > :after', { after: after?.[0] ?? 0 })
      .orderBy('l.id')
      .limit(limit ?? undefined);
    if (updatedSince) {
      query.andWhere(`(l.state ->> 'updatedAt') collate "C" >= :since`, {
        since: updatedSince.toISOString(),
      });
    }
    return (await awaitQuery(query.getMany())).map(({ state }) => state);
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<LocationJson> {
    return toLocationJson(await this.getState(accountId, id));
  }

  /** @throws NotFoundError */
  async getState(accountId: number, id: number): Promise<Location> {
    const row = await awaitQuery(
      this.locations.findOneBy({ id, account_id: accountId, deleted_at: IsNull() }),
    );
    if (!row) throw new NotFoundError('Location');
    return row.state;
  }
}
