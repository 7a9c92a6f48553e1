import type { Type } from '@nestjs/common';
import { getMetadataStorage, ValidationTypes } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { InvalidFieldsError, type FieldErrors } from '#kernel/errors.js';
import { deferSwaggerDecorators } from './documentation.js';
import { isDate } from './conversions.js';
import type { FieldContext } from './fields.js';

/** The value of a field, or all its errors. */
type Checked = { value: unknown } | { errors: string[] };

/** A rule across several fields of a DTO. */
type Rule = {
  /** Fields of the rule; it is checked only when none of them has an error. */
  fields: readonly string[];
  /** Field that the error is reported for. */
  field: string;
  holds: (input: never) => boolean;
  message: string;
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
const shapes = new WeakMap<object, Shape>();

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
  message: string,
): ClassDecorator {
  return (dto) => {
    // The lowest decorator of a class is applied first.
    rules.set(dto, [{ fields: of, field, holds, message }, ...(rules.get(dto) ?? [])]);
  };
}

/** Tells whether a date is in place of a time: which time it means depends on the time zone. */
export function hasDate(dto: Type, input: unknown): input is object {
  if (!isObject(input)) return false;
  const { wrapper } = dtos.get(dto) ?? {};
  const inner = wrapper === undefined ? undefined : input[wrapper];
  return getFields(dto).times.some(
    (name) => isDate(getLast(input[name])) || (isObject(inner) && isDate(inner[name])),
  );
}

/**
 * Parses a body.
 * @param timeZone of the dates in it; without one they are in UTC
 * @throws InvalidFieldsError with all errors of all fields
 */
export function readBody<T extends object>(dto: Type<T>, body: unknown, timeZone?: string): T {
  const input = body === undefined ? {} : body;
  if (!isObject(input)) throw new InvalidFieldsError({ base: ['The body must be a JSON object'] });
  return readFields(dto, unwrap(input, dto), timeZone);
}

/** Parses query parameters like fields. Of a repeated one (`?a=1&a=2`) the last value counts. */
export function readQuery<T extends object>(dto: Type<T>, query: unknown, timeZone?: string): T {
  const single = Object.entries(isObject(query) ? query : {}).map(([key, value]) => [
    key,
    getLast(value),
  ]);
  return readFields(dto, Object.fromEntries(single) as Record<string, unknown>, timeZone);
}

/** @throws InvalidFieldsError with all errors of all fields */
export function readFields<T extends object>(
  dto: Type<T>,
  input: Record<string, unknown>,
  timeZone?: string,
): T {
  const { value, errors } = getFields(dto).read(input, timeZone);
  if (errors) throw new InvalidFieldsError(errors);
  return value as T;
}

/** Describes a class: its fields, the classes of nested objects, and its wrapper. */
export type Shape = {
  fields: CompiledFields['inner'];
  wrapper: string | undefined;
  /** Fields that are outside the wrapper, if there is one. */
  outside: ReadonlySet<string>;
};

export function getShape(dto: Type): Shape {
  let shape = shapes.get(dto);
  if (!shape) {
    const { wrapper, inside = dto } = dtos.get(dto) ?? {};
    const fields = getFields(dto).inner;
    const wrapped = getFields(inside).inner;
    const outside = new Set([...fields.keys()].filter((name) => !wrapped.has(name)));
    shapes.set(dto, (shape = { fields, wrapper, outside }));
  }
  return shape;
}

function getFields(dto: Type): CompiledFields {
  let fields = compiled.get(dto);
  if (!fields) compiled.set(dto, (fields = new CompiledFields(dto)));
  return fields;
}

type CompiledField = FieldContext & {
  name: string;
  isNullable: boolean;
  isChecked: (object: object, value: unknown) => boolean;
  /** Each returns the message of a validator that refuses the value. */
  checks: ((value: unknown, object: object) => string | undefined)[];
};

/**
 * Runs the validators that class-validator's decorators declare. Its own `validate` searches all registered classes at
 * each call, which costs more than all the checks of a body.
 */
class CompiledFields {
  private readonly fields: CompiledField[];
  private readonly rules: Rule[];
  /** Fields that hold a time. */
  readonly times: readonly string[];
  /** All fields, with the classes of nested objects. */
  readonly inner: ReadonlyMap<string, FieldContext['inner']>;

  constructor(dto: Type) {
    const metadata = getMetadataStorage().getTargetValidationMetadatas(dto, '', false, false);
    this.fields = Object.entries(getMetadataStorage().groupByPropertyName(metadata)).map(
      ([name, ofField]) => compileField(dto.name, name, ofField),
    );
    this.times = this.fields.filter(({ isTime }) => isTime).map(({ name }) => name);
    this.inner = new Map(this.fields.map(({ name, inner }) => [name, inner]));
    this.rules = rules.get(dto) ?? [];
  }

  /** Parses the fields. `value` is complete only without errors. */
  read(input: Record<string, unknown>, timeZone?: string): { value: object; errors?: FieldErrors } {
    const value: Record<string, unknown> = {};
    let errors: FieldErrors | undefined;
    for (const field of this.fields) {
      const { name } = field;
      const sent = Object.hasOwn(input, name) ? input[name] : undefined;
      const converted = field.convert(sent, timeZone);
      if (converted !== undefined) value[name] = converted;
      if (!field.isChecked(value, converted)) continue;
      const checked = readChecked(field, converted, value);
      if ('errors' in checked) (errors ??= {})[name] = checked.errors;
      else value[name] = checked.value;
    }
    for (const { fields, field, holds, message } of this.rules) {
      const errorsSoFar = errors;
      if (errorsSoFar && fields.some((name) => Object.hasOwn(errorsSoFar, name))) continue;
      if (!holds(value as never)) ((errors ??= {})[field] ??= []).push(message);
    }
    return errors ? { value, errors } : { value };
  }
}

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
  const checks = metadata.flatMap(({ constraintCls, constraints, each, message }) =>
    getMetadataStorage()
      .getTargetValidatorConstraints(constraintCls)
      .map(({ instance }): CompiledField['checks'][number] => (value, object) => {
        const about = { targetName, property, constraints, value, object };
        const isValid = each
          ? Array.isArray(value) && value.every((one) => instance.validate(one, about) === true)
          : instance.validate(value, about) === true;
        if (isValid) return undefined;
        const ownMessage = typeof message === 'function' ? message(about) : message;
        return ownMessage ?? instance.defaultMessage?.(about) ?? 'is invalid';
      }),
  );
  return {
    ...context,
    name: property,
    isNullable: presence.name === 'isOptional',
    isChecked,
    checks,
  };
}

/** Validates a field until the first error. A nullable field reports all errors of nested objects as one message. */
function readChecked(field: CompiledField, value: unknown, object: object): Checked {
  for (const check of field.checks) {
    const error = check(value, object);
    if (error !== undefined) return { errors: [error] };
  }
  if (!field.nested) return { value: field.finish(value) };
  const { value: nested, errors } = readNested(field.nested, value);
  if (errors.length === 0) return { value: field.finish(nested) };
  return { errors: field.isNullable ? [errors.join(', ')] : errors };
}

/** Parses an object or a list of them; the messages name the element and its field. */
function readNested(
  { dto, label = () => '' }: NonNullable<FieldContext['nested']>,
  value: unknown,
) {
  const errors: string[] = [];
  const elements = [value].flat().map((element, i) => {
    if (!isObject(element)) return void errors.push(`${label(i)}must be an object`);
    const read = getFields(dto()).read(element);
    for (const [name, messages] of Object.entries(read.errors ?? {})) {
      errors.push(...messages.map((message) => `${label(i)}${name} ${message}`));
    }
    return read.value;
  });
  return { value: Array.isArray(value) ? elements : elements[0], errors };
}

function isFieldContext(context: unknown): context is FieldContext {
  return typeof context === 'object' && context !== null && 'convert' in context;
}

/** Unwraps a body. With a wrapper, a field counts only in its own place: inside or outside it (CONV-54). */
function unwrap(input: Record<string, unknown>, dto: Type): Record<string, unknown> {
  const { wrapper, bare, inside } = dtos.get(dto) ?? {};
  if (wrapper === undefined) return input;
  if (Object.hasOwn(input, wrapper)) {
    const inner = input[wrapper];
    if (!isObject(inner)) throw new InvalidFieldsError({ [wrapper]: ['must be an object'] });
    if (inside === undefined) return inner;
    const { fields, outside } = getShape(dto);
    const placed = [...fields.keys()].flatMap((name) => {
      const place = outside.has(name) ? input : inner;
      return Object.hasOwn(place, name) ? [[name, place[name]] as const] : [];
    });
    return Object.fromEntries(placed);
  }
  const named = bare === true ? (inside ?? dto) : bare;
  if (named && Object.keys(input).some((name) => getFields(named).inner.has(name))) return input;
  throw new InvalidFieldsError({
    [wrapper]: ['is required: wrap the fields in an object of this name'],
  });
}

/** Returns the last value of a repeated query parameter. */
function getLast(value: unknown): unknown {
  return Array.isArray(value) ? value.at(-1) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
