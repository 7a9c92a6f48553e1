import {
  AsYouType,
  getCountryCallingCode,
  isSupportedCountry,
  parsePhoneNumberFromString,
  type CountryCode,
} from 'libphonenumber-js/max';
import { isEmailAddress } from '#platform/kernel/email-address.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { normalizeNumber } from '#platform/kernel/text.js';
import { Check, identifierKind, textKind } from '#platform/http/fields.js';
import { findDigitsOfToday, getPhoneKey, modernizeNumber } from './phone-plans.js';
import { extractDigits } from './search-keys.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Between digits, as libphonenumber has it (`VALID_PUNCTUATION`), and the apostrophe of texts in spreadsheets. */
const PUNCTUATION = String.raw`\s\p{Pd}()[\]（）［］.．/／·・~～∼\u2212\u30FC'’`;
/**
 * Has at most one plus, before the first digit. Anything else may mean something, and a number without it would be
 * somebody else's: letters, an extension, a pause, two numbers, ½, ②.
 */
const PHONE = new RegExp(`^[${PUNCTUATION}]*\\+?[\\d${PUNCTUATION}]*$`, 'u');
/** Matches the prefix of a country code in most of the world; no country code begins with 0. */
const DIALLED = /^00(?=[1-9])/;
const MAX_DIGITS = 32;
/** Without the country code. */
const MIN_DIGITS = 8;
const DASHES = /[\p{Pd}~～∼\u2212\u30FC]/gu;
/** Matches numbers as spreadsheets show those of more than eleven digits, in any language, or as people copy them. */
const SHORTENED = /^[+-]?\d+(?:[.,٫]\d*)?\s*(?:[eE]|[x×*]\s*10\^)\s*[+-]?\d+$/;
/**
 * Matches the only point or comma of a text, with nothing but zeros after it. Programs write such a fraction for a whole
 * number; its zeros would become digits of somebody else's number. Dots as separators come in groups, or before digits.
 */
const FRACTION_OF_ZEROS = /^[^.,٫]*\d\s*[.,٫]0+$/;
/** Digits that may be an area code, of which somebody types the number after a dot. */
const MAX_AREA_CODE_DIGITS = 6;

/**
 * Returns how the number is written, in ASCII digits, beginning with its plus when it has one; undefined when there is
 * something in it that belongs to no phone number, no digit, or when a spreadsheet has changed it.
 */
export function readPhoneText(input: string): string | undefined {
  const text = normalizeNumber(input);
  if (isChangedNumber(text)) return undefined;
  return readPunctuated(text);
}

function readPunctuated(text: string): string | undefined {
  if (!PHONE.test(text) || extractDigits(text) === '') return undefined;
  return text.slice(Math.max(0, text.indexOf('+'))).replaceAll(DASHES, '-');
}

/** Tells whether a spreadsheet has put an exponent in the place of digits, or has added a fraction of zeros to them. */
export function isChangedNumber(input: string): boolean {
  const text = normalizeNumber(input).normalize('NFKC');
  return SHORTENED.test(text) || FRACTION_OF_ZEROS.test(text);
}

/**
 * Returns the one form in which a number is stored, searched and compared: E.164 if it begins with + or 00, or if it is
 * possible in the store's country, else its digits. A former spelling of its country becomes that of today. Undefined if
 * it is no phone number, whatever the country.
 * @param country of the store
 */
export function normalizePhone(input: string, country: string | null): string | undefined {
  const text = readPhoneText(input);
  if (text === undefined) return undefined;
  const digits = extractDigits(text);
  if (digits.length > MAX_DIGITS) return undefined;
  if (text.startsWith('+')) {
    const abroad = digits.replace(DIALLED, '');
    return findPossible(`+${abroad}`) ?? findUnknownNumber(abroad);
  }
  // Some countries dial more than 00: in Australia a number of Germany begins with 0011 49.
  const abroad = DIALLED.test(digits) ? digits.replace(DIALLED, '') : undefined;
  const international =
    (abroad === undefined ? undefined : findPossible(`+${abroad}`)) ??
    findInCountry(digits, country) ??
    (abroad === undefined ? undefined : findUnknownNumber(abroad));
  return international ?? digits;
}

/** Normalizes a number that may be null. @throws RejectedError */
export function normalizeOptionalPhone(
  input: string | null,
  country: string | null,
): string | null {
  if (input === null) return null;
  const phone = normalizePhone(input, country);
  if (phone === undefined) throw new RejectedError({ phone: [ISSUES.phone_invalid] });
  const digits = findDigitsOfToday(phone);
  if (digits !== undefined) throw new RejectedError({ phone: [ISSUES.phone_outdated({ digits })] });
  return phone;
}

/**
 * Tells whether a stored number can be somebody's. By its length, but for short ones: in Germany a number may have four
 * digits, and 0151 12 is still none.
 */
export function isDiallable(phone: string): boolean {
  const parsed = parsePhoneNumberFromString(phone);
  if (!parsed?.isPossible() || findDigitsOfToday(phone) !== undefined) return false;
  return parsed.nationalNumber.length >= MIN_DIGITS || parsed.isValid();
}

/** Masks a number so that only its owner recognizes it. */
export function maskPhone(phone: string): string {
  return `${phone.slice(0, 3)}…${phone.slice(-2)}`;
}

/** Tells whether two stored numbers are one, of which one may have been stored while the country was unknown. */
export function isSamePhone(a: string | null, b: string | null): boolean {
  if (a === b || a === null || b === null) return a === b;
  if (getPhoneKey(a) === getPhoneKey(b)) return true;
  const [international, digits] = a.startsWith('+') ? [a, b] : [b, a];
  const country = parsePhoneNumberFromString(international)?.country ?? null;
  const normalized = normalizePhone(digits, country);
  return normalized !== undefined && getPhoneKey(normalized) === getPhoneKey(international);
}

/**
 * Reads what may be a part of a phone number.
 * @returns digits anywhere in it, and digits at its beginning, for somebody who types a number from its start;
 *   undefined when it is no part of any
 */
export function readPartOfPhone(
  input: string,
  country: string | null,
): { anywhere: string; atStart: string[] } | undefined {
  const typed = normalizeNumber(input);
  const isAreaCode = extractDigits(typed.replace(/0+$/, '')).length <= MAX_AREA_CODE_DIGITS;
  const text = isAreaCode ? readPunctuated(typed) : readPhoneText(typed);
  if (text === undefined) return undefined;
  const anywhere = extractDigits(text);
  const isDialled = text.startsWith('+') || DIALLED.test(anywhere);
  const beginning = isDialled ? anywhere.replace(DIALLED, '') : readBeginning(anywhere, country);
  const all = new Set([beginning, extractDigits(normalizePhone(text, country) ?? '')]);
  // What holds all that is looked for anywhere is found with that.
  const atStart = [...all].filter((digits) => digits !== '' && !digits.includes(anywhere));
  return { anywhere, atStart };
}

function readBeginning(digits: string, country: string | null): string {
  const countryCode = findCountryCode(country);
  if (countryCode === undefined) return '';
  const formatter = new AsYouType(countryCode);
  formatter.input(digits);
  return extractDigits(formatter.getNumberValue() ?? '');
}

function findPossible(text: string, country?: CountryCode): string | undefined {
  const parsed = parsePhoneNumberFromString(text, country);
  if (!parsed) return undefined;
  const number = modernizeNumber(parsed.number);
  return number !== parsed.number || parsed.isPossible() ? number : undefined;
}

function findInCountry(digits: string, country: string | null): string | undefined {
  const countryCode = findCountryCode(country);
  if (countryCode === undefined) return undefined;
  const isWithoutPlus = digits.startsWith(getCountryCallingCode(countryCode));
  const withPlus = isWithoutPlus ? findPossible(`+${digits}`) : undefined;
  // 49 171 1234567 would also do as a number of Leer, whose area code is 0491, but those are written with their 0.
  const isValid = withPlus && parsePhoneNumberFromString(withPlus)?.isValid();
  return isValid ? withPlus : findPossible(digits, countryCode);
}

/** Finds the number of a country or a network that the library does not know. */
function findUnknownNumber(digits: string): string | undefined {
  return digits.length >= 5 && digits.length <= 15 ? `+${digits}` : undefined;
}

function findCountryCode(country: string | null): CountryCode | undefined {
  return country !== null && isSupportedCountry(country) ? country : undefined;
}

/**
 * Tells whether the text is an address. It is stored as it was sent, so its parts must be clear without normalizing it.
 */
export function isEmail(text: string): boolean {
  return /^[^@]+@[^@]+$/u.test(text) && isEmailAddress(text);
}

export const emailKind = identifierKind(
  254,
  Check((text: string) => (isEmail(text) ? undefined : ISSUES.email_expected)),
);

/** A number as it is written: what it becomes depends on the store's country. */
export const phoneKind = { ...textKind(64, Check(findPhoneIssue)), finish: readPhoneText };

function findPhoneIssue(text: string): Issue | undefined {
  if (isChangedNumber(text)) return ISSUES.changed_by_spreadsheet;
  return normalizePhone(text, null) === undefined ? ISSUES.phone_invalid : undefined;
}
