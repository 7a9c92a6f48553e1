import { z } from 'zod';
import { mergeMetadata, metadataFault, type Metadata } from '#kernel/metadata.js';

/**
 * Field types of the contract's section 1. Each reads what clients really send (integer strings, 0 and
 * 1 for booleans, untrimmed text), words its own errors and carries its own piece of the OpenAPI
 * document, so that a DTO says everything once.
 */

type Checked<T> = { value: T } | { fault: string };

function field<T>(check: (value: unknown) => Checked<T>, schema: Record<string, unknown>) {
  return z
    .unknown()
    .transform((value, context): T => {
      const checked = check(value);
      if ('value' in checked) return checked.value;
      context.addIssue({ code: 'custom', message: checked.fault });
      return z.NEVER;
    })
    .meta(schema);
}

/** In a POST null means the default (contract section 1), and so does leaving it out. */
export function orDefault<T>(schema: z.ZodType<T>, value: T) {
  return z
    .unknown()
    .transform((given, context): T => {
      if (given === undefined || given === null) return value;
      const parsed = schema.safeParse(given);
      if (parsed.success) return parsed.data;
      for (const issue of parsed.error.issues) {
        context.addIssue({ code: 'custom', message: issue.message });
      }
      return z.NEVER;
    })
    .optional()
    .transform((given): T => given ?? value)
    .meta({ ...schema.meta(), default: value });
}

/** Null, a missing key and a blank string all mean that there is none. */
export function optional<T>(schema: z.ZodType<T>) {
  return orDefault<T | null>(nullOr(schema), null);
}

/** In a PATCH: null clears, a missing key leaves the field alone. */
export function clearable<T>(schema: z.ZodType<T>) {
  return nullOr(schema).optional();
}

/** Null and blank are null; anything else is what the schema says. */
function nullOr<T>(schema: z.ZodType<T>) {
  return field(
    (value): Checked<T | null> => {
      if (value === null || (typeof value === 'string' && value.trim() === '')) {
        return { value: null };
      }
      const parsed = schema.safeParse(value);
      return parsed.success
        ? { value: parsed.data }
        : { fault: parsed.error.issues.map((issue) => issue.message).join(', ') };
    },
    nullable(schema.meta() ?? {}),
  );
}

/** Trimmed, not blank. Lengths count code points. */
export function text({ max = 255, ...schema }: { max?: number; [key: string]: unknown } = {}) {
  return field(
    (value) => {
      if (value === undefined || value === null) return { fault: 'is required' };
      if (typeof value !== 'string') return { fault: 'must be a string' };
      const trimmed = value.trim();
      if (trimmed === '') return { fault: 'must not be blank' };
      const fault = textFault(value);
      if (fault) return { fault };
      if ([...trimmed].length > max) return { fault: `must have at most ${max} characters` };
      return { value: trimmed };
    },
    { type: 'string', minLength: 1, maxLength: max, ...schema },
  );
}

/** What no text may hold, because neither JSON columns nor other systems can keep it. */
export function textFault(value: string): string | undefined {
  if (value.includes('\0')) return 'must not contain a NUL character';
  return value.isWellFormed() ? undefined : 'must be valid Unicode text';
}

/** Integers and integer strings. */
export function integer({
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
}: { min?: number; max?: number } = {}) {
  const range: { minimum?: number; maximum?: number } = {};
  if (min !== Number.MIN_SAFE_INTEGER) range.minimum = min;
  if (max !== Number.MAX_SAFE_INTEGER) range.maximum = max;
  return field(
    (value) => {
      if (value === undefined || value === null || value === '') return { fault: 'is required' };
      const number = integerOf(value);
      if (number === undefined) return { fault: 'must be an integer' };
      if (number < min) return { fault: `must be at least ${min}` };
      if (number > max) return { fault: `must be at most ${max}` };
      return { value: number };
    },
    { type: 'integer', ...range },
  );
}

function integerOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : undefined;
  if (typeof value !== 'string' || !/^\s*[+-]?\d{1,20}\s*$/.test(value)) return undefined;
  return Number(value);
}

export function number({ min, max }: { min: number; max: number }) {
  return field(
    (value) => {
      if (value === undefined || value === null || value === '') return { fault: 'is required' };
      const parsed =
        typeof value === 'string' && /^\s*[+-]?\d{1,20}(\.\d{1,20})?\s*$/.test(value)
          ? Number(value)
          : value;
      if (typeof parsed !== 'number' || !Number.isFinite(parsed)) {
        return { fault: 'must be a number' };
      }
      if (parsed < min || parsed > max) return { fault: `must be between ${min} and ${max}` };
      return { value: parsed };
    },
    { type: 'number', minimum: min, maximum: max },
  );
}

/** true, false, 1, 0 and the strings of the same. */
export function boolean() {
  return field(
    (value) => {
      if (value === undefined || value === null) return { fault: 'is required' };
      if (value === true || value === 1 || value === '1' || value === 'true') {
        return { value: true };
      }
      if (value === false || value === 0 || value === '0' || value === 'false') {
        return { value: false };
      }
      return { fault: 'must be true or false' };
    },
    { type: 'boolean' },
  );
}

export function oneOf<const T extends string>(values: readonly T[]) {
  return field(
    (value) => {
      if (value === undefined || value === null || value === '') return { fault: 'is required' };
      const known = values.find((candidate) => candidate === value);
      return known === undefined
        ? { fault: `must be one of ${values.join(', ')}` }
        : { value: known };
    },
    { type: 'string', enum: values },
  );
}

/** `#RGB` or `#RRGGBB`; given on as upper-case `#RRGGBB`. */
export function color() {
  return field(
    (value) => {
      if (value === undefined || value === null) return { fault: 'is required' };
      if (typeof value !== 'string') return { fault: 'must be a string' };
      const digits = /^\s*#([0-9a-f]{3}|[0-9a-f]{6})\s*$/i.exec(value)?.[1];
      if (digits === undefined) return { fault: 'must be a colour such as #6B4226' };
      const long = digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits;
      return { value: `#${long.toUpperCase()}` };
    },
    { type: 'string', pattern: '^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$', example: '#6B4226' },
  );
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** ISO 8601; without an offset it is UTC. */
export function time() {
  return field(
    (value) => {
      if (value === undefined || value === null) return { fault: 'is required' };
      const fault = 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z';
      if (typeof value !== 'string' || !ISO_TIME.test(value.trim())) return { fault };
      const given = value.trim().replace(' ', 'T');
      const zoned = /T.*(Z|[+-]\d{2}:?\d{2})$/i.test(given) || !given.includes('T');
      const parsed = new Date(zoned ? given : `${given}Z`);
      if (Number.isNaN(parsed.getTime()) || !isRealDay(given)) return { fault };
      // An offset may move it out of the years that are written with four digits.
      const year = parsed.getUTCFullYear();
      return year < 1 || year > 9999
        ? { fault: 'must be in the years 1 to 9999' }
        : { value: parsed };
    },
    { type: 'string', format: 'date-time' },
  );
}

/** YYYY-MM-DD, a day that exists, not after `today`. */
export function pastDate(today: () => string) {
  return field(
    (value) => {
      if (value === undefined || value === null) return { fault: 'is required' };
      if (typeof value !== 'string') return { fault: 'must be a string' };
      const day = value.trim();
      if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || !isRealDay(day)) {
        return { fault: 'must be a real date such as 1990-05-31' };
      }
      return day > today() ? { fault: 'must not be in the future' } : { value: day };
    },
    { type: 'string', format: 'date' },
  );
}

/** JavaScript rolls 31 February over into March; we do not. */
function isRealDay(iso: string): boolean {
  const day = iso.slice(0, 10);
  const parsed = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}

const METADATA_DEPTH = 16;

/**
 * A JSON object for other systems' own use: at most 50 keys and 16 KiB. A null removes its key, so that
 * it does not count; what a merge comes to is judged where it is merged.
 */
export function metadata() {
  return field(
    (value): Checked<Metadata> => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        return { fault: 'must be an object' };
      }
      const fault =
        jsonFault(value, METADATA_DEPTH) ?? metadataFault(mergeMetadata({}, value as Metadata));
      return fault ? { fault } : { value: { ...value } };
    },
    {
      type: 'object',
      additionalProperties: true,
      description: 'Merged key by key, a null removes its key; at most 50 keys and 16 KiB',
    },
  );
}

function jsonFault(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return textFault(value);
  // 1e400 comes out of a parser as Infinity, and would go back into JSON as null.
  if (typeof value === 'number' && !Number.isFinite(value))
    return 'must not hold so large a number';
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === 0) return `must not be nested deeper than ${METADATA_DEPTH} levels`;
  for (const [key, inner] of Object.entries(value)) {
    const fault = textFault(key) ?? jsonFault(inner, depth - 1);
    if (fault) return fault;
  }
  return undefined;
}

function nullable(schema: Record<string, unknown>): Record<string, unknown> {
  const nulled = { ...schema };
  if (typeof schema['type'] === 'string') nulled['type'] = [schema['type'], 'null'];
  if (Array.isArray(schema['enum'])) nulled['enum'] = [...schema['enum'], null];
  return nulled;
}

/** A time in an answer: ISO 8601, UTC, milliseconds, `Z`. */
export const timestamp = z
  .string()
  .meta({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' });
