import type { Type } from '@nestjs/common';
import type { PublishedEvent } from '#platform/http/endpoint.js';
import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  JsonProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { CardJson } from '#loyalty/cards/card.dto.js';
import { RewardJson } from '#loyalty/rewards/reward.dto.js';
import {
  AvailableRewardJson,
  CustomerCardDetailJson,
  CustomerCardJson,
  RedemptionRecordJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { CustomerJson, ExternalReferenceJson } from '#loyalty/customers/customer.dto.js';
import { LocationJson } from '#loyalty/locations/location.dto.js';
import { PosterJson } from '#loyalty/posters/poster.dto.js';
import { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { PublicEventType } from './public-events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  first_name: 'The first name; null where a subscription sends no personal data.',
  last_name: 'The last name.',
  email: 'The e-mail address, unique in the store whatever its case.',
  phone: 'The phone number, unique in the store.',
  source: 'The origin.',
  customer: 'The customer, as they are called now.',
  customer_id: 'The customer.',
  customer_card_id: 'The customer card.',
  card_id: 'The card, which is a template.',
  card_name: 'The name of the card.',
  stamps_count: 'The stamps on the card.',
};

/** The schemas of what public-events.ts renders, for the OpenAPI document and for tests. */

@Dto('EventCustomer')
class CustomerName {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({ nullable: true, example: 'Anna', description: DESCRIPTIONS.first_name })
  declare readonly first_name: string | null;
  @TextProperty({ nullable: true, description: DESCRIPTIONS.last_name })
  declare readonly last_name: string | null;
  @TextProperty({ nullable: true, example: 'anna@example.com', description: DESCRIPTIONS.email })
  declare readonly email: string | null;
  @TextProperty({ nullable: true, example: '+4915112345678', description: DESCRIPTIONS.phone })
  declare readonly phone: string | null;
}

type Nullable = 'first_name' | 'metadata' | 'external_references';

/** A customer, some of whose fields are null where a subscription sends no personal data. */
@Dto('CustomerUpdatedData')
class CustomerData extends (CustomerJson as Type<Omit<CustomerJson, Nullable>>) {
  @TextProperty({ nullable: true, example: 'Anna', description: DESCRIPTIONS.first_name })
  declare readonly first_name: string | null;
  @JsonProperty({
    nullable: true,
    example: {},
    description: 'Data of other systems, stored with it.',
  })
  declare readonly metadata: object | null;
  @ObjectsProperty(() => ExternalReferenceJson, {
    nullable: true,
    description: 'The customer’s ids in other systems.',
  })
  declare readonly external_references: ExternalReferenceJson[] | null;
}

@Dto('CustomerCreatedData')
class CustomerCreatedData extends CustomerData {
  @OneOfProperty(['poster', 'app', 'import', 'api'], { description: DESCRIPTIONS.source })
  declare readonly source: string;
}

@Dto('CustomerCardCreatedData')
class CustomerCardCreatedData extends CustomerCardDetailJson {
  @ObjectProperty(() => CustomerName, { description: DESCRIPTIONS.customer })
  declare readonly customer: CustomerName;
}

class CustomerCardReferences {
  @IntegerProperty({ description: DESCRIPTIONS.customer_id }) declare readonly customer_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.customer_card_id })
  declare readonly customer_card_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextProperty({ example: 'Coffee card', description: DESCRIPTIONS.card_name })
  declare readonly card_name: string;
  @ObjectProperty(() => CustomerName, { description: DESCRIPTIONS.customer })
  declare readonly customer: CustomerName;
}

class StampingData extends CustomerCardReferences {
  @IntegerProperty({ example: 5, description: DESCRIPTIONS.stamps_count })
  declare readonly stamps_count: number;
  @IntegerProperty({
    example: 5,
    description: 'The number of stamps missing to a full card, 0 beyond it.',
  })
  declare readonly stamps_remaining: number;
  @OneOfProperty(['app_scan', 'api', 'pos', 'welcome_bonus', 'adjustment'], {
    description: DESCRIPTIONS.source,
  })
  declare readonly source: string;
  @TimestampProperty({ description: 'When it happened.' }) declare readonly occurred_at: string;
  @IntegerProperty({ nullable: true, description: 'The location where it happened.' })
  declare readonly location_id: number | null;
  @TextProperty({
    nullable: true,
    description: 'The member of staff, by a name of your choice.',
  })
  declare readonly staff_ref: string | null;
  @TextProperty({ nullable: true, description: 'The receipt number.' })
  declare readonly external_ref: string | null;
  @TextProperty({
    nullable: true,
    description: 'The note of the action; null for a correction',
  })
  declare readonly note: string | null;
  @ObjectProperty(() => CustomerCardJson, {
    description: 'The customer card, as the event left it.',
  })
  declare readonly customer_card: CustomerCardJson;
}

@Dto('StampEarnedData')
class StampEarnedData extends StampingData {
  @IntegerProperty({ minimum: 1, description: 'The number of stamps that were added' })
  declare readonly stamps: number;
}

@Dto('StampRemovedData')
class StampRemovedData extends StampingData {
  @IntegerProperty({ minimum: 1, description: 'The number of stamps that were removed' })
  declare readonly stamps: number;
}

@Dto('RewardUnlockedData')
class RewardUnlockedData extends CustomerCardReferences {
  @IntegerProperty({ example: 5, description: DESCRIPTIONS.stamps_count })
  declare readonly stamps_count: number;
  @ObjectProperty(() => AvailableRewardJson, { description: 'The reward, as it was then.' })
  declare readonly reward: AvailableRewardJson;
}

@Dto('RewardRedeemedData')
class RewardRedeemedData extends RedemptionRecordJson {
  @IntegerProperty({ description: DESCRIPTIONS.customer_id }) declare readonly customer_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.customer_card_id })
  declare readonly customer_card_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextProperty({ example: 'Coffee card', description: DESCRIPTIONS.card_name })
  declare readonly card_name: string;
  @ObjectProperty(() => CustomerName, { description: DESCRIPTIONS.customer })
  declare readonly customer: CustomerName;
}

@Dto('WebhookTestData')
class WebhookTestData {
  @IntegerProperty({ description: 'The webhook subscription.' })
  declare readonly subscription_id: number;
  @TextProperty({
    example: 'A test of this webhook subscription',
    description: 'A sentence for the reader of the test.',
  })
  declare readonly message: string;
}

@Dto('PreviousAttributes', { example: { last_name: null } })
class PreviousAttributes {
  @TextProperty({
    optional: true,
    nullable: true,
    example: 'Anna',
    description: DESCRIPTIONS.first_name,
  })
  declare readonly first_name?: string | null;
  @TextProperty({ optional: true, nullable: true, description: DESCRIPTIONS.last_name })
  declare readonly last_name?: string | null;
  @TextProperty({
    optional: true,
    nullable: true,
    example: 'anna@example.com',
    description: DESCRIPTIONS.email,
  })
  declare readonly email?: string | null;
  @TextProperty({
    optional: true,
    nullable: true,
    example: '+4915112345678',
    description: DESCRIPTIONS.phone,
  })
  declare readonly phone?: string | null;
  @TextProperty({
    optional: true,
    nullable: true,
    format: 'date',
    example: '1990-05-31',
    description: 'The day of birth, as YYYY-MM-DD.',
  })
  declare readonly birthday?: string | null;
  @JsonProperty({
    optional: true,
    nullable: true,
    description: 'Data of other systems, stored with it.',
  })
  declare readonly metadata?: object | null;
  @BooleanProperty({
    optional: true,
    example: false,
    description: 'Whether the customer agreed to marketing.',
  })
  declare readonly marketing_consent?: boolean;
  @BooleanProperty({
    optional: true,
    example: false,
    description: 'Whether the customer agreed to text messages.',
  })
  declare readonly sms_consent?: boolean;
}

function describeWebhook(
  type: PublicEventType | 'webhook.test',
  data: Type,
  {
    summary,
    details,
    hasPrevious = false,
  }: { summary: string; details?: string; hasPrevious?: boolean },
): PublishedEvent {
  const name = type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());

  class Envelope {
    @TextProperty({
      example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
      description: 'The same in every attempt, so that duplicates can be dropped',
    })
    declare readonly id: string;
    @OneOfProperty([type], { description: 'The kind of event.' }) declare readonly type: string;
    @TimestampProperty({ description: 'When the event was recorded' })
    declare readonly timestamp: string;
    @IntegerProperty({
      ...(type === 'webhook.test' && { optional: true }),
      description:
        'The revision of the record that changed, from 0: of two envelopes about one record the higher is the later',
    })
    declare readonly sequence: number;
    @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
    @ObjectProperty(() => data, {
      description: 'The data of the event. Its shape depends on type.',
    })
    declare readonly data: object;
  }

  class EnvelopeWithPrevious extends Envelope {
    @ObjectProperty(() => PreviousAttributes, {
      description: 'The old values of the changed fields',
    })
    declare readonly previous_attributes: PreviousAttributes;
  }

  const envelope = hasPrevious ? EnvelopeWithPrevious : Envelope;
  Dto(`${name}Event`)(envelope);
  return { type, summary, ...(details && { details }), envelope, data };
}

/** In the order of the table in docs/webhooks.md, which `npm run openapi` generates. */
export const publicEvents = [
  describeWebhook('customer.created', CustomerCreatedData, {
    summary: 'A customer joined the programme',
    details: '`source` is `poster`, `app`, `import` or `api`.',
  }),
  describeWebhook('customer.updated', CustomerData, {
    summary: 'A customer’s name, contact, birthday, metadata or consent changed',
    details: 'It is also sent when customers are merged or unmerged, and when one is erased.',
    hasPrevious: true,
  }),
  describeWebhook('customer_card.created', CustomerCardCreatedData, {
    summary: 'A customer was issued a card',
  }),
  describeWebhook('stamp.earned', StampEarnedData, {
    summary: 'Stamps were added',
    details: '`source` is `app_scan`, `api`, `pos`, `welcome_bonus` or `adjustment`.',
  }),
  describeWebhook('stamp.removed', StampRemovedData, {
    summary: 'Stamps were removed by an adjustment',
    details: 'It is also sent after a reversal. Redeeming sends `reward.redeemed` instead.',
  }),
  describeWebhook('reward.unlocked', RewardUnlockedData, {
    summary: 'A customer now has enough stamps for a reward',
    details: 'It is sent once each time the threshold is crossed.',
  }),
  describeWebhook('reward.redeemed', RewardRedeemedData, {
    summary: 'A customer redeemed a reward and its stamps were deducted',
  }),
  describeWebhook('card.created', CardJson, { summary: 'A card was created' }),
  describeWebhook('card.updated', CardJson, {
    summary: 'An attribute or the picture of a card changed',
  }),
  describeWebhook('card.archived', CardJson, { summary: 'A card was archived' }),
  describeWebhook('card.unarchived', CardJson, { summary: 'An archived card became active again' }),
  describeWebhook('reward.created', RewardJson, { summary: 'A reward was added to a card' }),
  describeWebhook('reward.updated', RewardJson, { summary: 'A reward changed' }),
  describeWebhook('reward.deleted', RewardJson, {
    summary: 'A reward was deleted',
    details: '`data` shows it as it was.',
  }),
  describeWebhook('location.created', LocationJson, { summary: 'A location was created' }),
  describeWebhook('location.updated', LocationJson, {
    summary: 'A location changed, or its pin or coordinates did',
    details: 'It is also sent when its address was geocoded.',
  }),
  describeWebhook('location.deleted', LocationJson, {
    summary: 'A location was deleted',
    details: '`data` shows it as it was.',
  }),
  describeWebhook('poster.created', PosterJson, { summary: 'A poster was created' }),
  describeWebhook('poster.updated', PosterJson, { summary: 'A poster changed' }),
  describeWebhook('poster.deleted', PosterJson, {
    summary: 'A poster was deleted',
    details: '`data` shows it as it was.',
  }),
  describeWebhook('store.updated', AccountJson, {
    summary: 'A setting of the store changed, such as its name',
    details: '`personal` says whether the store was made as somebody’s own.',
  }),
  describeWebhook('webhook.test', WebhookTestData, {
    summary: 'Sent only by the operation that tests a subscription',
  }),
];
