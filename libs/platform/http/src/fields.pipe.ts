import { Injectable, type ArgumentMetadata, type PipeTransform, type Type } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { InvalidFieldsError, type FieldErrors } from '#kernel/errors.js';
import { deferSwaggerDecorators } from './documentation.js';
import type { FieldContext } from './fields.js';
import { isDate, type Checked } from './readers.js';

/** A rule across several fields of a DTO. */
type Rule = {
  /** Checked only when none of these fields is at fault. */
  fields: readonly string[];
  /** The field that the fault is reported for. */
  field: string;
  holds: (input: never) => boolean;
  message: string;
};

type DtoOptions = {
  /** Write bodies are wrapped in an object of this name (contract section 1). */
  wrapper?: string;
  /** One field of this class is enough to accept the body without its wrapper; true: of this one. */
  bare?: Type | true;
  /** The class with the fields that stand inside the wrapper; the others stand beside it. */
  inside?: Type;
  /** Of the whole body; by default it is composed from the examples of the fields. */
  example?: object;
};

const rules = new WeakMap<object, Rule[]>();
const dtos = new WeakMap<object, DtoOptions>();
const compiled = new WeakMap<object, CompiledFields>();
/** Of bodies and queries that need one; Nest passes a pipe nothing else of the request. */
const timeZones = new WeakMap<object, string>();

/** All declared DTO classes by the names of their schemas, for the OpenAPI document. */
export const dtosByName = new Map<string, DtoOptions & { dto: object }>();

/** A class of fields, of a request or a response. @param name of its schema in the OpenAPI document */
export function Dto(name: string, options: DtoOptions = {}): ClassDecorator {
  return (dto) => {
    if (dtosByName.has(name)) throw new Error(`two DTO classes are called ${name}`);
    dtosByName.set(name, { ...options, dto });
    dtos.set(dto, options);
    deferSwaggerDecorators(({ ApiSchema }) => [ApiSchema({ name })])(dto);
  };
}

/** A rule over several fields. Rules are checked from top to bottom. */
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

/** Checks every body and query that a controller takes as a DTO class. */
@Injectable()
export class FieldsPipe implements PipeTransform {
  transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
    if (metatype === undefined || metatype === Object) return value;
    if (type === 'body') return readBody(metatype, value);
    if (type === 'query') return readQuery(metatype, value);
    return value;
  }
}

/** Tells whether a date stands where a class takes a time: which moment it means depends on the time zone. */
export function hasDate(dto: Type, input: unknown): input is object {
  if (!isObject(input)) return false;
  const { wrapper } = dtos.get(dto) ?? {};
  const inner = wrapper === undefined ? undefined : input[wrapper];
  return getFields(dto).times.some(
    (name) => isDate(getLast(input[name])) || (isObject(inner) && isDate(inner[name])),
  );
}

/** Has the dates of a body or query read in a time zone; they are read in UTC otherwise. */
export function setTimeZone(input: object, timeZone: string): void {
  timeZones.set(input, timeZone);
}

/** @throws InvalidFieldsError with every fault of every field, keyed by field */
export function readBody<T extends object>(dto: Type<T>, body: unknown): T {
  const input = body === undefined ? {} : body;
  if (!isObject(input)) throw new InvalidFieldsError({ base: ['The body must be a JSON object'] });
  return readFields(dto, unwrap(input, dto), timeZones.get(input));
}

/** Query parameters: checked like fields, an array (`?a=1&a=2`) counts as its last value. */
export function readQuery<T extends object>(dto: Type<T>, query: unknown): T {
  const single = Object.entries(isObject(query) ? query : {}).map(([key, value]) => [
    key,
    getLast(value),
  ]);
  const timeZone = isObject(query) ? timeZones.get(query) : undefined;
  return readFields(dto, Object.fromEntries(single) as Record<string, unknown>, timeZone);
}

/** For an element of a list: its messages begin with the name of the faulty field. */
export function readElement<T extends object>(dto: Type<T>, element: unknown): Checked<T> {
  if (!isObject(element)) return { errors: ['must be an object'] };
  const { value, errors } = getFields(dto).read(element);
  if (!errors) return { value: value as T };
  const faults = Object.entries(errors).flatMap(([name, messages]) =>
    messages.map((message) => `${name} ${message}`),
  );
  return { errors: faults };
}

/** @throws InvalidFieldsError with every fault of every field, keyed by field */
export function readFields<T extends object>(
  dto: Type<T>,
  input: Record<string, unknown>,
  timeZone?: string,
): T {
  const { value, errors } = getFields(dto).read(input, timeZone);
  if (errors) throw new InvalidFieldsError(errors);
  return value as T;
}

/** What a class takes: its fields, each with the class of the objects that are in it, and what wraps them. */
export type Shape = {
  fields: CompiledFields['inner'];
  wrapper: string | undefined;
  /** Those of its fields that stand beside the wrapper where there is one. */
  outside: ReadonlySet<string>;
};

export function getShape(dto: Type): Shape {
  const { wrapper, inside = dto } = dtos.get(dto) ?? {};
  const fields = getFields(dto).inner;
  const wrapped = getFields(inside).inner;
  return {
    fields,
    wrapper,
    outside: new Set([...fields.keys()].filter((name) => !wrapped.has(name))),
  };
}

function getFields(dto: Type): CompiledFields {
  let fields = compiled.get(dto);
  if (!fields) compiled.set(dto, (fields = new CompiledFields(dto)));
  return fields;
}

/**
 * What class-validator knows of a class, looked up once: its own `validate` searches all registered classes
 * at each call, which costs more than all the checks of a body.
 */
class CompiledFields {
  private readonly fields: { name: string; read: FieldContext['read'] }[];
  private readonly rules: Rule[];
  /** The fields that take a time. */
  readonly times: readonly string[];
  /** Every field, with the class of the objects that are in it. */
  readonly inner: ReadonlyMap<string, FieldContext['inner']>;

  constructor(dto: Type) {
    const declared = getMetadataStorage()
      .getTargetValidationMetadatas(dto, '', false, false)
      .map(({ propertyName, context }) => {
        if (!isFieldContext(context)) {
          throw new Error(`${dto.name}.${propertyName} has a decorator that is not from fields.ts`);
        }
        return { name: propertyName, ...context };
      });
    this.fields = declared.map(({ name, read }) => ({ name, read }));
    this.times = declared.filter(({ isTime }) => isTime).map(({ name }) => name);
    this.inner = new Map(declared.map(({ name, inner }) => [name, inner]));
    this.rules = rules.get(dto) ?? [];
  }

  get names(): string[] {
    return this.fields.map(({ name }) => name);
  }

  /** `value` is complete only where there are no errors. */
  read(input: Record<string, unknown>, timeZone?: string): { value: object; errors?: FieldErrors } {
    const value: Record<string, unknown> = {};
    let errors: FieldErrors | undefined;
    for (const { name, read } of this.fields) {
      const checked = read(Object.hasOwn(input, name) ? input[name] : undefined, timeZone);
      if (checked === undefined) continue;
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

function isFieldContext(context: unknown): context is FieldContext {
  return typeof context === 'object' && context !== null && 'read' in context;
}

/** Where there is a wrapper, each field counts in its own place only: in the wrapper, or beside it. */
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
  if (named && getFields(named).names.some((name) => Object.hasOwn(input, name))) return input;
  throw new InvalidFieldsError({
    [wrapper]: ['is required: wrap the fields in an object of this name'],
  });
}

/** Of a query parameter that is given more than once, the last value counts. */
function getLast(value: unknown): unknown {
  return Array.isArray(value) ? value.at(-1) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
