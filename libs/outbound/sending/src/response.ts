import { StringDecoder } from 'node:string_decoder';
import { constants, createGunzip, createInflate, createInflateRaw, type Gunzip } from 'node:zlib';
import { copyToKeep } from '#kernel/kept-bytes.js';

/** How much of a body is read, so that its connection can be reused. A longer one ends the connection. */
export const MAX_BODY_BYTES = 64 * 1024;
const MAX_EXCERPT_BYTES = 1024;
/** How much of a body is kept: compressed, the beginning of a text may be longer than the text itself. */
export const MAX_START_BYTES = 4 * 1024;

export type WebhookRequest = {
  origin: string;
  /** Includes the query string. */
  path: string;
  headers: Record<string, string>;
  body: Buffer;
  /** Called right before the first byte is written: false stops the request (OutdatedError). */
  mayBeSent?: () => boolean;
};

/** Thrown when a request went out of date before it was written: nothing was sent. */
export class OutdatedError extends Error {
  constructor() {
    super('What was to be sent went out of date');
  }
}

export type ReceiverResponse = {
  status: number;
  retryAfter: string | null;
  /** The Content-Encoding, if it came exactly once. */
  encoding: string | undefined;
  /** The beginning of the body. */
  start: Buffer[];
};

/** Cuts a piece to its beginning, which is copied so that the large piece is not kept in memory. */
export function keepStart(piece: Buffer, maxBytes: number): Buffer {
  return piece.length > maxBytes ? copyToKeep(piece.subarray(0, maxBytes)) : piece;
}

/** Creates an excerpt of at most 1 KiB, decoded, without characters that the database cannot store; null if empty. */
export async function createExcerpt({
  start,
  encoding,
}: Pick<ReceiverResponse, 'start' | 'encoding'>): Promise<string | null> {
  const bytes = start.length === 1 && start[0] ? start[0] : Buffer.concat(start);
  const decoder = encoding === undefined ? undefined : createDecoder(encoding, bytes);
  return toText(decoder ? await decode(bytes, decoder) : bytes);
}

/**
 * Creates a decoder for the two codings that need a fixed 40 KB. Brotli may need a window of 16 MB, which it fills
 * before the first byte comes out; besides, the request does not accept it.
 */
function createDecoder(encoding: string, bytes: Buffer): Gunzip | undefined {
  // Accepts a stream without its end, and returns no more than an excerpt.
  const options = { finishFlush: constants.Z_SYNC_FLUSH, chunkSize: MAX_EXCERPT_BYTES };
  switch (encoding.toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip(options);
    case 'deflate':
      // Some senders omit the zlib header (RFC 9110, section 8.4.1.2), which is a multiple of 31 (RFC 1950).
      return bytes.length > 1 && bytes.readUInt16BE(0) % 31 === 0 && (bytes[0] ?? 0) % 16 === 8
        ? createInflate(options)
        : createInflateRaw(options);
    default:
      return undefined;
  }
}

/** Decodes the beginning of a body. @returns the bytes themselves when they are not encoded as declared */
function decode(bytes: Buffer, decoder: Gunzip): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let size = 0;
    const finish = (failed: boolean) => {
      decoder.destroy();
      resolve(failed && size === 0 ? bytes : Buffer.concat(parts));
    };
    decoder.on('data', (part: Buffer) => {
      parts.push(part);
      size += part.length;
      if (size >= MAX_EXCERPT_BYTES) finish(false);
    });
    decoder.on('end', () => finish(false));
    decoder.on('error', () => finish(true));
    decoder.end(bytes);
  });
}

function toText(bytes: Buffer): string | null {
  if (bytes.length === 0) return null;
  const text = decodeWhole(bytes).replaceAll('\0', '\uFFFD');
  return Buffer.byteLength(text) > MAX_EXCERPT_BYTES ? decodeWhole(Buffer.from(text)) : text;
}

/** Drops a character that was cut in half. */
function decodeWhole(bytes: Buffer): string {
  return new StringDecoder().write(bytes.subarray(0, MAX_EXCERPT_BYTES));
}
