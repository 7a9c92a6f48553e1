import { createPublicKey, verify as verifyWithKey, type KeyObject } from 'node:crypto';
import { Webhook, WebhookVerificationError as Unverified } from 'standardwebhooks';
import type { WebhookEvent } from './schema.js';
import type { WebHeaders } from './web-types.js';

export type { WebhookEvent } from './schema.js';

/** The payload of a subscription with payload_format `flat`, with the type and id of its headers. */
export type FlatWebhookEvent = {
  [Event in WebhookEvent as Event['type']]: Pick<Event, 'id' | 'type' | 'data'>;
}[WebhookEvent['type']];

export type WebhookRequest = {
  /** As it came, not parsed and put together again: the signature is over these bytes. */
  body: string | Uint8Array;
  headers: WebHeaders | Record<string, string | string[] | undefined>;
};

/** A request that was not signed with the secret or the private key in the last five minutes. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

const PUBLIC_KEY_PREFIX = 'whpk_';
const PUBLIC_KEY_BYTES = 32;
const TOLERANCE_SECONDS = 5 * 60;

/**
 * Whether the request was signed with this secret in the last five minutes; it is not if it lacks a header.
 * @param secret the subscription's, with its `whsec_`, or its `public_key`, with its `whpk_`
 */
export function verify(request: WebhookRequest, secret: string): boolean {
  try {
    check(request, secret);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

/**
 * The event in a request.
 * @param secret the subscription's, with its `whsec_`, or its `public_key`, with its `whpk_`
 * @throws WebhookVerificationError unless `verify` is true
 */
export function verifyWebhook(request: WebhookRequest, secret: string): WebhookEvent {
  return JSON.parse(check(request, secret).body) as WebhookEvent;
}

/**
 * The same for a subscription with payload_format `flat`.
 * @throws WebhookVerificationError unless `verify` is true
 */
export function verifyFlatWebhook(request: WebhookRequest, secret: string): FlatWebhookEvent {
  const { headers, body } = check(request, secret);
  const { 'webhook-id': id, 'service-event': type } = headers;
  return { id, type, data: JSON.parse(body) } as FlatWebhookEvent;
}

/** @throws WebhookVerificationError */
function check(request: WebhookRequest, secret: string) {
  const headers = headersOf(request);
  const body = Buffer.from(request.body);
  if (secret.startsWith(PUBLIC_KEY_PREFIX)) checkWithPublicKey(body, headers, secret);
  else checkWithSecret(body, headers, secret);
  return { headers, body: body.toString() };
}

/** @throws WebhookVerificationError */
function checkWithSecret(body: Buffer, headers: Record<string, string>, secret: string): void {
  const webhook = new Webhook(secret);
  try {
    webhook.verify(body, headers, { jsonParse: false });
  } catch (cause) {
    if (!(cause instanceof Unverified)) throw cause;
    // Not the dependency's own class, whose types need those of Node.js.
    throw new WebhookVerificationError(cause.message, { cause });
  }
}

/** Checks signatures of scheme v1a, which the dependency does not know. @throws WebhookVerificationError */
function checkWithPublicKey(
  body: Buffer,
  headers: Record<string, string>,
  publicKey: string,
): void {
  const key = parsePublicKey(publicKey);
  const {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures,
  } = headers;
  if (!id || !timestamp || !signatures)
    throw new WebhookVerificationError('Missing required headers');
  const ageSeconds = /^\d+$/.test(timestamp)
    ? Math.floor(Date.now() / 1000) - Number(timestamp)
    : NaN;
  if (Number.isNaN(ageSeconds)) throw new WebhookVerificationError('Invalid Signature Headers');
  if (ageSeconds > TOLERANCE_SECONDS)
    throw new WebhookVerificationError('Message timestamp too old');
  if (ageSeconds < -TOLERANCE_SECONDS)
    throw new WebhookVerificationError('Message timestamp too new');
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const isSigned = signatures.split(' ').some((candidate) => {
    const [version, signature = ''] = candidate.split(',');
    return version === 'v1a' && verifyWithKey(null, signed, key, Buffer.from(signature, 'base64'));
  });
  if (!isSigned) throw new WebhookVerificationError('No matching signature found');
}

function parsePublicKey(publicKey: string): KeyObject {
  const bytes = Buffer.from(publicKey.slice(PUBLIC_KEY_PREFIX.length), 'base64');
  if (bytes.length !== PUBLIC_KEY_BYTES)
    throw new Error('The public key must be whpk_ followed by 32 bytes in base64');
  const x = bytes.toString('base64url');
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
}

function headersOf({ headers }: WebhookRequest): Record<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(
    entries.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  );
}
