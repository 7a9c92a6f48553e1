import type { Type } from '@nestjs/common';
import { getMetadataStorage, ValidationTypes } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { deferSwaggerDecorators } from './documentation.js';
import { isBlank, isDate } from './conversions.js';
import type { FieldContext } from './fields.js';
import {
  locateIssue,
  PLATFORM_ISSUES,
  type FieldIssues,
  type Issue,
} from '#platform/kernel/issues.js';
import { restoreOffsets } from './unencoded-plus.js';

/**
 * What reading an input yields.
 * @property value complete only without errors
 * @property hasDate whether a date is in place of a time: which time it means depends on the time zone
 * @property hasUnread whether the input may have more than was read
 */
export type Reading<T extends object = object> = {
  value: T;
  errors: FieldIssues | undefined;
  hasDate: boolean;
  hasUnread: boolean;
};

/** A rule across several fields of a DTO. */
type Rule = {
  /** Fields of the rule; it is checked only when none of them has an error. */
  fields: readonly string[];
  /** Field that the error is reported for. */
  field: string;
  holds: (input: never) => boolean;
  issue: Issue;
};

type DtoOptions = {
  /** Name of the object that wraps the fields of a write body (CONV-01). */
  wrapper?: string;
  /** Accepts the body without its wrapper if it has a field of this class (CONV-03); true: of this DTO. */
  bare?: Type | true;
  /** Class of the fields inside the wrapper; the others are outside it. */
  inside?: Type;
  /** Example of the whole body; by default composed from the examples of the fields. */
  example?: object;
};

const rules = new WeakMap<object, Rule[]>();
const dtos = new WeakMap<object, DtoOptions>();
const compiled = new WeakMap<object, CompiledFields>();

/** Declared DTO classes by schema name, for the OpenAPI document. */
export const dtosByName = new Map<string, DtoOptions & { dto: object }>();

/**
 * Declares a class of fields, of a request or a response.
 * @param name of its schema in the OpenAPI document
 */
export function Dto(name: string, options: DtoOptions = {}): ClassDecorator {
  return (dto) => {
    if (dtosByName.has(name)) throw new Error(`two DTO classes are called ${name}`);
    dtosByName.set(name, { ...options, dto });
    dtos.set(dto, options);
    deferSwaggerDecorators(({ ApiSchema }) => [ApiSchema({ name })])(dto);
  };
}

/** Declares a rule across several fields. Rules are checked from top to bottom. */
export function FieldsRule<T>(
  of: readonly (keyof T & string)[],
  field: keyof T & string,
  holds: (input: T) => boolean,
  issue: Issue,
): ClassDecorator {
  return (dto) => {
    // The lowest decorator of a class is applied first.
    rules.set(dto, [{ fields: of, field, holds, issue }, ...(rules.get(dto) ?? [])]);
  };
}

/** Tells whether a date is in place of a time: which time it means depends on the time zone. */
export function hasDate(dto: Type, input: unknown): boolean {
  return isObject(input) && getFields(dto).hasDate(input);
}

/**
 * Parses a body.
 * @param timeZone of the dates in it; without one they are in UTC
 * @throws InvalidFieldsError with all errors of all fields
 */
export function readBody<T extends object>(dto: Type<T>, body: unknown, timeZone?: string): T {
  return getValue<T>(getFields(dto).readBody(body, timeZone));
}

/** Parses query parameters like fields. Of a repeated one (`?a=1&a=2`) the last value counts. */
export function readQuery<T extends object>(dto: Type<T>, query: unknown, timeZone?: string): T {
  return getValue<T>(getFields(dto).readQuery(query, timeZone));
}

/** @throws InvalidFieldsError with all errors of all fields */
export function readFields<T extends object>(
  dto: Type<T>,
  input: Record<string, unknown>,
  timeZone?: string,
): T {
  return getValue<T>(getFields(dto).read(input, timeZone));
}

function getValue<T extends object>({ value, errors }: Reading): T {
  if (errors) throw new InvalidFieldsError(errors);
  return value as T;
}

class NoFields {}

/** Returns the fields of a class, which are compiled once. @param dto null: no fields */
export function getFields(dto: Type | null): CompiledFields {
  if (dto === null) return getFields(NoFields);
  let fields = compiled.get(dto);
  if (!fields) compiled.set(dto, (fields = new CompiledFields(dto)));
  return fields;
}

export type CompiledField = FieldContext & {
  name: string;
  isNullable: boolean;
  isChecked: (object: object, value: unknown) => boolean;
  /** Each returns the issue of a validator that refuses the value. */
  checks: ((value: unknown, object: object) => Issue | undefined)[];
  /** The value without an input where that is always the same; undefined: it has to be read. */
  absent: { value: unknown } | undefined;
};

/**
 * Runs the validators that class-validator's decorators declare. Its own `validate` searches all registered classes at
 * each call, which costs more than all the checks of a body.
 */
export class CompiledFields {
  readonly fields: CompiledField[];
  private readonly rules: Rule[];
  /** Name of the object that wraps the fields of a body. */
  readonly wrapper: string | undefined;
  /** A body without its wrapper has one of these fields; undefined: it needs the wrapper. */
  private readonly bare: CompiledFields['inner'] | undefined;
  /** All fields, with the classes of nested objects. */
  readonly inner: ReadonlyMap<string, FieldContext['inner']>;
  /** Fields that are outside the wrapper, if there is one. */
  readonly outside: ReadonlySet<string>;

  constructor(dto: Type) {
    const { wrapper, bare, inside } = dtos.get(dto) ?? {};
    this.wrapper = wrapper;
    const metadata = getMetadataStorage().getTargetValidationMetadatas(dto, '', false, false);
    this.fields = Object.entries(getMetadataStorage().groupByPropertyName(metadata)).map(
      ([name, ofField]) => compileField(dto.name, name, ofField),
    );
    for (const field of this.fields) field.absent = readAbsent(field);
    this.inner = new Map(this.fields.map(({ name, inner }) => [name, inner]));
    const wrapped = inside ? getFields(inside).inner : this.inner;
    this.bare = bare === true ? wrapped : bare && getFields(bare).inner;
    this.outside = new Set([...this.inner.keys()].filter((name) => !wrapped.has(name)));
    this.rules = rules.get(dto) ?? [];
  }

  hasDate(input: Record<string, unknown>): boolean {
    return this.fields.some(({ isTime, name }) => isTime && isDate(input[name]));
  }

  /** Reads a body. With a wrapper, a field counts only in its own place: inside or outside it (CONV-54). */
  readBody(body: unknown, timeZone?: string): Reading {
    const input = body === undefined ? {} : body;
    if (!isObject(input)) return refuse('base', PLATFORM_ISSUES.body_not_object);
    const { wrapper } = this;
    if (wrapper === undefined) return this.read(input, timeZone);
    if (Object.hasOwn(input, wrapper)) {
      const inner = input[wrapper];
      if (!isObject(inner)) return refuse(wrapper, PLATFORM_ISSUES.not_object);
      return this.read(inner, timeZone, input);
    }
    if (this.bare && Object.keys(input).some((name) => this.bare?.has(name))) {
      return this.read(input, timeZone);
    }
    return refuse(wrapper, PLATFORM_ISSUES.wrapper_required);
  }

  readQuery(query: unknown, timeZone?: string): Reading {
    return this.read(restoreOffsets(toSingleValues(query)), timeZone);
  }

  /**
   * Reads all fields in one pass.
   * @param outside where the fields outside the wrapper are
   */
  read(
    input: Record<string, unknown>,
    timeZone?: string,
    outside: Record<string, unknown> = input,
  ): Reading {
    const reading = createReading();
    let unreadCount = 0;
    for (const _ in input) unreadCount++;
    if (outside !== input) {
      for (const _ in outside) unreadCount++;
      // The wrapper is read.
      unreadCount--;
    }
    // By index, as iterators would cost more than the fields do.
    for (let i = 0; i < this.fields.length; i++) {
      const field = this.fields[i] as CompiledField;
      const { name, absent } = field;
      const place = this.outside.has(name) ? outside : input;
      const isSent = Object.hasOwn(place, name);
      if (isSent) unreadCount--;
      const sent = isSent ? place[name] : undefined;
      if (sent !== undefined || !absent) readField(reading, field, sent, timeZone);
      else if (absent.value !== undefined) reading.value[name] = absent.value;
    }
    if (unreadCount > 0) reading.hasUnread = true;
    if (this.rules.length > 0) this.checkRules(reading);
    return reading;
  }

  private checkRules(reading: MutableReading): void {
    for (const { fields, field, holds, issue } of this.rules) {
      const { errors, value } = reading;
      if (errors && fields.some((name) => Object.hasOwn(errors, name))) continue;
      if (!holds(value as never)) ((reading.errors ??= {})[field] ??= []).push(issue);
    }
  }
}

const NO_OBJECT = {};

type MutableReading = Reading<Record<string, unknown>>;

function createReading(): MutableReading {
  return { value: {}, errors: undefined, hasDate: false, hasUnread: false };
}

/** Creates the result of an input of which no field can be read. */
function refuse(field: string, issue: Issue): Reading {
  return { value: {}, errors: { [field]: [issue] }, hasDate: false, hasUnread: true };
}

/** The context of a validator's decorator: why it refuses a value. */
type Reason = Issue | ((value: unknown) => Issue | undefined);

function compileField(
  targetName: string,
  property: string,
  metadata: ValidationMetadata[],
): CompiledField {
  const presence = metadata.find(({ type }) => type === ValidationTypes.CONDITIONAL_VALIDATION);
  const context: unknown = presence?.context;
  if (!presence || !isFieldContext(context)) {
    throw new Error(`${targetName}.${property} has a decorator that is not from fields.ts`);
  }
  const [isChecked] = presence.constraints as [CompiledField['isChecked']];
  const checks = metadata.flatMap(({ constraintCls, constraints, each, context: reason }) =>
    getMetadataStorage()
      .getTargetValidatorConstraints(constraintCls)
      .map(({ instance }): CompiledField['checks'][number] => {
        if (!isReason(reason))
          throw new Error(`${targetName}.${property} is refused without an issue`);
        // One for all values: a check is done before the next one begins.
        const about = {
          targetName,
          property,
          constraints,
          value: undefined as unknown,
          object: NO_OBJECT,
        };
        return (value, object) => {
          about.value = value;
          about.object = object;
          const isValid = each
            ? Array.isArray(value) && value.every((item) => instance.validate(item, about) === true)
            : instance.validate(value, about) === true;
          about.value = undefined;
          about.object = NO_OBJECT;
          if (isValid) return undefined;
          return typeof reason === 'function' ? reason(value) : reason;
        };
      }),
  );
  return {
    ...context,
    name: property,
    isNullable: presence.name === 'isOptional',
    absent: undefined,
    isChecked,
    checks,
  };
}

/** Reads a field that was not sent, unless it is required or its value is an object, of which each input has its own. */
function readAbsent(field: CompiledField): CompiledField['absent'] {
  if (field.isClearable) return { value: undefined };
  const reading = createReading();
  readField(reading, field, undefined);
  const value = reading.value[field.name];
  return reading.errors || (typeof value === 'object' && value !== null) ? undefined : { value };
}

/** Reads a field until the first error. A nullable field reports all errors of nested objects as one message. */
function readField(
  reading: MutableReading,
  field: CompiledField,
  sent: unknown,
  timeZone?: string,
): void {
  const { name, byDefault, isNullable, checks, nested, finish } = field;
  const { value: object } = reading;
  if (field.isTime && isDate(sent)) reading.hasDate = true;
  const isDefault = byDefault !== undefined && (sent === undefined || sent === null);
  const isNull = isNullable && isBlank(sent);
  const value = isNull ? null : isDefault ? byDefault : field.convert(sent, timeZone);
  if (value !== undefined) object[name] = value;
  if ((value === undefined || value === null) && !field.isChecked(object, value)) return;
  for (let i = 0; i < checks.length; i++) {
    const error = checks[i]?.(value, object);
    if (error === undefined) continue;
    (reading.errors ??= {})[name] = [error];
    return;
  }
  if (field.inner && !nested) reading.hasUnread = true;
  const inner = nested && readNested(reading, nested, value);
  if (inner && inner.errors.length > 0) {
    (reading.errors ??= {})[name] = isNullable ? joinIssues(inner.errors) : inner.errors;
    return;
  }
  const checked = inner ? inner.value : value;
  object[name] = finish ? finish(checked) : checked;
}

/** Reads an object or a list of them; the messages name the element and its field. */
function readNested(
  reading: MutableReading,
  { dto, label = () => '' }: NonNullable<FieldContext['nested']>,
  value: unknown,
) {
  const errors: Issue[] = [];
  const elements = [value].flat().map((element, i) => {
    if (!isObject(element))
      return void errors.push(locateIssue(label(i), PLATFORM_ISSUES.not_object));
    const inner = getFields(dto()).read(element);
    if (inner.hasUnread) reading.hasUnread = true;
    for (const [name, issues] of Object.entries(inner.errors ?? {})) {
      errors.push(...issues.map((issue) => locateIssue(`${label(i)}${name} `, issue)));
    }
    return inner.value;
  });
  return { value: Array.isArray(value) ? elements : elements[0], errors };
}

/** Returns the issues as one, which has the code of the first. */
function joinIssues(issues: Issue[]): Issue[] {
  const message = issues.map((issue) => issue.message).join(', ');
  return issues.slice(0, 1).map((issue) => ({ ...issue, message }));
}

function isReason(context: unknown): context is Reason {
  return typeof context === 'function' || (isObject(context) && 'message' in context);
}

function isFieldContext(context: unknown): context is FieldContext {
  return typeof context === 'object' && context !== null && 'convert' in context;
}

/** Returns query parameters with the last value of each that is repeated. */
function toSingleValues(query: unknown): Record<string, unknown> {
  if (!isObject(query)) return {};
  for (const name in query) {
    if (!Array.isArray(query[name])) continue;
    const single = Object.entries(query).map(([key, value]) => [
      key,
      Array.isArray(value) ? value.at(-1) : value,
    ]);
    return Object.fromEntries(single) as Record<string, unknown>;
  }
  return query;
}

/** Tells whether a part of an input is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)
  );
}
