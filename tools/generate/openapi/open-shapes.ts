import type { JsonSchema } from './schemas.js';

const MAX_INT32 = 2_147_483_647;

/**
 * Opens the schema of a response to later additions, which clients must accept: objects may have more fields, and the
 * values of an enum become `x-extensible-enum`. Generated clients would otherwise refuse a new field or value.
 */
export function openResponseSchema(value: unknown): unknown {
  return mapSchemas(value, ({ enum: values, ...schema }) => {
    const open = 'properties' in schema ? { additionalProperties: true, ...schema } : { ...schema };
    if (!Array.isArray(values)) return open;
    const texts = values.filter((item) => typeof item === 'string');
    return texts.length === 0 ? open : { ...open, 'x-extensible-enum': texts };
  });
}

/**
 * Moves the defaults of a request into the descriptions. Generators make fields with a `default` required in responses
 * and requests alike, or write code for it that does not compile (null, values of enums).
 */
export function openRequestSchema(value: unknown): unknown {
  return mapSchemas(value, ({ default: initial, oneOf, ...schema }) => {
    const words = describeDefault(initial);
    const { description } = schema;
    return {
      ...schema,
      ...(Array.isArray(oneOf) && { type: 'string' }),
      ...(words && { description: [description, words].filter(Boolean).join(' ') }),
    };
  });
}

/** Restores the closed enums and objects of an open document, for clients that are released with the service. */
export function closeSchema(value: unknown): unknown {
  return mapSchemas(value, ({ 'x-extensible-enum': texts, ...schema }) => {
    const { type } = schema;
    const values = Array.isArray(texts) ? (texts as unknown[]) : undefined;
    if ('properties' in schema && schema['additionalProperties'] === true) {
      delete schema['additionalProperties'];
    }
    if (!values) return schema;
    const isNullable = Array.isArray(type) && type.includes('null');
    return { ...schema, enum: isNullable ? [...values, null] : values };
  });
}

function describeDefault(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'object' && Object.keys(value).length === 0) return undefined;
  return `Default: ${typeof value === 'string' ? value : JSON.stringify(value)}.`;
}

/** Keys whose values are data, not schemas. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const', 'required']);

function mapSchemas(value: unknown, map: (schema: JsonSchema) => JsonSchema): unknown {
  if (Array.isArray(value)) return value.map((item) => mapSchemas(item, map));
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      DATA.has(key) ? item : mapProperties(key, item),
    ]),
  );
  return addFormat(map(inner));

  function mapProperties(key: string, field: unknown): unknown {
    if (key !== 'properties') return mapSchemas(field, map);
    return Object.fromEntries(
      Object.entries(field as object).map(([name, schema]) => [name, mapSchemas(schema, map)]),
    );
  }
}

/** Adds int64 to integers that may exceed 32 bits, such as ids: generators take 32 bits otherwise. */
function addFormat(schema: JsonSchema): JsonSchema {
  const { type, maximum } = schema;
  const isInteger = type === 'integer' || (Array.isArray(type) && type.includes('integer'));
  if (!isInteger || 'format' in schema) return schema;
  const isSmall = typeof maximum === 'number' && maximum <= MAX_INT32;
  return isSmall ? schema : { ...schema, format: 'int64' };
}
