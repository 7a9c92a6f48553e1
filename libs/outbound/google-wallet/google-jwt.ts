import { SignJWT } from 'jose';
import type { ServiceAccount } from '#configuration/service-account.js';

const SCOPE = 'https://www.googleapis.com/auth/wallet_object.issuer';
const ASSERTION_LIFETIME_MS = 3600_000;
/** The limit for a save link: browsers and messengers cut off longer URLs. */
export const MAX_SAVE_JWT_LENGTH = 1800;

/** Creates the assertion that a service account exchanges for an access token (RFC 7523). */
export function createAssertionJwt(account: ServiceAccount, now: Date): Promise<string> {
  const jwt = new SignJWT({ scope: SCOPE })
    .setAudience(account.tokenUrl)
    .setExpirationTime(new Date(now.getTime() + ASSERTION_LIFETIME_MS));
  return sign(jwt, account, now);
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
): Promise<string> {
  const jwt = new SignJWT({ typ: 'savetowallet', origins: [origin], payload });
  return sign(jwt.setAudience('google'), account, now);
}

function sign(
  jwt: SignJWT,
  { email, keyId, privateKey }: ServiceAccount,
  now: Date,
): Promise<string> {
  return jwt
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: keyId })
    .setIssuer(email)
    .setIssuedAt(now)
    .sign(privateKey);
}
