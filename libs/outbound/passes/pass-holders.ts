import { renderSamePerson } from '#loyalty/stamping/same-person.js';

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

/**
 * Renders a query of the ids of all cards that a customer holds: merged ones too, and the confirmed decoy cards of everybody
 * who is the same person.
 */
export function renderCardsOfHolder(customerId: string): string {
  return `select id from customer_cards where customer_id = ${customerId}
    union all
    select id from decoy_cards
    where confirmed_at is not null and customer_id in (${renderSamePerson(customerId)})`;
}

/** Returns the context that the name of a decoy card is sealed with. */
export function getDecoyContext(uuid: string): string {
  return `decoy card ${uuid}`;
}
