import { applyDecorators, type Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import { ValidateBy } from 'class-validator';
import { isBlankText } from '#kernel/text.js';
import type { MomentOfDay } from '#kernel/zoned-time.js';
import { deferSwaggerDecorators } from './documentation.js';
import {
  readBoolean,
  readColor,
  readIdentifier,
  readInteger,
  readMetadata,
  readNumber,
  readOneOf,
  readPastDate,
  readText,
  readTime,
  readTimeText,
  type Checked,
  type Read,
} from './readers.js';

/**
 * Declare the fields of requests (CONV-13 to CONV-28). Each decorator sets the check, the coercion and the OpenAPI
 * property at once.
 */

type FieldDocs = { description?: string; example?: unknown };

/**
 * Without any of these the field is required.
 * - `optional`: null, a missing key and a blank string all mean null
 * - `default`: null and a missing key mean this value
 * - `clearable`: in a PATCH; null and a blank string clear, a missing key leaves the field alone
 * - `omittable`: in a PATCH; a missing key leaves the field alone
 */
type Presence = {
  optional?: true;
  default?: unknown;
  clearable?: true;
  omittable?: true;
};

export type FieldOptions = FieldDocs & Presence;

type TimeOptions = FieldOptions & { description: string };

/** A part of an OpenAPI schema as @nestjs/swagger takes it: with `nullable` and `example`. */
type Schema = Record<string, unknown>;

const TIME_SCHEMA: Schema = { type: 'string', format: 'date-time' };
const MOMENTS: Record<MomentOfDay, string> = {
  start: 'the start of that day',
  end: 'the end of that day',
  next: 'the start of the next day',
};

/** Metadata that a field decorator passes to `CompiledFields` through class-validator. */
export type FieldContext = {
  read: ReadField;
  /** Whether the field holds a time, which may be sent as a date. */
  isTime: boolean;
  /** Class of the field's object, or of the objects in its list. */
  inner?: () => Type;
};

/** Parses a field; undefined leaves it out. */
type ReadField = (value: unknown, timeZone?: string) => Checked<unknown> | undefined;

/**
 * Declares a field with its own parser.
 * @param schema of the JSON value
 */
export function Field(
  read: Read<unknown>,
  schema: Schema,
  options: FieldOptions = {},
): PropertyDecorator {
  const readField = withPresence(read, options);
  const { type, format } = schema;
  const inner = typeof type === 'function' ? (type as () => Type) : undefined;
  const context: FieldContext = {
    read: readField,
    isTime: format === 'date-time',
    ...(inner && { inner }),
  };
  return applyDecorators(
    ValidateBy(
      {
        name: 'field',
        validator: {
          validate: (value) => getErrors(readField(value)).length === 0,
          defaultMessage: (arguments_) => getErrors(readField(arguments_?.value)).join(', '),
        },
      },
      { context },
    ),
    deferSwaggerDecorators(({ ApiProperty }) => [ApiProperty(toApiProperty(schema, options))]),
  );
}

/** Declares a text in its normal form (NFC, nothing invisible at its ends), not blank. Lengths count code points. */
export function TextField({
  max = 255,
  format,
  ...options
}: FieldOptions & { max?: number; format?: string } = {}): PropertyDecorator {
  const schema = { type: 'string', minLength: 1, maxLength: max, ...(format && { format }) };
  return Field(readText(max), schema, options);
}

/** Declares an id or a receipt number of another system, without invisible characters. Lengths count code points. */
export function IdentifierField({
  max = 255,
  ...options
}: FieldOptions & { max?: number } = {}): PropertyDecorator {
  return Field(readIdentifier(max), { type: 'string', minLength: 1, maxLength: max }, options);
}

/** Declares an integer, which may be sent as a string (CONV-13). */
export function IntegerField({
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
  ...options
}: FieldOptions & { min?: number; max?: number } = {}): PropertyDecorator {
  const schema = { type: 'integer', minimum: min, maximum: max };
  return Field(readInteger(min, max), schema, options);
}

export function NumberField({
  min,
  max,
  ...options
}: FieldOptions & { min: number; max: number }): PropertyDecorator {
  return Field(readNumber(min, max), { type: 'number', minimum: min, maximum: max }, options);
}

/** Declares a boolean: true, false, 1, 0, or one of these as a string (CONV-15). */
export function BooleanField(options: FieldOptions = {}): PropertyDecorator {
  return Field(readBoolean, { type: 'boolean' }, options);
}

export function OneOfField(
  values: readonly string[],
  options: FieldOptions = {},
): PropertyDecorator {
  return Field(readOneOf(values), { type: 'string', enum: values }, options);
}

/** Declares a colour: `#RGB` or `#RRGGBB`, converted to upper-case `#RRGGBB`. */
export function ColorField(options: FieldOptions = {}): PropertyDecorator {
  const pattern = '^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$';
  return Field(readColor, { type: 'string', pattern }, { example: '#6B4226', ...options });
}

/**
 * Declares an ISO 8601 time, in UTC without an offset (CONV-57); parsed to a Date.
 * @param moment of its day that a date without a time means
 */
export function TimeField({
  moment = 'start',
  ...options
}: TimeOptions & { moment?: MomentOfDay }): PropertyDecorator {
  return Field(readTime(moment), TIME_SCHEMA, describeTime(moment, options));
}

/** Declares the same kind of time; parsed to ISO 8601 text in UTC. */
export function TimeTextField({
  moment = 'start',
  ...options
}: TimeOptions & { moment?: MomentOfDay }): PropertyDecorator {
  return Field(readTimeText(moment), TIME_SCHEMA, describeTime(moment, options));
}

/** Declares a date that exists and is not after `today`. */
export function PastDateField(today: () => string, options: FieldOptions = {}): PropertyDecorator {
  return Field(readPastDate(today), { type: 'string', format: 'date' }, options);
}

/** Declares a JSON object for other systems' own use: at most 50 keys and 16 KiB. */
export function MetadataField(options: FieldOptions = {}): PropertyDecorator {
  const schema = {
    type: 'object',
    additionalProperties: true,
    description: 'Merged key by key, a null removes its key; at most 50 keys and 16 KiB',
  };
  return Field(readMetadata, schema, options);
}

function withPresence(read: Read<unknown>, options: FieldOptions): ReadField {
  const { optional, clearable, omittable } = options;
  if (optional) {
    return (value, timeZone) =>
      isBlank(value) ? { value: null } : joinErrors(read(value, timeZone));
  }
  if (clearable) {
    return (value, timeZone) => {
      if (value === undefined) return undefined;
      return isBlank(value) ? { value: null } : joinErrors(read(value, timeZone));
    };
  }
  if (omittable) {
    return (value, timeZone) => (value === undefined ? undefined : read(value, timeZone));
  }
  if ('default' in options) {
    const { default: value } = options;
    return (input, timeZone) =>
      input === undefined || input === null ? { value } : read(input, timeZone);
  }
  return read;
}

function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'string' && isBlankText(value);
}

/** Joins the errors: a nullable field reports a single message. */
function joinErrors(checked: Checked<unknown>): Checked<unknown> {
  return 'errors' in checked ? { errors: [checked.errors.join(', ')] } : checked;
}

function describeTime(moment: MomentOfDay, options: TimeOptions): FieldOptions {
  const date = `A date without a time means ${MOMENTS[moment]} in the account’s time zone`;
  return { ...options, description: `${options.description}. ${date}` };
}

function getErrors(checked: Checked<unknown> | undefined): string[] {
  return checked && 'errors' in checked ? checked.errors : [];
}

function toApiProperty(schema: Schema, options: FieldOptions): ApiPropertyOptions {
  const { optional, clearable, omittable, default: value, ...words } = options;
  const isRequired = !optional && !clearable && !omittable && !('default' in options);
  return {
    required: isRequired,
    ...((optional || clearable || 'default' in options) && { nullable: true }),
    ...(optional && { default: null }),
    ...('default' in options && { default: value }),
    ...schema,
    ...words,
  } as ApiPropertyOptions;
}
