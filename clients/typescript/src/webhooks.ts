import { Webhook, WebhookVerificationError } from 'standardwebhooks';
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

export { WebhookVerificationError };

/**
 * @param secret the subscription's, with its `whsec_`
 * @throws WebhookVerificationError when the signature does not match, or was made over five minutes ago
 */
export function verifyWebhook(request: WebhookRequest, secret: string): WebhookEvent {
  return verified(request, secret) as WebhookEvent;
}

/**
 * The same for a subscription with payload_format `flat`.
 * @throws WebhookVerificationError when the signature does not match, or was made over five minutes ago
 */
export function verifyFlatWebhook(request: WebhookRequest, secret: string): FlatWebhookEvent {
  const data = verified(request, secret);
  const { 'webhook-id': id, 'service-event': type } = headersOf(request);
  return { id, type, data } as FlatWebhookEvent;
}

function verified(request: WebhookRequest, secret: string): unknown {
  return new Webhook(secret).verify(Buffer.from(request.body), headersOf(request));
}

function headersOf({ headers }: WebhookRequest): Record<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(
    entries.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  );
}
