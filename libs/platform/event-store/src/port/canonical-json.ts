import { hash } from 'node:crypto';

/**
 * Writes canonical JSON (RFC 8785): the members of objects in the order of their UTF-16 code units, no spaces, numbers
 * and strings as JavaScript writes them. Twice as fast as the package `canonicalize`, with which the tests compare it:
 * verifying a history spends most of its time here (ADR-0028). Written as bytes into one buffer, because half of the
 * garbage of a verification would be pieces of such texts.
 * @throws Error for a value that has no JSON
 */
export function toCanonicalJson(value: unknown): string {
  return encode('', value).toString();
}

/** Hashes a text and the canonical JSON of a value with SHA-256, in hexadecimal. */
export function hashCanonically(before: string, value: unknown): string {
  return hash('sha256', encode(before, value));
}

const USUAL_BYTES = 64 * 1024;
let bytes = Buffer.allocUnsafeSlow(USUAL_BYTES);
let end = 0;

/**
 * Writes a text and the canonical JSON of a value.
 * @returns bytes that are valid until the next call
 */
function encode(before: string, value: unknown): Buffer {
  if (bytes.length > USUAL_BYTES) bytes = Buffer.allocUnsafeSlow(USUAL_BYTES);
  end = 0;
  append(before);
  write(value);
  return bytes.subarray(0, end);
}

function write(value: unknown): void {
  if (typeof value === 'string') writeString(value);
  else if (Array.isArray(value)) writeList(value);
  else if (typeof value === 'object' && value !== null) writeObject(value);
  else append(formatScalar(value));
}

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPEN_LIST, CLOSE_LIST] = [0x5b, 0x5d];
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d];

function writeList(elements: readonly unknown[]): void {
  const start = end;
  for (const element of elements) {
    put(COMMA);
    write(element);
  }
  close(start, OPEN_LIST, CLOSE_LIST);
}

function writeObject(members: object): void {
  const start = end;
  for (const { name, begin } of sortMembers(members)) {
    const member = (members as Record<string, unknown>)[name];
    if (member === undefined) continue;
    copy(begin);
    write(member);
  }
  close(start, OPEN_OBJECT, CLOSE_OBJECT);
}

/** Closes a bracket. Its content begins with a comma, whose place the opening bracket takes. */
function close(start: number, opening: number, closing: number): void {
  if (end === start) put(opening);
  else bytes[start] = opening;
  put(closing);
}

/** Writes a string. Nearly every text consists of characters that take a byte and need no escape. */
function writeString(text: string): void {
  reserve(text.length + 2);
  const into = bytes;
  let at = end;
  into[at++] = QUOTE;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) {
      append(quote(text));
      return;
    }
    into[at++] = code;
  }
  into[at++] = QUOTE;
  end = at;
}

function append(text: string): void {
  reserve(text.length);
  const into = bytes;
  let at = end;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7e) {
      reserve(3 * text.length);
      end += bytes.write(text, end);
      return;
    }
    into[at++] = code;
  }
  end = at;
}

/** Copies bytes in a loop, because these are too few to be worth a call into the engine. */
function copy(part: Uint8Array): void {
  reserve(part.length);
  const into = bytes;
  let at = end;
  for (let i = 0; i < part.length; i++) into[at++] = part[i] ?? 0;
  end = at;
}

function put(byte: number): void {
  reserve(1);
  bytes[end++] = byte;
}

function reserve(more: number): void {
  if (end + more <= bytes.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * bytes.length, end + more));
  bytes.copy(larger, 0, 0, end);
  bytes = larger;
}

function formatScalar(value: unknown): string {
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw new Error(`${value} has no JSON`);
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    default:
      if (value === null) return 'null';
      throw new Error(`a ${typeof value} has no JSON`);
  }
}

function quote(text: string): string {
  if (!text.isWellFormed()) throw new Error('a lone surrogate has no JSON');
  return JSON.stringify(text);
}

/** A name of an object, and how its member begins: with a comma. */
type Member = { name: string; begin: Uint8Array };

/**
 * Maximum number of cached shapes for each number of names. Events have few shapes, and sorting names costs more than
 * checking that they are the same as last time.
 */
const MAX_SHAPES = 32;
const MAX_NAMES = 32;
const MAX_NAME_LENGTH = 64;
/** The cached shapes, by the number of names. */
const shapes = Array.from(
  { length: MAX_NAMES + 1 },
  (): { names: string[]; sorted: Member[] }[] => [],
);

function sortMembers(members: object): Member[] {
  const names = Object.keys(members);
  const alike = shapes[names.length];
  if (alike === undefined) return toSortedMembers(names);
  for (const shape of alike) if (isSame(shape.names, names)) return shape.sorted;
  const sorted = toSortedMembers(names);
  if (names.every(({ length }) => length <= MAX_NAME_LENGTH)) {
    if (alike.length >= MAX_SHAPES) alike.shift();
    alike.push({ names, sorted });
  }
  return sorted;
}

function isSame(some: string[], others: string[]): boolean {
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}

function toSortedMembers(names: string[]): Member[] {
  return names.toSorted().map((name) => ({ name, begin: Buffer.from(`,${quote(name)}:`) }));
}
