import { applyDecorators, type Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsDate,
  IsDefined,
  IsIn,
  IsInt,
  IsNotEmpty,
  IsNumber,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  Max,
  MaxDate,
  Min,
  MinDate,
  ValidateBy,
  ValidateIf,
} from 'class-validator';
import type { Metadata } from '#kernel/metadata.js';
import { EARLIEST_TIME, isCalendarDay, LATEST_TIME, type MomentOfDay } from '#kernel/zoned-time.js';
import {
  findMetadataInputError,
  findTextError,
  toBoolean,
  toColor,
  toDay,
  toIdentifier,
  toInteger,
  toNumber,
  toText,
  toTime,
  type Convert,
} from './conversions.js';
import { deferSwaggerDecorators } from './documentation.js';

/**
 * Declare the fields of requests (CONV-13 to CONV-28). Each decorator sets the conversion, class-validator's decorators
 * and the OpenAPI property at once.
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

type TimeOptions = FieldOptions & {
  description: string;
  moment?: MomentOfDay;
  /** Where the day of a date is, for the description. */
  zone?: string;
  finish?: (time: Date) => unknown;
};

/** A part of an OpenAPI schema as @nestjs/swagger takes it: with `nullable` and `example`. */
type Schema = Record<string, unknown>;

const MOMENTS: Record<MomentOfDay, string> = {
  start: 'the start of that day',
  end: 'the end of that day',
  next: 'the start of the next day',
};

/** How a field of a kind is read: converted, then validated until the first error, then finished. */
export type FieldKind = {
  /** Of the JSON value. */
  schema: Schema;
  convert?: Convert;
  /** Decorators of class-validator, in the order of their checks. */
  validators?: readonly PropertyDecorator[];
  /** The class of the object, or of the objects in the list, and what begins the messages of an element. */
  nested?: { dto: () => Type; label?: (index: number) => string };
  /** Turns the valid value into that of the DTO. */
  finish?: (value: never) => unknown;
};

/** Metadata of a field, which its first decorator of class-validator holds as its context. */
export type FieldContext = Pick<FieldKind, 'nested'> & {
  convert: Convert;
  finish: ((value: unknown) => unknown) | undefined;
  /** The value that null and a missing key mean; undefined: there is none. */
  byDefault: unknown;
  /** Whether a missing key leaves the field alone, although null clears it. */
  isClearable: boolean;
  /** Whether the field holds a time, which may be sent as a date. */
  isTime: boolean;
  /** Class of the field's object, or of the objects in its list, as documented: also where the handler reads them. */
  inner: (() => Type) | undefined;
};

export function Field(kind: FieldKind, options: FieldOptions = {}): PropertyDecorator {
  const { schema, convert = keep, validators = [], finish, nested } = kind;
  const { type, format } = schema;
  const context: FieldContext = {
    convert,
    finish: finish as FieldContext['finish'],
    byDefault: options.default,
    isClearable: options.clearable === true,
    isTime: format === 'date-time',
    inner: typeof type === 'function' ? (type as () => Type) : undefined,
    ...(nested && { nested }),
  };
  return applyDecorators(
    validatePresent(options, context),
    ...validators,
    deferSwaggerDecorators(({ ApiProperty }) => [ApiProperty(toApiProperty(schema, options))]),
  );
}

/**
 * Declares a check with a message of its own.
 * @param findError returns undefined for a valid value
 */
export function Check<T>(findError: (value: T) => string | undefined): PropertyDecorator {
  return ValidateBy({
    name: findError.name,
    validator: {
      validate: (value: T) => findError(value) === undefined,
      defaultMessage: (about) => findError(about?.value as T) ?? '',
    },
  });
}

const required = IsDefined({ message: 'is required' });
const isString = IsString({ message: 'must be a string' });

/** A text in its normal form (NFC, nothing invisible at its ends), not blank. @param max in code points */
export function textKind(max: number, ...validators: PropertyDecorator[]) {
  return {
    schema: { type: 'string', minLength: 1, maxLength: max } as Schema,
    convert: toText,
    validators: [
      required,
      isString,
      IsNotEmpty({ message: 'must not be blank' }),
      Check(findTextError),
      // Counting code points is slow; a text has at most as many as it has units.
      Check((text: string) =>
        text.length > max && [...text].length > max
          ? `must have at most ${max} characters`
          : undefined,
      ),
      ...validators,
    ],
  };
}

/** An id, a receipt number or a search, without invisible characters (CONV-51). @param max in code points */
export function identifierKind(max: number, ...validators: PropertyDecorator[]) {
  return { ...textKind(max, ...validators), convert: toIdentifier };
}

/** A text with its own rule. @param parse returns undefined when the text breaks the rule */
export function parsedTextKind(
  max: number,
  parse: (text: string) => unknown,
  message: string,
): FieldKind {
  const check = Check((text: string) => (parse(text) === undefined ? message : undefined));
  return { ...textKind(max, check), finish: parse };
}

export function matchingKind(pattern: RegExp, max: number): FieldKind {
  const message = `must match ${pattern.source.replace(/^\^|\$$/g, '')}`;
  const { schema, ...kind } = textKind(max, Matches(pattern, { message }));
  return { ...kind, schema: { ...schema, pattern: pattern.source } };
}

/** An integer, which may be sent as a string (CONV-13). */
export function integerKind(
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
  ...validators: PropertyDecorator[]
): FieldKind {
  return {
    schema: { type: 'integer', minimum: min, maximum: max },
    convert: toInteger,
    validators: [
      required,
      IsInt({ message: 'must be an integer' }),
      Min(min, { message: `must be at least ${min}` }),
      Max(max, { message: `must be at most ${max}` }),
      ...validators,
    ],
  };
}

/** A list of objects of a class. */
export function listKind(
  dto: () => Type,
  max: number,
  label: (index: number) => string,
): FieldKind {
  return {
    // @nestjs/swagger recognises a lazy reference by the name of its function.
    schema: { type: () => dto(), isArray: true, maxItems: max },
    validators: [
      IsArray({ message: 'must be a list of objects' }),
      ArrayMaxSize(max, { message: `must have at most ${max} elements` }),
    ],
    nested: { dto, label },
  };
}

export function TextField({
  max = 255,
  format,
  ...options
}: FieldOptions & { max?: number; format?: string } = {}): PropertyDecorator {
  const { schema, ...kind } = textKind(max);
  return Field({ ...kind, schema: { ...schema, ...(format && { format }) } }, options);
}

export function IdentifierField({
  max = 255,
  ...options
}: FieldOptions & { max?: number } = {}): PropertyDecorator {
  return Field(identifierKind(max), options);
}

export function IntegerField({
  min,
  max,
  ...options
}: FieldOptions & { min?: number; max?: number } = {}): PropertyDecorator {
  return Field(integerKind(min, max), options);
}

export function NumberField({
  min,
  max,
  ...options
}: FieldOptions & { min: number; max: number }): PropertyDecorator {
  const range = { message: `must be between ${min} and ${max}` };
  const kind: FieldKind = {
    schema: { type: 'number', minimum: min, maximum: max },
    convert: toNumber,
    validators: [
      required,
      IsNumber({}, { message: 'must be a number' }),
      Min(min, range),
      Max(max, range),
    ],
  };
  return Field(kind, options);
}

/** Declares a boolean: true, false, 1, 0, or one of these as a string (CONV-15). */
export function BooleanField(options: FieldOptions = {}): PropertyDecorator {
  const validators = [required, IsBoolean({ message: 'must be true or false' })];
  return Field({ schema: { type: 'boolean' }, convert: toBoolean, validators }, options);
}

export function OneOfField(
  values: readonly string[],
  options: FieldOptions = {},
): PropertyDecorator {
  const kind: FieldKind = {
    schema: { type: 'string', enum: values },
    convert: (value) => (value === '' ? null : value),
    validators: [required, IsIn(values, { message: `must be one of ${values.join(', ')}` })],
  };
  return Field(kind, options);
}

/** Declares a colour: `#RGB` or `#RRGGBB`, converted to upper-case `#RRGGBB`. */
export function ColorField(options: FieldOptions = {}): PropertyDecorator {
  const message = 'must be a colour such as #6B4226';
  const kind: FieldKind = {
    schema: { type: 'string', pattern: '^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$' },
    convert: toColor,
    validators: [required, isString, Matches(/^#[0-9A-F]{6}$/, { message })],
  };
  return Field(kind, { example: '#6B4226', ...options });
}

/**
 * Declares an ISO 8601 time, in UTC without an offset (CONV-57).
 * @param moment of its day that a date without a time means
 * @param finish turns it into the value of the DTO; without it a Date
 */
export function TimeField({
  moment = 'start',
  zone = 'the account’s time zone',
  finish,
  description,
  ...options
}: TimeOptions): PropertyDecorator {
  const years = { message: 'must be in the years 1 to 9999 in every time zone' };
  const kind: FieldKind = {
    schema: { type: 'string', format: 'date-time' },
    convert: toTime(moment),
    validators: [
      required,
      IsDate({ message: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z' }),
      MinDate(new Date(EARLIEST_TIME), years),
      MaxDate(new Date(LATEST_TIME), years),
    ],
    ...(finish && { finish }),
  };
  const date = `A date without a time means ${MOMENTS[moment]} in ${zone}`;
  return Field(kind, { ...options, description: `${description}. ${date}` });
}

/** Declares a date that exists and is not after `today`. */
export function PastDateField(today: () => string, options: FieldOptions = {}): PropertyDecorator {
  const findDayError = (day: string) => {
    if (!isCalendarDay(day)) return 'must be a real date such as 1990-05-31';
    return day > today() ? 'must not be in the future' : undefined;
  };
  const kind: FieldKind = {
    schema: { type: 'string', format: 'date' },
    convert: toDay,
    validators: [required, isString, Check(findDayError)],
  };
  return Field(kind, options);
}

/** Declares a JSON object for other systems' own use: at most 50 keys and 16 KiB. */
export function MetadataField(options: FieldOptions = {}): PropertyDecorator {
  const kind: FieldKind = {
    schema: {
      type: 'object',
      additionalProperties: true,
      description: 'Merged key by key, a null removes its key; at most 50 keys and 16 KiB',
    },
    validators: [IsObject({ message: 'must be an object' }), Check(findMetadataInputError)],
    finish: (input: Metadata) => ({ ...input }),
  };
  return Field(kind, options);
}

function keep(value: unknown): unknown {
  return value;
}

function validatePresent(
  { optional, clearable, omittable }: FieldOptions,
  context: FieldContext,
): PropertyDecorator {
  if (optional || clearable) return IsOptional({ context });
  return ValidateIf((_, value) => !omittable || value !== undefined, { context });
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
