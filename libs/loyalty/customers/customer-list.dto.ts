import { removeInvisible } from '#platform/kernel/text.js';
import { isBlank } from '#platform/http/conversions.js';
import {
  Check,
  Field,
  IdentifierField,
  IntegerField,
  TextField,
  TimeField,
  integerKind,
  type FieldKind,
} from '#platform/http/fields.js';
import { Dto, FieldsRule } from '#platform/http/dtos.js';
import { UpdatedSinceField } from '#platform/http/page.js';
import {
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
} from '#platform/http/response-fields.js';
import { normalizeCardCode } from '#loyalty/stamping/card-code.js';
import { emailKind, phoneKind, readPartOfPhone } from './contact.js';
import { CustomerJson } from './customer.dto.js';
import { foldCase } from './search-keys.js';
import { ISSUES } from '#translations/issues.js';

/** Spaces before a country code, none of which begins with 0. */
const UNENCODED_PLUS_OF_NUMBER = /^ +(?=[(（]?\p{Nd})(?![(（]?[0０])/gu;
/** Of an address: no text that is searched has a space before one. */
const UNENCODED_PLUS_OF_ADDRESS = /^(\S+) (?=[^\s@]+@\S*$)/;

const PAGE_SIZE = { default: 20, max: 100 };

@Dto('CustomerListQuery')
@FieldsRule<CustomerListQuery>(
  ['source', 'external_id'],
  'external_id',
  ({ source, external_id }) => source === null || external_id !== null,
  ISSUES.needs_source,
)
@FieldsRule<CustomerListQuery>(
  ['source', 'external_id'],
  'source',
  ({ source, external_id }) => external_id === null || source !== null,
  ISSUES.needs_external_id,
)
@FieldsRule<CustomerListQuery>(
  ['page', 'cursor'],
  'page',
  ({ page, cursor }) => page === 1 || cursor === undefined,
  ISSUES.not_with_cursor,
)
export class CustomerListQuery {
  @IdentifierField({
    optional: true,
    description:
      'Part of a name or e-mail address, digits of a phone number, or a whole card code, uuid or external id',
  })
  declare readonly search: string | null;

  @TextField({ optional: true, description: 'With external_id: exactly that customer' })
  declare readonly source: string | null;

  @IdentifierField({
    optional: true,
    description: 'With source: exactly the customer who has this id in the other system.',
  })
  declare readonly external_id: string | null;

  @Field(
    {
      ...withUnencodedPlus(/(?<=\S) (?=\S)/g, emailKind),
      schema: { type: 'string', format: 'email', maxLength: 254 },
    },
    { optional: true, description: 'Exactly this e-mail address, in any case' },
  )
  declare readonly email: string | null;

  @Field(
    {
      ...withUnencodedPlus(UNENCODED_PLUS_OF_NUMBER, phoneKind),
      schema: { type: 'string', maxLength: 64 },
    },
    {
      optional: true,
      description: 'Exactly this phone number, in any notation that a write accepts',
    },
  )
  declare readonly phone: string | null;

  @IdentifierField({ optional: true, description: 'The code of one of their cards, in any case' })
  declare readonly code: string | null;

  @UpdatedSinceField() declare readonly updated_since: Date | null;

  @IntegerField({
    min: 1,
    max: 12,
    optional: true,
    description: 'Born in this month, from 1 for January',
  })
  declare readonly birthday_month: number | null;

  @TimeField({
    optional: true,
    description: 'There before this time, and without a change to any of their cards since',
  })
  declare readonly inactive_since: Date | null;

  @IntegerField({ min: 1, optional: true, description: 'Only those who have this card.' })
  declare readonly card_id: number | null;

  @IntegerField({
    min: 1,
    optional: true,
    description: 'At least this many stamps: with card_id on that card, else on all together',
  })
  declare readonly min_stamps: number | null;

  @IntegerField({ min: 1, max: 1_000_000, default: 1, description: 'The page, from 1.' })
  declare readonly page: number;

  @Field(
    {
      schema: { type: 'string', maxLength: 1024 },
      convert: (value) => (value !== undefined && isBlank(value) ? '' : value),
      validators: [Check((value) => (typeof value === 'string' ? undefined : ISSUES.not_text))],
    },
    {
      omittable: true,
      description:
        'In place of page: blank for the first page, by id, then as given by the Link header. Nobody is missing or listed twice because others are created, merged or erased meanwhile',
    },
  )
  declare readonly cursor?: string;

  @Field(
    {
      ...integerKind(),
      finish: (items: number) => Math.min(PAGE_SIZE.max, Math.max(1, items)),
    },
    { default: PAGE_SIZE.default, description: 'Clamped to 1..100' },
  )
  declare readonly items: number;
}

@Dto('Pagination')
class PaginationJson {
  @IntegerProperty({ description: 'The number of customers that match, on all pages together.' })
  declare readonly count: number;
  @IntegerProperty({ example: 20, description: 'The page size in force.' })
  declare readonly items: number;
  @IntegerProperty({
    nullable: true,
    example: 1,
    description: 'The requested page, from 1; null with a cursor.',
  })
  declare readonly page: number | null;
  @IntegerProperty({
    nullable: true,
    example: 1,
    description: 'The number of pages, at least 1; null with a cursor.',
  })
  declare readonly pages: number | null;
}

@Dto('CustomerList')
export class CustomerListJson {
  @ObjectsProperty(() => CustomerJson, {
    description: 'The customers of this page, newest first; with a cursor by id.',
  })
  declare readonly customers: CustomerJson[];
  @ObjectProperty(() => PaginationJson, { description: 'The place of this page in the list.' })
  declare readonly pagination: PaginationJson;
}

/** Orders a list by what comes first: the newest, names from A, the last change of a card, or the most stamps on all cards. */
export type CustomerSort = 'newest' | 'name' | 'active' | 'stamps';

/** Narrows the list; null: not by this field. */
export type CustomerFilter = {
  /** Stamps on any of these cards. */
  minStampsByCard?: ReadonlyMap<number, number>;
  search: string | null;
  reference: { source: string; externalId: string } | null;
  /** Exact, but for its case. */
  email: string | null;
  /** As it was sent. */
  phone: string | null;
  code: string | null;
  updatedSince: Date | null;
  /** From 1 for January. */
  birthdayMonth: number | null;
  inactiveSince: Date | null;
  cardId: number | null;
  minStamps: number | null;
};

export function toCustomerFilter(query: CustomerListQuery): CustomerFilter {
  const { search, source, external_id: externalId, email, phone, code, updated_since } = query;
  return {
    search,
    reference: source === null || externalId === null ? null : { source, externalId },
    email,
    phone,
    code: code === null ? null : normalizeCardCode(code),
    updatedSince: updated_since,
    birthdayMonth: query.birthday_month,
    inactiveSince: query.inactive_since,
    cardId: query.card_id,
    minStamps: query.min_stamps,
  };
}

/** Holds everything that one search term may match. % and _ in the term are literal in patterns. */
export type SearchTerm = {
  text: string;
  /** Patterns for the digits of a phone number. */
  digits: string[];
  exact: string;
  code: string;
  uuid: string | null;
};

/** @param country of the store */
export function parseSearchTerm(term: string, country: string | null): SearchTerm {
  const pattern = (plain: string) => `%${plain.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
  const phone = readPartOfPhone(term, country);
  return {
    text: pattern(foldCase(term.replace(UNENCODED_PLUS_OF_ADDRESS, '$1+'))),
    digits: phone ? [pattern(phone.anywhere), ...phone.atStart.map((prefix) => `${prefix}%`)] : [],
    exact: term,
    code: normalizeCardCode(term),
    uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(term) ? term : null,
  };
}

/**
 * Restores a + that was not encoded in a query and so arrived as a space.
 * @param plus the places where a space can be nothing else
 */
function withUnencodedPlus(plus: RegExp, kind: typeof emailKind): FieldKind {
  const convert = (value: unknown) =>
    kind.convert(typeof value === 'string' ? removeInvisible(value).replaceAll(plus, '+') : value);
  return { ...kind, convert };
}
