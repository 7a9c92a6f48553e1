import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import { readTextAs } from '#http/readers.js';
import { digitsOf } from './search-keys.js';

/**
 * E.164 if it starts with +, otherwise its digits, since the country is unknown; undefined if it is not a
 * phone number (contract section 4).
 */
export function normalPhone(given: string): string | undefined {
  const digits = digitsOf(given);
  if (digits.length === 0 || digits.length > 32) return undefined;
  if (!given.trim().startsWith('+')) return digits;
  const parsed = parsePhoneNumberFromString(given.trim());
  if (parsed?.isPossible()) return parsed.number;
  return digits.length >= 5 && digits.length <= 15 ? `+${digits}` : undefined;
}

/** One local part, one domain with a dot; beyond that, only its mail server knows what is valid. */
export function isEmail(text: string): boolean {
  return (
    [...text].length <= 254 &&
    /^[^\s@"<>(),;:\\]+@[^\s@"<>(),;:\\.]+(\.[^\s@"<>(),;:\\.]+)+$/u.test(text)
  );
}

export const readEmail = readTextAs(
  254,
  (text) => (isEmail(text) ? text : undefined),
  'must be an e-mail address',
);
export const readPhone = readTextAs(64, normalPhone, 'must be a phone number');
