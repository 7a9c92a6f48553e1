import { isSupportedCountry } from 'libphonenumber-js/max';
import { normalizeText } from '#platform/kernel/text.js';

/** Returns codes of countries in capital letters, each once, in alphabetical order. */
export function tidySmsCountries(input: string[]): string[] {
  // Only ASCII letters: ß would become SS, which is South Sudan.
  const codes = input.map(normalizeText).map((code) => code.replaceAll(/[a-z]/g, upperCase));
  return [...new Set(codes)].sort();
}

function upperCase(letter: string): string {
  return letter.toUpperCase();
}

/** Finds what is no country that has phone numbers. @param countries in their normal form */
export function findUnknownCountries(countries: string[]): string[] {
  return countries.filter((code) => !isSupportedCountry(code));
}

/**
 * Lists the countries whose numbers a store sends SMS to: its own, if it is known, and those that its owners have
 * added.
 */
export function listSmsCountries({
  country,
  smsCountries = [],
}: {
  country?: string | null;
  smsCountries?: string[];
}): string[] {
  return [...(country ? [country] : []), ...smsCountries];
}
