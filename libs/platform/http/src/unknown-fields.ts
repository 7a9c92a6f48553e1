import type { Type } from '@nestjs/common';
import { getShape, type Shape } from './fields.pipe.js';

/** The names that lead to something that a request has and nothing reads: `order`, `frist_name`. */
export type UnknownPath = readonly string[];

/** What one request is told of at most; an attacker's may have any number. */
const MAX_NAMES = 50;
const MAX_CHARACTERS = 64;
const MAX_BYTES = 1024;
const REST = '...';

const NOTHING: Shape = { fields: new Map(), wrapper: undefined, outside: new Set() };

/** @property more there is more than what is named */
export type UnknownInput = { query: UnknownPath[]; body: UnknownPath[]; hasMore: boolean };

/**
 * What a request has that these classes do not take; null: nothing is taken.
 * @returns undefined when there is nothing of the kind
 */
export function findUnknownInput(
  takes: { query: Type | null; body: Type | null },
  input: { query: unknown; body: unknown },
): UnknownInput | undefined {
  const query: UnknownPath[] = [];
  const body: UnknownPath[] = [];
  if (isObject(input.query)) collect(query, getShapeOf(takes.query), input.query, []);
  if (isObject(input.body)) collectBody(body, getShapeOf(takes.body), input.body);
  const count = query.length + body.length;
  if (count === 0) return undefined;
  query.length = Math.min(query.length, MAX_NAMES);
  body.length = Math.min(body.length, MAX_NAMES - query.length);
  return { query, body, hasMore: count > MAX_NAMES };
}

function getShapeOf(dto: Type | null): Shape {
  return dto ? getShape(dto) : NOTHING;
}

/** Where there is a wrapper, nothing beside it counts but what has its place there. */
function collectBody(unknown: UnknownPath[], shape: Shape, body: Record<string, unknown>): void {
  const { fields, wrapper, outside } = shape;
  if (wrapper === undefined || !Object.hasOwn(body, wrapper)) {
    collect(unknown, shape, body, []);
    return;
  }
  const placed = (isBeside: boolean) =>
    new Map([...fields].filter(([name]) => outside.has(name) === isBeside));
  const { [wrapper]: wrapped, ...others } = body;
  collect(unknown, { fields: placed(true) }, others, []);
  if (isObject(wrapped)) collect(unknown, { fields: placed(false) }, wrapped, [wrapper]);
}

/** Stops at one more than is named. */
function collect(
  unknown: UnknownPath[],
  { fields }: Pick<Shape, 'fields'>,
  input: Record<string, unknown>,
  path: UnknownPath,
): void {
  for (const key of Object.keys(input)) {
    if (unknown.length > MAX_NAMES) return;
    if (!fields.has(key)) unknown.push([...path, key]);
    const inner = fields.get(key);
    if (inner) collectInner(unknown, getShape(inner()), input[key], [...path, key]);
  }
}

/** In an object, or in each of a list. */
function collectInner(
  unknown: UnknownPath[],
  inner: Shape,
  value: unknown,
  path: UnknownPath,
): void {
  if (isObject(value)) collect(unknown, inner, value, path);
  if (!Array.isArray(value)) return;
  for (const [i, one] of value.entries()) {
    if (isObject(one)) collect(unknown, inner, one, [...path, String(i)]);
  }
}

/** For a header: names end at 64 characters and the whole at 1,024 bytes, and "..." stands for what is left out. */
export function renderNames({ body, query, hasMore }: UnknownInput): string {
  const names: string[] = [];
  let bytes = REST.length;
  for (const path of [...body, ...query]) {
    const name = path.map(encode).join('.');
    bytes += name.length + 2;
    if (bytes > MAX_BYTES) return [...names, REST].join(', ');
    names.push(name);
  }
  return [...names, ...(hasMore ? [REST] : [])].join(', ');
}

/** Whatever could end a name, or a header, is percent-encoded. */
function encode(name: string): string {
  return encodeURIComponent(shorten(name).toWellFormed()) || '%22%22';
}

/** Fields of `errors`, which are named without their wrapper. @param takes the class of the body */
export function toUnknownErrors({ body, query, hasMore }: UnknownInput, takes: Type | null) {
  const wrapper = getShapeOf(takes).wrapper;
  const errors = new Map<string, string[]>();
  for (const path of [...body, ...query]) {
    const [field = '', ...rest] = path.length > 1 && path[0] === wrapper ? path.slice(1) : path;
    const message = [...rest.map(shorten), 'is not known'].join(' ');
    const messages = errors.get(shorten(field)) ?? [];
    errors.set(shorten(field), [...new Set([...messages, message])]);
  }
  if (hasMore) errors.set('base', ['More is not known than is named here']);
  return errors;
}

function shorten(name: string): string {
  return name.length > MAX_CHARACTERS ? `${name.slice(0, MAX_CHARACTERS)}${REST}` : name;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)
  );
}
