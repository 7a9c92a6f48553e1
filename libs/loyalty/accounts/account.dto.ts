import { BooleanField, Field, parsedTextKind, type FieldKind } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  defineKind,
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import { ObjectsProperty, OneOfProperty, TextProperty } from '#platform/http/response-fields.js';
import { ADDRESS_FORMS } from '#translations/address-form.js';
import { parseLocale, parseTimeZone, type Account } from './account.js';
import { MAX_CONTACT_LENGTHS } from './contact-details.js';
import { parseCountry } from './country.js';
import type { AccountSettings } from './account.events.js';
import { ISSUES } from '#translations/issues.js';

const MAX_NAME = 255;
const country = parsedTextKind(MAX_NAME, parseCountry, ISSUES.country_invalid);

/** The kinds of the fields of a store that have rules of their own. */
export const STORE_KINDS = {
  timeZone: parsedTextKind(MAX_NAME, parseTimeZone, ISSUES.time_zone_invalid),
  locale: parsedTextKind(MAX_NAME, parseLocale, ISSUES.language_invalid),
  country: { ...country, schema: { ...country.schema, pattern: '^[A-Za-z]{2}$' } },
} as const;

const parsedField = (kind: FieldKind) =>
  defineKind<string>((options) => Field(kind, options), TextProperty);

const FIELDS = {
  name: field.text({
    description: 'The name.',
    update: { example: 'Corner Café' },
    response: { example: 'corner-cafe' },
  }),
  store_name: field.text({
    optional: true,
    description: 'The name that customers read; null: they read name.',
    update: { description: 'The public name; null means the name' },
    response: { example: 'Corner Café' },
  }),
  time_zone: parsedField(STORE_KINDS.timeZone)({
    example: 'Europe/Berlin',
    description: 'The time zone of days and birthdays, by its IANA name.',
    update: { description: 'IANA name; days and birthdays are counted in this time zone' },
  }),
  locale: parsedField(STORE_KINDS.locale)({
    description: 'The language of the store, for texts to its customers.',
    update: { example: 'pt-BR', description: 'BCP 47 language tag' },
    response: { example: 'en' },
  }),
  address_form: field.oneOf(ADDRESS_FORMS, {
    optional: true,
    example: 'formal',
    description:
      'How customers are addressed in texts from this service; null: as is usual in the language',
    update: {
      description:
        'How customers are addressed in texts from this service: `informal` is "du", "tu" and "tú", `formal` is "Sie", "vous" and "usted". null: as is usual in the language, informal in German and formal in French and Spanish',
    },
  }),
  country: parsedField(STORE_KINDS.country)({
    optional: true,
    example: 'DE',
    description: 'ISO 3166-1 alpha-2; null: phone numbers without a country code stay as digits',
    update: {
      description:
        'ISO 3166-1 alpha-2, in any case; phone numbers without a country code are read as numbers of this country',
    },
  }),
  logo_contains_name: field.boolean({
    default: false,
    description: 'Whether the name of the store stands in its logo; if not, it stands beside it.',
    response: { example: false },
  }),
  website: field.text({
    optional: true,
    max: MAX_CONTACT_LENGTHS.website,
    example: 'https://cafe.example',
    description: 'Web address of the store, on passes and on the card in the browser',
    response: { example: 'https://cafe.example/' },
  }),
  phone: field.text({
    optional: true,
    max: MAX_CONTACT_LENGTHS.phone,
    example: '+49 721 123456',
    description: 'Phone number for customers',
    update: { description: 'Phone number for customers, as people write it' },
  }),
  email: field.text({
    optional: true,
    max: MAX_CONTACT_LENGTHS.email,
    example: 'hello@cafe.example',
    description: 'E-mail address for customers',
  }),
  address: field.text({
    optional: true,
    max: MAX_CONTACT_LENGTHS.address,
    example: 'Main Street 1\n76133 Karlsruhe',
    description: 'Postal address',
    update: { description: 'Postal address; may have several lines' },
  }),
  terms_text: field.text({
    optional: true,
    max: MAX_CONTACT_LENGTHS.termsText,
    example: 'One stamp for each drink.',
    description: 'Terms of the cards',
    update: { description: 'Terms of the cards; may have several lines' },
  }),
  confirms_counter_consents: field.boolean({
    description:
      'Whether consents that staff enter at the counter or on the console hold only once the customer confirmed them by a link that went to them',
  }),
} satisfies FieldsOf<Omit<AccountSettings, 'consentTexts' | 'smsCountries'>>;

const STORE_WARNINGS = ['country_missing'] as const;
const COUNTRY_MISSING =
  'A phone number without a country code, such as 0171 1234567, is stored as its digits: nobody is found by the number with the country code, and no SMS reaches them. Set the country.';

@Dto('StoreWarning')
class StoreWarningJson {
  @OneOfProperty(STORE_WARNINGS, { example: 'country_missing', description: 'What it is about.' })
  declare readonly code: (typeof STORE_WARNINGS)[number];
  @TextProperty({ example: COUNTRY_MISSING, description: 'What is wrong, and what to do.' })
  declare readonly message: string;
}

const RESPONSE = {
  id: ID,
  ...pick(FIELDS, 'name', 'store_name'),
  display_store_name: field.text({
    example: 'Corner Café',
    description: 'store_name, or name if that is null',
  }),
  personal: field.boolean({
    example: false,
    description: "Whether this is the own store of the token's user",
  }),
  locations_count: field.integer({ description: 'The number of locations of the store.' }),
  cards_count: field.integer({
    description: 'The number of cards of the store, including archived ones.',
  }),
  customers_count: field.integer({ description: 'The number of customers of the store.' }),
  posters_count: field.integer({ description: 'The number of posters of the store.' }),
  ...pick(FIELDS, 'time_zone', 'locale', 'address_form', 'country'),
  logo_url: field.text({
    optional: true,
    example: 'https://cards.example/img/store/0f3a….png',
    description: 'The logo as a PNG; null: the stamp icon stands in its place',
  }),
  ...pick(FIELDS, 'logo_contains_name'),
  ...pick(
    FIELDS,
    'website',
    'phone',
    'email',
    'address',
    'terms_text',
    'confirms_counter_consents',
  ),
  warnings: field.response<StoreWarningJson[]>(
    ObjectsProperty(() => StoreWarningJson, {
      description: 'What is missing in the settings; empty if nothing is.',
    }),
  ),
  ...TIMES,
} satisfies Showing<typeof FIELDS>;

@Dto('StoreChanges', {
  wrapper: 'account',
  bare: true,
  example: { store_name: 'Corner Café', time_zone: 'Europe/Berlin' },
})
export class UpdateAccountDto extends derive.changes(FIELDS) {}

@Dto('LogoQuery')
export class LogoQuery {
  @BooleanField({ default: false, description: 'true: the picture keeps its margin' })
  declare readonly keep_margin: boolean;
}

@Dto('Store')
export class AccountJson extends derive.response(RESPONSE) {}

export const toAccountSettings = derive.toAttributes(FIELDS);

const renderAccount = derive.toJsonWith(RESPONSE);

/** Counts the records of a store that are not deleted. */
export type AccountCounts = {
  cards: number;
  customers: number;
  locations: number;
  posters: number;
};

/**
 * Returns the public address of a logo. It never shows anything else, and cannot be guessed.
 * @param publicUrl without a trailing slash
 */
export function toStoreLogoUrl(publicUrl: string, logo: string): string {
  return `${publicUrl}/img/store/${logo}.png`;
}

/** @param personal whether it is the own store of the request's user @param publicUrl without a trailing slash */
export function toAccountJson(
  account: Account,
  counts: AccountCounts,
  personal: boolean,
  publicUrl: string,
): AccountJson {
  return renderAccount(account, {
    displayStoreName: account.storeName ?? account.name,
    personal,
    locationsCount: counts.locations,
    cardsCount: counts.cards,
    customersCount: counts.customers,
    postersCount: counts.posters,
    logoUrl: account.logo && toStoreLogoUrl(publicUrl, account.logo),
    warnings:
      account.country === null ? [{ code: 'country_missing', message: COUNTRY_MISSING }] : [],
  });
}
