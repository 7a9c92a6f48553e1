import {
  getCountryCallingCode,
  isSupportedCountry,
  parsePhoneNumberFromString,
  type CountryCode,
  type NumberType,
} from 'libphonenumber-js/max';

/**
 * - foreign: a person's phone in a country that the store does not send to
 * - unsuitable: not a person's phone, such as a premium number, a satellite phone or an unassigned range
 */
export type SmsDestination =
  | { kind: 'allowed' }
  | { kind: 'foreign'; country: string }
  | { kind: 'unsuitable' };

/** The kinds of numbers that people have. Every other kind costs its callers more, or reaches no phone. */
const TYPES = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE', 'FIXED_LINE', 'VOIP']);

/**
 * Judges whether an SMS may go to a number. Strangers enter numbers on signup pages, and owners of premium and
 * satellite numbers, who share in the price of a message, would enter theirs.
 * @param phone E.164
 * @param countries ISO 3166-1 alpha-2
 */
export function judgeSmsNumber(phone: string, countries: readonly string[]): SmsDestination {
  const number = parsePhoneNumberFromString(phone);
  // Numbers without a country: satellites (+870, +881), international networks (+882, +883), premium (+979).
  if (number?.country === undefined) return { kind: 'unsuitable' };
  const { country: own, countryCallingCode } = number;
  // One number can belong to several countries, such as Martinique's neighbours.
  for (const country of countries) {
    if (!isSupportedCountry(country)) continue;
    if (getCountryCallingCode(country) !== countryCallingCode) continue;
    if (isPersonal(phone, country)) return { kind: 'allowed' };
  }
  return isPersonal(phone, own) ? { kind: 'foreign', country: own } : { kind: 'unsuitable' };
}

function isPersonal(phone: string, country: CountryCode): boolean {
  const number = parsePhoneNumberFromString(phone);
  if (!number) return false;
  number.country = country;
  const type = number.getType();
  return type !== undefined && TYPES.has(type);
}
