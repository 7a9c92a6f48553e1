import { RejectedError } from '#kernel/errors.js';
import type { Cap } from './event-store.js';

const SAID: Record<Cap['kind'], { of: string; resolution: string }> = {
  rewards: { of: 'rewards of this card', resolution: 'Delete one first.' },
  cards: { of: 'cards of this store', resolution: 'Change a card that is archived.' },
  locations: { of: 'locations of this store', resolution: 'Delete one first.' },
  posters: { of: 'posters of this store', resolution: 'Delete one first.' },
  customer_cards: {
    of: 'cards of this customer',
    resolution: 'The customer is being merged: try again.',
  },
  webhook_subscriptions: {
    of: 'webhook subscriptions of this store',
    resolution: 'Delete one first, or let one subscription have more events.',
  },
};

/** The maximum number of records of this kind exists already; nothing was written. */
export class CapReachedError extends RejectedError {
  constructor(readonly kind: Cap['kind']) {
    const { of, resolution } = SAID[kind];
    super({ base: [`The number of ${of} has reached its limit`] }, 'limit_reached', resolution);
  }
}

/**
 * For the transaction that creates the record, before it writes anything that readers of the log wait for. Its error is
 * turned into a CapReachedError by `refusalOf`.
 */
export function checkCap({ kind, owner, id, most }: Cap): {
  name: string;
  text: string;
  values: unknown[];
} {
  return {
    name: 'es_check_cap',
    text: 'select es.check_cap($1, $2, $3, $4)',
    values: [kind, owner, id, most],
  };
}
