import { fingerprint } from '#platform/kernel/sealing.js';
import { CONSENT_KINDS, findConsentAddress } from '#loyalty/customers/consents.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';

/** The parameter of a card's link that shows that it went to an address, and the field of the form on the page. */
export const CONSENT_PARAMETER = 'c';

/** 132 bits in base64url. */
const TOKEN_CHARACTERS = 22;

type Holder = { accountId: number; contact: { email: string | null; phone: string | null } };

/**
 * Adds to the link of a card what shows that it went to the address of a consent. It goes to that address alone. Its page
 * asks for the consent, because programs open links as well.
 * @param key the data key of consent links
 */
export function addConsentToken(
  link: string,
  key: Buffer,
  { accountId, contact }: Holder,
  kind: ConsentKind,
): string {
  const address = findConsentAddress(contact, kind);
  if (address === null) return link;
  return withConsentToken(link, createToken(key, accountId, kind, address));
}

/** Adds a token to the link of another card: a card may have been merged into that. */
export function withConsentToken(link: string, token: string): string {
  return `${link}?${CONSENT_PARAMETER}=${encodeURIComponent(token)}`;
}

/** Finds the consent that a link asks for. @param contact the present one of the customer */
export function findLinkedConsent(
  token: string,
  key: Buffer,
  { accountId, contact }: Holder,
): { kind: ConsentKind; address: string } | undefined {
  for (const kind of CONSENT_KINDS) {
    const address = findConsentAddress(contact, kind);
    if (address !== null && createToken(key, accountId, kind, address) === token) {
      return { kind, address };
    }
  }
  return undefined;
}

function createToken(key: Buffer, accountId: number, kind: ConsentKind, address: string): string {
  const token = fingerprint(key, accountId, kind, address).toString('base64url');
  return token.slice(0, TOKEN_CHARACTERS);
}
