import { toBoolean, toInteger, toNumber } from '#platform/http/conversions.js';
import type { JsonSchema, ToolOperation } from './tool-schema.js';

export type ToolArguments = Readonly<Record<string, unknown>>;

/** A request to the API, without the headers of its caller. */
export type ApiRequest = {
  method: ToolOperation['method'];
  /** Path with query. */
  url: string;
  headers: Record<string, string>;
  body?: object;
};

/** The length of a list if the assistant names none: complete ones could fill its context. */
const DEFAULT_LIMIT = 50;
/** No other text of a path is an id; `..` would even name another path. */
const ID = /^\w+$/;

/** Builds the request of a call. @returns undefined if an id cannot be one */
export function buildRequest(tool: ToolOperation, args: ToolArguments): ApiRequest | undefined {
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let { path } = tool;
  for (const { name, place, parameter } of tool.arguments) {
    const value = args[name];
    if (place === 'path') {
      if (!ID.test(String(value ?? ''))) return undefined;
      path = path.replace(`{${parameter}}`, () => String(value));
    } else if (value === undefined) continue;
    else if (place === 'query') query.set(parameter, String(value ?? ''));
    else body[parameter] = value;
  }
  const takesLimit = tool.arguments.some(({ parameter }) => parameter === 'limit');
  if (takesLimit && !query.has('limit')) query.set('limit', String(DEFAULT_LIMIT));
  const isDry = isDryRun(tool, args);
  // Operations without a dry run do not know the parameter, and so refuse the request after every other check (CONV-46).
  if (isDry) query.set('dry_run', 'true');
  const hasBody = tool.arguments.some(({ place }) => place === 'body');
  return {
    method: tool.method,
    url: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers: {
      prefer: 'handling=strict',
      ...(tool.kind !== 'read' && !isDry && { 'idempotency-key': String(args['idempotency_key']) }),
    },
    ...(hasBody && { body }),
  };
}

const CONVERSIONS: Readonly<Record<string, (value: unknown) => unknown>> = {
  integer: toInteger,
  number: toNumber,
  boolean: toBoolean,
};

/**
 * Converts arguments as the API converts fields, at any depth: integers and booleans may be text (CONV-13, CONV-15). It
 * removes those that are null: models send null for what they leave out, and the API means the same by both (CONV-28).
 * The values in metadata are the caller's own.
 */
export function convertArguments({ type, items, properties }: JsonSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => convertArguments((items ?? {}) as JsonSchema, item));
  }
  if (typeof value !== 'object' || value === null) {
    return CONVERSIONS[String(type)]?.(value) ?? value;
  }
  const schemas = (properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const entries = Object.entries(value)
    .map(([name, item]: [string, unknown]) => [
      name,
      name === 'metadata' ? item : convertArguments(schemas[name] ?? {}, item),
    ])
    .filter(([, item]) => item !== null);
  return Object.fromEntries(entries) as unknown;
}

export function isDryRun({ kind }: Pick<ToolOperation, 'kind'>, args: ToolArguments): boolean {
  return kind !== 'read' && args['dry_run'] === true;
}
