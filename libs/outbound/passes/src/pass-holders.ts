/**
 * SQL for the cards that can be opened as a pass: customer cards, and decoy cards (ADR-0051). The query gives it an
 * alias. `sealed` is the name that a decoy card shows, and null for a customer card. A confirmed decoy card leads to the
 * customer's own card.
 */
export const PASS_HOLDERS = `(
  select id, account_id, card_id, customer_id, uuid, state, null::bytea as sealed, false as confirmed
  from customer_cards
  union all
  select id, account_id, card_id, customer_id, uuid, state, sealed, confirmed_at is not null as confirmed
  from decoy_cards
)`;

/** Returns the context that the name of a decoy card is sealed with. */
export function getDecoyContext(uuid: string): string {
  return `decoy card ${uuid}`;
}
