import { Webhook, WebhookVerificationError as Unverified } from 'standardwebhooks';
import type { webhooks } from './schema.js';
import type { WebHeaders } from './web-types.js';

type Payload = {
  [Type in keyof webhooks]: webhooks[Type]['post']['requestBody']['content']['application/json'];
}[keyof webhooks];

/** The payload of a subscription with payload_format `envelope`. `type` tells which event it is. */
export type WebhookEvent = Extract<Payload, { type: string; timestamp: string; data: object }>;

/** The payload of a subscription with payload_format `flat`, with the type and id of its headers. */
export type FlatWebhookEvent = {
  [Event in WebhookEvent as Event['type']]: Pick<Event, 'id' | 'type' | 'data'>;
}[WebhookEvent['type']];

export type WebhookRequest = {
  /** As it came, not parsed and put together again: the signature is over these bytes. */
  body: string | Uint8Array;
  headers: WebHeaders | Record<string, string | string[] | undefined>;
};

/** A request that was not signed with the secret in the last five minutes. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/**
 * Whether the request was signed with this secret in the last five minutes; it is not if it lacks a header.
 * @param secret the subscription's, with its `whsec_`
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
 * @param secret the subscription's, with its `whsec_`
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
  const webhook = new Webhook(secret);
  try {
    webhook.verify(body, headers, { jsonParse: false });
  } catch (cause) {
    if (!(cause instanceof Unverified)) throw cause;
    // Not the dependency's own class, whose types need those of Node.js.
    throw new WebhookVerificationError(cause.message, { cause });
  }
  return { headers, body: body.toString() };
}

function headersOf({ headers }: WebhookRequest): Record<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(
    entries.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  );
}
