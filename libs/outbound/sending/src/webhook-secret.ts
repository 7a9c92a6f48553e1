import { open, seal } from '#kernel/sealing.js';

/** What the key is derived for: `deriveKey(masterKey, SECRETS)`. */
export const SECRETS = 'webhook secrets';

export const SECRET_BYTES = 32;

/** Padded standard base64: libraries of some receivers read no other form. */
export function signingSecret(random: Buffer): string {
  return `whsec_${random.toString('base64')}`;
}

export function sealSecret(key: Buffer, subscriptionId: number, secret: string): Buffer {
  return seal(key, Buffer.from(secret), contextOf(subscriptionId));
}

export function openSecret(key: Buffer, subscriptionId: number, sealed: Buffer): string {
  return open(key, sealed, contextOf(subscriptionId)).toString();
}

function contextOf(subscriptionId: number): string {
  return `webhook subscription ${subscriptionId}`;
}
