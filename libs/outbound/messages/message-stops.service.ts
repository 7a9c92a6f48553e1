import type { Pool } from 'pg';
import { query } from '#platform/database/connection.js';

/** Stops the messages to the holder of a card (ANNOUNCE-15). Doing so twice changes nothing. */
export async function stopMessages(
  pool: Pool,
  { id, accountId }: { id: number; accountId: number },
): Promise<void> {
  await query(pool, {
    name: 'message_stops_add',
    text: `insert into message_stops (customer_card_id, account_id) values ($1, $2)
           on conflict do nothing`,
    values: [id, accountId],
  });
}
