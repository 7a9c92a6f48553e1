import type { DisabledReason, WebhookSubscription } from './webhook-subscription.js';
import { type PayloadFormat } from '#public-events/public-event.js';

/** One record of the table `webhook_subscriptions`, as a query with these columns returns it. */
export type WebhookSubscriptionRow = {
  id: number;
  account_id: number;
  events: string[];
  target_url: string;
  description: string | null;
  payload_format: PayloadFormat;
  secret: Buffer;
  /** Signs beside the present one until then. */
  previous_secret: Buffer | null;
  previous_secret_until: Date | null;
  enabled: boolean;
  disabled_at: Date | null;
  disabled_reason: DisabledReason | null;
  last_delivery_at: Date | null;
  last_delivery_status: number | null;
  last_delivery_error: string | null;
  created_at: Date;
  updated_at: Date;
};

export const SUBSCRIPTION_COLUMNS = `id, account_id, events, target_url, description, payload_format,
  secret, previous_secret, previous_secret_until, enabled, disabled_at, disabled_reason, last_delivery_at, last_delivery_status,
  last_delivery_error, created_at, updated_at`;

export function subscriptionOf(row: WebhookSubscriptionRow): WebhookSubscription {
  return {
    id: row.id,
    accountId: row.account_id,
    events: row.events,
    targetUrl: row.target_url,
    description: row.description,
    payloadFormat: row.payload_format,
    enabled: row.enabled,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
    lastDeliveryAt: row.last_delivery_at,
    lastDeliveryStatus: row.last_delivery_status,
    lastDeliveryError: row.last_delivery_error,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
