import { sign } from 'node:crypto';
import type { ServiceAccount } from '#kernel/service-account.js';

const SCOPE = 'https://www.googleapis.com/auth/wallet_object.issuer';
const ASSERTION_SECONDS = 3600;
/** Of a save link: browsers and messengers cut longer addresses off. */
export const LONGEST_SAVE_JWT = 1800;

/** What a service account exchanges for an access token (RFC 7523). */
export function assertionJwt(account: ServiceAccount, now: Date): string {
  const iat = seconds(now);
  return signed(account, {
    iss: account.email,
    scope: SCOPE,
    aud: account.tokenUrl,
    iat,
    exp: iat + ASSERTION_SECONDS,
  });
}

/** @param payload classes and objects, whole or, where Google has them already, by their ids alone */
export function saveJwt(
  account: ServiceAccount,
  payload: { loyaltyClasses?: object[]; loyaltyObjects: object[] },
  origin: string,
  now: Date,
): string {
  return signed(account, {
    iss: account.email,
    aud: 'google',
    typ: 'savetowallet',
    iat: seconds(now),
    origins: [origin],
    payload,
  });
}

function signed({ keyId, privateKey }: ServiceAccount, claims: object): string {
  const text = `${part({ alg: 'RS256', typ: 'JWT', kid: keyId })}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
