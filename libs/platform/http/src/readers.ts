import { mergeMetadata, findMetadataError, type Metadata } from '#kernel/metadata.js';
import { normalizeIdentifier, normalizeNumber, normalizeText } from '#kernel/text.js';
import {
  EARLIEST_TIME,
  LATEST_TIME,
  findMomentOfDay,
  type MomentOfDay,
} from '#kernel/zoned-time.js';

/** Parse what clients really send: integer strings, 0 and 1 for booleans, untrimmed text (CONV-13 to CONV-25). */

/** The parsed value, or all its errors. */
export type Checked<T> = { value: T } | { errors: string[] };

/** @param timeZone of the account; without one UTC */
export type Read<T> = (value: unknown, timeZone?: string) => Checked<T>;

const REQUIRED = { errors: ['is required'] };

function invalid(message: string): { errors: string[] } {
  return { errors: [message] };
}

/**
 * Parses a text in its normal form (`normalizeText`), not blank.
 * @param max in code points
 */
export function readText(max: number): Read<string> {
  return readNormal(normalizeText, max);
}

/**
 * Parses an id, a receipt number or a search, without invisible characters (CONV-51).
 * @param max in code points
 */
export function readIdentifier(max: number): Read<string> {
  return readNormal(normalizeIdentifier, max);
}

function readNormal(normalize: (text: string) => string, max: number): Read<string> {
  return (value) => {
    if (value === undefined || value === null) return REQUIRED;
    if (typeof value !== 'string') return invalid('must be a string');
    const text = normalize(value);
    if (text === '') return invalid('must not be blank');
    const textError = findTextError(value);
    if (textError) return invalid(textError);
    // Counting code points is slow; a text has at most as many as it has units.
    if (text.length > max && [...text].length > max) {
      return invalid(`must have at most ${max} characters`);
    }
    return { value: text };
  };
}

/**
 * Parses a text with its own rule.
 * @param read returns undefined when the text breaks the rule
 */
export function readTextAs<T>(
  max: number,
  read: (text: string) => T | undefined,
  message: string,
): Read<T> {
  const readAny = readText(max);
  return (input) => {
    const text = readAny(input);
    if ('errors' in text) return text;
    const value = read(text.value);
    return value === undefined ? invalid(message) : { value };
  };
}

export function readMatching(pattern: RegExp, max: number): Read<string> {
  const message = `must match ${pattern.source.replace(/^\^|\$$/g, '')}`;
  return readTextAs(max, (text) => (pattern.test(text) ? text : undefined), message);
}

/** Finds characters that neither JSON columns nor other systems can hold. */
export function findTextError(value: string): string | undefined {
  if (value.includes('\0')) return 'must not contain a NUL character';
  return value.isWellFormed() ? undefined : 'must be valid Unicode text';
}

export function readInteger(
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
): Read<number> {
  return (input) => {
    if (input === undefined || input === null || input === '') return REQUIRED;
    const value = parseInteger(input);
    if (value === undefined) return invalid('must be an integer');
    if (value < min) return invalid(`must be at least ${min}`);
    if (value > max) return invalid(`must be at most ${max}`);
    return { value };
  };
}

function parseInteger(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const text = normalizeNumber(value);
  return /^[+-]?\d{1,20}$/.test(text) ? Number(text) : undefined;
}

export function readNumber(min: number, max: number): Read<number> {
  return (input) => {
    if (input === undefined || input === null || input === '') return REQUIRED;
    const text = typeof input === 'string' ? normalizeNumber(input) : '';
    const value = /^[+-]?\d{1,20}(\.\d{1,20})?$/.test(text) ? Number(text) : input;
    if (typeof value !== 'number' || !Number.isFinite(value)) return invalid('must be a number');
    return value < min || value > max ? invalid(`must be between ${min} and ${max}`) : { value };
  };
}

export function readBoolean(value: unknown): Checked<boolean> {
  if (value === undefined || value === null) return REQUIRED;
  if (value === true || value === 1 || value === '1' || value === 'true') return { value: true };
  if (value === false || value === 0 || value === '0' || value === 'false') return { value: false };
  return invalid('must be true or false');
}

export function readOneOf<const T extends string>(values: readonly T[]): Read<T> {
  return (input) => {
    if (input === undefined || input === null || input === '') return REQUIRED;
    const value = values.find((one) => one === input);
    return value === undefined ? invalid(`must be one of ${values.join(', ')}`) : { value };
  };
}

export function readColor(input: unknown): Checked<string> {
  if (input === undefined || input === null) return REQUIRED;
  if (typeof input !== 'string') return invalid('must be a string');
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(normalizeNumber(input))?.[1];
  if (digits === undefined) return invalid('must be a colour such as #6B4226');
  const long = digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits;
  return { value: `#${long.toUpperCase()}` };
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
 * Parses an ISO 8601 time.
 * @param moment of its day that a date without a time means
 */
export function readTime(moment: MomentOfDay): Read<Date> {
  return (input, timeZone = 'UTC') => {
    if (input === undefined || input === null) return REQUIRED;
    const time =
      typeof input === 'string' ? parseTime(normalizeNumber(input), moment, timeZone) : undefined;
    if (time === undefined) return invalid('must be an ISO 8601 time such as 2026-01-31T12:00:00Z');
    if (time < EARLIEST_TIME || time > LATEST_TIME) {
      return invalid('must be in the years 1 to 9999 in every time zone');
    }
    return { value: new Date(time) };
  };
}

function parseTime(text: string, moment: MomentOfDay, timeZone: string): number | undefined {
  if (!isRealDay(text)) return undefined;
  if (DATE.test(text)) return findMomentOfDay(text, moment, timeZone);
  const parts = TIME.exec(text);
  if (!parts) return undefined;
  const [, day = '', clock = '', , sign, hours, minutes = '00'] = parts;
  const offset = sign === undefined ? 'Z' : `${sign === ' ' ? '+' : sign}${hours}:${minutes}`;
  const time = Date.parse(`${day}T${clock}${offset}`);
  return Number.isNaN(time) ? undefined : time;
}

/** Parses the same kind of time to ISO 8601 text in UTC. */
export function readTimeText(moment: MomentOfDay): Read<string> {
  const read = readTime(moment);
  return (input, timeZone) => {
    const time = read(input, timeZone);
    return 'errors' in time ? time : { value: time.value.toISOString() };
  };
}

export function readPastDate(today: () => string): Read<string> {
  return (input) => {
    if (input === undefined || input === null) return REQUIRED;
    if (typeof input !== 'string') return invalid('must be a string');
    const value = normalizeNumber(input);
    if (!/^\d{4}-\d{2}-\d{2}$/.test(value) || !isRealDay(value)) {
      return invalid('must be a real date such as 1990-05-31');
    }
    return value > today() ? invalid('must not be in the future') : { value };
  };
}

/** Tells whether the day exists: JavaScript would turn 31 February into March. */
function isRealDay(iso: string): boolean {
  const day = iso.slice(0, 10);
  const parsed = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}

const METADATA_DEPTH = 16;

/** Parses metadata. A null removes its key, so it does not count; the merged result is checked where it is merged. */
export function readMetadata(input: unknown): Checked<Metadata> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return invalid('must be an object');
  }
  const jsonError =
    findJsonError(input, METADATA_DEPTH) ?? findMetadataError(mergeMetadata({}, input as Metadata));
  return jsonError ? invalid(jsonError) : { value: { ...input } };
}

function findJsonError(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return findTextError(value);
  // 1e400 is parsed as Infinity and would be written as null.
  if (typeof value === 'number' && !Number.isFinite(value))
    return 'must not hold so large a number';
  // Of more digits the last are lost by now: the number would be stored as another one.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return `must not hold an integer beyond ${Number.MAX_SAFE_INTEGER}: send it as a string`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === 0) return `must not be nested deeper than ${METADATA_DEPTH} levels`;
  for (const [key, inner] of Object.entries(value)) {
    const nestedError = findTextError(key) ?? findJsonError(inner, depth - 1);
    if (nestedError) return nestedError;
  }
  return undefined;
}
