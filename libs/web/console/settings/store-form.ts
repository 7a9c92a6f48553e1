import { RejectedError } from '#platform/kernel/errors.js';
import { ADDRESS_FORMS } from '#translations/address-form.js';
import { LANGUAGE_CODES, type Localization } from '#translations/translations.js';
import { parseLocale, parseTimeZone } from '#loyalty/accounts/account.js';
import { listCountries, parseCountry } from '#loyalty/accounts/country.js';
import type { ConsentTexts } from '#loyalty/accounts/account.events.js';
import { readFormText } from '#web/sign-in/form-text.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

type FormFields = Readonly<Record<string, string | undefined>>;

export type StoreForm = {
  name: string;
  store_name: string;
  time_zone: string;
  locale: string;
  country: string;
};

/** The form fields, named as the errors name them. */
export type ConsentForm = {
  marketing_consent_text: string;
  sms_consent_text: string;
  privacy_text: string;
  privacy_url: string;
};

export type SmsForm = { sms_countries: string };

/** Blank: as is usual in the language. */
export type AddressFormField = { address_form: string };

export type StoreSettings = {
  name: string;
  storeName: string | null;
  timeZone: string;
  locale: string;
  country: string | null;
};

const MAX_NAME = 255;

/** Reads the entered values, which are shown again with errors. */
export function readStoreForm(form: FormFields): StoreForm {
  return {
    name: readFormText(form, 'name'),
    store_name: readFormText(form, 'store_name'),
    time_zone: readFormText(form, 'time_zone'),
    locale: readFormText(form, 'locale'),
    country: readFormText(form, 'country'),
  };
}

export function toConsentForm({ marketing, sms, privacy, privacyUrl }: ConsentTexts): ConsentForm {
  return {
    marketing_consent_text: marketing ?? '',
    sms_consent_text: sms ?? '',
    privacy_text: privacy ?? '',
    privacy_url: privacyUrl ?? '',
  };
}

export function toSmsForm(countries: string[]): SmsForm {
  return { sms_countries: countries.join(', ') };
}

/** Parses country codes separated by spaces, commas or semicolons. */
export function parseSmsCountries({ sms_countries: text }: SmsForm): string[] {
  return text.split(/[\s,;]+/u).filter((code) => code !== '');
}

/** Parses the form of address. @returns undefined if it is none of those offered */
export function parseAddressForm({ address_form: value }: AddressFormField) {
  return value === '' ? null : ADDRESS_FORMS.find((form) => form === value);
}

/** Lists the forms of address, with the words of the languages that have them. */
export function listAddressForms({ t: { console: texts } }: Localization): Option[] {
  const { usual, informal, formal } = texts.settings.addressForms;
  return [
    { value: '', text: usual },
    { value: 'informal', text: informal },
    { value: 'formal', text: formal },
  ];
}

/** Explains to which countries a store sends SMS. */
export function describeSmsCountries(
  country: string | null,
  { t: { console: texts }, locale }: Localization,
): string {
  const { smsHome, smsNoHome } = texts.settings;
  if (country === null) return smsNoHome;
  return smsHome({
    country: new Intl.DisplayNames(locale, { type: 'region' }).of(country) ?? country,
  });
}

/** Reads the texts as typed. A blank text means none. */
export function readConsentTexts(form: FormFields): ConsentTexts {
  return {
    marketing: form['marketing_consent_text'] ?? null,
    sms: form['sms_consent_text'] ?? null,
    privacy: form['privacy_text'] ?? null,
    privacyUrl: form['privacy_url'] ?? null,
  };
}

/**
 * Parses the settings of a store.
 * @param otherErrors of the same form, so that all are shown at once
 * @throws RejectedError
 */
export function parseStoreSettings(
  values: StoreForm,
  otherErrors: FieldIssues = {},
): StoreSettings {
  const { name, store_name, time_zone, locale: tag } = values;
  const timeZone = parseTimeZone(time_zone);
  const locale = parseLocale(tag);
  const country = values.country === '' ? null : parseCountry(values.country);
  const errors: FieldIssues = {
    ...otherErrors,
    ...((name === '' || [...name].length > MAX_NAME) && {
      name: [ISSUES.name_length({ max: MAX_NAME })],
    }),
    ...([...store_name].length > MAX_NAME && {
      store_name: [ISSUES.too_long({ max: MAX_NAME })],
    }),
    ...(timeZone === undefined && { time_zone: [ISSUES.time_zone_invalid] }),
    ...(locale === undefined && { locale: [ISSUES.language_invalid] }),
    ...(country === undefined && { country: [ISSUES.country_invalid] }),
  };
  const hasErrors = Object.keys(errors).length > 0;
  if (timeZone === undefined || locale === undefined || country === undefined || hasErrors) {
    throw new RejectedError(errors);
  }
  return { name, storeName: store_name === '' ? null : store_name, timeZone, locale, country };
}

/** An option of a select, or several of them below a heading. */
export type Option = { value: string; text: string };
export type OptionGroup = { group: string; options: Option[] };

/** Lists the languages to choose from, including the current one. @param locale of the page */
export function listLanguages(current: string, locale: string): Option[] {
  const codes = current === '' ? LANGUAGE_CODES : [...new Set([...LANGUAGE_CODES, current])];
  return codes.map((value) => ({ value, text: getLanguageName(value, locale) }));
}

function getLanguageName(language: string, locale: string): string {
  try {
    return new Intl.DisplayNames(locale, { type: 'language' }).of(language) ?? language;
  } catch (error) {
    // Intl has no name for languages with extensions, such as de-u-co-phonebk, or for invalid tags.
    if (error instanceof RangeError) return language;
    throw error;
  }
}

/** The continents of time zones by their codes of UN M49, for which Intl has names in every language. */
const CONTINENTS = new Map([
  ['Europe', '150'],
  ['America', '019'],
  ['Africa', '002'],
  ['Asia', '142'],
  ['Australia', '009'],
  ['Pacific', '009'],
]);

/**
 * Lists the time zones by continent, including the current one. Leaves out those of counties, such as
 * America/Indiana/Knox, which today have the time of a large city.
 * @param otherText the heading of those on no continent
 */
export function listTimeZones(current: string, otherText: string, locale: string): OptionGroup[] {
  const names = new Intl.DisplayNames(locale, { type: 'region' });
  const groups = new Map<string, Option[]>();
  for (const code of CONTINENTS.values()) groups.set(names.of(code) ?? code, []);
  groups.set(otherText, [{ value: 'UTC', text: 'UTC' }]);
  const zones = Intl.supportedValuesOf('timeZone').filter((zone) => zone.split('/').length < 3);
  for (const value of new Set(['America/Argentina/Buenos_Aires', ...zones, current])) {
    if (value === '' || value === 'UTC') continue;
    const [continent = '', ...city] = value.split('/');
    const code = CONTINENTS.get(continent);
    const group = groups.get(code === undefined ? otherText : (names.of(code) ?? code));
    const text = code === undefined || city.length === 0 ? value : city.join(', ');
    group?.push({ value, text: text.replaceAll('_', ' ') });
  }
  return [...groups].map(([group, options]) => ({
    group,
    options: options.sort((a, b) => a.text.localeCompare(b.text, locale)),
  }));
}

/** Lists the countries to choose from, or none. */
export function listCountryChoices(noneText: string, locale: string): Option[] {
  const countries = listCountries(locale).map(({ code, name }) => ({ value: code, text: name }));
  return [{ value: '', text: noneText }, ...countries];
}
