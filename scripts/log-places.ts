import type pg from 'pg';
import { createPositionSql } from '#event-store/port/position.js';

/** Below every transaction id that a server assigns, so that later events sort after these. */
export const TX = '1';

/** A position that the database has noted, and the last event at or before it, whose id never changes. */
export type Place = { position: string; event_id: string | null };

/** Where positions of the log are noted, apart from the table `history`, which has one for each event. */
const NOTED = [
  ['es.checkpoints', 'position'],
  ['webhook_subscriptions', 'active_from'],
  ['webhook_active_spans', 'active_from'],
  ['webhook_active_spans', 'active_until'],
  ['webhook_replays', 'log_head'],
] as const;

const POSITION = `split_part(p.position, ':', 1)::numeric::text::xid8, split_part(p.position, ':', 2)::bigint`;
const PLACES = `
  select p.position, e.event_id
  from (
    ${NOTED.map(([table, column]) => `select ${column} as position from ${table} where ${column} is not null`).join(' union ')}
  ) p
  left join lateral (
    select e.event_id from es.events e where (e.tx, e.pos) <= (${POSITION})
    order by e.tx desc, e.pos desc limit 1
  ) e on true`;

const createMoveSql = (table: string, column: string) => `
  update ${table} t
  set ${column} = ${createPositionSql(TX, 'coalesce(e.pos, 0)')}
  from unnest($1::text[], $2::uuid[]) as p (position, event_id)
  left join es.events e on e.event_id = p.event_id
  where t.${column} = p.position`;

export async function readPlaces(client: pg.ClientBase): Promise<Place[]> {
  return (await client.query<Place>(PLACES)).rows;
}

/** Notes the positions that the same events have now. */
export async function movePlaces(client: pg.ClientBase, places: Place[]): Promise<void> {
  const mapped = [places.map((place) => place.position), places.map((place) => place.event_id)];
  for (const [table, column] of NOTED) await client.query(createMoveSql(table, column), mapped);
}
