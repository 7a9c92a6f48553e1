import { isSameAddress } from '#platform/kernel/email-address.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { createCustomerMergedError } from '#loyalty/stamping/card-holder.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import type { CustomerEmailBounced, CustomerEmailRetried } from './customer.events.js';

/** Why and since when nothing is sent to the e-mail address of a customer. */
export type EmailBounce = Omit<CustomerEmailBounced['data'], 'customerId'>;

export type EmailState = {
  email: string | null;
  /** Set while the e-mail address takes no mail. */
  emailBounce?: EmailBounce;
  /** When somebody asked to try the address again. An e-mail from before that stops it no more. */
  emailRetriedAt?: string;
};

type Recipient = EmailState & {
  id: number;
  erasedAt: string | null;
  mergedInto?: { customerId: number };
};

/** An e-mail that came back. @property address the one that it was sent to */
export type ReturnedEmail = {
  messageId: string;
  status: string;
  address: string;
  sentAt: Date;
};

/**
 * Codes that say for good that the address takes no mail (RFC 3463, sections 3.2 and 3.3, and RFC 7505): no such
 * mailbox or domain, no valid or one address, moved, no mail at this domain, mailbox switched off. Not those about the
 * sender (5.1.7, 5.1.8), a full mailbox (5.2.2), or a rule of the server (5.7).
 */
const BOUNCES = new Set(['5.1.1', '5.1.2', '5.1.3', '5.1.4', '5.1.6', '5.1.10', '5.2.1']);

/** Tells whether an enhanced status code means that the address takes no mail for good. */
export function isBounceStatus(status: string | undefined): status is string {
  return status !== undefined && BOUNCES.has(status);
}

/**
 * Records that an e-mail came back. Changes nothing for an address that is known to bounce, that the customer does not
 * have, or that was tried again since the e-mail was sent.
 */
export function recordBounce(
  state: Recipient | undefined,
  { messageId, status, address, sentAt }: ReturnedEmail,
  now: Date,
): CustomerEmailBounced[] {
  if (!state) throw new NotFoundError('Customer');
  const { id, email, emailBounce, emailRetriedAt, mergedInto } = state;
  if (email === null || !isSameAddress(email, address) || mergedInto || emailBounce) return [];
  if (emailRetriedAt !== undefined && sentAt <= new Date(emailRetriedAt)) return [];
  return moveBounce(id, { messageId, status, bouncedAt: now.toISOString() });
}

/** Creates the event with which a customer takes over a bounce together with the address. */
export function moveBounce(
  customerId: number,
  bounce: EmailBounce | undefined,
): CustomerEmailBounced[] {
  return bounce ? [{ type: 'CustomerEmailBounced', data: { customerId, ...bounce } }] : [];
}

/** Allows e-mails to the address again. Of an address that did not bounce this changes nothing. */
export function retryEmail(state: Recipient | undefined): CustomerEmailRetried[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) throw createCustomerErasedError();
  if (state.mergedInto) throw createCustomerMergedError(state.id, state.mergedInto.customerId);
  return state.emailBounce
    ? [{ type: 'CustomerEmailRetried', data: { customerId: state.id } }]
    : [];
}

/** Removes the bounce. */
export function withoutBounce<S extends EmailState>(state: S): Omit<S, 'emailBounce'> {
  const { emailBounce: _, ...others } = state;
  return others;
}

/** Removes the bounce of an address that the customer has no more. */
export function withoutFormerBounce<S extends EmailState>(before: S | undefined, after: S): S {
  const [former = null, email] = [before?.email, after.email];
  const isKept = former === email || isSameAddress(former ?? '', email ?? '');
  return isKept || !after.emailBounce ? after : (withoutBounce(after) as S);
}
