import type { Metadata } from '#platform/kernel/metadata.js';
import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  JsonProperty,
  ObjectProperty,
  ObjectsProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { CustomerCardDetailJson, CustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import { CONSENT_KINDS } from './consents.js';
import type { Customer } from './customer.js';
import type { ConsentKind } from './customer.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  metadata: 'Data of other systems, stored with it.',
  created_at: 'When it was created.',
  updated_at: 'When it was last changed.',
};

@Dto('ExternalReference')
export class ExternalReferenceJson {
  @TextProperty({ example: 'till', description: 'The other system.' })
  declare readonly source: string;
  @TextProperty({ example: 'A-17', description: 'The customer’s id in the other system.' })
  declare readonly external_id: string;
  @JsonProperty({ description: DESCRIPTIONS.metadata }) declare readonly metadata: Metadata;
  @TimestampProperty({ description: DESCRIPTIONS.created_at }) declare readonly created_at: string;
  @TimestampProperty({ description: DESCRIPTIONS.updated_at }) declare readonly updated_at: string;
}

@Dto('Customer')
export class CustomerJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @TextProperty({ example: 'Anna', description: 'The first name.' })
  declare readonly first_name: string;
  @TextProperty({ nullable: true, description: 'The last name.' }) declare readonly last_name:
    | string
    | null;
  @TextProperty({
    nullable: true,
    example: 'anna@example.com',
    description: 'The e-mail address, unique in the store whatever its case.',
  })
  declare readonly email: string | null;
  @TextProperty({
    nullable: true,
    example: '+4915112345678',
    description: 'The phone number, unique in the store.',
  })
  declare readonly phone: string | null;
  @TextProperty({
    nullable: true,
    format: 'date',
    example: '1990-05-31',
    description: 'The day of birth, as YYYY-MM-DD.',
  })
  declare readonly birthday: string | null;
  @IntegerProperty({ example: 5, description: 'Over all cards' })
  declare readonly stamp_count: number;
  @JsonProperty({ description: DESCRIPTIONS.metadata }) declare readonly metadata: Metadata;
  @ObjectsProperty(() => ExternalReferenceJson, {
    description: 'The customer’s ids in other systems.',
  })
  declare readonly external_references: ExternalReferenceJson[];
  @ObjectsProperty(() => CustomerCardJson, { description: 'Their cards, by id.' })
  declare readonly customer_cards: CustomerCardJson[];
  @BooleanProperty({ example: false, description: 'Whether the customer agreed to marketing.' })
  declare readonly marketing_consent: boolean;
  @BooleanProperty({ example: false, description: 'Whether the customer agreed to text messages.' })
  declare readonly sms_consent: boolean;
  @TextsProperty(
    { enum: [...CONSENT_KINDS] },
    {
      example: [],
      description:
        'The consents that do not hold yet, because the customer has not confirmed them by the link that went to the address or number. Send nothing by a channel whose consent is here, even if the consent itself is true',
    },
  )
  declare readonly unconfirmed_consents: ConsentKind[];
  @TimestampProperty({ description: DESCRIPTIONS.created_at }) declare readonly created_at: string;
  @TimestampProperty({ description: DESCRIPTIONS.updated_at }) declare readonly updated_at: string;
  @TimestampProperty({
    nullable: true,
    description: 'Null unless the person was erased; personal fields are empty since then',
  })
  declare readonly erased_at: string | null;
  @IntegerProperty({
    nullable: true,
    example: null,
    description: 'The customer that this one was merged into and who goes on for both',
  })
  declare readonly merged_into: number | null;
}

@Dto('CreatedCustomer')
export class CreatedCustomerJson extends CustomerJson {
  @ObjectProperty(() => CustomerCardDetailJson, {
    optional: true,
    description: 'With card_id only',
  })
  declare readonly customer_card?: CustomerCardDetailJson;
}

export function toCustomerJson(customer: Customer, cards: CustomerCardJson[]): CustomerJson {
  return {
    id: customer.id,
    account_id: customer.accountId,
    first_name: customer.firstName,
    last_name: customer.lastName,
    email: customer.email,
    phone: customer.phone,
    birthday: customer.birthday,
    stamp_count: cards.reduce((sum, card) => sum + card.stamps_count, 0),
    metadata: customer.metadata,
    external_references: customer.externalReferences.map((reference) => ({
      source: reference.source,
      external_id: reference.externalId,
      metadata: reference.metadata,
      created_at: reference.createdAt,
      updated_at: reference.updatedAt,
    })),
    customer_cards: cards,
    marketing_consent: customer.marketingConsent,
    sms_consent: customer.smsConsent,
    unconfirmed_consents: customer.unconfirmedConsents,
    created_at: customer.createdAt,
    updated_at: customer.updatedAt,
    erased_at: customer.erasedAt,
    merged_into: customer.mergedInto?.customerId ?? null,
  };
}
