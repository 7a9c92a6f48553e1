import type { Type } from '@nestjs/common';
import { shapeOf, type Shape } from './fields.pipe.js';

/** The names that lead to something that a request has and nothing reads: `order`, `frist_name`. */
export type UnknownPath = readonly string[];

/** What one request is told of at most; an attacker's may have any number. */
const MOST_NAMED = 50;
const MOST_CHARACTERS = 64;
const MOST_BYTES = 1024;
const REST = '...';

const NOTHING: Shape = { fields: new Map(), wrapper: undefined, beside: new Set() };

/** @property more there is more than what is named */
export type UnknownInput = { query: UnknownPath[]; body: UnknownPath[]; more: boolean };

/**
 * What a request has that these classes do not take; null: nothing is taken.
 * @returns undefined when there is nothing of the kind
 */
export function unknownInput(
  takes: { query: Type | null; body: Type | null },
  given: { query: unknown; body: unknown },
): UnknownInput | undefined {
  const query: UnknownPath[] = [];
  const body: UnknownPath[] = [];
  if (isObject(given.query)) note(query, shape(takes.query), given.query, []);
  if (isObject(given.body)) noteBody(body, shape(takes.body), given.body);
  const count = query.length + body.length;
  if (count === 0) return undefined;
  query.length = Math.min(query.length, MOST_NAMED);
  body.length = Math.min(body.length, MOST_NAMED - query.length);
  return { query, body, more: count > MOST_NAMED };
}

function shape(dto: Type | null): Shape {
  return dto ? shapeOf(dto) : NOTHING;
}

/** Where there is a wrapper, nothing beside it counts but what has its place there. */
function noteBody(found: UnknownPath[], taken: Shape, given: Record<string, unknown>): void {
  const { fields, wrapper, beside } = taken;
  if (wrapper === undefined || !Object.hasOwn(given, wrapper)) {
    note(found, taken, given, []);
    return;
  }
  const placed = (isBeside: boolean) =>
    new Map([...fields].filter(([name]) => beside.has(name) === isBeside));
  const { [wrapper]: wrapped, ...others } = given;
  note(found, { fields: placed(true) }, others, []);
  if (isObject(wrapped)) note(found, { fields: placed(false) }, wrapped, [wrapper]);
}

/** Stops at one more than is named. */
function note(
  found: UnknownPath[],
  { fields }: Pick<Shape, 'fields'>,
  given: Record<string, unknown>,
  path: UnknownPath,
): void {
  for (const key of Object.keys(given)) {
    if (found.length > MOST_NAMED) return;
    if (!fields.has(key)) found.push([...path, key]);
    const inner = fields.get(key);
    if (inner) noteInner(found, shapeOf(inner()), given[key], [...path, key]);
  }
}

/** In an object, or in each of a list. */
function noteInner(found: UnknownPath[], inner: Shape, value: unknown, path: UnknownPath): void {
  if (isObject(value)) note(found, inner, value, path);
  if (!Array.isArray(value)) return;
  for (const [i, one] of value.entries()) {
    if (isObject(one)) note(found, inner, one, [...path, String(i)]);
  }
}

/** For a header: names end at 64 characters and the whole at 1,024 bytes, and "..." stands for what is left out. */
export function namesOf({ body, query, more }: UnknownInput): string {
  const names: string[] = [];
  let bytes = REST.length;
  for (const path of [...body, ...query]) {
    const name = path.map(encoded).join('.');
    bytes += name.length + 2;
    if (bytes > MOST_BYTES) return [...names, REST].join(', ');
    names.push(name);
  }
  return [...names, ...(more ? [REST] : [])].join(', ');
}

/** Whatever could end a name, or a header, is percent-encoded. */
function encoded(name: string): string {
  return encodeURIComponent(shortened(name).toWellFormed()) || '%22%22';
}

/** Fields of `errors`, which are named without their wrapper. @param takes the class of the body */
export function unknownFaults({ body, query, more }: UnknownInput, takes: Type | null) {
  const wrapper = shape(takes).wrapper;
  const faults = new Map<string, string[]>();
  for (const path of [...body, ...query]) {
    const [field = '', ...within] = path.length > 1 && path[0] === wrapper ? path.slice(1) : path;
    const fault = [...within.map(shortened), 'is not known'].join(' ');
    const known = faults.get(shortened(field)) ?? [];
    faults.set(shortened(field), [...new Set([...known, fault])]);
  }
  if (more) faults.set('base', ['More is not known than is named here']);
  return faults;
}

function shortened(name: string): string {
  return name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS)}${REST}` : name;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)
  );
}
