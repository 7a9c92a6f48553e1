import { z } from 'zod';
import { InvalidFieldsError } from '#kernel/errors.js';
import {
  boolean,
  clearable,
  integer,
  metadata,
  optional,
  orDefault,
  pastDate,
  text,
  textFault,
  timestamp,
} from '#http/fields.js';
import { customerCardAnswer, customerCardDetailAnswer } from '#stamping/customer-card.dto.js';
import type { CustomerCardJson } from '#stamping/customer-card.dto.js';
import { isEmail, normalPhone } from './contact.js';
import {
  digitsOf,
  foldCase,
  type Customer,
  type CustomerChanges,
  type GivenReference,
} from './customer.js';
import type { PersonalFields } from './customer.events.js';

/** UTC+14 */
const FURTHEST_EAST_MS = 14 * 60 * 60_000;

const email = text({ max: 254 })
  .refine(isEmail, 'must be an e-mail address')
  .meta({ type: 'string', format: 'email', maxLength: 254 });

const phone = text({ max: 64 })
  .transform((given, context) => {
    const normal = normalPhone(given);
    if (normal !== undefined) return normal;
    context.addIssue({ code: 'custom', message: 'must be a phone number' });
    return z.NEVER;
  })
  .meta({
    type: 'string',
    description: 'With + it becomes E.164, without it only its digits are kept',
    example: '+4915112345678',
  });

const externalId = z
  .unknown()
  .transform((given, context): string => {
    // Of a longer number the last digits are lost before anybody here sees it: it would be another's id.
    if (typeof given === 'number' && Math.abs(given) > Number.MAX_SAFE_INTEGER) {
      context.addIssue({ code: 'custom', message: 'must be a string when it is so long a number' });
      return z.NEVER;
    }
    const id = typeof given === 'number' ? String(given) : given;
    if (typeof id === 'string' && id.trim() !== '' && [...id.trim()].length <= 255) {
      const fault = textFault(id);
      if (!fault) return id.trim();
    }
    context.addIssue({ code: 'custom', message: 'must be a string or number, up to 255 long' });
    return z.NEVER;
  })
  .meta({ type: ['string', 'number'], maxLength: 255 });

const externalReferences = z
  .array(
    z.object({
      source: text({ max: 64 })
        .refine((source) => /^[a-z0-9_-]{1,64}$/.test(source), 'must match [a-z0-9_-]{1,64}')
        .meta({ type: 'string', pattern: '^[a-z0-9_-]{1,64}$' }),
      external_id: externalId,
      metadata: orDefault(metadata(), {}),
    }),
    'must be a list of objects',
  )
  .max(100, 'must have at most 100 elements');

/** Nowhere is it a later day; whether it is that late in the store is judged where its zone is known. */
const birthday = pastDate(() => new Date(Date.now() + FURTHEST_EAST_MS).toISOString().slice(0, 10));

export const createCustomerDto = z
  .object({
    first_name: text(),
    last_name: optional(text()),
    email: optional(email),
    phone: optional(phone),
    birthday: optional(birthday),
    metadata: orDefault(metadata(), {}),
    external_references: orDefault(externalReferences, []),
    marketing_consent: orDefault(boolean(), false),
    sms_consent: orDefault(boolean(), false),
  })
  .meta({
    id: 'CustomerInput',
    example: {
      first_name: 'Anna',
      email: 'anna@example.com',
      external_references: [{ source: 'till', external_id: 'A-17' }],
    },
  });

export const updateCustomerDto = z
  .object({
    first_name: text().optional(),
    last_name: clearable(text()),
    email: clearable(email),
    phone: clearable(phone),
    birthday: clearable(birthday),
    metadata: metadata().optional(),
    external_references: externalReferences.optional(),
    marketing_consent: boolean().optional(),
    sms_consent: boolean().optional(),
  })
  .meta({ id: 'CustomerChanges', example: { last_name: 'Berg', metadata: { milk: 'oat' } } });

/** What stands beside the customer in the body of a creation. */
export const enrolmentDto = z.object({
  card_id: optional(integer({ min: 1 })).meta({ example: 1 }),
  send_card_links: orDefault(boolean(), false),
});

const PAGE_SIZE = { default: 20, max: 100 };

export const customerListQuery = z.object({
  search: optional(text()).describe(
    'Inside names and e-mail, digits of a phone, or exactly a card code, uuid or external id',
  ),
  source: optional(text()).describe('Together with external_id: exactly that customer'),
  external_id: optional(text()),
  page: orDefault(integer({ min: 1, max: 1_000_000 }), 1),
  items: orDefault(
    integer().transform((items) => Math.min(PAGE_SIZE.max, Math.max(1, items))),
    PAGE_SIZE.default,
  ).meta({ type: 'integer', default: PAGE_SIZE.default, description: 'Clamped to 1..100' }),
});

const record = z.record(z.string(), z.unknown());

const customerShape = {
  id: z.int(),
  account_id: z.int(),
  first_name: z.string().meta({ example: 'Anna' }),
  last_name: z.string().nullable(),
  email: z.string().nullable().meta({ example: 'anna@example.com' }),
  phone: z.string().nullable().meta({ example: '+4915112345678' }),
  birthday: z.string().nullable().meta({ format: 'date', example: '1990-05-31' }),
  stamp_count: z.int().meta({ example: 5 }).describe('Over all cards'),
  metadata: record,
  external_references: z.array(
    z.object({
      source: z.string().meta({ example: 'till' }),
      external_id: z.string().meta({ example: 'A-17' }),
      metadata: record,
      created_at: timestamp,
      updated_at: timestamp,
    }),
  ),
  customer_cards: z.array(customerCardAnswer),
  marketing_consent: z.boolean().meta({ example: false }),
  sms_consent: z.boolean().meta({ example: false }),
  created_at: timestamp,
  updated_at: timestamp,
};

export const customerAnswer = z.object(customerShape).meta({ id: 'Customer' });

export const createdCustomerAnswer = z
  .object({
    ...customerShape,
    customer_card: customerCardDetailAnswer.optional().describe('With card_id only'),
  })
  .meta({ id: 'CreatedCustomer' });

export const customerListAnswer = z
  .object({
    customers: z.array(customerAnswer),
    pagination: z.object({
      count: z.int(),
      items: z.int().meta({ example: 20 }),
      page: z.int(),
      pages: z.int(),
    }),
  })
  .meta({ id: 'CustomerList' });

export type CustomerJson = z.infer<typeof customerAnswer>;
export type CreatedCustomerJson = z.infer<typeof createdCustomerAnswer>;
export type CustomerListJson = z.infer<typeof customerListAnswer>;

export function customerJson(customer: Customer, cards: CustomerCardJson[]): CustomerJson {
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
    created_at: customer.createdAt,
    updated_at: customer.updatedAt,
  };
}

/** Everything that may be looked for with one term. Patterns take the term's % and _ as they are. */
export type SearchTerm = {
  text: string;
  digits: string | null;
  exact: string;
  uuid: string | null;
};

export function searchTerm(term: string): SearchTerm {
  const pattern = (plain: string) => `%${plain.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
  const isPhone = /^[\d\s+()./-]*\d[\d\s+()./-]*$/.test(term);
  return {
    text: pattern(foldCase(term)),
    digits: isPhone ? pattern(digitsOf(term)) : null,
    exact: term,
    uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(term) ? term : null,
  };
}

export type CustomerInput = Omit<PersonalFields, 'externalReferences'> & {
  externalReferences: GivenReference[];
  marketingConsent: boolean;
  smsConsent: boolean;
};

export function customerInput(input: z.infer<typeof createCustomerDto>): CustomerInput {
  return {
    firstName: input.first_name,
    lastName: input.last_name,
    email: input.email,
    phone: input.phone,
    birthday: input.birthday,
    metadata: input.metadata,
    externalReferences: input.external_references.map(givenReference),
    marketingConsent: input.marketing_consent,
    smsConsent: input.sms_consent,
  };
}

/** Only what was named in the request. */
export function customerChanges(input: z.infer<typeof updateCustomerDto>): CustomerChanges {
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
      externalReferences: external_references.map(givenReference),
    }),
    ...(marketing_consent !== undefined && { marketingConsent: marketing_consent }),
    ...(sms_consent !== undefined && { smsConsent: sms_consent }),
  };
}

function givenReference({
  source,
  external_id,
  metadata,
}: z.infer<typeof externalReferences>[number]): GivenReference {
  return { source, externalId: external_id, metadata };
}

/** @throws InvalidFieldsError on the missing one when only one half of a reference is given */
export function customerFilter(query: z.infer<typeof customerListQuery>): {
  search: string | null;
  reference: { source: string; externalId: string } | null;
} {
  const { search, source, external_id } = query;
  if (source !== null && external_id === null) {
    throw new InvalidFieldsError({ external_id: ['is required together with source'] });
  }
  if (source === null && external_id !== null) {
    throw new InvalidFieldsError({ source: ['is required together with external_id'] });
  }
  return {
    search,
    reference: source === null || external_id === null ? null : { source, externalId: external_id },
  };
}
