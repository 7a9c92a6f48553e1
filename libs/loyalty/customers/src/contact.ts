import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import { digitsOf } from './customer.js';

/**
 * E.164 when it starts with +, else its digits, since without a country nothing more is known;
 * undefined when it is no phone number (contract section 4).
 */
export function normalPhone(given: string): string | undefined {
  const digits = digitsOf(given);
  if (digits.length === 0 || digits.length > 32) return undefined;
  if (!given.trim().startsWith('+')) return digits;
  const parsed = parsePhoneNumberFromString(given.trim());
  if (parsed?.isPossible()) return parsed.number;
  return digits.length >= 5 && digits.length <= 15 ? `+${digits}` : undefined;
}

/** One local part, one domain with a dot; what else is valid only its mail server knows. */
export function isEmail(text: string): boolean {
  return (
    [...text].length <= 254 &&
    /^[^\s@"<>(),;:\\]+@[^\s@"<>(),;:\\.]+(\.[^\s@"<>(),;:\\.]+)+$/u.test(text)
  );
}
