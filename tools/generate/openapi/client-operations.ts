import type { OpenApiDocument } from '#web/docs/openapi-document.js';

/** What the clients are generated from: the operations and schemas of an OpenAPI document. */

export type Schema = {
  $ref?: string;
  type?: string | string[];
  enum?: (string | number | boolean | null)[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  format?: string;
  description?: string;
};
export type Parameter = {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  schema: Schema;
};
type Content = Record<string, { schema: Schema }>;
export type Operation = {
  operationId: string;
  summary: string;
  description: string;
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { content?: Content }>;
};

export function listSchemas(document: OpenApiDocument): Record<string, Schema> {
  return (document['components'] as { schemas: Record<string, Schema> }).schemas;
}

/** Lists the schemas of the events that a subscription with payload_format `envelope` is sent. */
export function listWebhookEvents(document: OpenApiDocument): string[] {
  return Object.entries(listSchemas(document)).flatMap(([name, { properties = {} }]) => {
    const { type, data } = properties;
    return name.endsWith('Event') && type?.enum !== undefined && data !== undefined ? [name] : [];
  });
}

export function listOperations({ paths }: OpenApiDocument) {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation: operation as Operation,
    })),
  );
}

/** Lists the parameters of an operation in its path or query. */
export function listParameters({ parameters = [] }: Operation, place: 'path' | 'query') {
  return parameters.filter((item): item is Parameter => 'name' in item && item.in === place);
}

export function findSuccess({ responses }: Operation) {
  return Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
}

/** Finds the media types of a successful response that is not JSON but text, such as CSV, as Accept lists them. */
export function findTextTypes(operation: Operation): string | undefined {
  const types = Object.keys(findSuccess(operation)?.content ?? {});
  return types.length === 0 || types.includes('application/json') ? undefined : types.join(', ');
}

export function getSchemaName(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}
