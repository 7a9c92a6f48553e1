import type { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { renderCardsOfHolder } from '#outbound/passes/pass-holders.js';

/** The card $1, and all others of its holder: one that is stopped stops the messages to them. */
const CARDS_OF_HOLDER = `(
  select $1::bigint union all
  ${renderCardsOfHolder('(select own.customer_id from customer_cards own where own.id = $1)')})`;

/** Tells whether the holder of a card has stopped the messages to them. */
export async function hasStoppedMessages(pool: Pool, cardId: number): Promise<boolean> {
  const stops = await query(pool, {
    name: 'message_stops_find',
    text: `select from message_stops where customer_card_id in ${CARDS_OF_HOLDER} limit 1`,
    values: [cardId],
  });
  return stops.length > 0;
}

/** Allows the messages to the holder of a card again. */
export async function allowMessages(pool: Pool, cardId: number): Promise<void> {
  await query(pool, {
    name: 'message_stops_remove',
    text: `delete from message_stops where customer_card_id in ${CARDS_OF_HOLDER}`,
    values: [cardId],
  });
}
