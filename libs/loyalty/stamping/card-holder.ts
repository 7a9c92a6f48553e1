import { RejectedError } from '#platform/kernel/errors.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

export type CardPath = { customerId: number; id: number };

/** The customer who has the card. That changes when customers are merged and unmerged. */
export type Holder = {
  customerId: number;
  /** Customers who had it before: clients may still name them. */
  formerCustomerIds?: number[];
};

export function changeHolder<C extends Holder>(
  card: C,
  { customerId, fromCustomerId }: { customerId: number; fromCustomerId: number },
): C {
  const former = new Set([...(card.formerCustomerIds ?? []), fromCustomerId]);
  former.delete(customerId);
  return { ...card, customerId, formerCustomerIds: [...former] };
}

/** Tells whether the card is found under this customer: it is theirs, or was. */
export function isHeldBy(card: Holder, customerId: number): boolean {
  return card.customerId === customerId || card.formerCustomerIds?.includes(customerId) === true;
}

/** Creates the error for a command to a merged customer. */
export function createCustomerMergedError(id: number, into: number): RejectedError {
  return createStampingError(
    { base: [ISSUES.customer_merged({ id, into })] },
    'customer_merged',
    `Send the request to customer ${into}, or unmerge the two first.`,
  );
}

/** Refuses a command to a merged card, and names the surviving one. */
export class CardMergedError extends RejectedError {
  constructor(readonly into: CardPath) {
    const where = `customer card ${into.id} of customer ${into.customerId}`;
    super(
      { base: [ISSUES.card_merged({ card: where })] },
      'customer_merged',
      `Send the request to ${where}.`,
    );
  }
}
