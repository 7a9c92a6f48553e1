import { CARD_MESSAGE_STATE } from '#outbound/messages/card-message.js';

/** SQL of the card links, with the states that the outbox shows. */
export const CARD_LINKS = `(
  select m.uuid as id, m.id as place, m.account_id, m.customer_id, m.customer_card_id, m.created_at as requested_at, m.channel,
    ${CARD_MESSAGE_STATE} as state, m.attempts, m.due_at, m.reason, m.provider_id, m.arrival, m.arrival_code
  from outgoing_messages m where m.kind = 'card_link') card_links`;
