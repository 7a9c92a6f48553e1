import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Actor } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';

const NAMES = {
  name: 'history_actor_names',
  text: `select 'token' as type, id, name from api_tokens where id = any ($1)
         union all select 'user', id, name from users where id = any ($2)
         union all select 'customer', id, concat_ws(' ', first_name, last_name) from customer_names
           join customers using (id) where id = any ($3) and erased_at is null`,
};

/** Finds the present names of actors. An erased customer has none. */
@Injectable()
export class ActorNames {
  constructor(private readonly pool: Pool) {}

  /** Finds the names in the order of the actors; null where there is none. */
  async findNames(actors: Actor[]): Promise<(string | null)[]> {
    const listIds = (type: Actor['type']) => [
      ...new Set(actors.filter((actor) => actor.type === type).map(({ id }) => id)),
    ];
    const rows = await query<{ type: Actor['type']; id: number; name: string }>(this.pool, {
      ...NAMES,
      values: [listIds('token'), listIds('user'), listIds('customer')],
    });
    const names = new Map(rows.map(({ type, id, name }) => [`${type}:${id}`, name]));
    return actors.map(({ type, id, name }) => names.get(`${type}:${id}`) ?? name ?? null);
  }
}
