import { z } from 'zod';

export type JsonSchema = Record<string, unknown>;

/** Values, not schemas: whatever they hold is left as it is. */
const VALUES = new Set(['examples', 'default', 'enum', 'const']);

/** JSON Schemas of zod schemas; those with an id become components and are referred to. */
export class JsonSchemas {
  readonly components: Record<string, JsonSchema> = {};

  of(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const { properties, $defs } = z.toJSONSchema(z.object({ it: schema }), {
      io,
      unrepresentable: 'any',
      // The library leaves the default of whatever transforms its input out; ours means the wire's value.
      override: ({ zodSchema, jsonSchema: made }) => {
        const meta = z.globalRegistry.get(zodSchema);
        if (io === 'input' && meta && 'default' in meta) {
          Object.assign(made, { default: meta['default'] });
        }
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) {
      this.components[name] = published(definition as JsonSchema);
    }
    return published(properties?.['it'] as JsonSchema);
  }

  resolve(schema: JsonSchema): JsonSchema {
    const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema['$ref']))?.[1];
    return (name === undefined ? undefined : this.components[name]) ?? schema;
  }

  /**
   * A value that the schema accepts, put together from the examples of its fields. Answers show every
   * field, requests what is required and what has an example of its own.
   * @throws Error that names the field that has none
   */
  example(given: JsonSchema, io: 'input' | 'output', path = ''): unknown {
    const schema = this.resolve(given);
    const { examples, enum: values, properties, items, anyOf, type } = schema;
    if (Array.isArray(examples)) return examples[0];
    if ('const' in schema) return schema['const'];
    if (Array.isArray(values)) return values[0];
    if (Array.isArray(anyOf)) return this.example(anyOf[0] as JsonSchema, io, path);
    if (typeof properties === 'object' && properties !== null) {
      const required = Array.isArray(schema['required']) ? schema['required'] : [];
      const shown = Object.entries(properties as Record<string, JsonSchema>).filter(
        ([name, field]) =>
          io === 'output' || required.includes(name) || 'examples' in this.resolve(field),
      );
      if (shown.length === 0) throw new Error(`no example for ${path || 'an empty object'}`);
      return Object.fromEntries(
        shown.map(([name, field]) => [name, this.example(field, io, `${path}.${name}`)]),
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
        throw new Error(`no example for ${path || 'a schema'}: give its field .meta({ example })`);
    }
  }
}

/** As OpenAPI 3.1 says it shortest: nullable in `type`, open objects, no bounds that are JavaScript's own. */
function published(schema: JsonSchema): JsonSchema {
  const { id: _, example, minimum, maximum, additionalProperties, anyOf, ...rest } = schema;
  const made: JsonSchema = {};
  for (const [key, value] of Object.entries(rest)) {
    if (key === '$ref') made[key] = String(value).replace('#/$defs/', '#/components/schemas/');
    else if (key === 'properties') made[key] = eachOf(value as Record<string, JsonSchema>);
    else made[key] = VALUES.has(key) ? value : publishedIn(value);
  }
  if (minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER) made['minimum'] = minimum;
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER) made['maximum'] = maximum;
  // Fields may be added to answers (contract section 2), and unknown ones are ignored in requests.
  if (additionalProperties !== undefined && additionalProperties !== false) {
    made['additionalProperties'] = publishedIn(additionalProperties);
  }
  if (example !== undefined) made['examples'] = [example];
  if (!Array.isArray(anyOf)) return made;
  const choices = anyOf.map((choice) => published(choice as JsonSchema));
  const [first = {}, second = {}] = choices;
  if (choices.length !== 2 || second['type'] !== 'null' || typeof first['type'] !== 'string') {
    return { ...made, anyOf: choices };
  }
  return {
    ...first,
    ...made,
    type: [first['type'], 'null'],
    ...(Array.isArray(first['enum']) && { enum: [...first['enum'], null] }),
  };
}

function publishedIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(publishedIn);
  return typeof value === 'object' && value !== null ? published(value as JsonSchema) : value;
}

function eachOf(properties: Record<string, JsonSchema>): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, published(schema)]),
  );
}
