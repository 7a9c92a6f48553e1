import type { Type } from '@nestjs/common';
import { dtosByName } from '#platform/http/dtos.js';

export type JsonSchema = Record<string, unknown>;

const REF = '#/components/schemas/';

/** Converts the schemas of all DTO classes from @nestjs/swagger's to OpenAPI 3.1. */
export class Schemas {
  readonly components: Record<string, JsonSchema>;

  constructor(document: Record<string, unknown>) {
    const inOrder = Object.entries(document).sort(([a], [b]) => (a < b ? -1 : 1));
    this.components = Object.fromEntries(
      inOrder.map(([name, schema]) => [name, toPublished(schema as JsonSchema)]),
    );
  }

  static ref(name: string): JsonSchema {
    return { $ref: `${REF}${name}` };
  }

  /** @throws Error when the class has no @Dto */
  static refTo(dto: Type): JsonSchema {
    return Schemas.ref(getDtoName(dto));
  }

  /**
   * Describes a body on the wire: fields in their wrapper, others beside it.
   * @param name of the DTO's schema
   */
  body(name: string): JsonSchema {
    const { wrapper, inside } = dtosByName.get(name) ?? {};
    if (wrapper === undefined) return Schemas.ref(name);
    const inner = inside ? getDtoName(inside) : name;
    const own = getProperties(this.components[inner]);
    const beside = Object.entries(getProperties(this.components[name])).filter(
      ([field]) => !(field in own),
    );
    return {
      type: 'object',
      required: [wrapper],
      properties: {
        [wrapper]: { ...Schemas.ref(inner), description: 'The fields to write.' },
        ...Object.fromEntries(beside),
      },
    };
  }

  /** Adds a component, and returns the reference to it. */
  add(name: string, schema: JsonSchema): JsonSchema {
    this.components[name] = schema;
    return Schemas.ref(name);
  }

  resolve(schema: JsonSchema): JsonSchema {
    const name = getComponentName(schema);
    return (name === undefined ? undefined : this.components[name]) ?? schema;
  }

  /**
   * Builds a value that the schema accepts from the examples of its fields. Responses show every field, requests what
   * is required and what has an example of its own.
   * @throws Error that names the field that has none
   */
  example(unresolved: JsonSchema, io: 'input' | 'output', path = ''): unknown {
    const name = getComponentName(unresolved);
    const whole = name === undefined ? undefined : dtosByName.get(name)?.example;
    if (whole !== undefined) return whole;
    const schema = this.resolve(unresolved);
    const { examples, enum: values, properties, items, anyOf, type } = schema;
    if (Array.isArray(examples)) return examples[0];
    if (Array.isArray(values)) return values[0];
    if (Array.isArray(anyOf)) return this.example(anyOf[0] as JsonSchema, io, path);
    if (typeof properties === 'object' && properties !== null) {
      const required = Array.isArray(schema['required']) ? schema['required'] : [];
      const visible = Object.entries(properties as Record<string, JsonSchema>).filter(
        ([field, property]) =>
          io === 'output' || required.includes(field) || 'examples' in this.resolve(property),
      );
      if (visible.length === 0) throw new Error(`no example for ${path || 'an empty object'}`);
      return Object.fromEntries(
        visible.map(([field, property]) => [field, this.example(property, io, `${path}.${field}`)]),
      );
    }
    if (Array.isArray(type) && type.includes('null')) return null;
    if (schema['format'] === 'date-time') return '2026-03-01T12:00:00.000Z';
    switch (type) {
      case 'array':
        return [this.example(items as JsonSchema, io, `${path}[]`)];
      case 'object':
        return {};
      case 'boolean':
        return true;
      case 'integer':
      case 'number':
        return schema['minimum'] ?? 1;
      default:
        throw new Error(`no example for ${path || 'a schema'}: give its field an example`);
    }
  }
}

function getDtoName(dto: Type): string {
  for (const [name, { dto: candidate }] of dtosByName) if (candidate === dto) return name;
  throw new Error(`${dto.name} has no @Dto`);
}

function getProperties(schema: JsonSchema | undefined): Record<string, JsonSchema> {
  return (schema?.['properties'] ?? {}) as Record<string, JsonSchema>;
}

/** Gets the component that a schema refers to. */
function getComponentName({ $ref }: JsonSchema): string | undefined {
  return typeof $ref === 'string' ? $ref.slice(REF.length) : undefined;
}

/**
 * Converts a schema to what OpenAPI 3.1 requires: examples as a list, null among the values of a nullable enum, no
 * empty `required`, and `$ref` beside its siblings.
 */
export function toPublished(value: unknown): JsonSchema {
  return publishValue(value) as JsonSchema;
}

const VALUES = new Set(['examples', 'default', 'enum', 'const']);

function publishValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(publishValue);
  if (typeof value !== 'object' || value === null) return value;
  const { example, required, properties, allOf, ...rest } = value as JsonSchema;
  const flat: JsonSchema = Array.isArray(allOf) ? { ...(allOf[0] as JsonSchema) } : {};
  for (const [key, field] of Object.entries(rest))
    flat[key] = VALUES.has(key) ? field : publishValue(field);
  if (properties !== undefined) {
    flat['properties'] = Object.fromEntries(
      Object.entries(properties as object).map(([name, field]) => [name, publishValue(field)]),
    );
  }
  if (Array.isArray(required) && required.length > 0) flat['required'] = required;
  const { type, enum: values } = flat;
  if (Array.isArray(type) && type.includes('null') && Array.isArray(values)) {
    flat['enum'] = values.includes(null) ? values : [...values, null];
  }
  if (example !== undefined) flat['examples'] = [example];
  return flat;
}

/** Classes that no controller names, because they stand inside the wrapper of another. */
export function listInnerDtos(): Type[] {
  return [...dtosByName.values()].flatMap(({ inside }) => inside ?? []);
}

/** Collects the schemas that are referenced, directly or through others. */
export function collectReachable(
  components: Record<string, JsonSchema>,
  ...from: unknown[]
): Record<string, JsonSchema> {
  const names = new Set<string>();
  const visit = (value: unknown) => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(
      /"#\/components\/schemas\/([^"]+)"/g,
    )) {
      if (names.has(name)) continue;
      names.add(name);
      visit(components[name] ?? null);
    }
  };
  visit(from);
  return Object.fromEntries(Object.entries(components).filter(([name]) => names.has(name)));
}
