import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  sign as signWithPrivateKey,
  type KeyObject,
} from 'node:crypto';

/** How deliveries are signed: with a secret that both sides have, or with a private key. */
export const SIGNATURES = ['hmac', 'ed25519'] as const;
export type SignatureKind = (typeof SIGNATURES)[number];

/** As many as an Ed25519 key has. */
export const WEBHOOK_SECRET_BYTES = 32;
const PRIVATE_KEY_PREFIX = 'whsk_';
const PREFIX = /^whs(?:ec|k)_/;
/** What precedes the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** @property publicKey verifies what the secret signs; null when that takes the secret itself */
export type SigningSecret = { secret: string; publicKey: string | null };

/** Creates a secret or a private key of random bytes. */
export function createSigningSecret(kind: SignatureKind, random: Buffer): SigningSecret {
  if (kind === 'hmac') return { secret: formatSigningSecret(random), publicKey: null };
  const secret = `${PRIVATE_KEY_PREFIX}${random.toString('base64')}`;
  const publicKey = createPublicKey(createEd25519Key(secret));
  const bytes = publicKey.export({ format: 'der', type: 'spki' }).subarray(-WEBHOOK_SECRET_BYTES);
  return { secret, publicKey: `whpk_${bytes.toString('base64')}` };
}

/** Formats a secret as padded standard base64, because the libraries of some receivers accept no other form. */
export function formatSigningSecret(random: Buffer): string {
  return `whsec_${random.toString('base64')}`;
}

/**
 * Creates a key object once for many signatures, because that takes half as long as a signature.
 * @throws when the secret is not base64
 */
export function createSigningKey(secret: string): KeyObject {
  return secret.startsWith(PRIVATE_KEY_PREFIX)
    ? createEd25519Key(secret)
    : createSecretKey(decodeSecret(secret));
}

/** Creates the private key of a secret that begins with `whsk_`. @throws when the secret is not one */
function createEd25519Key(secret: string): KeyObject {
  const key = Buffer.concat([ED25519_PKCS8, decodeSecret(secret)]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

/**
 * Signs id, time and body as in Standard Webhooks: `v1` with a shared secret, `v1a` with a private key. Does not use its
 * library, which takes six times as long (ADR-0010) and knows no private keys.
 * @param seconds since 1970
 */
export function sign(key: KeyObject, id: string, seconds: string, body: Buffer): string {
  const start = `${id}.${seconds}.`;
  if (key.type === 'private') {
    const signature = signWithPrivateKey(null, Buffer.concat([Buffer.from(start), body]), key);
    return `v1a,${signature.toString('base64')}`;
  }
  const signed = createHmac('sha256', key).update(start).update(body);
  return `v1,${signed.digest('base64')}`;
}

function decodeSecret(secret: string): Buffer {
  const encoded = secret.replace(PREFIX, '');
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) throw new Error('a secret is not base64');
  return bytes;
}
