import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

type Json = Record<string, unknown>;

export type CheckedResponse = {
  method: string;
  /** With or without a query. */
  path: string;
  status: number;
  headers: Headers | Record<string, string | string[] | undefined>;
  /** Parsed; undefined if the response had none. */
  body: unknown;
};

const DOCUMENT = 'openapi';

/**
 * Checks responses against the service's own /openapi.json and describes what is wrong with each.
 * Stricter than a client may be: a status, media type or field that is not documented is an error, and so
 * is a missing required header. A path that is not documented may only be refused, with the error payload.
 */
export function createResponseChecker(document: Json): (response: CheckedResponse) => string[] {
  const closed = close(document) as Json;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(closed, DOCUMENT);
  const routes = Object.entries(objectAt(closed, 'paths'))
    .map(([template, operations]) => ({ template, operations: operations as Json }))
    // /cards/{id} must not match /cards/archived
    .sort((a, b) => count(a.template, '{') - count(b.template, '{'))
    .map((route) => ({ ...route, pattern: createPathPattern(route.template) }));

  const validateAt = (pointer: string[], value: unknown): string[] => {
    const fragment = pointer.map((part) =>
      encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')),
    );
    const validate = ajv.getSchema(`${DOCUMENT}#/${fragment.join('/')}`);
    if (!validate) throw new Error(`there is no schema at ${pointer.join(' ')}`);
    return validate(value) ? [] : (validate.errors ?? []).map(wording);
  };

  /** Follows references between responses and headers; schemas are left to the validator. */
  const resolve = (pointer: string[]): { pointer: string[]; value: Json } | undefined => {
    const value = pointer.reduce<unknown>((at, part) => (at as Json | undefined)?.[part], closed);
    if (typeof value !== 'object' || value === null) return undefined;
    const { $ref } = value as { $ref?: string };
    return $ref ? resolve($ref.slice(2).split('/')) : { pointer, value: value as Json };
  };

  const checkHeaders = (pointer: string[], headers: Json, response: CheckedResponse): string[] =>
    Object.keys(headers).flatMap((name) => {
      const header = resolve([...pointer, 'headers', name]);
      if (!header) return [`header ${name}: the document points nowhere`];
      const text = findHeader(response, name);
      if (text === null) return header.value['required'] ? [`header ${name} is missing`] : [];
      const { type } = objectAt(header.value, 'schema');
      const value = type === 'integer' ? Number(text) : text;
      return validateAt([...header.pointer, 'schema'], value).map(
        (error) => `header ${name} (${text}): ${error}`,
      );
    });

  /** Checks what problem details add to an error (RFC 9457); the document describes only the error. */
  const checkProblem = (body: unknown): string[] => {
    const { type, title, status, detail, instance, ...error } = body as Json;
    const added = [type, title, detail, instance];
    return [
      ...(added.every((candidate) => typeof candidate === 'string')
        ? []
        : ['a problem without its fields']),
      ...(typeof status === 'number' ? [] : ['a problem without its status']),
      ...validateAt(['components', 'schemas', 'ErrorResponse'], error),
    ];
  };

  const checkBody = (pointer: string[], content: Json, response: CheckedResponse): string[] => {
    const type = findHeader(response, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
    if (Object.keys(content).length === 0) {
      return response.body === undefined || response.body === ''
        ? []
        : ['a body that is not documented'];
    }
    if (type === undefined) return ['no content type'];
    if (isProblem(response) && content['application/json']) return checkProblem(response.body);
    const media = content[type] as Json | undefined;
    if (!media) return [`the content type ${type} is not documented`];
    if (!media['schema']) return [];
    return validateAt([...pointer, 'content', type, 'schema'], response.body);
  };

  const check = (response: CheckedResponse): string[] => {
    const method = response.method.toLowerCase();
    const path = response.path.split('?', 1)[0] ?? '';
    const route = routes.find(
      ({ pattern, operations }) => pattern.test(path) && operations[method],
    );
    if (!route) {
      if (response.status < 400) return ['succeeds, but the document does not know this operation'];
      if (isProblem(response)) return checkProblem(response.body);
      return validateAt(['components', 'schemas', 'ErrorResponse'], response.body);
    }
    const operation = ['paths', route.template, method, 'responses'];
    const documented =
      resolve([...operation, String(response.status)]) ??
      (response.status >= 400 ? resolve([...operation, 'default']) : undefined);
    if (!documented) return [`the status ${response.status} is not documented`];
    const { pointer, value } = documented;
    const { 'x-error-codes': codes = [] } =
      (route.operations as Record<string, Json>)[method] ?? {};
    return [
      ...checkCode(response, codes as string[]),
      ...checkHeaders(pointer, objectAt(value, 'headers'), response),
      ...checkBody(pointer, objectAt(value, 'content'), response),
    ];
  };

  return (response) =>
    check(response).map(
      (error) => `${response.method} ${response.path} ${response.status}: ${error}`,
    );
}

/** Codes of a 422 that any operation may have. */
const GENERAL_CODES = ['validation_failed', 'idempotency_key_reused'];

function checkCode({ status, body }: CheckedResponse, documented: string[]): string[] {
  const { code } = (body ?? {}) as { code?: unknown };
  if (status !== 422 || [...GENERAL_CODES, ...documented].includes(String(code))) return [];
  return [`the code ${String(code)} is not documented for this operation`];
}

function wording({ instancePath, message, params }: ErrorObject): string {
  const unknown = (params as { additionalProperty?: string }).additionalProperty;
  const where = instancePath === '' ? 'the body' : instancePath;
  return unknown === undefined
    ? `${where} ${message ?? 'is wrong'}`
    : `${where} holds ${unknown}, which is not documented`;
}

function isProblem(response: CheckedResponse): boolean {
  return findHeader(response, 'content-type')?.startsWith('application/problem+json') ?? false;
}

/** Clients accept unknown fields and values; here each object has only those that are named, and each enum too. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (typeof value !== 'object' || value === null) return value;
  const { allOf } = value as Json;
  if (Array.isArray(allOf)) throw new Error('allOf cannot be closed: spell the fields out instead');
  const copy = Object.fromEntries(Object.entries(value).map(([key, value]) => [key, close(value)]));
  const { type, properties, 'x-extensible-enum': values } = copy;
  const isNullable = [type].flat().includes('null');
  if (Array.isArray(values)) copy['enum'] = isNullable ? [...(values as unknown[]), null] : values;
  const isObject = [type].flat().includes('object') && properties !== undefined;
  return isObject ? { ...copy, additionalProperties: false } : copy;
}

function findHeader({ headers }: CheckedResponse, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase());
  const value = entry?.[1];
  return value === undefined ? null : String(value);
}

function objectAt(value: Json, key: string): Json {
  const child = value[key];
  return typeof child === 'object' && child !== null ? (child as Json) : {};
}

function createPathPattern(template: string): RegExp {
  const parts = template
    .split(/\{[^}]+\}/)
    .map((part) => part.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}/?$`);
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}
