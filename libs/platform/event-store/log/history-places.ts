import type { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { EventRef, Position } from '../port/event-store.js';
import { parsePosition } from '../port/position.js';

/** Finds the position of an event that the event store has no more, by the table of the history. */
export async function findLostPosition(
  pool: Pool,
  { stream, revision }: EventRef,
): Promise<Position | undefined> {
  const [row] = await query<{ position: string }>(pool, {
    name: 'history_position',
    text: 'select position from history where stream = $1 and revision = $2',
    values: [stream, revision],
  });
  return row && parsePosition(row.position);
}

/** Finds the place of an event by the table of the history, which may be behind the log. */
export async function findPlace(pool: Pool, eventId: string): Promise<EventRef | undefined> {
  const [place] = await query<EventRef>(pool, {
    name: 'history_place',
    text: 'select stream, revision from history where event_id = $1',
    values: [eventId],
  });
  return place;
}
