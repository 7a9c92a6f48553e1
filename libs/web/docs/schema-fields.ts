import type { OpenApiDocument } from './openapi-document.js';

/** Lists the fields of bodies, for the reference and the search. */

export type Schema = {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  'x-extensible-enum'?: unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
} & Partial<Record<'anyOf' | 'oneOf' | 'allOf', Schema[]>>;

export type Field = {
  /** The path from the body, such as `customer.first_name` or `rewards[].name`. */
  name: string;
  type: string;
  isRequired: boolean;
  description: string;
  values: string[];
};

const MAX_DEPTH = 4;

/** @returns the fields of a body and of the objects in it, each path once */
export function listFields(document: OpenApiDocument, schema: Schema): Field[] {
  const fields = new Map<string, Field>();
  collectFields(document, schema, { prefix: '', depth: 0, fields });
  return [...fields.values()];
}

type Collection = { prefix: string; depth: number; fields: Map<string, Field> };

function collectFields(document: OpenApiDocument, schema: Schema, collection: Collection): void {
  const { prefix, depth, fields } = collection;
  if (depth > MAX_DEPTH) return;
  const { properties = {}, required = [], items, ...rest } = resolveSchema(document, schema);
  for (const variant of listVariants(rest)) collectFields(document, variant, collection);
  if (items) {
    const inner = prefix === '' ? '' : `${prefix.slice(0, -1)}[].`;
    collectFields(document, items, { prefix: inner, depth, fields });
  }
  const isRequired = ([key]: [string, Schema]) => Number(required.includes(key));
  const sorted = Object.entries(properties).sort(
    (one, other) => isRequired(other) - isRequired(one),
  );
  for (const [key, property] of sorted) {
    const name = prefix + key;
    const field = resolveSchema(document, property);
    if (!fields.has(name)) {
      fields.set(name, {
        name,
        type: describeType(document, field),
        isRequired: required.includes(key),
        description: property.description ?? field.description ?? '',
        values: listValues(field),
      });
    }
    collectFields(document, field, { prefix: `${name}.`, depth: depth + 1, fields });
  }
}

function listVariants({ anyOf = [], oneOf = [], allOf = [] }: Schema): Schema[] {
  return [...anyOf, ...oneOf, ...allOf];
}

function listValues(schema: Schema): string[] {
  const { enum: closed, 'x-extensible-enum': open, items } = schema;
  const values = closed ?? open ?? (items && (items.enum ?? items['x-extensible-enum'])) ?? [];
  return values.filter((value) => value !== null).map(String);
}

/** Describes a type in words: `string, 1 to 255 characters`, `integer or null`, `list of objects`. */
export function describeType(document: OpenApiDocument, schema: Schema): string {
  const resolved = resolveSchema(document, schema);
  const names = new Set(listTypeNames(document, resolved));
  const isNullable = names.delete('null');
  return [...names, ...(isNullable ? ['null'] : [])].join(' or ') + describeRange(resolved);
}

function listTypeNames(document: OpenApiDocument, schema: Schema): string[] {
  const variants = listVariants(schema);
  const types = [schema.type ?? []].flat();
  if (types.length === 0)
    return variants.flatMap((variant) => listTypeNames(document, resolveSchema(document, variant)));
  return types.map((type) => {
    if (type === 'array') {
      const names = schema.items
        ? listTypeNames(document, resolveSchema(document, schema.items))
        : [];
      return names.length === 0
        ? 'list'
        : `list of ${names.map((name) => `${name}s`).join(' or ')}`;
    }
    return type === 'string' && schema.format ? schema.format : type;
  });
}

function describeRange(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, maxItems } = schema;
  if (maxItems !== undefined) return `, at most ${maxItems}`;
  if (maxLength !== undefined) return `, ${minLength ?? 0} to ${maxLength} characters`;
  const isBounded = maximum !== undefined && maximum < 2 ** 31 - 1;
  if (minimum !== undefined && isBounded) return `, ${minimum} to ${maximum}`;
  if (isBounded) return `, at most ${maximum}`;
  return minimum !== undefined && minimum > 1 ? `, at least ${minimum}` : '';
}

export function resolveSchema(document: OpenApiDocument, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const { $ref, ...own } = schema;
  return { ...resolveSchema(document, findReference<Schema>(document, $ref)), ...own };
}

/** @throws Error if the document has nothing there */
export function findReference<T>(document: OpenApiDocument, ref: string): T {
  const target = ref
    .replace(/^#\//, '')
    .split('/')
    .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], document);
  if (target === undefined) throw new Error(`${ref} is not in the OpenAPI document`);
  return target as T;
}
