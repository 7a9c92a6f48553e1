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
import type { Metadata } from '#platform/kernel/metadata.js';
import {
  EARLIEST_TIME,
  isCalendarDay,
  LATEST_TIME,
  type MomentOfDay,
} from '#platform/kernel/zoned-time.js';
import {
  findMetadataInputIssue,
  findTextIssue,
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
import { PLATFORM_ISSUES, type Issue } from '#platform/kernel/issues.js';

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
export type FieldContext = Pick<FieldKind, 'nested' | 'schema'> & {
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
    schema,
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
 * Declares a check that finds its issue itself.
 * @param findIssue returns undefined for a valid value
 */
export function Check<T>(findIssue: (value: T) => Issue | undefined): PropertyDecorator {
  const validator = { validate: (value: T) => findIssue(value) === undefined };
  return ValidateBy({ name: findIssue.name, validator }, { context: findIssue });
}

const required = IsDefined({ context: PLATFORM_ISSUES.required });
const isString = IsString({ context: PLATFORM_ISSUES.not_text });

/** A text in its normal form (NFC, nothing invisible at its ends), not blank. @param max in code points */
export function textKind(max: number, ...validators: PropertyDecorator[]) {
  return {
    schema: { type: 'string', minLength: 1, maxLength: max } as Schema,
    convert: toText,
    validators: [
      required,
      isString,
      IsNotEmpty({ context: PLATFORM_ISSUES.blank }),
      Check(findTextIssue),
      // Counting code points is slow; a text has at most as many as it has units.
      Check((text: string) =>
        text.length > max && [...text].length > max ? PLATFORM_ISSUES.too_long({ max }) : undefined,
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
  issue: Issue,
): FieldKind {
  const check = Check((text: string) => (parse(text) === undefined ? issue : undefined));
  return { ...textKind(max, check), finish: parse };
}

export function matchingKind(pattern: RegExp, max: number): FieldKind {
  const context = PLATFORM_ISSUES.no_match({ pattern: pattern.source.replace(/^\^|\$$/g, '') });
  const { schema, ...kind } = textKind(max, Matches(pattern, { context }));
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
      IsInt({ context: PLATFORM_ISSUES.not_integer }),
      Min(min, { context: PLATFORM_ISSUES.too_small({ min }) }),
      Max(max, { context: PLATFORM_ISSUES.too_large({ max }) }),
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
      IsArray({ context: PLATFORM_ISSUES.not_list_of_objects }),
      ArrayMaxSize(max, { context: PLATFORM_ISSUES.too_many_elements({ max }) }),
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
  const range = { context: PLATFORM_ISSUES.out_of_range({ min, max }) };
  const kind: FieldKind = {
    schema: { type: 'number', minimum: min, maximum: max },
    convert: toNumber,
    validators: [
      required,
      IsNumber({}, { context: PLATFORM_ISSUES.not_number }),
      Min(min, range),
      Max(max, range),
    ],
  };
  return Field(kind, options);
}

/** Declares a boolean: true, false, 1, 0, or one of these as a string (CONV-15). */
export function BooleanField(options: FieldOptions = {}): PropertyDecorator {
  const validators = [required, IsBoolean({ context: PLATFORM_ISSUES.not_boolean })];
  return Field({ schema: { type: 'boolean' }, convert: toBoolean, validators }, options);
}

export function OneOfField(
  values: readonly string[],
  options: FieldOptions = {},
): PropertyDecorator {
  const kind: FieldKind = {
    schema: { type: 'string', enum: values },
    convert: (value) => (value === '' ? null : value),
    validators: [
      required,
      IsIn(values, { context: PLATFORM_ISSUES.not_choice({ choices: values.join(', ') }) }),
    ],
  };
  return Field(kind, options);
}

/** Declares a colour: `#RGB` or `#RRGGBB`, converted to upper-case `#RRGGBB`. */
export function ColorField(options: FieldOptions = {}): PropertyDecorator {
  const context = PLATFORM_ISSUES.not_color;
  const kind: FieldKind = {
    schema: { type: 'string', pattern: '^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$' },
    convert: toColor,
    validators: [required, isString, Matches(/^#[0-9A-F]{6}$/, { context })],
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
  const years = { context: PLATFORM_ISSUES.year_out_of_range };
  const kind: FieldKind = {
    schema: { type: 'string', format: 'date-time' },
    convert: toTime(moment),
    validators: [
      required,
      IsDate({ context: PLATFORM_ISSUES.not_time }),
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
  const findDayIssue = (day: string) => {
    if (!isCalendarDay(day)) return PLATFORM_ISSUES.not_date;
    return day > today() ? PLATFORM_ISSUES.in_future : undefined;
  };
  const kind: FieldKind = {
    schema: { type: 'string', format: 'date' },
    convert: toDay,
    validators: [required, isString, Check(findDayIssue)],
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
    validators: [IsObject({ context: PLATFORM_ISSUES.not_object }), Check(findMetadataInputIssue)],
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

function isRequired({ optional, clearable, omittable, ...options }: FieldOptions): boolean {
  return !optional && !clearable && !omittable && !('default' in options);
}

function toApiProperty(schema: Schema, options: FieldOptions): ApiPropertyOptions {
  const { optional, clearable, omittable: _omittable, default: value, ...words } = options;
  return {
    required: isRequired(options),
    ...((optional || clearable || 'default' in options) && { nullable: true }),
    ...(optional && { default: null }),
    ...('default' in options && { default: value }),
    ...schema,
    ...words,
  } as ApiPropertyOptions;
}
