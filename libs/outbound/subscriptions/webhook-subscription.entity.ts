import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { PlainTable } from '#platform/event-store/read-models/read-models.js';
import type { PayloadFormat } from '#outbound/public-events/public-events.js';
import { hideHeaderValues } from '#outbound/sending/webhook-headers.js';
import type { SignatureKind } from '#outbound/sending/webhook-signature.js';
import type { DisabledReason, LastTest, WebhookSubscription } from './webhook-subscription.js';
import { ISSUES } from '#translations/issues.js';

/** A stored subscription. Its secrets and headers are sealed. */
@Entity('webhook_subscriptions')
export class WebhookSubscriptionRow {
  @PrimaryColumn('bigint') declare id: number;
  @Column('bigint') declare account_id: number;
  @Column('text', { array: true }) declare events: string[];
  @Column('text') declare target_url: string;
  @Column('text', { nullable: true }) declare description: string | null;
  @Column('text') declare payload_format: PayloadFormat;
  @Column('text', { array: true }) declare header_names: string[];
  /** Names and values, sealed. */
  @Column('bytea', { nullable: true }) declare headers: Buffer | null;
  @Column('bigint', { array: true, nullable: true }) declare card_ids: number[] | null;
  @Column('bigint', { array: true, nullable: true }) declare location_ids: number[] | null;
  @Column('boolean') declare personal_data: boolean;
  @Column('text') declare signature: SignatureKind;
  @Column('text', { nullable: true }) declare public_key: string | null;
  @Column('bytea') declare secret: Buffer;
  /** Also signs, until `previous_secret_until`. */
  @Column('bytea', { nullable: true }) declare previous_secret: Buffer | null;
  @Column('timestamptz', { nullable: true }) declare previous_secret_until: Date | null;
  @Column('boolean') declare enabled: boolean;
  @Column('timestamptz', { nullable: true }) declare disabled_at: Date | null;
  @Column('text', { nullable: true }) declare disabled_reason: DisabledReason | null;
  /** Log position; only later events are enqueued. Null while it has never been enabled. */
  @Column('text', { nullable: true }) declare active_from: string | null;
  /** Deliveries enqueued before this fail instead of being sent. */
  @Column('timestamptz', { nullable: true }) declare give_up_before: Date | null;
  @Column('timestamptz', { nullable: true }) declare failing_since: Date | null;
  /** When it last succeeded or was enabled again: earlier failures no longer count. */
  @Column('timestamptz', { nullable: true }) declare healthy_at: Date | null;
  /** The `failing_since` that users were warned about; when it differs, they are warned again. */
  @Column('timestamptz', { nullable: true }) declare warned_failing_since: Date | null;
  @Column('timestamptz', { nullable: true }) declare last_delivery_at: Date | null;
  @Column('int', { nullable: true }) declare last_delivery_status: number | null;
  @Column('text', { nullable: true }) declare last_delivery_error: string | null;
  @Column('jsonb', { nullable: true }) declare last_test: LastTest | null;
  @Column('timestamptz') declare created_at: Date;
  @Column('timestamptz') declare updated_at: Date;
}

export const webhookSubscriptionTable: PlainTable = {
  table: 'webhook_subscriptions',
  positionColumn: 'active_from',
};

export const webhookSubscriptionCap: CapKind = {
  table: webhookSubscriptionTable.table,
  ownerColumn: 'account_id',
  issue: ISSUES.too_many_subscriptions,
  resolution: 'Delete one first, or let one subscription have more events.',
};

export function toSubscription(row: WebhookSubscriptionRow): WebhookSubscription {
  return {
    id: row.id,
    accountId: row.account_id,
    events: row.events,
    targetUrl: row.target_url,
    description: row.description,
    payloadFormat: row.payload_format,
    headers: hideHeaderValues(row.header_names),
    cardIds: row.card_ids,
    locationIds: row.location_ids,
    personalData: row.personal_data,
    signature: row.signature,
    publicKey: row.public_key,
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

/** Returns the columns that callers of the API change; dispatchers write the rest. */
export function toSettingsRow(subscription: WebhookSubscription) {
  return {
    events: subscription.events,
    target_url: subscription.targetUrl,
    description: subscription.description,
    payload_format: subscription.payloadFormat,
    header_names: Object.keys(subscription.headers),
    card_ids: subscription.cardIds,
    location_ids: subscription.locationIds,
    personal_data: subscription.personalData,
    enabled: subscription.enabled,
    disabled_at: subscription.disabledAt,
    disabled_reason: subscription.disabledReason,
    updated_at: subscription.updatedAt,
  };
}
