import type pg from 'pg';
import { createPositionSql } from '#platform/event-store/port/position.js';

/** Below every transaction id that a server assigns, so that later events sort after these. */
export const TX = '1';

/** A position that the database stores, and the last event at or before it, whose id never changes. */
export type LoggedPosition = { position: string; event_id: string | null };

/** Lists the columns that hold positions of the log. The table `history` has one for each event as well. */
const POSITION_COLUMNS = [
  ['es.positions', 'position'],
  ['webhook_subscriptions', 'active_from'],
  ['webhook_active_spans', 'active_from'],
  ['webhook_active_spans', 'active_until'],
  ['webhook_replays', 'log_head'],
] as const;

const POSITION = `split_part(p.position, ':', 1)::numeric::text::xid8, split_part(p.position, ':', 2)::bigint`;
const POSITIONS = POSITION_COLUMNS.map(
  ([table, column]) => `select ${column} as position from ${table} where ${column} is not null`,
).join(' union ');
const SELECT_POSITIONS = `
  select p.position, e.event_id
  from (${POSITIONS}) p
  left join lateral (
    select e.event_id from es.events e where (e.tx, e.pos) <= (${POSITION})
    order by e.tx desc, e.pos desc limit 1
  ) e on true`;

/** Finds the events of all columns at once: no index has their ids. */
const SELECT_PRESENT = `
  select p.position, ${createPositionSql(TX, 'coalesce(e.pos, 0)')} as present
  from unnest($1::text[], $2::uuid[]) as p (position, event_id)
  left join es.events e on e.event_id = p.event_id`;

const createMoveSql = (table: string, column: string) => `
  update ${table} t set ${column} = p.present
  from unnest($1::text[], $2::text[]) as p (position, present)
  where t.${column} = p.position`;

export async function readLoggedPositions(client: pg.ClientBase): Promise<LoggedPosition[]> {
  return (await client.query<LoggedPosition>(SELECT_POSITIONS)).rows;
}

/** Lists the positions that the database stores, for a log that is in another engine. */
export async function listPositions(client: pg.Pool | pg.ClientBase): Promise<string[]> {
  return (await client.query<{ position: string }>(POSITIONS)).rows.map(({ position }) => position);
}

/** Replaces each position by the one that the same event has now. */
export async function moveLoggedPositions(
  client: pg.ClientBase,
  positions: LoggedPosition[],
): Promise<void> {
  const { rows } = await client.query<{ position: string; present: string }>(SELECT_PRESENT, [
    positions.map(({ position }) => position),
    positions.map(({ event_id }) => event_id),
  ]);
  const values = [rows.map(({ position }) => position), rows.map(({ present }) => present)];
  for (const [table, column] of POSITION_COLUMNS)
    await client.query(createMoveSql(table, column), values);
}
