import { createPublicKey, verify } from 'node:crypto';

const SCOPE = 'https://www.googleapis.com/auth/wallet_object.issuer';
const LONGEST_ASSERTION_SECONDS = 3600;
const SKEW_SECONDS = 60;

/**
 * @param {string} jwt
 * @param {{ publicKey: string, keyId: string }} account
 * @returns {Record<string, any> | undefined} the claims; undefined for what the account's key has not signed
 */
export function findSignedClaims(jwt, { publicKey, keyId }) {
  const [head = '', claims = '', signature = '', ...more] = jwt.split('.');
  if (more.length > 0 || !signature) return undefined;
  const header = parseJsonPart(head);
  if (header?.alg !== 'RS256' || header.kid !== keyId) return undefined;
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    createPublicKey(publicKey),
    Buffer.from(signature, 'base64url'),
  );
  return isSigned ? parseJsonPart(claims) : undefined;
}

/** @param {string} part */
function parseJsonPart(part) {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** @param {Record<string, any>} claims @param {{ email: string, tokenUrl: string, nowSeconds: number }} expected */
export function findAssertionError(claims, { email, tokenUrl, nowSeconds }) {
  if (claims.iss !== email) return 'iss is not the account';
  if (!String(claims.scope).split(' ').includes(SCOPE)) return 'scope lacks wallet_object.issuer';
  if (claims.aud !== tokenUrl) return 'aud is not the token address';
  if (!Number.isInteger(claims.iat) || claims.iat > nowSeconds + SKEW_SECONDS) return 'iat';
  if (!Number.isInteger(claims.exp) || claims.exp <= nowSeconds) return 'exp has passed';
  if (claims.exp - claims.iat > LONGEST_ASSERTION_SECONDS) return 'exp is more than an hour on';
  return undefined;
}

/** @param {Record<string, any>} claims @param {string} email */
export function findSaveError(claims, email) {
  if (claims.iss !== email) return 'iss is not the account';
  if (claims.aud !== 'google') return 'aud must be google';
  if (claims.typ !== 'savetowallet') return 'typ must be savetowallet';
  if (!Number.isInteger(claims.iat)) return 'iat must be a number';
  if (!claims.payload?.loyaltyObjects?.length) return 'payload has no loyaltyObjects';
  return undefined;
}
