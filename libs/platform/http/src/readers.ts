import { mergeMetadata, findMetadataError, type Metadata } from '#kernel/metadata.js';
import { normalizeIdentifier, normalizeNumber, normalizeText } from '#kernel/text.js';
import {
  EARLIEST_TIME,
  LATEST_TIME,
  findMomentOfDay,
  type MomentOfDay,
} from '#kernel/zoned-time.js';

/**
 * Coercion of what clients really send: integer strings, 0 and 1 for booleans, untrimmed text (contract
 * section 1).
 */

/** The coerced value, or all its faults. */
export type Checked<T> = { value: T } | { faults: string[] };

/** @param timeZone of the account; without one UTC */
export type Read<T> = (value: unknown, timeZone?: string) => Checked<T>;

const REQUIRED = { faults: ['is required'] };

function fault(message: string): { faults: string[] } {
  return { faults: [message] };
}

/** Reads a text in its normal form (`normalizeText`), not blank. @param max in code points */
export function readText(max: number): Read<string> {
  return readNormal(normalizeText, max);
}

/** Reads an id, a receipt number or a search: what cannot be seen is no part of it. @param max in code points */
export function readIdentifier(max: number): Read<string> {
  return readNormal(normalizeIdentifier, max);
}

function readNormal(normalize: (text: string) => string, max: number): Read<string> {
  return (value) => {
    if (value === undefined || value === null) return REQUIRED;
    if (typeof value !== 'string') return fault('must be a string');
    const text = normalize(value);
    if (text === '') return fault('must not be blank');
    const unfit = textFault(value);
    if (unfit) return fault(unfit);
    // Counting code points is slow; a text has at most as many as it has units.
    if (text.length > max && [...text].length > max) {
      return fault(`must have at most ${max} characters`);
    }
    return { value: text };
  };
}

/** A text with a rule of its own. @param read returns undefined when the text breaks the rule */
export function readTextAs<T>(
  max: number,
  read: (text: string) => T | undefined,
  message: string,
): Read<T> {
  const readAny = readText(max);
  return (given) => {
    const text = readAny(given);
    if ('faults' in text) return text;
    const value = read(text.value);
    return value === undefined ? fault(message) : { value };
  };
}

export function readMatching(pattern: RegExp, max: number): Read<string> {
  const words = `must match ${pattern.source.replace(/^\^|\$$/g, '')}`;
  return readTextAs(max, (text) => (pattern.test(text) ? text : undefined), words);
}

/** Characters that neither JSON columns nor other systems can hold. */
export function textFault(value: string): string | undefined {
  if (value.includes('\0')) return 'must not contain a NUL character';
  return value.isWellFormed() ? undefined : 'must be valid Unicode text';
}

export function readInteger(
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
): Read<number> {
  return (given) => {
    if (given === undefined || given === null || given === '') return REQUIRED;
    const value = integerOf(given);
    if (value === undefined) return fault('must be an integer');
    if (value < min) return fault(`must be at least ${min}`);
    if (value > max) return fault(`must be at most ${max}`);
    return { value };
  };
}

function integerOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const text = normalizeNumber(value);
  return /^[+-]?\d{1,20}$/.test(text) ? Number(text) : undefined;
}

export function readNumber(min: number, max: number): Read<number> {
  return (given) => {
    if (given === undefined || given === null || given === '') return REQUIRED;
    const text = typeof given === 'string' ? normalizeNumber(given) : '';
    const value = /^[+-]?\d{1,20}(\.\d{1,20})?$/.test(text) ? Number(text) : given;
    if (typeof value !== 'number' || !Number.isFinite(value)) return fault('must be a number');
    return value < min || value > max ? fault(`must be between ${min} and ${max}`) : { value };
  };
}

export function readBoolean(value: unknown): Checked<boolean> {
  if (value === undefined || value === null) return REQUIRED;
  if (value === true || value === 1 || value === '1' || value === 'true') return { value: true };
  if (value === false || value === 0 || value === '0' || value === 'false') return { value: false };
  return fault('must be true or false');
}

export function readOneOf<const T extends string>(values: readonly T[]): Read<T> {
  return (given) => {
    if (given === undefined || given === null || given === '') return REQUIRED;
    const value = values.find((one) => one === given);
    return value === undefined ? fault(`must be one of ${values.join(', ')}`) : { value };
  };
}

export function readColor(given: unknown): Checked<string> {
  if (given === undefined || given === null) return REQUIRED;
  if (typeof given !== 'string') return fault('must be a string');
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(normalizeNumber(given))?.[1];
  if (digits === undefined) return fault('must be a colour such as #6B4226');
  const long = digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits;
  return { value: `#${long.toUpperCase()}` };
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** In a query, a + that was not encoded arrives as a space. */
const TIME =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(?:(Z)|([+ -])(\d{2}):?(\d{2})?)?$/i;

/** Tells whether it is a date without a time, whose moment depends on the time zone. */
export function isDate(value: unknown): value is string {
  return typeof value === 'string' && DATE.test(normalizeNumber(value));
}

/** Reads an ISO 8601 time. @param moment of its day that a date without a time means */
export function readTime(moment: MomentOfDay): Read<Date> {
  return (given, timeZone = 'UTC') => {
    if (given === undefined || given === null) return REQUIRED;
    const at =
      typeof given === 'string' ? parseTime(normalizeNumber(given), moment, timeZone) : undefined;
    if (at === undefined) return fault('must be an ISO 8601 time such as 2026-01-31T12:00:00Z');
    if (at < EARLIEST_TIME || at > LATEST_TIME) {
      return fault('must be in the years 1 to 9999 in every time zone');
    }
    return { value: new Date(at) };
  };
}

function parseTime(text: string, moment: MomentOfDay, timeZone: string): number | undefined {
  if (!isRealDay(text)) return undefined;
  if (DATE.test(text)) return findMomentOfDay(text, moment, timeZone);
  const parts = TIME.exec(text);
  if (!parts) return undefined;
  const [, day = '', clock = '', , sign, hours, minutes = '00'] = parts;
  const offset = sign === undefined ? 'Z' : `${sign === ' ' ? '+' : sign}${hours}:${minutes}`;
  const at = Date.parse(`${day}T${clock}${offset}`);
  return Number.isNaN(at) ? undefined : at;
}

/** Reads the same as ISO 8601 text in UTC. */
export function readTimeText(moment: MomentOfDay): Read<string> {
  const read = readTime(moment);
  return (given, timeZone) => {
    const time = read(given, timeZone);
    return 'faults' in time ? time : { value: time.value.toISOString() };
  };
}

export function readPastDate(today: () => string): Read<string> {
  return (given) => {
    if (given === undefined || given === null) return REQUIRED;
    if (typeof given !== 'string') return fault('must be a string');
    const value = normalizeNumber(given);
    if (!/^\d{4}-\d{2}-\d{2}$/.test(value) || !isRealDay(value)) {
      return fault('must be a real date such as 1990-05-31');
    }
    return value > today() ? fault('must not be in the future') : { value };
  };
}

/** JavaScript rolls 31 February over into March; we do not. */
function isRealDay(iso: string): boolean {
  const day = iso.slice(0, 10);
  const parsed = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}

const METADATA_DEPTH = 16;

/** A null removes its key, so it does not count; the merged result is checked where it is merged. */
export function readMetadata(given: unknown): Checked<Metadata> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return fault('must be an object');
  }
  const unfit =
    jsonFault(given, METADATA_DEPTH) ?? findMetadataError(mergeMetadata({}, given as Metadata));
  return unfit ? fault(unfit) : { value: { ...given } };
}

function jsonFault(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return textFault(value);
  // 1e400 is parsed as Infinity and would be written as null.
  if (typeof value === 'number' && !Number.isFinite(value))
    return 'must not hold so large a number';
  // Of more digits the last are lost by now: the number would be stored as another one.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return `must not hold an integer beyond ${Number.MAX_SAFE_INTEGER}: send it as a string`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === 0) return `must not be nested deeper than ${METADATA_DEPTH} levels`;
  for (const [key, inner] of Object.entries(value)) {
    const unfit = textFault(key) ?? jsonFault(inner, depth - 1);
    if (unfit) return unfit;
  }
  return undefined;
}
