import type { OpenApiDocument } from '#web/docs/openapi-document.js';
import type { Tool } from './tools.js';

export type JsonSchema = { [key: string]: unknown };

/** Where an argument of a tool goes in the request. */
export type Argument = { name: string; place: 'path' | 'query' | 'body'; parameter: string };

/** A tool with what the OpenAPI document says about its operation. */
export type ToolOperation = Tool & {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  arguments: readonly Argument[];
  inputSchema: JsonSchema;
};

type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: JsonSchema;
};

type Operation = {
  operationId?: string;
  parameters?: JsonSchema[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
};

/** Keywords that every assistant understands. Formats are in words: the API takes more than they allow. */
const KEYWORDS = new Set([
  'type',
  'description',
  'enum',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'maxItems',
  'required',
]);
const FORMATS: Record<string, string> = { date: 'As YYYY-MM-DD', 'date-time': 'In ISO 8601' };
/** Parameters that the tools set themselves, or do without. */
const HIDDEN = new Set(['dry_run', 'as_of']);

/** Descriptions of parameters for assistants, where the document describes them for programs. */
const DESCRIPTIONS: Record<string, string> = {
  account_id: 'The id of a store, see list_stores.',
  customer_id: 'The id of a customer, see find_customers.',
  customer_card_id: 'The id of a customer card, see find_customers.',
  subscription_id: 'The id of a subscription, see list_webhook_subscriptions.',
  limit: 'Elements of a page, 1 to 250. Default: 50.',
  cursor: 'next_cursor of the page before.',
};

const IDEMPOTENCY_KEY = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[\\x20-\\x7e]+$',
  description:
    'A new one for each new action, such as a UUID. A call that is repeated with the same one within 24 hours counts once.',
};
const DRY_RUN = {
  type: 'boolean',
  description: 'true: checks the call and changes nothing. Default: false.',
};

/**
 * Finds the operation of a tool, and describes its arguments as the OpenAPI document does: a field that an operation
 * gets is one of the tool too.
 */
export function describeTool(document: OpenApiDocument, tool: Tool): ToolOperation {
  const { method, path, operation } = findOperation(document, tool.operation);
  const properties: JsonSchema = {};
  const required: string[] = [];
  const args: Argument[] = [];
  const add = (
    place: Argument['place'],
    parameter: string,
    schema: JsonSchema,
    isRequired: boolean,
  ) => {
    const name = (place === 'path' ? tool.rename?.[parameter] : undefined) ?? parameter;
    if (name in properties) throw new Error(`${tool.name} has two arguments ${name}`);
    properties[name] = schema;
    args.push({ name, place, parameter });
    if (isRequired) required.push(name);
  };
  for (const reference of operation.parameters ?? []) {
    const parameter = resolve(document, reference) as Parameter;
    const { name, in: place, schema } = parameter;
    if ((place !== 'path' && place !== 'query') || HIDDEN.has(name)) continue;
    const simple = simplify(document, schema);
    const description =
      DESCRIPTIONS[tool.rename?.[name] ?? name] ??
      joinSentences([parameter.description, simple['description']]);
    add(place, name, { ...simple, description }, parameter.required === true);
  }
  const body = resolve(document, operation.requestBody?.content['application/json']?.schema ?? {});
  const bodyRequired = (body['required'] ?? []) as string[];
  for (const [name, schema] of Object.entries((body['properties'] ?? {}) as JsonSchema)) {
    add('body', name, simplify(document, schema as JsonSchema), bodyRequired.includes(name));
  }
  if (tool.kind !== 'read') {
    properties['idempotency_key'] = IDEMPOTENCY_KEY;
    properties['dry_run'] = DRY_RUN;
    required.push('idempotency_key');
  }
  const inputSchema = { type: 'object', properties, required, additionalProperties: false };
  return { ...tool, method, path, arguments: args, inputSchema };
}

/** Describes the results of all tools. Short, because every tool repeats it in the context of a model. */
export const OUTPUT_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    data: { description: 'The result; null if a dry run only checked the call' },
    dry_run: { type: 'boolean' },
    replayed: { type: 'boolean', description: 'The first result of a repeated call' },
    next_cursor: { type: 'string' },
    note: { type: 'string' },
  },
  required: ['data'],
};

function findOperation(document: OpenApiDocument, id: string) {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods) as [string, Operation][]) {
      if (operation.operationId !== id) continue;
      return { method: method.toUpperCase() as ToolOperation['method'], path, operation };
    }
  }
  throw new Error(`the OpenAPI document has no operation ${id}`);
}

/** Resolves a reference within the document, if it is one. */
function resolve(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  const target = $ref
    .slice('#/'.length)
    .split('/')
    .reduce<unknown>((part, key) => (part as JsonSchema)[key], document);
  return resolve(document, target as JsonSchema);
}

/**
 * Leaves what assistants understand, without references. null goes too: it means what a missing argument means, and some
 * models know no lists of types.
 */
function simplify(document: OpenApiDocument, reference: JsonSchema): JsonSchema {
  const schema = resolve(document, reference);
  const { properties, items, format, additionalProperties } = schema;
  const keywords = Object.entries(schema).filter(
    ([key, value]) => KEYWORDS.has(key) && !isBoundOfIntegers(value),
  );
  return {
    ...Object.fromEntries(keywords.map(([key, value]) => [key, withoutNull(key, value)])),
    ...(typeof format === 'string' &&
      FORMATS[format] !== undefined && {
        description: joinSentences([schema['description'], FORMATS[format]]),
      }),
    ...(isSchema(items) && { items: simplify(document, items) }),
    ...(isSchema(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [
          name,
          simplify(document, property as JsonSchema),
        ]),
      ),
      additionalProperties: false,
    }),
    ...(additionalProperties === true && { additionalProperties }),
  };
}

function withoutNull(keyword: string, value: unknown): unknown {
  if (!Array.isArray(value) || keyword === 'required') return value;
  const rest = value.filter((item) => item !== null && item !== 'null');
  return keyword === 'type' && rest.length === 1 ? rest[0] : rest;
}

/** Tells whether it bounds nothing: no number in JSON is an integer beyond it. */
function isBoundOfIntegers(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER;
}

function joinSentences(texts: unknown[]): string {
  return texts
    .filter((text): text is string => typeof text === 'string')
    .map((text) => (/[.!?]$/.test(text) ? text : `${text}.`))
    .join(' ');
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
