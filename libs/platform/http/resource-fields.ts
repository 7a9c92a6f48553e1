import type { Type } from '@nestjs/common';
import {
  BooleanField,
  ColorField,
  IntegerField,
  NumberField,
  OneOfField,
  TextField,
  type FieldOptions,
} from './fields.js';
import {
  BooleanProperty,
  IntegerProperty,
  NumberProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
  type PropertyDocs,
} from './response-fields.js';

/**
 * Declare the fields of a resource once, in a table by their names in JSON (ADR-0153). The classes of its requests and
 * responses are derived from it, with the decorators of `fields.ts` and `response-fields.ts`:
 *
 *     const FIELDS = {
 *       name: field.text({ max: 100, description: 'The name.' }),
 *       is_open: field.boolean({ default: true, description: 'Whether it is open.' }),
 *     } satisfies FieldsOf<Attributes>;
 *
 *     @Dto('ThingInput') export class CreateThingDto extends derive.input(FIELDS) {}
 *     @Dto('ThingChanges') export class UpdateThingDto extends derive.changes(FIELDS) {}
 *     @Dto('Thing') export class ThingJson extends derive.response({ id: ID, ...FIELDS }) {}
 */

/** Declares a field of responses. @property value its type; there is none at run time */
type ResponseField<Value> = { response: PropertyDecorator; value: Value };

/**
 * Declares a field of requests.
 * @property value its type, and `initial` that when the record is created; there are none at run time
 */
type RequestField<Value, Initial = Value> = {
  create: PropertyDecorator;
  update: PropertyDecorator;
  value: Value;
  initial: Initial;
};

/**
 * Describes a field. Without `optional` and `default` it is required when the record is created; a request that changes
 * the record may always leave it out.
 * @property optional it may be null, which is also what a missing key means when the record is created
 * @property create what is different when the record is created; `update` and `response` likewise
 */
type ResourceOptions = {
  description: string;
  example?: unknown;
  optional?: true;
  default?: unknown;
  create?: FieldOptions;
  update?: FieldOptions;
  response?: PropertyDocs;
};

type Optional<O> = O extends { optional: true } ? null : never;
type InitiallyOptional<O> = O extends { create: { optional: true } } ? null : never;

/** Refuses properties that no option has: a generic parameter would accept them. */
type Exactly<O, Allowed> = O & Record<Exclude<keyof O, keyof Allowed>, never>;

/** Defines a kind of field by its decorators. @returns what declares a field of that kind */
export function defineKind<Value, Limits extends object = object>(
  Field: (options: FieldOptions & Limits) => PropertyDecorator,
  Property: (docs: PropertyDocs) => PropertyDecorator,
) {
  return <const O extends ResourceOptions & Limits>(
    options: Exactly<O, ResourceOptions & Limits>,
  ) => {
    const { optional, default: byDefault, create, update, response, ...rest } = options;
    const { description, example } = rest;
    const both = rest as unknown as FieldOptions & Limits;
    return {
      create: Field({
        ...both,
        ...(optional && { optional }),
        ...(byDefault !== undefined && { default: byDefault }),
        ...create,
      }),
      update: Field({
        ...both,
        ...(optional ? { clearable: true } : { omittable: true }),
        ...update,
      }),
      response: Property({
        description,
        ...(example !== undefined && { example }),
        ...(optional && { nullable: true }),
        ...response,
      }),
    } as RequestField<Value | Optional<O>, Value | Optional<O> | InitiallyOptional<O>> &
      ResponseField<Value | Optional<O>>;
  };
}

/** Declares a field: each function one of its kind. */
export const field = {
  text: defineKind<string, { max?: number }>(TextField, TextProperty),
  integer: defineKind<number, { min?: number; max?: number }>(IntegerField, IntegerProperty),
  number: defineKind<number, { min: number; max: number }>(NumberField, NumberProperty),
  boolean: defineKind<boolean>(BooleanField, BooleanProperty),
  color: defineKind<string>(ColorField, TextProperty),
  oneOf<Value extends string, const O extends ResourceOptions>(
    values: readonly Value[],
    options: Exactly<O, ResourceOptions>,
  ) {
    return defineKind<Value>(
      (request) => OneOfField(values, request),
      (response) => OneOfProperty(values, response),
    )(options);
  },
  /** Declares a field that only requests have. */
  request<Value>(create: PropertyDecorator, update: PropertyDecorator) {
    return { create, update } as RequestField<Value>;
  },
  /** Declares a field that only responses have. */
  response<Value>(response: PropertyDecorator) {
    return { response } as ResponseField<Value>;
  },
};

export const ID = field.integer({ description: 'The id.' });
/** Ends the table of a response. */
export const TIMES = {
  created_at: field.response<string>(TimestampProperty({ description: 'When it was created.' })),
  updated_at: field.response<string>(
    TimestampProperty({ description: 'When it was last changed.' }),
  ),
};

/** Picks fields of a table, in this order. */
export function pick<F, const N extends (keyof F)[]>(fields: F, ...names: N): Pick<F, N[number]> {
  return Object.fromEntries(names.map((name) => [name, fields[name]])) as Pick<F, N[number]>;
}

export type CamelCase<S> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;
type SnakeCase<S> = S extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : S;

/** Gives fields their names in the code: `max_weight` becomes `maxWeight`. */
type CamelCased<T> = { -readonly [K in keyof T as CamelCase<K>]: T[K] };

/**
 * Describes the table that the attributes of an event need: `satisfies` compares the two where the table is declared.
 * @property New the attributes with which a record is created, if they differ
 */
export type FieldsOf<Attributes, New extends Record<keyof Attributes, unknown> = Attributes> = {
  [K in keyof Attributes as SnakeCase<K>]: { value: Attributes[K]; initial: New[K] };
};

/** Describes the table of a response that shows all of these fields, so that the compiler notices a forgotten one. */
export type Showing<Fields> = Record<keyof Fields, unknown> & Record<string, unknown>;

type RequestFields = Record<string, RequestField<unknown, unknown>>;
type ResponseFields = Record<string, ResponseField<unknown>>;
type Json<F extends ResponseFields> = { readonly [K in keyof F]: F[K]['value'] };
/** Describes what a record needs so that the fields can be rendered. */
type Rendered<F extends ResponseFields> = CamelCased<Json<F>>;

/** Derives classes and functions from tables of fields. */
export const derive = {
  /** Derives the class of requests that create a record. */
  input: <F extends RequestFields>(fields: F) =>
    defineClass<{ readonly [K in keyof F]: F[K]['initial'] }>(fields, 'create'),
  /** Derives the class of requests that change a record. */
  changes: <F extends RequestFields>(fields: F) =>
    defineClass<{ readonly [K in keyof F]?: F[K]['value'] }>(fields, 'update'),
  /** Derives the class of responses. */
  response: <F extends ResponseFields>(fields: F) => defineClass<Json<F>>(fields, 'response'),
  /** Derives a `…Json` function, which renders the fields of the table and no others. */
  toJson<F extends ResponseFields>(fields: F) {
    const render = derive.toJsonWith(fields);
    return (record: Rendered<F>): Json<F> => render(record, {});
  },
  /**
   * Derives a `…Json` function which also gets what is not in the record. With a loop, and without a copy of the record:
   * `Object.fromEntries` and a spread take ten times as long, JSON.stringify of the result included.
   */
  toJsonWith<F extends ResponseFields>(fields: F) {
    const names = listNames(fields);
    return <C extends Partial<Rendered<F>>>(
      record: Omit<Rendered<F>, keyof C>,
      computed: C,
    ): Json<F> => {
      const json: Record<string, unknown> = {};
      for (const { name, key } of names) {
        const source = Object.hasOwn(computed, key) ? computed : record;
        json[name] = (source as Record<string, unknown>)[key];
      }
      return json as Json<F>;
    };
  },
  /** Derives what converts a request to attributes: the fields of the table that it contains, and no others. */
  toAttributes<F extends RequestFields>(fields: F) {
    const names = listNames(fields);
    return <I extends object>(input: I): CamelCased<Pick<I, keyof I & keyof F>> => {
      const attributes: Record<string, unknown> = {};
      for (const { name, key } of names) {
        const value = (input as Record<string, unknown>)[name];
        if (value !== undefined) attributes[key] = value;
      }
      return attributes as CamelCased<Pick<I, keyof I & keyof F>>;
    };
  },
};

type Use = 'create' | 'update' | 'response';

function defineClass<T>(
  fields: Record<string, { [U in Use]?: PropertyDecorator }>,
  use: Use,
): Type<T> {
  class Fields {}
  for (const [name, field] of Object.entries(fields)) field[use]?.(Fields.prototype, name);
  return Fields as Type<T>;
}

/** Lists the fields by their names in JSON and in the code. */
function listNames(fields: object): { name: string; key: string }[] {
  return Object.keys(fields).map((name) => ({ name, key: camelCase(name) }));
}

/** Gives a field its name in the code: `max_weight` becomes `maxWeight`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
