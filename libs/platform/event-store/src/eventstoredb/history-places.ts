import type { Pool } from 'pg';
import { query } from '#database/connection.js';
import type { EventRef } from '../port/event-store.js';

/** Finds the place of an event by the table of the history, which may be behind the log. */
export async function findPlace(pool: Pool, eventId: string): Promise<EventRef | undefined> {
  const [place] = await query<EventRef>(pool, {
    name: 'history_place',
    text: 'select stream, revision from history where event_id = $1',
    values: [eventId],
  });
  return place;
}
