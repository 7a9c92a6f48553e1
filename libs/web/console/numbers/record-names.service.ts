import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';

/** Names a card, a location or a person. */
export type NamedRecord = { id: number; name: string };

/** Finds the names of a store's cards, locations and people. */
@Injectable()
export class RecordNames {
  constructor(
    private readonly pool: Pool,
    private readonly locations: LocationsService,
  ) {}

  /** Lists the cards, archived ones as well: their holders go on. */
  listCards(accountId: number): Promise<NamedRecord[]> {
    return query<NamedRecord>(this.pool, {
      name: 'numbers_cards',
      text: 'select id, name from cards where account_id = $1 order by lower(name), id',
      values: [accountId],
    });
  }

  async listLocations(accountId: number): Promise<NamedRecord[]> {
    const locations = await this.locations.listStates(accountId);
    return locations.map(({ id, name }) => ({ id, name }));
  }

  /** Lists the people of the store. */
  listPeople(accountId: number): Promise<NamedRecord[]> {
    return query<NamedRecord>(this.pool, {
      name: 'numbers_people',
      text: `select u.id, u.name from memberships m join users u on u.id = m.user_id
             where m.account_id = $1 order by lower(u.name), u.id`,
      values: [accountId],
    });
  }
}
