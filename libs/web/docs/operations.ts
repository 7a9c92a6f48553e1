import type { OpenApiDocument } from './openapi-document.js';
import {
  describeType,
  findReference,
  listFields,
  resolveSchema,
  type Field,
  type Schema,
} from './schema-fields.js';

/** Lists the operations of the OpenAPI document as the reference shows them and the search finds them. */

type Media = { schema?: Schema; example?: unknown; examples?: { envelope: { value: unknown } } };
type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
};
type Response = {
  description: string;
  headers?: Record<string, { description?: string } | { $ref: string }>;
  content?: Record<string, Media>;
};
type DocumentedOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { description?: string; content: Record<string, Media> };
  responses: Record<string, Response | { $ref: string }>;
  'x-error-codes'?: string[];
  'x-codeSamples'?: { lang: string; label: string; source: string }[];
};

export type Body = {
  type: string;
  description: string;
  fields: Field[];
  example: string | null;
  isList: boolean;
};

export type Operation = {
  id: string;
  /** The anchor on the page of the reference. */
  anchor: string;
  method: string;
  /** Of an event, which Inkpad sends to receivers, its type. */
  path: string;
  isEvent: boolean;
  summary: string;
  description: string;
  parameters: (Field & { in: string })[];
  body: Body | null;
  success: { status: string; description: string; headers: Field[]; body: Body | null };
  /** Statuses of its own failures. */
  failures: string[];
  /** Error codes of its own. */
  codes: string[];
  samples: { language: string; label: string; source: string }[];
};

export type OperationGroup = {
  name: string;
  description: string;
  anchor: string;
  operations: Operation[];
};

export function listOperationGroups(document: OpenApiDocument): OperationGroup[] {
  const events = (document['webhooks'] ?? {}) as OpenApiDocument['paths'];
  const all = Object.entries({ ...document.paths, ...events }).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, value]) => {
      const operation = value as unknown as DocumentedOperation;
      const isEvent = Object.hasOwn(events, path);
      return {
        tag: operation.tags[0],
        operation: { ...toOperation(document, method, path, operation), isEvent },
      };
    }),
  );
  const tags = document['tags'] as { name: string; description: string }[];
  return tags
    .map(({ name, description }) => ({
      name,
      description,
      anchor: `tag/${createSlug(name)}`,
      operations: all.filter(({ tag }) => tag === name).map(({ operation }) => operation),
    }))
    .filter(({ operations }) => operations.length > 0);
}

function createSlug(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-');
}

function toOperation(
  document: OpenApiDocument,
  method: string,
  path: string,
  operation: DocumentedOperation,
): Omit<Operation, 'isEvent'> {
  const { operationId: id, tags, summary, description = '', responses } = operation;
  const parameters = (operation.parameters ?? []).map((parameter) =>
    resolve<Parameter>(document, parameter),
  );
  const [status, success] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? [];
  if (status === undefined || success === undefined) throw new Error(`${id} has no success`);
  const response = resolve<Response>(document, success);
  return {
    id,
    anchor: `tag/${createSlug(tags[0] ?? '')}/${id}`,
    method: method.toUpperCase(),
    path,
    summary,
    description,
    parameters: parameters.map((parameter) => ({
      ...toField(document, parameter),
      in: parameter.in,
    })),
    body: operation.requestBody ? toBody(document, operation.requestBody) : null,
    success: {
      status,
      description: response.description,
      headers: Object.entries(response.headers ?? {}).map(([name, header]) =>
        toField(document, { name, ...resolve<object>(document, header) }),
      ),
      body: response.content ? toBody(document, { content: response.content }) : null,
    },
    failures: Object.keys(responses).filter((code) => Number(code) >= 400),
    codes: operation['x-error-codes'] ?? [],
    samples: (operation['x-codeSamples'] ?? []).map(({ lang, label, source }) => ({
      language: lang,
      label,
      source,
    })),
  };
}

function toField(
  document: OpenApiDocument,
  { name, required = false, description, schema = {} }: Omit<Parameter, 'in'>,
): Field {
  const resolved = resolveSchema(document, schema);
  const values = (resolved.enum ?? resolved['x-extensible-enum'] ?? []).filter(
    (value) => value !== null,
  );
  // Parameters say their default in the schema.
  const isMore = description !== undefined && resolved.description !== undefined;
  return {
    name,
    type: describeType(document, schema),
    isRequired: required,
    description: isMore
      ? `${description.replace(/[.]?$/, '.')} ${resolved.description}`
      : (description ?? resolved.description ?? ''),
    values: values.map(String),
  };
}

function toBody(
  document: OpenApiDocument,
  { description = '', content }: { description?: string; content: Record<string, Media> },
): Body | null {
  const [type, media] = Object.entries(content)[0] ?? [];
  if (type === undefined || media === undefined) return null;
  const { schema = {}, example = media.examples?.envelope.value } = media;
  return {
    type,
    description,
    fields: listFields(document, schema),
    example: example === undefined ? null : JSON.stringify(example, null, 2),
    isList: resolveSchema(document, schema).type === 'array',
  };
}

function resolve<T>(document: OpenApiDocument, value: T | { $ref: string }): T {
  const { $ref } = value as { $ref?: string };
  return $ref === undefined ? (value as T) : findReference<T>(document, $ref);
}
