import { NotFoundError } from '#platform/kernel/errors.js';
import { createCustomerMergedError } from '#loyalty/stamping/card-holder.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import type { CardLinksRequested } from './customer.events.js';

export type CardLinkRequest = { customerCardId: number; at: string };

type CardLinkState = { cardLinkRequests?: CardLinkRequest[] };
type Requester = CardLinkState & {
  id: number;
  erasedAt: string | null;
  mergedInto?: { customerId: number };
};

/** Within this time, another message request for the same card is the same one: a button pressed twice. */
export const SAME_REQUEST_MS = 10 * 60_000;

/** Limits the requests: a stranger who knows an address must not be able to fill its mailbox, nor the history. */
const MAX_PER_DAY = 5;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Records the message request, unless it is a repetition or there were too many in the last 24 hours.
 * @param cardIds of the customer's cards
 */
export function requestCardLinks(
  state: Requester | undefined,
  { customerCardId, cardIds }: { customerCardId: number; cardIds: number[] },
  now: Date,
): CardLinksRequested[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) throw createCustomerErasedError();
  if (state.mergedInto) throw createCustomerMergedError(state.id, state.mergedInto.customerId);
  if (!cardIds.includes(customerCardId)) throw new NotFoundError('Customer card');
  const recent = (state.cardLinkRequests ?? []).filter(({ at }) => isWithin(DAY_MS, at, now));
  const isRepeated = recent.some(
    ({ customerCardId: id, at }) => id === customerCardId && isWithin(SAME_REQUEST_MS, at, now),
  );
  if (isRepeated || recent.length >= MAX_PER_DAY) return [];
  return [{ type: 'CardLinksRequested', data: { customerId: state.id, customerCardId } }];
}

export function withCardLinkRequest<S extends CardLinkState>(
  state: S,
  customerCardId: number,
  at: string,
): S {
  const now = new Date(at);
  const recent = (state.cardLinkRequests ?? []).filter((request) =>
    isWithin(DAY_MS, request.at, now),
  );
  return { ...state, cardLinkRequests: [...recent, { customerCardId, at }] };
}

/**
 * Tells whether a time is within so many milliseconds before now. True for a time ahead of a clock that was set back as
 * well: strangers could otherwise request more than the limit.
 */
function isWithin(milliseconds: number, at: string, now: Date): boolean {
  return now.getTime() - Date.parse(at) < milliseconds;
}
