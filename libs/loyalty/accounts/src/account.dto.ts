import { Field, OneOfField, TextField, parsedTextKind } from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import { ADDRESS_FORMS, type AddressForm } from '#translations/address-form.js';
import { parseLocale, parseTimeZone, type Account } from './account.js';
import { MAX_CONTACT_LENGTHS, pickContactDetails } from './contact-details.js';
import { parseCountry } from './country.js';
import type { AccountSettings } from './account.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  name: 'The name.',
};

const MAX_NAME = 255;
const country = parsedTextKind(
  MAX_NAME,
  parseCountry,
  'must be an ISO 3166-1 country code such as DE or US',
);

/** The kinds of the fields of a store that have rules of their own. */
export const STORE_KINDS = {
  timeZone: parsedTextKind(
    MAX_NAME,
    parseTimeZone,
    'must be an IANA time zone such as Europe/Berlin',
  ),
  locale: parsedTextKind(
    MAX_NAME,
    parseLocale,
    'must be a BCP 47 language tag such as de or pt-BR',
  ),
  country: { ...country, schema: { ...country.schema, pattern: '^[A-Za-z]{2}$' } },
} as const;

@Dto('StoreChanges', {
  wrapper: 'account',
  bare: true,
  example: { store_name: 'Corner Café', time_zone: 'Europe/Berlin' },
})
export class UpdateAccountDto {
  @TextField({ omittable: true, example: 'Corner Café', description: DESCRIPTIONS.name })
  declare readonly name?: string;

  @TextField({ clearable: true, description: 'The public name; null means the name' })
  declare readonly store_name?: string | null;

  @Field(STORE_KINDS.timeZone, {
    omittable: true,
    description: 'IANA name; days and birthdays are counted in this time zone',
    example: 'Europe/Berlin',
  })
  declare readonly time_zone?: string;

  @Field(STORE_KINDS.locale, {
    omittable: true,
    description: 'BCP 47 language tag',
    example: 'pt-BR',
  })
  declare readonly locale?: string;

  @OneOfField(ADDRESS_FORMS, {
    clearable: true,
    description:
      'How customers are addressed in texts from this service: `informal` is "du", "tu" and "tú", `formal` is "Sie", "vous" and "usted". null: as is usual in the language, informal in German and formal in French and Spanish',
    example: 'formal',
  })
  declare readonly address_form?: AddressForm | null;

  @Field(STORE_KINDS.country, {
    clearable: true,
    description:
      'ISO 3166-1 alpha-2, in any case; phone numbers without a country code are read as numbers of this country',
    example: 'DE',
  })
  declare readonly country?: string | null;

  @TextField({
    clearable: true,
    max: MAX_CONTACT_LENGTHS.website,
    description: 'Web address of the store, on passes and on the card in the browser',
    example: 'https://cafe.example',
  })
  declare readonly website?: string | null;

  @TextField({
    clearable: true,
    max: MAX_CONTACT_LENGTHS.phone,
    description: 'Phone number for customers, as people write it',
    example: '+49 721 123456',
  })
  declare readonly phone?: string | null;

  @TextField({
    clearable: true,
    max: MAX_CONTACT_LENGTHS.email,
    description: 'E-mail address for customers',
    example: 'hello@cafe.example',
  })
  declare readonly email?: string | null;

  @TextField({
    clearable: true,
    max: MAX_CONTACT_LENGTHS.address,
    description: 'Postal address; may have several lines',
    example: 'Main Street 1\n76133 Karlsruhe',
  })
  declare readonly address?: string | null;

  @TextField({
    clearable: true,
    max: MAX_CONTACT_LENGTHS.termsText,
    description: 'Terms of the cards; may have several lines',
    example: 'One stamp for each drink.',
  })
  declare readonly terms_text?: string | null;
}

@Dto('Store')
export class AccountJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({ example: 'corner-cafe', description: DESCRIPTIONS.name })
  declare readonly name: string;
  @TextProperty({
    nullable: true,
    example: 'Corner Café',
    description: 'The name that customers read; null: they read name.',
  })
  declare readonly store_name: string | null;
  @TextProperty({ example: 'Corner Café', description: 'store_name, or name if that is null' })
  declare readonly display_store_name: string;
  @BooleanProperty({
    example: false,
    description: "Whether this is the own store of the token's user",
  })
  declare readonly personal: boolean;
  @IntegerProperty({ description: 'The number of locations of the store.' })
  declare readonly locations_count: number;
  @IntegerProperty({ description: 'The number of cards of the store, including archived ones.' })
  declare readonly cards_count: number;
  @IntegerProperty({ description: 'The number of customers of the store.' })
  declare readonly customers_count: number;
  @IntegerProperty({ description: 'The number of posters of the store.' })
  declare readonly posters_count: number;
  @TextProperty({
    example: 'Europe/Berlin',
    description: 'The time zone of days and birthdays, by its IANA name.',
  })
  declare readonly time_zone: string;
  @TextProperty({
    example: 'en',
    description: 'The language of the store, for texts to its customers.',
  })
  declare readonly locale: string;
  @OneOfProperty(ADDRESS_FORMS, {
    nullable: true,
    example: 'formal',
    description:
      'How customers are addressed in texts from this service; null: as is usual in the language',
  })
  declare readonly address_form: AddressForm | null;
  @TextProperty({
    nullable: true,
    example: 'DE',
    description: 'ISO 3166-1 alpha-2; null: phone numbers without a country code stay as digits',
  })
  declare readonly country: string | null;
  @TextProperty({
    nullable: true,
    example: 'https://cards.example/img/store/0f3a….png',
    description: 'The logo as a PNG; null: the stamp icon stands in its place',
  })
  declare readonly logo_url: string | null;
  @TextProperty({
    nullable: true,
    example: 'https://cafe.example/',
    description: 'Web address of the store, on passes and on the card in the browser',
  })
  declare readonly website: string | null;
  @TextProperty({
    nullable: true,
    example: '+49 721 123456',
    description: 'Phone number for customers',
  })
  declare readonly phone: string | null;
  @TextProperty({
    nullable: true,
    example: 'hello@cafe.example',
    description: 'E-mail address for customers',
  })
  declare readonly email: string | null;
  @TextProperty({
    nullable: true,
    example: 'Main Street 1\n76133 Karlsruhe',
    description: 'Postal address',
  })
  declare readonly address: string | null;
  @TextProperty({
    nullable: true,
    example: 'One stamp for each drink.',
    description: 'Terms of the cards',
  })
  declare readonly terms_text: string | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

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
  return {
    id: account.id,
    name: account.name,
    store_name: account.storeName,
    display_store_name: account.storeName ?? account.name,
    personal,
    locations_count: counts.locations,
    cards_count: counts.cards,
    customers_count: counts.customers,
    posters_count: counts.posters,
    time_zone: account.timeZone,
    locale: account.locale,
    address_form: account.addressForm,
    country: account.country,
    logo_url: account.logo && toStoreLogoUrl(publicUrl, account.logo),
    website: account.website,
    phone: account.phone,
    email: account.email,
    address: account.address,
    terms_text: account.termsText,
    created_at: account.createdAt,
    updated_at: account.updatedAt,
  };
}

/** Converts the fields that the request contains, and no others. */
export function toAccountSettings(input: UpdateAccountDto): Partial<AccountSettings> {
  const { name, store_name, time_zone, locale: tag, country, terms_text: termsText } = input;
  const { address_form: addressForm } = input;
  return {
    ...(name !== undefined && { name }),
    ...(store_name !== undefined && { storeName: store_name }),
    ...(time_zone !== undefined && { timeZone: time_zone }),
    ...(tag !== undefined && { locale: tag }),
    ...(addressForm !== undefined && { addressForm }),
    ...(country !== undefined && { country }),
    ...pickContactDetails({ ...input, ...(termsText !== undefined && { termsText }) }),
  };
}
