import { BooleanField, IntegerField, OneOfField, TextField } from '#http/fields.js';
import { Dto, FieldsRule } from '#http/dtos.js';
import { PageQuery } from '#http/page.js';
import {
  BooleanProperty,
  IntegerProperty,
  IntegersProperty,
  JsonProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import { type PayloadFormat } from '#public-events/public-events.js';
import { hideHeaderValues, type CustomHeaders } from '#sending/webhook-headers.js';
import { SIGNATURES, type SignatureKind } from '#sending/webhook-signature.js';
import {
  EventsField,
  HeadersField,
  IdsField,
  SUBSCRIBABLE,
  TargetUrlField,
} from './webhook-subscription-fields.dto.js';
import {
  getOnlyEvent,
  type DisabledReason,
  type SubscriptionAttributes,
  type SubscriptionChanges,
  type WebhookSubscription,
} from './webhook-subscription.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  description: 'Your own label.',
  payload_format: 'The format that is sent: envelope, or flat, which is only the data.',
  headers:
    'Your own headers of each delivery, at most 10; the values are never shown, every one reads as •••.',
  card_ids: 'Only events about these cards, and events about no card; null means all.',
  location_ids: 'Only events at these locations, and events at no location; null means all.',
  personal_data: 'Whether personal fields are sent; if false they are null.',
  signature: 'hmac signs with the secret, ed25519 with a private key that only Inkpad has.',
  enabled:
    'Whether events are delivered. While it is false, the subscription is paused: events are not enqueued either.',
};

const FORMATS = ['envelope', 'flat'] as const;
const DISABLED_REASONS = ['disabled_by_user', 'failing', 'blocked_address'] as const;
const WEEK_SECONDS = 7 * 24 * 60 * 60;

const THE_SAME = { description: 'The same as events with one entry' };

/** The events of a request, which may use either field; null for a field that it did not use. */
type Chosen = { events: string[] | null; event: string | null };

@Dto('WebhookSubscriptionInput', {
  example: {
    events: ['stamp.earned', 'reward.redeemed'],
    target_url: 'https://receiver.example/webhooks',
    description: 'Till',
  },
})
@FieldsRule<CreateWebhookSubscriptionDto>(
  ['events', 'event'],
  'events',
  ({ events, event }) => events !== null || event !== null,
  'is required (or event)',
)
@FieldsRule<CreateWebhookSubscriptionDto>(
  ['events', 'event'],
  'event',
  ({ events, event }) => events === null || event === null || isOnly(event, events),
  'must be the same as events',
)
@FieldsRule<CreateWebhookSubscriptionDto>(
  ['events', 'event', 'payload_format'],
  'payload_format',
  (input) => input.payload_format !== 'flat' || isFlattable(input),
  'flat needs exactly one named event',
)
export class CreateWebhookSubscriptionDto {
  @EventsField({
    optional: true,
    description: 'Either this or event is required; * alone means every event',
  })
  declare readonly events: string[] | null;

  @OneOfField(SUBSCRIBABLE, { ...THE_SAME, optional: true }) declare readonly event: string | null;
  @TargetUrlField() declare readonly target_url: string;
  @TextField({ optional: true, description: DESCRIPTIONS.description })
  declare readonly description: string | null;
  @OneOfField(FORMATS, { default: 'envelope', description: DESCRIPTIONS.payload_format })
  declare readonly payload_format: PayloadFormat;
  @HeadersField({ optional: true, description: DESCRIPTIONS.headers })
  declare readonly headers: CustomHeaders | null;
  @IdsField({ optional: true, description: DESCRIPTIONS.card_ids })
  declare readonly card_ids: number[] | null;
  @IdsField({ optional: true, description: DESCRIPTIONS.location_ids })
  declare readonly location_ids: number[] | null;
  @BooleanField({ default: true, description: DESCRIPTIONS.personal_data })
  declare readonly personal_data: boolean;
  @OneOfField(SIGNATURES, { default: 'hmac', description: DESCRIPTIONS.signature })
  declare readonly signature: SignatureKind;
  @BooleanField({ default: true, description: DESCRIPTIONS.enabled })
  declare readonly enabled: boolean;
}

/**
 * Fields that are left out stay as they are. A null `event` changes nothing, because that is how several events are
 * shown.
 */
@Dto('WebhookSubscriptionChanges', { example: { description: 'Till', enabled: true } })
@FieldsRule<UpdateWebhookSubscriptionDto>(
  ['events', 'event'],
  'event',
  ({ events, event }) => !events || !event || isOnly(event, events),
  'must be the same as events',
)
@FieldsRule<UpdateWebhookSubscriptionDto>(
  ['enabled', 'replay_missed'],
  'replay_missed',
  ({ enabled, replay_missed }) => !replay_missed || enabled === true,
  'needs enabled true',
)
export class UpdateWebhookSubscriptionDto {
  @EventsField({ omittable: true, description: 'Replaces the list' })
  declare readonly events?: string[];

  @OneOfField(SUBSCRIBABLE, { ...THE_SAME, clearable: true })
  declare readonly event?: string | null;

  @TargetUrlField({ omittable: true }) declare readonly target_url?: string;
  @TextField({ clearable: true, description: DESCRIPTIONS.description })
  declare readonly description?: string | null;
  @OneOfField(FORMATS, { omittable: true, description: DESCRIPTIONS.payload_format })
  declare readonly payload_format?: PayloadFormat;

  @HeadersField({
    clearable: true,
    description: 'Replaces all headers; the value ••• keeps the one that the header has',
  })
  declare readonly headers?: CustomHeaders | null;
  @IdsField({ clearable: true, description: DESCRIPTIONS.card_ids })
  declare readonly card_ids?: number[] | null;
  @IdsField({ clearable: true, description: DESCRIPTIONS.location_ids })
  declare readonly location_ids?: number[] | null;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.personal_data })
  declare readonly personal_data?: boolean;
  @OneOfField(SIGNATURES, {
    omittable: true,
    description: 'Only the current value: rotate_secret changes it',
  })
  declare readonly signature?: SignatureKind;

  @BooleanField({ omittable: true, description: 'false pauses, true resumes' })
  declare readonly enabled?: boolean;

  @BooleanField({
    default: false,
    description: 'With enabled true: also sends what was recorded since it was disabled',
  })
  declare readonly replay_missed: boolean;
}

@Dto('SecretRotation', { example: { grace_seconds: 3600 } })
export class RotateSecretDto {
  @IntegerField({
    min: 0,
    max: WEEK_SECONDS,
    default: 0,
    description: 'Seconds during which the old secret also signs',
  })
  declare readonly grace_seconds: number;

  @OneOfField(SIGNATURES, { optional: true, description: 'Signs like this from now on' })
  declare readonly signature: SignatureKind | null;
}

@Dto('WebhookSubscriptionListQuery')
export class WebhookSubscriptionListQuery extends PageQuery {
  @TextField({ optional: true, description: 'Only subscriptions that list this event, or *' })
  declare readonly event: string | null;
}

@Dto('WebhookSubscription')
export class WebhookSubscriptionJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @TextsProperty(
    { enum: SUBSCRIBABLE },
    {
      example: ['stamp.earned', 'reward.redeemed'],
      description: 'The events that are delivered; * stands for all, those to come included.',
    },
  )
  declare readonly events: string[];
  @TextProperty({ nullable: true, description: 'The event, if there is exactly one' })
  declare readonly event: string | null;
  @TextProperty({
    format: 'uri',
    example: 'https://receiver.example/webhooks',
    description: 'The URL that events are sent to.',
  })
  declare readonly target_url: string;
  @TextProperty({ nullable: true, example: 'Till', description: DESCRIPTIONS.description })
  declare readonly description: string | null;
  @OneOfProperty(FORMATS, { description: DESCRIPTIONS.payload_format })
  declare readonly payload_format: PayloadFormat;
  @JsonProperty({ example: { 'X-Api-Key': '•••' }, description: DESCRIPTIONS.headers })
  declare readonly headers: CustomHeaders;
  @IntegersProperty({ nullable: true, example: null, description: DESCRIPTIONS.card_ids })
  declare readonly card_ids: number[] | null;
  @IntegersProperty({ nullable: true, example: null, description: DESCRIPTIONS.location_ids })
  declare readonly location_ids: number[] | null;
  @BooleanProperty({ description: DESCRIPTIONS.personal_data })
  declare readonly personal_data: boolean;
  @OneOfProperty(SIGNATURES, { description: DESCRIPTIONS.signature })
  declare readonly signature: SignatureKind;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Verifies the signatures of ed25519, begins with whpk_; null for hmac.',
  })
  declare readonly public_key: string | null;
  @BooleanProperty({ description: DESCRIPTIONS.enabled }) declare readonly enabled: boolean;
  @TimestampProperty({
    nullable: true,
    example: null,
    description: 'When it was disabled; null while it is enabled.',
  })
  declare readonly disabled_at: string | null;
  @OneOfProperty(DISABLED_REASONS, {
    nullable: true,
    example: null,
    description:
      'Why it was disabled: by a user, after three days without a successful delivery, or because its address may not be reached.',
  })
  declare readonly disabled_reason: DisabledReason | null;
  @TimestampProperty({ nullable: true, description: 'When the last attempt was made.' })
  declare readonly last_delivery_at: string | null;
  @IntegerProperty({
    nullable: true,
    example: 204,
    description: 'The HTTP status that the last attempt got; null: none.',
  })
  declare readonly last_delivery_status: number | null;
  @TextProperty({
    nullable: true,
    description: 'Why the last attempt failed; null when it did not.',
  })
  declare readonly last_delivery_error: string | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

@Dto('WebhookSubscriptionWithSecret')
export class WebhookSubscriptionSecretJson extends WebhookSubscriptionJson {
  @TextProperty({
    example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
    description: 'Signs the deliveries as in Standard Webhooks; empty for ed25519',
  })
  declare readonly secret: string;
}

@Dto('WebhookTestResult')
export class WebhookTestJson {
  @BooleanProperty({ description: 'The URL responded with 2xx' })
  declare readonly delivered: boolean;
  @IntegerProperty({
    nullable: true,
    example: 204,
    description: 'The HTTP status of the response',
  })
  declare readonly status: number | null;
  @TextProperty({
    example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
    description: 'The webhook-id of the test event',
  })
  declare readonly event_id: string;
  @TextProperty({ nullable: true, description: 'Why delivery failed' })
  declare readonly error: string | null;
}

export function toSubscriptionAttributes(
  input: CreateWebhookSubscriptionDto,
): SubscriptionAttributes {
  return {
    events: getEvents(input),
    targetUrl: input.target_url,
    description: input.description,
    payloadFormat: input.payload_format,
    headers: input.headers ?? {},
    cardIds: input.card_ids,
    locationIds: input.location_ids,
    personalData: input.personal_data,
    signature: input.signature,
    enabled: input.enabled,
  };
}

export function toSubscriptionChanges(input: UpdateWebhookSubscriptionDto): SubscriptionChanges {
  const several = input.events ?? (input.event ? [input.event] : undefined);
  const { target_url, description, payload_format, headers, card_ids, location_ids } = input;
  const { personal_data, signature, enabled } = input;
  return {
    ...(several && { events: several }),
    ...(target_url !== undefined && { targetUrl: target_url }),
    ...(description !== undefined && { description }),
    ...(payload_format !== undefined && { payloadFormat: payload_format }),
    ...(headers !== undefined && { headers: headers ?? {} }),
    ...(card_ids !== undefined && { cardIds: card_ids }),
    ...(location_ids !== undefined && { locationIds: location_ids }),
    ...(personal_data !== undefined && { personalData: personal_data }),
    ...(signature !== undefined && { signature }),
    ...(enabled !== undefined && { enabled }),
  };
}

export function toWebhookSubscriptionJson(
  subscription: WebhookSubscription,
): WebhookSubscriptionJson {
  return {
    id: subscription.id,
    account_id: subscription.accountId,
    events: subscription.events,
    event: getOnlyEvent(subscription.events),
    target_url: subscription.targetUrl,
    description: subscription.description,
    payload_format: subscription.payloadFormat,
    headers: hideHeaderValues(Object.keys(subscription.headers)),
    card_ids: subscription.cardIds,
    location_ids: subscription.locationIds,
    personal_data: subscription.personalData,
    signature: subscription.signature,
    public_key: subscription.publicKey,
    enabled: subscription.enabled,
    disabled_at: toTimeJson(subscription.disabledAt),
    disabled_reason: subscription.disabledReason,
    last_delivery_at: toTimeJson(subscription.lastDeliveryAt),
    last_delivery_status: subscription.lastDeliveryStatus,
    last_delivery_error: subscription.lastDeliveryError,
    created_at: subscription.createdAt.toISOString(),
    updated_at: subscription.updatedAt.toISOString(),
  };
}

/** @param secret never shown when it is a private key */
export function toWebhookSubscriptionSecretJson(
  subscription: WebhookSubscription,
  secret: string,
): WebhookSubscriptionSecretJson {
  const isShared = subscription.signature === 'hmac';
  return { ...toWebhookSubscriptionJson(subscription), secret: isShared ? secret : '' };
}

/** Renders the result of a test. @param error described in words; null when the URL responded with 2xx */
export function toWebhookTestJson(
  eventId: string,
  status: number | null,
  error: string | null,
): WebhookTestJson {
  return { delivered: error === null, status, event_id: eventId, error };
}

function toTimeJson(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}

function getEvents({ events: several, event }: Chosen): string[] {
  return several ?? (event === null ? [] : [event]);
}

function isOnly(event: string, several: string[]): boolean {
  return several.length === 1 && several[0] === event;
}

function isFlattable(input: Chosen): boolean {
  const chosen = getEvents(input);
  return chosen.length === 0 || getOnlyEvent(chosen) !== null;
}
