import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { NotFoundError } from '#kernel/errors.js';
import type { Range } from '#http/page.js';
import type { Location } from './location.js';
import { locationJson, type LocationJson } from './location.dto.js';

type LocationRow = { state: Location };

@Injectable()
export class LocationsService {
  constructor(private readonly source: DataSource) {}

  async list(accountId: number, { after, limit }: Range): Promise<LocationJson[]> {
    const rows: LocationRow[] = await this.source.query(
      `select state from locations
       where account_id = $1 and state ->> 'deletedAt' is null and id > $2
       order by id limit $3`,
      [accountId, after?.[0] ?? 0, limit],
    );
    return rows.map(({ state }) => locationJson(state));
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<LocationJson> {
    const [row]: LocationRow[] = await this.source.query(
      `select state from locations
       where id = $1 and account_id = $2 and state ->> 'deletedAt' is null`,
      [id, accountId],
    );
    if (!row) throw new NotFoundError('Location');
    return locationJson(row.state);
  }
}
