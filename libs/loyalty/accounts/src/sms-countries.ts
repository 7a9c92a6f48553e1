import { isSupportedCountry } from 'libphonenumber-js/max';
import { normalizeText } from '#kernel/text.js';
import { parseCountry } from './country.js';

/** Returns codes of countries in capital letters, each once, in alphabetical order. */
export function tidySmsCountries(given: string[]): string[] {
  return [...new Set(given.map(normalizeText).map((code) => parseCountry(code) ?? code))].sort();
}

/** Finds what is no country that has phone numbers. @param countries in their normal form */
export function findUnknownCountries(countries: string[]): string[] {
  return countries.filter((code) => !isSupportedCountry(code));
}

/** Lists the countries whose numbers a store sends SMS to: its own, if it is known, and those that its owners have added. */
export function listSmsCountries({
  country,
  smsCountries = [],
}: {
  country?: string | null;
  smsCountries?: string[];
}): string[] {
  return [...(country ? [country] : []), ...smsCountries];
}
