import { RejectedError, type FieldErrors } from '#kernel/errors.js';
import { LANGUAGE_CODES } from '#translations/translations.js';
import { parseLocale, parseTimeZone } from '#accounts/account.js';
import { listCountries, parseCountry } from '#accounts/country.js';
import type { ConsentTexts } from '#accounts/account.events.js';
import { readFormText } from '#sign-in/form-text.js';

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

export type StoreSettings = {
  name: string;
  storeName: string | null;
  timeZone: string;
  locale: string;
  country: string | null;
};

const MAX_NAME = 255;

/** Languages with translations. Others can be set through the API, and are then kept. */
const LANGUAGE_OPTIONS = LANGUAGE_CODES.map((value) => ({ value, text: getLanguageName(value) }));

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

/** Explains to which countries a store sends SMS. */
export function describeSmsCountries(country: string | null): string {
  const destination =
    country === null
      ? 'This store has no country, so they go only to the countries that you enter'
      : `They go to numbers in ${getCountryName(country)}, and in the countries that you enter`;
  return `${destination}: two letters each, such as AT, CH. Messages abroad can cost much more.`;
}

function getCountryName(country: string): string {
  return new Intl.DisplayNames('en', { type: 'region' }).of(country) ?? country;
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

/** Parses the settings of a store. @throws RejectedError */
export function parseStoreSettings(values: StoreForm): StoreSettings {
  const { name, store_name, time_zone, locale: tag } = values;
  const timeZone = parseTimeZone(time_zone);
  const locale = parseLocale(tag);
  const country = values.country === '' ? null : parseCountry(values.country);
  const errors: FieldErrors = {
    ...((name === '' || [...name].length > MAX_NAME) && {
      name: [`must have 1 to ${MAX_NAME} characters`],
    }),
    ...([...store_name].length > MAX_NAME && {
      store_name: [`must have at most ${MAX_NAME} characters`],
    }),
    ...(timeZone === undefined && { time_zone: ['must be a time zone such as Europe/Berlin'] }),
    ...(locale === undefined && { locale: ['must be a language'] }),
    ...(country === undefined && { country: ['must be a country'] }),
  };
  const hasErrors = Object.keys(errors).length > 0;
  if (timeZone === undefined || locale === undefined || country === undefined || hasErrors) {
    throw new RejectedError(errors);
  }
  return { name, storeName: store_name === '' ? null : store_name, timeZone, locale, country };
}

/** Lists the languages to choose from, including the current one. */
export function listLanguages(locale: string): { value: string; text: string }[] {
  if (locale === '' || LANGUAGE_OPTIONS.some(({ value }) => value === locale))
    return LANGUAGE_OPTIONS;
  return [...LANGUAGE_OPTIONS, { value: locale, text: getLanguageName(locale) }];
}

function getLanguageName(locale: string): string {
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(locale) ?? locale;
  } catch (error) {
    // Intl has no name for languages with extensions, such as de-u-co-phonebk, or for invalid tags.
    if (error instanceof RangeError) return locale;
    throw error;
  }
}

/** Lists the time zones of the system, including the current one. */
export function listTimeZones(timeZone: string): { value: string; text: string }[] {
  const names = new Set(['UTC', ...Intl.supportedValuesOf('timeZone'), timeZone]);
  names.delete('');
  return [...names].map((value) => ({ value, text: value.replaceAll('_', ' ') }));
}

/** Lists the countries to choose from, or none. */
export function listCountryChoices(): { value: string; text: string }[] {
  const countries = listCountries().map(({ code, name }) => ({ value: code, text: name }));
  return [{ value: '', text: 'None' }, ...countries];
}
