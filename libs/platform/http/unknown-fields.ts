import type { Type } from '@nestjs/common';
import { getFields, isObject, type CompiledFields } from './dtos.js';
import { locateIssue, PLATFORM_ISSUES, type Issue } from '#platform/kernel/issues.js';

/** Path of a name that a request has and nothing reads: `order`, `frist_name`. */
export type UnknownPath = readonly string[];

/** Maximum number of names in a response; a request may have any number. */
const MAX_NAMES = 50;
const MAX_CHARACTERS = 64;
const MAX_BYTES = 1024;
const REST = '...';
const MAX_SUGGESTIONS = 5;

/** @property hasMore there are more unknown names than listed */
export type UnknownInput = { query: UnknownPath[]; body: UnknownPath[]; hasMore: boolean };

/**
 * Finds what a request has that these classes do not take; null: nothing is taken.
 * @returns undefined when there is nothing unknown
 */
export function findUnknownInput(
  takes: { query: Type | null; body: Type | null },
  input: { query: unknown; body: unknown },
): UnknownInput | undefined {
  const query: UnknownPath[] = [];
  const body: UnknownPath[] = [];
  if (isObject(input.query)) collect(query, getFields(takes.query), input.query, []);
  if (isObject(input.body)) collectBody(body, getFields(takes.body), input.body);
  const count = query.length + body.length;
  if (count === 0) return undefined;
  query.length = Math.min(query.length, MAX_NAMES);
  body.length = Math.min(body.length, MAX_NAMES - query.length);
  return { query, body, hasMore: count > MAX_NAMES };
}

/** Collects unknown fields of a body. With a wrapper, only fields that belong outside it count there. */
function collectBody(
  unknown: UnknownPath[],
  fields: CompiledFields,
  body: Record<string, unknown>,
): void {
  const { inner, wrapper, outside } = fields;
  if (wrapper === undefined || !Object.hasOwn(body, wrapper)) {
    collect(unknown, fields, body, []);
    return;
  }
  const placed = (isBeside: boolean) =>
    new Map([...inner].filter(([name]) => outside.has(name) === isBeside));
  const { [wrapper]: wrapped, ...others } = body;
  collect(unknown, { inner: placed(true) }, others, []);
  if (isObject(wrapped)) collect(unknown, { inner: placed(false) }, wrapped, [wrapper]);
}

/** Collects unknown names. Stops at one more than the maximum. */
function collect(
  unknown: UnknownPath[],
  { inner: fields }: Pick<CompiledFields, 'inner'>,
  input: Record<string, unknown>,
  path: UnknownPath,
): void {
  for (const key of Object.keys(input)) {
    if (unknown.length > MAX_NAMES) return;
    if (!fields.has(key)) unknown.push([...path, key]);
    const inner = fields.get(key);
    if (inner) collectInner(unknown, getFields(inner()), input[key], [...path, key]);
  }
}

/** Collects from an object, or from each object in a list. */
function collectInner(
  unknown: UnknownPath[],
  inner: CompiledFields,
  value: unknown,
  path: UnknownPath,
): void {
  if (isObject(value)) collect(unknown, inner, value, path);
  if (!Array.isArray(value)) return;
  for (const [i, item] of value.entries()) {
    if (isObject(item)) collect(unknown, inner, item, [...path, String(i)]);
  }
}

/**
 * Renders the names for a header (CONV-45): names end at 64 characters and the whole at 1,024 bytes, and "..." marks
 * what is left out.
 */
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

/** Percent-encodes everything that could end a name, or a header. */
function encode(name: string): string {
  return encodeURIComponent(shorten(name).toWellFormed()) || '%22%22';
}

/**
 * Renders the names as `errors` (CONV-46), without their wrapper (ERR-06).
 * @param takes the class of the body
 */
export function toUnknownErrors({ body, query, hasMore }: UnknownInput, takes: Type | null) {
  const { wrapper } = getFields(takes);
  const errors = new Map<string, Issue[]>();
  for (const path of [...body, ...query]) {
    const [field = '', ...rest] = path.length > 1 && path[0] === wrapper ? path.slice(1) : path;
    const issue = locateIssue(
      rest.map((name) => `${shorten(name)} `).join(''),
      PLATFORM_ISSUES.unknown_field,
    );
    const issues = errors.get(shorten(field)) ?? [];
    const isListed = issues.some(({ message }) => message === issue.message);
    if (!isListed) errors.set(shorten(field), [...issues, issue]);
  }
  if (hasMore) errors.set('base', [PLATFORM_ISSUES.more_unknown_fields]);
  return errors;
}

/**
 * Says what to do about unknown names: which names they are probably meant for, if there are any, of all that the
 * operation takes.
 */
export function suggestNames(
  { body, query }: UnknownInput,
  takes: { query: Type | null; body: Type | null },
): string {
  const names = [takes.query, takes.body].flatMap((type) => listNames(getFields(type)));
  const suggestions = [...body, ...query].flatMap((path) => {
    const name = path.at(-1) ?? '';
    const [nearest] = names
      .map((candidate) => ({ candidate, distance: countEdits(name.toLowerCase(), candidate) }))
      .filter(({ candidate, distance }) => distance <= Math.max(1, candidate.length / 4))
      .sort((a, b) => a.distance - b.distance);
    return nearest ? [`${nearest.candidate} instead of ${shorten(name)}`] : [];
  });
  const advice = 'Leave out what is not known, or send it without Prefer: handling=strict.';
  if (suggestions.length === 0) return advice;
  return `Did you mean ${[...new Set(suggestions)].slice(0, MAX_SUGGESTIONS).join(', ')}? ${advice}`;
}

function listNames({ inner }: Pick<CompiledFields, 'inner'>): string[] {
  return [...inner].flatMap(([name, type]) => [
    name,
    ...(type ? listNames(getFields(type())) : []),
  ]);
}

/** Counts the letters to insert, remove or replace, or to swap with their neighbour, until two names are the same. */
function countEdits(name: string, other: string): number {
  if (Math.abs(name.length - other.length) > other.length / 4 + 1) return Infinity;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= name.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = name[i - 1] === other[j - 1];
      const isSwapped = name[i - 1] === other[j - 2] && name[i - 2] === other[j - 1];
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? Infinity) + 1 : Infinity,
      );
    }
    [before, row] = [row, next];
  }
  return row[other.length] ?? Infinity;
}

function shorten(name: string): string {
  return name.length > MAX_CHARACTERS ? `${name.slice(0, MAX_CHARACTERS)}${REST}` : name;
}
