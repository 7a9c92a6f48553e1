import { BooleanField, IntegerField, OneOfField, TextField } from '#platform/http/fields.js';
import { Dto, FieldsRule } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import {
  BooleanProperty,
  IntegerProperty,
  JsonProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { hideHeaderValues, type CustomHeaders } from '#outbound/sending/webhook-headers.js';
import { SIGNATURES, type SignatureKind } from '#outbound/sending/webhook-signature.js';
import {
  eventsField,
  headersField,
  idsField,
  SUBSCRIBABLE,
  targetUrlField,
} from './webhook-subscription-fields.dto.js';
import {
  getOnlyEvent,
  type SubscriptionAttributes,
  type SubscriptionChanges,
  type WebhookSubscription,
} from './webhook-subscription.js';
import { ISSUES } from '#translations/issues.js';

const WEEK_SECONDS = 7 * 24 * 60 * 60;

const HEADERS =
  'Your own headers of each delivery, at most 10; the values are never shown, every one reads as •••.';

/** The events of a request, which may use either field; null for a field that it did not use. */
type Chosen = { events: string[] | null; event: string | null };

type Settable = Omit<SubscriptionAttributes, 'headers'> & {
  event: string | null;
  headers: CustomHeaders | null;
};

const FIELDS = {
  events: eventsField({
    description: 'The events that are delivered; * stands for all, those to come included.',
    create: {
      optional: true,
      description: 'Either this or event is required; * alone means every event',
    },
    update: { description: 'Replaces the list' },
    response: { example: ['stamp.earned', 'reward.redeemed'] },
  }),
  event: field.oneOf(SUBSCRIBABLE as readonly string[], {
    optional: true,
    description: 'The same as events with one entry',
  }),
  target_url: targetUrlField({
    description: 'The URL that events are sent to.',
    response: { example: 'https://receiver.example/webhooks' },
  }),
  description: field.text({
    optional: true,
    description: 'Your own label.',
    response: { example: 'Till' },
  }),
  payload_format: field.oneOf(['envelope', 'flat'], {
    default: 'envelope',
    description: 'The format that is sent: envelope, or flat, which is only the data.',
  }),
  headers: headersField({
    optional: true,
    description: HEADERS,
    update: {
      description: 'Replaces all headers; the value ••• keeps the one that the header has',
    },
  }),
  card_ids: idsField({
    optional: true,
    description: 'Only events about these cards, and events about no card; null means all.',
    response: { example: null },
  }),
  location_ids: idsField({
    optional: true,
    description: 'Only events at these locations, and events at no location; null means all.',
    response: { example: null },
  }),
  personal_data: field.boolean({
    default: true,
    description: 'Whether personal fields are sent; if false they are null.',
  }),
  signature: field.oneOf(SIGNATURES, {
    default: 'hmac',
    description: 'hmac signs with the secret, ed25519 with a private key that only Inkpad has.',
    update: { description: 'Only the current value: rotate_secret changes it' },
  }),
  enabled: field.boolean({
    default: true,
    description:
      'Whether events are delivered. While it is false, the subscription is paused: events are not enqueued either.',
    update: { description: 'false pauses, true resumes' },
  }),
} satisfies FieldsOf<Settable, Omit<Settable, 'events'> & Chosen>;

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  ...pick(FIELDS, 'events'),
  event: field.text({ optional: true, description: 'The event, if there is exactly one' }),
  ...pick(FIELDS, 'target_url', 'description', 'payload_format'),
  headers: field.response<CustomHeaders>(
    JsonProperty({ example: { 'X-Api-Key': '•••' }, description: HEADERS }),
  ),
  ...pick(FIELDS, 'card_ids', 'location_ids', 'personal_data', 'signature'),
  public_key: field.text({
    optional: true,
    description: 'Verifies the signatures of ed25519, begins with whpk_; null for hmac.',
    response: { example: null },
  }),
  ...pick(FIELDS, 'enabled'),
  disabled_at: field.response<string | null>(
    TimestampProperty({
      nullable: true,
      example: null,
      description: 'When it was disabled; null while it is enabled.',
    }),
  ),
  disabled_reason: field.oneOf(['disabled_by_user', 'failing', 'blocked_address'], {
    optional: true,
    description:
      'Why it was disabled: by a user, after three days without a successful delivery, or because its address may not be reached.',
    response: { example: null },
  }),
  last_delivery_at: field.response<string | null>(
    TimestampProperty({ nullable: true, description: 'When the last attempt was made.' }),
  ),
  last_delivery_status: field.integer({
    optional: true,
    example: 204,
    description: 'The HTTP status that the last attempt got; null: none.',
  }),
  last_delivery_error: field.text({
    optional: true,
    description: 'Why the last attempt failed; null when it did not.',
  }),
  ...TIMES,
} satisfies Showing<typeof FIELDS>;

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
  ISSUES.event_or_events_missing,
)
@FieldsRule<CreateWebhookSubscriptionDto>(
  ['events', 'event'],
  'event',
  ({ events, event }) => events === null || event === null || isOnly(event, events),
  ISSUES.event_differs,
)
@FieldsRule<CreateWebhookSubscriptionDto>(
  ['events', 'event', 'payload_format'],
  'payload_format',
  (input) => input.payload_format !== 'flat' || isFlattable(input),
  ISSUES.flat_needs_one_event,
)
export class CreateWebhookSubscriptionDto extends derive.input(FIELDS) {}

/**
 * Fields that are left out stay as they are. A null `event` changes nothing, because that is how several events are
 * shown.
 */
@Dto('WebhookSubscriptionChanges', { example: { description: 'Till', enabled: true } })
@FieldsRule<UpdateWebhookSubscriptionDto>(
  ['events', 'event'],
  'event',
  ({ events, event }) => !events || !event || isOnly(event, events),
  ISSUES.event_differs,
)
@FieldsRule<UpdateWebhookSubscriptionDto>(
  ['enabled', 'replay_missed'],
  'replay_missed',
  ({ enabled, replay_missed }) => !replay_missed || enabled === true,
  ISSUES.replay_needs_enabled,
)
export class UpdateWebhookSubscriptionDto extends derive.changes(FIELDS) {
  @BooleanField({
    optional: true,
    description:
      'With enabled true: false sends nothing of what was recorded since it was disabled; by default all of it is sent',
  })
  declare readonly replay_missed: boolean | null;
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
export class WebhookSubscriptionJson extends derive.response(RESPONSE) {}

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

/** `events` may be sent as `event`, and headers are never null: the two are converted by hand. */
const { events: _, event: __, headers: ___, ...CONVERTED } = FIELDS;
const toFields = derive.toAttributes(CONVERTED);

export function toSubscriptionAttributes(
  input: CreateWebhookSubscriptionDto,
): SubscriptionAttributes {
  return { ...toFields(input), events: getEvents(input), headers: input.headers ?? {} };
}

export function toSubscriptionChanges(input: UpdateWebhookSubscriptionDto): SubscriptionChanges {
  const { event, headers } = input;
  const events = input.events ?? (event ? [event] : undefined);
  return {
    ...toFields(input),
    ...(events && { events }),
    ...(headers !== undefined && { headers: headers ?? {} }),
  };
}

const renderSubscription = derive.toJsonWith(RESPONSE);

export function toWebhookSubscriptionJson(
  subscription: WebhookSubscription,
): WebhookSubscriptionJson {
  return renderSubscription(subscription, {
    event: getOnlyEvent(subscription.events),
    headers: hideHeaderValues(Object.keys(subscription.headers)),
    disabledAt: toTimeJson(subscription.disabledAt),
    lastDeliveryAt: toTimeJson(subscription.lastDeliveryAt),
    createdAt: subscription.createdAt.toISOString(),
    updatedAt: subscription.updatedAt.toISOString(),
  });
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
