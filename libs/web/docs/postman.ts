import type { OpenApiDocument } from './openapi-document.js';

/** Creates a Postman collection (format v2.1.0) of every operation, which other programs import too. */

export const POSTMAN = '/docs/postman.json';

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Ids in example bodies, which are variables too. */
const RECORD_ID = /"((?:card|customer|reward|location)_id)": \d+/g;

type Node = Record<string, unknown>;
type Media = { example?: unknown };
type Response = { description: string; content?: Record<string, Media> };
type Parameter = { name: string; in: string; description?: string; example?: unknown };
type Operation = {
  tags: string[];
  summary: string;
  description?: string;
  security?: object[];
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Response>;
};
type Variable = { key: string; value: string };

/** @param publicUrl becomes the variable `base_url`; each id in a path becomes one too, such as `customer_id` */
export function createPostmanCollection(document: OpenApiDocument, publicUrl: string): Node {
  const ids = new Map<string, string>();
  const folders = (document['tags'] as { name: string; description: string }[]).map((tag) => ({
    name: tag.name,
    description: tag.description,
    item: listOperations(document)
      .filter(({ operation }) => operation.tags.includes(tag.name))
      .map((route) => toItem(document, route, ids)),
  }));
  const variables: Variable[] = [
    { key: 'base_url', value: publicUrl },
    { key: 'token', value: '' },
    ...[...ids].map(([key, value]) => ({ key, value })),
  ];
  return {
    info: {
      name: 'Inkpad',
      description: `Every operation of the API at ${publicUrl}. Set the variable \`token\` to an API token, and the ids to records of your store. Requests change what the store holds.`,
      schema: SCHEMA,
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{token}}', type: 'string' }] },
    variable: variables.map((variable) => ({ ...variable, type: 'string' })),
    item: folders.filter(({ item }) => item.length > 0),
  };
}

type Route = { path: string; method: string; operation: Operation };

function listOperations({ paths }: OpenApiDocument): Route[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation: operation as unknown as Operation,
    })),
  );
}

function toItem(document: OpenApiDocument, route: Route, ids: Map<string, string>): Node {
  const { operation } = route;
  const request = toRequest(document, route, ids);
  const [status = '200', success] =
    Object.entries(operation.responses).find(([code]) => code.startsWith('2')) ?? [];
  const [type, media] = Object.entries(success?.content ?? {})[0] ?? [];
  const example = {
    name: success?.description ?? 'Done',
    originalRequest: request,
    code: Number(status),
    status: success?.description ?? '',
    header: type === undefined ? [] : [{ key: 'Content-Type', value: type }],
    ...(media?.example === undefined ? {} : { body: JSON.stringify(media.example, null, 2) }),
    ...(type?.endsWith('json') ? { _postman_previewlanguage: 'json' } : {}),
    cookie: [],
  };
  return { name: operation.summary, request, response: [example] };
}

function toRequest(
  document: OpenApiDocument,
  { path, method, operation }: Route,
  ids: Map<string, string>,
): Node {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(document, parameter));
  const segments = path.split('/').slice(1);
  const variable = segments.flatMap((segment, i) => {
    const [, name] = /^\{(.+)\}$/.exec(segment) ?? [];
    if (name === undefined) return [];
    const key = nameVariable(name, segments[i - 1]);
    const { example = 1, description = '' } =
      parameters.find((parameter) => parameter.name === name) ?? {};
    if (!ids.has(key)) ids.set(key, String(example));
    return [{ key: name, value: `{{${key}}}`, description }];
  });
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, description = '', example = '' }) => ({
      key: name,
      value: String(example),
      description,
      // Postman sends what is not disabled.
      disabled: true,
    }));
  const parts = segments.map((segment) => segment.replace(/^\{(.+)\}$/, ':$1'));
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const takesKey = parameters.some(({ name }) => name === 'Idempotency-Key');
  return {
    method,
    description: operation.description ?? '',
    ...(operation.security?.length === 0 ? { auth: { type: 'noauth' } } : {}),
    header: [
      // Postman replaces it with a new one for each request.
      ...(takesKey ? [{ key: 'Idempotency-Key', value: '{{$guid}}' }] : []),
      ...(type === undefined ? [] : [{ key: 'Content-Type', value: type }]),
    ],
    url: {
      raw: `{{base_url}}/${parts.join('/')}`,
      host: ['{{base_url}}'],
      path: parts,
      query,
      variable,
    },
    ...(type === undefined ? {} : { body: toBody(type, media?.example) }),
  };
}

/** Names the `id` of a card and that of a customer differently, and that of a subscription always alike. */
function nameVariable(name: string, collection = ''): string {
  if (name !== 'id') return name;
  return `${collection.replace(/ies$/, 'y').replace(/s$/, '').replace('webhook_', '')}_id`;
}

function toBody(type: string, example: unknown): Node {
  if (!type.endsWith('json')) return { mode: 'file', file: {} };
  return {
    mode: 'raw',
    raw: JSON.stringify(example ?? {}, null, 2).replaceAll(RECORD_ID, '"$1": {{$1}}'),
    options: { raw: { language: 'json' } },
  };
}

function resolve({ components }: OpenApiDocument, value: Parameter | { $ref: string }): Parameter {
  if (!('$ref' in value)) return value;
  const shared = (components as { parameters: Record<string, Parameter> }).parameters;
  const parameter = shared[value.$ref.replace('#/components/parameters/', '')];
  if (!parameter) throw new Error(`${value.$ref} is not in the OpenAPI document`);
  return parameter;
}
