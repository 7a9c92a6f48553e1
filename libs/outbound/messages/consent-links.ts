import { fingerprint } from '#platform/kernel/sealing.js';
import { CONSENT_KINDS, findConsentAddress } from '#loyalty/customers/consents.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';

/** The parameter of a card's link that shows that it went to an address. */
export const CONSENT_PARAMETER = 'c';

/** 132 bits in base64url. */
const TOKEN_CHARACTERS = 22;

type Contact = { email: string | null; phone: string | null };

/**
 * Adds to the link of a card what confirms a consent when it is opened. It goes to the address alone, and for no other
 * address of the customer.
 * @param key the data key of consent links
 */
export function addConsentToken(
  link: string,
  key: Buffer,
  card: { uuid: string; contact: Contact },
  kind: ConsentKind,
): string {
  const address = findConsentAddress(card.contact, kind);
  if (address === null) return link;
  return `${link}?${CONSENT_PARAMETER}=${createToken(key, card.uuid, kind, address)}`;
}

/** Finds the consent that an opened link confirms. @param contact the present one of the customer */
export function findConfirmedConsent(
  token: string,
  key: Buffer,
  { uuid, contact }: { uuid: string; contact: Contact },
): { kind: ConsentKind; address: string } | undefined {
  for (const kind of CONSENT_KINDS) {
    const address = findConsentAddress(contact, kind);
    if (address !== null && createToken(key, uuid, kind, address) === token) {
      return { kind, address };
    }
  }
  return undefined;
}

function createToken(key: Buffer, uuid: string, kind: ConsentKind, address: string): string {
  return fingerprint(key, uuid, kind, address).toString('base64url').slice(0, TOKEN_CHARACTERS);
}
