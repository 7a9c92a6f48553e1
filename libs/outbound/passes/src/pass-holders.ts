/**
 * SQL for what a pass can be opened of: customer cards, and the cards that stand in for one (ADR-0051). To be given
 * a name. `sealed` is the name that a stand-in shows, and null otherwise.
 */
export const PASS_HOLDERS = `(
  select id, account_id, card_id, customer_id, uuid, state, null::bytea as sealed from customer_cards
  union all
  select id, account_id, card_id, customer_id, uuid, state, sealed from decoy_cards
)`;

/** With which the name of a stand-in is sealed. */
export function getDecoyContext(uuid: string): string {
  return `stand-in ${uuid}`;
}
