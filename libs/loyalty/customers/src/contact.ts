import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import { isEmailAddress } from '#kernel/email-address.js';
import { normalizeNumber } from '#kernel/text.js';
import { readIdentifier, readText, type Checked } from '#http/readers.js';
import { digitsOf } from './search-keys.js';

/** Between digits, as libphonenumber has it (`VALID_PUNCTUATION`), and the apostrophe of texts in spreadsheets. */
const BETWEEN = String.raw`\s\p{Pd}()[\]（）［］.．/／·・~～∼\u2212\u30FC'’`;
/**
 * Has at most one plus, before the first digit. Anything else may mean something, and a number without it would be
 * somebody else's: letters, an extension, a pause, two numbers, ½, ②.
 */
const PHONE = new RegExp(`^[${BETWEEN}]*\\+?[\\d${BETWEEN}]*$`, 'u');
const DASHES = /[\p{Pd}~～∼\u2212\u30FC]/gu;
/** As spreadsheets show numbers of more than eleven digits, in any language, or as people copy them. */
const SHORTENED = /^[+-]?\d+(?:[.,٫]\d*)?\s*(?:[eE]|[x×*]\s*10\^)\s*[+-]?\d+$/;

/**
 * Returns how the number is written, in ASCII digits, beginning with its plus when it has one; undefined when there is
 * something in it that belongs to no phone number, or no digit.
 */
export function readPhoneText(given: string): string | undefined {
  const text = normalizeNumber(given);
  if (!PHONE.test(text) || digitsOf(text) === '') return undefined;
  return text.slice(Math.max(0, text.indexOf('+'))).replaceAll(DASHES, '-');
}

/** Tells whether a spreadsheet has put an exponent in the place of digits, which are lost. */
export function isShortenedNumber(given: string): boolean {
  return SHORTENED.test(normalizeNumber(given).normalize('NFKC'));
}

/**
 * E.164 if it starts with +, otherwise its digits, since the country is unknown; undefined if it is not a
 * phone number (contract section 4).
 */
export function normalPhone(given: string): string | undefined {
  const text = readPhoneText(given);
  if (text === undefined) return undefined;
  const digits = digitsOf(text);
  if (digits.length > 32) return undefined;
  if (!text.startsWith('+')) return digits;
  const parsed = parsePhoneNumberFromString(text);
  if (parsed?.isPossible()) return parsed.number;
  return digits.length >= 5 && digits.length <= 15 ? `+${digits}` : undefined;
}

/** It is stored as it was given, so its parts must be told apart without normalising it. */
export function isEmail(text: string): boolean {
  return /^[^@]+@[^@]+$/u.test(text) && isEmailAddress(text);
}

export function readEmail(given: unknown): Checked<string> {
  const text = readIdentifier(254)(given);
  if ('faults' in text || isEmail(text.value)) return text;
  return { faults: ['must be an e-mail address'] };
}

export function readPhone(given: unknown): Checked<string> {
  const text = readText(64)(given);
  if ('faults' in text) return text;
  if (isShortenedNumber(text.value)) {
    return { faults: ['looks like a spreadsheet has shortened it'] };
  }
  const phone = normalPhone(text.value);
  return phone === undefined ? { faults: ['must be a phone number'] } : { value: phone };
}
