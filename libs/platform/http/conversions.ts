import { mergeMetadata, findMetadataIssue, type Metadata } from '#platform/kernel/metadata.js';
import {
  isBlankText,
  normalizeIdentifier,
  normalizeNumber,
  normalizeText,
} from '#platform/kernel/text.js';
import { findMomentOfDay, isCalendarDay, type MomentOfDay } from '#platform/kernel/zoned-time.js';
import { PLATFORM_ISSUES, type Issue } from '#platform/kernel/issues.js';

// Conversions for what clients really send: integer strings, 0 and 1 for booleans, untrimmed text (CONV-13 to CONV-25).

/**
 * Converts the value of a field. A value that it cannot convert stays as it is, for the validators to refuse.
 * @param timeZone of the account; without one UTC
 */
export type Convert = (value: unknown, timeZone?: string) => unknown;

export const toText = normalizeWith(normalizeText);
export const toIdentifier = normalizeWith(normalizeIdentifier);

/** Creates a conversion to normal form. A text with forbidden characters stays, even where normalizing removes them. */
function normalizeWith(normalize: (text: string) => string): Convert {
  return (value) => {
    if (typeof value !== 'string') return value;
    const text = normalize(value);
    return text !== '' && text !== value && findTextIssue(value) ? value : text;
  };
}

/** Finds characters that neither JSON columns nor other systems can hold. */
export function findTextIssue(value: string): Issue | undefined {
  if (value.includes('\0')) return PLATFORM_ISSUES.nul_character;
  return value.isWellFormed() ? undefined : PLATFORM_ISSUES.invalid_unicode;
}

export function toInteger(value: unknown): unknown {
  return parseNumber(value, /^[+-]?\d{1,20}$/);
}

export function toNumber(value: unknown): unknown {
  return parseNumber(value, /^[+-]?\d{1,20}(\.\d{1,20})?$/);
}

function parseNumber(value: unknown, pattern: RegExp): unknown {
  if (value === '') return null;
  if (typeof value !== 'string') return value;
  const text = normalizeNumber(value);
  return pattern.test(text) ? Number(text) : value;
}

export function toBoolean(value: unknown): unknown {
  if (value === 1 || value === '1' || value === 'true') return true;
  return value === 0 || value === '0' || value === 'false' ? false : value;
}

/** Converts `#RGB` and `#RRGGBB` to upper-case `#RRGGBB`. */
export function toColor(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(normalizeNumber(value))?.[1];
  if (digits === undefined) return value;
  const long = digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits;
  return `#${long.toUpperCase()}`;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** In a query, a + that was not encoded arrives as a space. */
const TIME =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(?:(Z)|([+ -])(\d{2}):?(\d{2})?)?$/i;

/** Tells whether the value is a date without a time, whose meaning depends on the time zone. */
export function isDate(value: unknown): value is string {
  return typeof value === 'string' && DATE.test(normalizeNumber(value));
}

/**
 * Converts ISO 8601 text to a Date.
 * @param moment of its day that a date without a time means
 */
export function toTime(moment: MomentOfDay): Convert {
  return (value, timeZone = 'UTC') => {
    if (typeof value !== 'string') return value;
    const time = parseTime(normalizeNumber(value), moment, timeZone);
    return time === undefined ? value : new Date(time);
  };
}

function parseTime(text: string, moment: MomentOfDay, timeZone: string): number | undefined {
  if (!isCalendarDay(text.slice(0, 10))) return undefined;
  if (DATE.test(text)) return findMomentOfDay(text, moment, timeZone);
  const parts = TIME.exec(text);
  if (!parts) return undefined;
  const [, day = '', clock = '', , sign, hours, minutes = '00'] = parts;
  const offset = sign === undefined ? 'Z' : `${sign === ' ' ? '+' : sign}${hours}:${minutes}`;
  const time = Date.parse(`${day}T${clock}${offset}`);
  return Number.isNaN(time) ? undefined : time;
}

export function toDay(value: unknown): unknown {
  return typeof value === 'string' ? normalizeNumber(value) : value;
}

const METADATA_DEPTH = 16;

/** Finds an error. A null removes its key, so it does not count; the merged result is checked where it is merged. */
export function findMetadataInputIssue(input: Metadata): Issue | undefined {
  return findJsonIssue(input, METADATA_DEPTH) ?? findMetadataIssue(mergeMetadata({}, input));
}

function findJsonIssue(value: unknown, depth: number): Issue | undefined {
  if (typeof value === 'string') return findTextIssue(value);
  // 1e400 is parsed as Infinity and would be written as null.
  if (typeof value === 'number' && !Number.isFinite(value)) return PLATFORM_ISSUES.number_too_large;
  // JSON rounds off the last of more digits: another number would be stored.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return PLATFORM_ISSUES.integer_too_large({ max: Number.MAX_SAFE_INTEGER });
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === 0) return PLATFORM_ISSUES.nested_too_deeply({ max: METADATA_DEPTH });
  for (const [key, inner] of Object.entries(value)) {
    const nestedError = findTextIssue(key) ?? findJsonIssue(inner, depth - 1);
    if (nestedError) return nestedError;
  }
  return undefined;
}

/** Tells whether an optional field has no value: null, a missing key and a blank string mean the same. */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'string' && isBlankText(value);
}
