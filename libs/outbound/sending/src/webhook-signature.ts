import { createHmac, createSecretKey } from 'node:crypto';

const PREFIX = /^whsec_/;

/** @throws when the secret is not base64 */
export function signingKey(secret: string): Buffer {
  const encoded = secret.replace(PREFIX, '');
  const key = Buffer.from(encoded, 'base64');
  if (key.toString('base64') !== encoded) throw new Error('a secret is not base64');
  return key;
}

/**
 * One `v1` signature of Standard Webhooks over id, time and body. Not made by its library, which takes five times as
 * long. Node.js 24 takes long to find out that bytes are no key object.
 * @param seconds since 1970
 */
export function signature(key: Buffer, id: string, seconds: string, body: Buffer): string {
  const signed = createHmac('sha256', createSecretKey(key))
    .update(`${id}.${seconds}.`)
    .update(body);
  return `v1,${signed.digest('base64')}`;
}
