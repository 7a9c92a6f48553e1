import { Injectable } from '@nestjs/common';
import pg from 'pg';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import type { Range } from '#http/page.js';
import type { Location } from './location.js';
import { locationJson, type LocationJson } from './location.dto.js';

type LocationRow = { state: Location };

@Injectable()
export class LocationsService {
  constructor(private readonly pool: pg.Pool) {}

  async list(accountId: number, { after, limit }: Range): Promise<LocationJson[]> {
    const rows = await ask<LocationRow>(this.pool, {
      text: `select state from locations
       where account_id = $1 and state ->> 'deletedAt' is null and id > $2
       order by id limit $3`,
      values: [accountId, after?.[0] ?? 0, limit],
    });
    return rows.map(({ state }) => locationJson(state));
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<LocationJson> {
    const [row] = await ask<LocationRow>(this.pool, {
      text: `select state from locations
       where id = $1 and account_id = $2 and state ->> 'deletedAt' is null`,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Location');
    return locationJson(row.state);
  }
}
