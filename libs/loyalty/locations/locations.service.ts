import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import { toLocationJson, type LocationJson } from './location.dto.js';
import type { Location } from './location.js';

type LocationRow = { state: Location };

type LocationSelection = PageRange & { updatedSince: Date | null };

@Injectable()
export class LocationsService {
  constructor(private readonly pool: Pool) {}

  async list(accountId: number, selection: LocationSelection): Promise<LocationJson[]> {
    return (await this.listStates(accountId, selection)).map(toLocationJson);
  }

  /** Lists the locations as they are stored; all of them without a selection. */
  async listStates(
    accountId: number,
    { after, limit, updatedSince }: Partial<LocationSelection> = {},
  ): Promise<Location[]> {
    const rows = await query<LocationRow>(this.pool, {
      name: 'locations_list',
      text: `select state from locations
       where account_id = $1 and deleted_at is null and id > $2
         and ($3::text is null or (state ->> 'updatedAt') collate "C" >= $3)
       order by id limit $4`,
      values: [accountId, after?.[0] ?? 0, updatedSince?.toISOString() ?? null, limit ?? null],
    });
    return rows.map(({ state }) => state);
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<LocationJson> {
    return toLocationJson(await this.getState(accountId, id));
  }

  /** @throws NotFoundError */
  async getState(accountId: number, id: number): Promise<Location> {
    const state = await this.findState(accountId, id);
    if (!state) throw new NotFoundError('Location');
    return state;
  }

  async findState(accountId: number, id: number): Promise<Location | undefined> {
    const [row] = await query<LocationRow>(this.pool, {
      name: 'locations_find',
      text: `select state from locations
       where id = $1 and account_id = $2 and deleted_at is null`,
      values: [id, accountId],
    });
    return row?.state;
  }
}
