import { SignJWT } from 'jose';
import { createCipheriv, createECDH, createPrivateKey, hkdfSync } from 'node:crypto';

/** The length of an uncompressed point of P-256. */
export const POINT_BYTES = 65;
export const AUTH_BYTES = 16;

const CURVE = 'prime256v1';
const RECORD_BYTES = 4096;
/** After the last byte of the last record (RFC 8188, section 2). */
const LAST_RECORD_DELIMITER = Buffer.from([2]);
/** Half of the 24 hours that RFC 8292 allows, because clocks differ. */
const TOKEN_LIFETIME_MS = 12 * 60 * 60_000;

/** The browser's public key and authentication secret. */
export type BrowserKeys = { p256dh: Buffer; auth: Buffer };

export type KeyPair = { privateKey: Buffer; publicKey: Buffer };

/** Creates a key pair. @param privateKey 32 bytes @throws when it is not a private key of P-256 */
export function createKeyPair(privateKey: Buffer): KeyPair {
  const ecdh = createECDH(CURVE);
  ecdh.setPrivateKey(privateKey);
  return { privateKey, publicKey: ecdh.getPublicKey() };
}

export function generateKeyPair(): KeyPair {
  const ecdh = createECDH(CURVE);
  const publicKey = ecdh.generateKeys();
  return { privateKey: ecdh.getPrivateKey(), publicKey };
}

/**
 * Encrypts a message for one browser, in a single record of aes128gcm (RFC 8291, section 3.4).
 * @param salt 16 random bytes
 * @throws when the browser's key is not a point of P-256
 */
export function encryptMessage(
  plain: Buffer,
  { p256dh, auth }: BrowserKeys,
  { privateKey, publicKey }: KeyPair,
  salt: Buffer,
): Buffer {
  const ecdh = createECDH(CURVE);
  ecdh.setPrivateKey(privateKey);
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), p256dh, publicKey]);
  const secret = derive(ecdh.computeSecret(p256dh), auth, info, 32);
  const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
  const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
  const cipher = createCipheriv('aes-128-gcm', key, nonce);
  const text = Buffer.concat([
    cipher.update(Buffer.concat([plain, LAST_RECORD_DELIMITER])),
    cipher.final(),
  ]);
  const size = Buffer.alloc(5);
  size.writeUInt32BE(RECORD_BYTES);
  size.writeUInt8(publicKey.length, 4);
  return Buffer.concat([salt, size, publicKey, text, cipher.getAuthTag()]);
}

/**
 * Creates the Authorization header that identifies this service to a push service (VAPID, RFC 8292).
 * @param contact a URL or mailto: address
 */
export async function createAuthorization(
  endpoint: string,
  { privateKey, publicKey }: KeyPair,
  contact: string,
  now: Date,
): Promise<string> {
  const key = createPrivateKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      x: publicKey.subarray(1, 33).toString('base64url'),
      y: publicKey.subarray(33).toString('base64url'),
      d: privateKey.toString('base64url'),
    },
  });
  const token = await new SignJWT()
    .setProtectedHeader({ typ: 'JWT', alg: 'ES256' })
    .setAudience(new URL(endpoint).origin)
    .setExpirationTime(new Date(now.getTime() + TOKEN_LIFETIME_MS))
    .setSubject(contact)
    .sign(key);
  return `vapid t=${token}, k=${publicKey.toString('base64url')}`;
}

function derive(key: Buffer, salt: Buffer, info: Buffer, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, info, bytes));
}
