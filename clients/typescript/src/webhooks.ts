import { createHmac, timingSafeEqual } from 'node:crypto';
import type { webhooks } from './schema.js';

type Payload = {
  [Type in keyof webhooks]: webhooks[Type]['post']['requestBody']['content']['application/json'];
}[keyof webhooks];

/** What a subscription with payload_format `envelope` is sent. `type` tells which event it is. */
export type WebhookEvent = Extract<Payload, { type: string; timestamp: string; data: object }>;

/** What one with payload_format `flat` is sent, with the type and id of its headers. */
export type FlatWebhookEvent = {
  [Event in WebhookEvent as Event['type']]: Pick<Event, 'id' | 'type' | 'data'>;
}[WebhookEvent['type']];

export type WebhookRequest = {
  /** As it came, not parsed and put together again: the signature is over these bytes. */
  body: string | Uint8Array;
  headers: Headers | Record<string, string | string[] | undefined>;
};

export type VerifyOptions = {
  /** How old, or how far ahead, a webhook may be. Default 300. */
  toleranceSeconds?: number;
  now?: Date;
};

/** The webhook is not to be trusted. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/**
 * @param secret the subscription's, with its `whsec_`
 * @throws WebhookVerificationError when the signature is not the secret's, or too old
 */
export function verifyWebhook(
  request: WebhookRequest,
  secret: string,
  options: VerifyOptions = {},
): WebhookEvent {
  return JSON.parse(verified(request, secret, options).text) as WebhookEvent;
}

/**
 * The same for a subscription with payload_format `flat`.
 * @throws WebhookVerificationError when the signature is not the secret's, or too old
 */
export function verifyFlatWebhook(
  request: WebhookRequest,
  secret: string,
  options: VerifyOptions = {},
): FlatWebhookEvent {
  const { id, text } = verified(request, secret, options);
  const type = headerOf(request, 'service-event');
  return { id, type, data: JSON.parse(text) as unknown } as FlatWebhookEvent;
}

/** Standard Webhooks, version 1: an HMAC of id, time and body, of which one in the list must be right. */
function verified(
  request: WebhookRequest,
  secret: string,
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions,
): { id: string; text: string } {
  const id = headerOf(request, 'webhook-id');
  const timestamp = headerOf(request, 'webhook-timestamp');
  const age = Math.abs(now.getTime() / 1000 - Number(timestamp));
  // Written so that a time that is no number fails as well.
  if (!(age <= toleranceSeconds)) {
    throw new WebhookVerificationError('The webhook was not sent just now');
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (key.length === 0) throw new WebhookVerificationError('The secret is empty');
  const body = Buffer.from(request.body);
  const mine = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = headerOf(request, 'webhook-signature')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => Buffer.from(signature.slice(3), 'base64'))
    .some((theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine));
  if (!isSigned) throw new WebhookVerificationError('The signature is not right');
  return { id, text: body.toString('utf8') };
}

function headerOf({ headers }: WebhookRequest, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== 'string')
    throw new WebhookVerificationError(`The header ${name} is missing`);
  return value;
}
