import { sign } from 'node:crypto';
import type { ServiceAccount } from '#configuration/service-account.js';

const SCOPE = 'https://www.googleapis.com/auth/wallet_object.issuer';
const ASSERTION_SECONDS = 3600;
/** The limit for a save link: browsers and messengers cut off longer URLs. */
export const MAX_SAVE_JWT_LENGTH = 1800;

/** Creates the assertion that a service account exchanges for an access token (RFC 7523). */
export function createAssertionJwt(account: ServiceAccount, now: Date): string {
  const iat = toSeconds(now);
  return signJwt(account, {
    iss: account.email,
    scope: SCOPE,
    aud: account.tokenUrl,
    iat,
    exp: iat + ASSERTION_SECONDS,
  });
}

/**
 * Creates the token of a save link.
 * @param payload classes and objects, or only their ids if Google has them already
 */
export function createSaveJwt(
  account: ServiceAccount,
  payload: { loyaltyClasses?: object[]; loyaltyObjects: object[] },
  origin: string,
  now: Date,
): string {
  return signJwt(account, {
    iss: account.email,
    aud: 'google',
    typ: 'savetowallet',
    iat: toSeconds(now),
    origins: [origin],
    payload,
  });
}

function signJwt({ keyId, privateKey }: ServiceAccount, claims: object): string {
  const text = `${encodeJwtPart({ alg: 'RS256', typ: 'JWT', kid: keyId })}.${encodeJwtPart(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}

function encodeJwtPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function toSeconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
