import { getNowMs } from '#platform/kernel/clock.js';
import type { Metadata } from '#platform/kernel/metadata.js';
import { findTextIssue, toIdentifier } from '#platform/http/conversions.js';
import {
  BooleanField,
  Check,
  Field,
  IntegerField,
  MetadataField,
  OneOfField,
  PastDateField,
  TextField,
  listKind,
  matchingKind,
  type FieldKind,
  type FieldOptions,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { emailKind, phoneKind } from './contact.js';
import type { CustomerChanges } from './customer.js';
import type { ReferenceInput } from './external-references.js';
import type { PersonalFields } from './customer.events.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  first_name: 'The first name.',
  last_name: 'The last name.',
  email: 'The e-mail address, unique in the store whatever its case.',
  birthday: 'The day of birth, as YYYY-MM-DD.',
  marketing_consent: 'Whether the customer agreed to marketing.',
  sms_consent: 'Whether the customer agreed to text messages.',
};

/** UTC+14 */
const FURTHEST_EAST_MS = 14 * 60 * 60_000;

const IF_EXISTS = ['error', 'return'] as const;

const SOURCE = /^[a-z0-9_-]{1,64}$/;
const MAX_REFERENCES = 100;
const MAX_EXTERNAL_ID = 255;

/** A number as text. JSON rounds off the last digits of a number that is too long: it would be another record's id. */
const externalIdKind: FieldKind = {
  schema: { oneOf: [{ type: 'string' }, { type: 'number' }], maxLength: MAX_EXTERNAL_ID },
  convert: (value) => (isExactNumber(value) ? String(value) : toIdentifier(value)),
  validators: [Check(findExternalIdIssue)],
};

@Dto('ExternalReferenceInput')
export class ExternalReferenceDto {
  @Field(matchingKind(SOURCE, 64), { description: 'The other system, by a name of your choice.' })
  declare readonly source: string;
  @Field(externalIdKind, { description: 'The customer’s id in the other system.' })
  declare readonly external_id: string;
  @MetadataField({ default: {} }) declare readonly metadata: Metadata;
}

@Dto('CustomerInput', {
  wrapper: 'customer',
  bare: true,
  example: {
    first_name: 'Anna',
    email: 'anna@example.com',
    external_references: [{ source: 'till', external_id: 'A-17' }],
  },
})
export class CreateCustomerDto {
  @TextField({ description: DESCRIPTIONS.first_name }) declare readonly first_name: string;
  @TextField({ optional: true, description: DESCRIPTIONS.last_name }) declare readonly last_name:
    | string
    | null;
  @EmailField({ optional: true, description: DESCRIPTIONS.email }) declare readonly email:
    | string
    | null;
  @PhoneField({ optional: true }) declare readonly phone: string | null;
  @BirthdayField({ optional: true, description: DESCRIPTIONS.birthday }) declare readonly birthday:
    | string
    | null;
  @MetadataField({ default: {} }) declare readonly metadata: Metadata;
  @ReferencesField({
    default: [],
    description: 'The customer’s ids in other systems; one that is there already is updated.',
  })
  declare readonly external_references: ExternalReferenceDto[];
  @BooleanField({ default: false, description: DESCRIPTIONS.marketing_consent })
  declare readonly marketing_consent: boolean;
  @BooleanField({ default: false, description: DESCRIPTIONS.sms_consent })
  declare readonly sms_consent: boolean;
}

/** A customer, and what to do for them at once. */
@Dto('CustomerCreation', { wrapper: 'customer', bare: true, inside: CreateCustomerDto })
export class CustomerCreationDto extends CreateCustomerDto {
  @IntegerField({
    min: 1,
    optional: true,
    example: 1,
    description: 'The card, which is a template.',
  })
  declare readonly card_id: number | null;
  @BooleanField({
    default: false,
    description: 'true, with card_id: the wallet links are sent to the customer by e-mail or SMS.',
  })
  declare readonly send_card_links: boolean;
  @OneOfField(IF_EXISTS, {
    default: 'error',
    description:
      'What to do when a customer has the e-mail address, the phone number or one of the references: error refuses the request, return responds with that customer.',
  })
  declare readonly if_exists: (typeof IF_EXISTS)[number];
}

@Dto('CustomerChanges', {
  wrapper: 'customer',
  bare: CreateCustomerDto,
  example: { last_name: 'Berg', metadata: { milk: 'oat' } },
})
export class UpdateCustomerDto {
  @TextField({ omittable: true, description: DESCRIPTIONS.first_name })
  declare readonly first_name?: string;
  @TextField({ clearable: true, description: DESCRIPTIONS.last_name }) declare readonly last_name?:
    | string
    | null;
  @EmailField({ clearable: true, description: DESCRIPTIONS.email }) declare readonly email?:
    | string
    | null;
  @PhoneField({ clearable: true }) declare readonly phone?: string | null;
  @BirthdayField({ clearable: true, description: DESCRIPTIONS.birthday })
  declare readonly birthday?: string | null;
  @MetadataField({ omittable: true }) declare readonly metadata?: Metadata;
  @ReferencesField({
    omittable: true,
    description: 'Ids in other systems to add or to update; none is removed.',
  })
  declare readonly external_references?: ExternalReferenceDto[];
  @BooleanField({ omittable: true, description: DESCRIPTIONS.marketing_consent })
  declare readonly marketing_consent?: boolean;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.sms_consent })
  declare readonly sms_consent?: boolean;
}

@Dto('MergeInput', { example: { from_customer_id: 2 } })
export class MergeDto {
  @IntegerField({ min: 1, description: 'The customer who is merged into the one of the path.' })
  declare readonly from_customer_id: number;
}

export type CustomerInput = Omit<PersonalFields, 'externalReferences'> & {
  externalReferences: ReferenceInput[];
  marketingConsent: boolean;
  smsConsent: boolean;
};

export function toCustomerInput(input: CreateCustomerDto): CustomerInput {
  return {
    firstName: input.first_name,
    lastName: input.last_name,
    email: input.email,
    phone: input.phone,
    birthday: input.birthday,
    metadata: input.metadata,
    externalReferences: input.external_references.map(toReferenceInput),
    marketingConsent: input.marketing_consent,
    smsConsent: input.sms_consent,
  };
}

/** Converts the fields that the request contains, and no others. */
export function toCustomerChanges(input: UpdateCustomerDto): CustomerChanges {
  const { first_name, last_name, email, phone, birthday, metadata } = input;
  const { external_references, marketing_consent, sms_consent } = input;
  return {
    ...(first_name !== undefined && { firstName: first_name }),
    ...(last_name !== undefined && { lastName: last_name }),
    ...(email !== undefined && { email }),
    ...(phone !== undefined && { phone }),
    ...(birthday !== undefined && { birthday }),
    ...(metadata !== undefined && { metadata }),
    ...(external_references !== undefined && {
      externalReferences: external_references.map(toReferenceInput),
    }),
    ...(marketing_consent !== undefined && { marketingConsent: marketing_consent }),
    ...(sms_consent !== undefined && { smsConsent: sms_consent }),
  };
}

function toReferenceInput({ source, external_id, metadata }: ExternalReferenceDto): ReferenceInput {
  return { source, externalId: external_id, metadata };
}

function EmailField(options: FieldOptions): PropertyDecorator {
  const schema = { type: 'string', format: 'email', minLength: 1, maxLength: 254 };
  return Field({ ...emailKind, schema }, options);
}

function PhoneField(options: FieldOptions): PropertyDecorator {
  const schema = { type: 'string', example: '+4915112345678' };
  return Field(
    { ...phoneKind, schema },
    {
      ...options,
      description:
        "Stored in E.164 if it begins with + or 00, or is a possible number of the store's country, else as its digits",
    },
  );
}

/** Refuses days that are in the future everywhere; the store's own day is checked where its time zone is known. */
function BirthdayField(options: FieldOptions): PropertyDecorator {
  const today = () => new Date(getNowMs() + FURTHEST_EAST_MS).toISOString().slice(0, 10);
  return PastDateField(today, options);
}

function ReferencesField(options: FieldOptions): PropertyDecorator {
  const label = (i: number) => `${i} `;
  return Field(
    listKind(() => ExternalReferenceDto, MAX_REFERENCES, label),
    options,
  );
}

function isExactNumber(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function findExternalIdIssue(id: unknown): Issue | undefined {
  if (typeof id === 'number') return ISSUES.external_id_too_large;
  const isValid =
    typeof id === 'string' && id !== '' && !findTextIssue(id) && [...id].length <= MAX_EXTERNAL_ID;
  return isValid ? undefined : ISSUES.external_id_invalid;
}
