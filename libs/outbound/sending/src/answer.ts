import { StringDecoder } from 'node:string_decoder';
import { copyToKeep } from '#kernel/kept-bytes.js';

/** Of an answer's body: as much is read, so that its connection can be used again; the rest is cut off. */
export const BODY_LIMIT = 64 * 1024;
export const EXCERPT_LIMIT = 1024;

export type Request = {
  origin: string;
  /** Includes the query string. */
  path: string;
  headers: Record<string, string>;
  body: Buffer;
};

export type Answer = {
  status: number;
  retryAfter: string | null;
  /** The beginning of the answer's body. */
  excerpt: string | null;
};

/** Cuts what has arrived to what is wanted of it, and does not keep a large piece for a small part. */
export function startOf(piece: Buffer, wanted: number): Buffer {
  return piece.length > wanted ? copyToKeep(piece.subarray(0, wanted)) : piece;
}

/** At most 1 KiB, and without anything that the database could not store; null of nothing. */
export function excerptOf(start: Buffer[]): string | null {
  const bytes = start.length === 1 && start[0] ? start[0] : Buffer.concat(start);
  if (bytes.length === 0) return null;
  const text = cut(bytes).replaceAll('\0', '\uFFFD');
  return Buffer.byteLength(text) > EXCERPT_LIMIT ? cut(Buffer.from(text)) : text;
}

/** Drops a character that was cut in half. */
function cut(bytes: Buffer): string {
  return new StringDecoder().write(bytes.subarray(0, EXCERPT_LIMIT));
}
