import { NotFoundError } from '#platform/kernel/errors.js';
import { createEmailKey } from './search-keys.js';
import type { ConsentKind, CustomerConsentConfirmed, PersonalFields } from './customer.events.js';

export type Consents = {
  marketingConsent: boolean;
  smsConsent: boolean;
  /** The consents that hold once they were confirmed by a link that went to the address or number. */
  unconfirmedConsents: ConsentKind[];
};

export const CONSENT_KINDS = ['marketing', 'sms'] as const satisfies ConsentKind[];

/** The fields of a customer that record each consent. */
export const CONSENT_FIELDS = { marketing: 'marketingConsent', sms: 'smsConsent' } as const;

/** Where what somebody agreed to is sent. */
const ADDRESSES = { marketing: 'email', sms: 'phone' } as const;

type Holder = Pick<PersonalFields, 'email' | 'phone'> &
  Consents & { id: number; erasedAt: string | null; mergedInto?: { customerId: number } };

/** Finds the address that a consent is about, in the form in which addresses are compared (ADR-0088). */
export function findConsentAddress(
  { email, phone }: Pick<PersonalFields, 'email' | 'phone'>,
  kind: ConsentKind,
): string | null {
  const address = ADDRESSES[kind] === 'email' ? email : phone;
  return address !== null && kind === 'marketing' ? createEmailKey(address) : address;
}

/**
 * Finds the consents that wait for their confirmation after a change. One that was given before stays as it was.
 * @param before undefined: a new customer
 * @param needsLink whether a consent that is given now waits
 */
export function findUnconfirmed(
  before: Consents | undefined,
  after: Omit<Consents, 'unconfirmedConsents'>,
  needsLink: boolean,
): ConsentKind[] {
  return CONSENT_KINDS.filter((kind) => {
    const field = CONSENT_FIELDS[kind];
    if (!after[field]) return false;
    return before?.[field] ? before.unconfirmedConsents.includes(kind) : needsLink;
  });
}

/**
 * Records a confirmation by the link that went to an address of the customer. Changes nothing for a consent that holds
 * already or was withdrawn, and for an address that the customer has no more.
 */
export function confirmConsent(
  state: Holder | undefined,
  { kind, address }: { kind: ConsentKind; address: string },
): CustomerConsentConfirmed[] {
  if (!state) throw new NotFoundError('Customer');
  const isOpen =
    state.unconfirmedConsents.includes(kind) &&
    !state.mergedInto &&
    state.erasedAt === null &&
    findConsentAddress(state, kind) === address;
  if (!isOpen) return [];
  return [{ type: 'CustomerConsentConfirmed', data: { customerId: state.id, consent: kind } }];
}

/** Returns the customer with a consent that holds from now on. */
export function withConfirmed<S extends Consents>(state: S, consent: ConsentKind): S {
  const unconfirmedConsents = state.unconfirmedConsents.filter((kind) => kind !== consent);
  return { ...state, unconfirmedConsents };
}
