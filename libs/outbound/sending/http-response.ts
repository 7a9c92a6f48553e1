import { StringDecoder } from 'node:string_decoder';
import { constants, createGunzip, createInflate, createInflateRaw, type Gunzip } from 'node:zlib';
import { copyToKeep } from '#platform/kernel/kept-bytes.js';

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
  /** Whether `start` is the whole body: its end has arrived. */
  isWhole: boolean;
};

/** Cuts a piece to its beginning, which is copied so that the large piece is not kept in memory. */
function keepStart(piece: Buffer, maxBytes: number): Buffer {
  return piece.length > maxBytes ? copyToKeep(piece.subarray(0, maxBytes)) : piece;
}

/** Limits the lines of all heads of one response, and separately those of chunk extensions and trailers. */
const MAX_LINE_BYTES = 16 * 1024;
const MAX_FIELDS = 256;
const MAX_INTERIM = 16;
const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const LF = 0x0a;

const PROTOCOL = 'HTTP/1.';
// Their input is bounded, and no part of them can match in two ways, so they do not backtrack far.
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const FIELD = /^([!#$%&'*+\-.^_`|~\dA-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/;
const BLANKS_AT_START = /^[\t ]+/;
const CONTINUED = /^[\t\x20-\x7e\x80-\xff]*$/;
const CODING = /^[!#$%&'*+\-.^_`|~\da-z]+$/;
const LENGTH = /^\d{1,15}$/;
const CHUNK =
  /^([\da-f]{1,8})((?:;[!#$%&'*+\-.^_`|~\da-z]+(?:=(?:"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"|[!#$%&'*+\-.^_`|~\da-z]*))?)*)$/i;

type Head = {
  status: number;
  /** Names, in the case that was received, and values, in turn. */
  fields: string[];
};

type Expected =
  | 'status line'
  | 'field'
  | 'body'
  | 'chunk size'
  | 'chunk'
  | 'chunk end'
  | 'trailer'
  | 'nothing';

/**
 * Parses the response to one POST over HTTP/1.1 (RFC 9112) as its bytes arrive. Refuses everything that leaves its end
 * ambiguous.
 */
export class HttpResponse {
  /** The head of the final response, once it is complete; interim ones (1xx) are skipped. */
  head: Head | undefined;
  error: 'invalid' | 'too large' | undefined;
  /** Whether anything at all has arrived. */
  hasBegun = false;
  /** The length of the body so far. */
  size = 0;
  /** The beginning of the body. */
  readonly start: Buffer[] = [];

  private expected: Expected = 'status line';
  private line = '';
  private remainingLineBytes = MAX_LINE_BYTES;
  private interimCount = 0;
  private status = 0;
  private fields: string[] = [];
  /** The last field so far: the next line may continue it. */
  private openField: { name: string; rawValue: string } | undefined;
  private length: number | undefined;
  private codings: string[] = [];
  /** How many bytes of the body or chunk are still to come. */
  private remainingBytes = 0;
  private canPersist = true;
  private hasEndedByClose = false;

  /** @param maxStartBytes how much of the body is kept */
  constructor(private readonly maxStartBytes: number) {}

  get isOver(): boolean {
    return this.expected === 'nothing';
  }

  /** Tells whether `start` is the whole body. Nobody knows where a body ends that only the end of its connection ends. */
  get isWhole(): boolean {
    return this.isOver && !this.hasEndedByClose && this.size <= this.maxStartBytes;
  }

  /** Tells whether the connection may be used for another request. */
  get isReusable(): boolean {
    return this.isOver && this.canPersist && this.error === undefined;
  }

  read(bytes: Buffer): void {
    this.hasBegun ||= bytes.length > 0;
    let at = 0;
    while (at < bytes.length && this.error === undefined) {
      if (this.isOver) {
        // These bytes belong to no request: they must never be read as the response to the next one.
        this.canPersist = false;
        return;
      }
      const isBody = this.expected === 'body' || this.expected === 'chunk';
      at = isBody ? this.readBody(bytes, at) : this.readLine(bytes, at);
    }
  }

  /** Handles the end of the connection, which completes a body of unknown length and nothing else. */
  end(): void {
    if (this.expected !== 'body' || this.remainingBytes !== Infinity) return;
    this.expected = 'nothing';
    this.hasEndedByClose = true;
  }

  /** Finds a field that came exactly once. */
  getField(name: string): string | undefined {
    const { fields = [] } = this.head ?? {};
    let value: string | undefined;
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i]?.toLowerCase() !== name) continue;
      if (value !== undefined) return undefined;
      value = fields[i + 1];
    }
    return value;
  }

  private readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.remainingBytes);
    if (this.size < this.maxStartBytes)
      this.start.push(keepStart(bytes.subarray(at, end), this.maxStartBytes - this.size));
    this.size += end - at;
    this.remainingBytes -= end - at;
    if (this.remainingBytes === 0)
      this.expected = this.expected === 'chunk' ? 'chunk end' : 'nothing';
    return end;
  }

  private readLine(bytes: Buffer, at: number): number {
    const lf = bytes.indexOf(LF, at);
    const end = lf === -1 ? bytes.length : lf + 1;
    this.line += bytes.toString('latin1', at, end);
    if (this.line.length > this.remainingLineBytes) this.error = 'too large';
    else if (lf !== -1) {
      const line = this.line;
      this.line = '';
      if (line.endsWith('\r\n')) this.parseLine(line.slice(0, -2));
      else this.error = 'invalid';
    } else if (this.expected === 'status line' && !canBegin(this.line)) this.error = 'invalid';
    return end;
  }

  private parseLine(line: string): void {
    switch (this.expected) {
      case 'status line':
        return this.parseStatusLine(line);
      case 'field':
      case 'trailer':
        return this.parseFieldLine(line);
      case 'chunk size':
        return this.parseChunkSize(line);
      case 'chunk end':
        if (line !== '') this.error = 'invalid';
        this.expected = 'chunk size';
    }
  }

  private parseStatusLine(line: string): void {
    const [, minor, status] = STATUS_LINE.exec(line) ?? [];
    this.remainingLineBytes -= line.length + 2;
    this.status = Number(status);
    if (status === undefined || this.status === SWITCHING_PROTOCOLS) this.error = 'invalid';
    this.canPersist = minor === '1';
    this.fields = [];
    this.length = undefined;
    this.codings = [];
    this.expected = 'field';
  }

  private parseFieldLine(line: string): void {
    this.remainingLineBytes -= line.length + 2;
    if (line !== '' && isBlank(line.charCodeAt(0))) return this.parseContinuation(line);
    if (this.openField) this.addField(this.openField);
    this.openField = undefined;
    if (this.error !== undefined) return;
    if (line === '') return this.expected === 'field' ? this.endHead() : this.finish();
    const [, name, rawValue] = FIELD.exec(line) ?? [];
    if (name === undefined || rawValue === undefined) this.error = 'invalid';
    else this.openField = { name, rawValue };
    if (this.fields.length >= 2 * MAX_FIELDS) this.error = 'too large';
  }

  /** Appends a continuation line to a folded value, with a space in between (RFC 9112, section 5.2). */
  private parseContinuation(line: string): void {
    if (!this.openField || !CONTINUED.test(line)) this.error = 'invalid';
    else
      this.openField.rawValue = `${trimBlanksAtEnd(this.openField.rawValue)} ${line.replace(BLANKS_AT_START, '')}`;
  }

  private addField({ name, rawValue }: { name: string; rawValue: string }): void {
    const value = trimBlanks(rawValue);
    this.fields.push(name, value);
    switch (name.toLowerCase()) {
      case 'content-length':
        if (this.length !== undefined || this.codings.length > 0 || !LENGTH.test(value)) {
          this.error = 'invalid';
        }
        this.length = Number(value);
        break;
      case 'transfer-encoding':
        if (this.length !== undefined || this.expected === 'trailer') this.error = 'invalid';
        this.codings.push(...splitTokens(value));
        if (!this.codings.every((coding) => CODING.test(coding))) this.error = 'invalid';
        // With a tab after it, llhttp does not recognise "chunked", but other parsers do.
        if (rawValue.trimStart().includes('\t')) this.error = 'invalid';
        break;
      case 'connection':
      case 'proxy-connection':
        if (splitTokens(value).includes('close')) this.canPersist = false;
    }
  }

  private endHead(): void {
    const { status, fields, length, codings } = this;
    const chunkedIndex = codings.indexOf('chunked');
    if (chunkedIndex !== -1 && chunkedIndex < codings.length - 1) this.error = 'invalid';
    else if (status < 200) {
      if (!this.canPersist || ++this.interimCount > MAX_INTERIM) this.error = 'invalid';
      this.expected = 'status line';
    } else {
      this.head = { status, fields };
      this.fields = [];
      this.remainingLineBytes = MAX_LINE_BYTES;
      if (status === NO_CONTENT || status === NOT_MODIFIED || length === 0) this.finish();
      else if (chunkedIndex !== -1) this.expected = 'chunk size';
      else this.expectBody(length ?? Infinity);
    }
  }

  private expectBody(length: number): void {
    this.expected = 'body';
    this.remainingBytes = length;
    if (length === Infinity) this.canPersist = false;
  }

  private parseChunkSize(line: string): void {
    const [, size, extensions = ''] = CHUNK.exec(line) ?? [];
    this.remainingLineBytes -= extensions.length;
    if (size === undefined) this.error = 'invalid';
    this.remainingBytes = Number.parseInt(size ?? '', 16);
    this.expected = this.remainingBytes === 0 ? 'trailer' : 'chunk';
  }

  private finish(): void {
    this.expected = 'nothing';
  }
}

function canBegin(line: string): boolean {
  return line.startsWith(PROTOCOL) || PROTOCOL.startsWith(line);
}

function splitTokens(value: string): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((token) => trimBlanks(token));
}

/** Trims spaces and tabs, but no other white space. */
function trimBlanks(value: string): string {
  return trimBlanksAtEnd(value.replace(BLANKS_AT_START, ''));
}

function trimBlanksAtEnd(value: string): string {
  let to = value.length;
  while (to > 0 && isBlank(value.charCodeAt(to - 1))) to--;
  return value.slice(0, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** @param isCut whether the text may go on */
export type HideSecrets = (text: string, isCut: boolean) => string;

/**
 * Creates an excerpt of at most 1 KiB, decoded, without characters that the database cannot store; null if empty.
 * @param hide removes what must not be shown
 */
export async function createExcerpt(
  { start, encoding, isWhole }: Pick<ReceiverResponse, 'start' | 'encoding' | 'isWhole'>,
  hide: HideSecrets = (text) => text,
): Promise<string | null> {
  const bytes = start.length === 1 && start[0] ? start[0] : Buffer.concat(start);
  const decoder = encoding === undefined ? undefined : createDecoder(encoding, bytes);
  // A decoder does not tell whether the end of its stream has come.
  return decoder ? toText(await decode(bytes, decoder), true, hide) : toText(bytes, !isWhole, hide);
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

function toText(bytes: Buffer, isBeginning: boolean, hide: HideSecrets): string | null {
  if (bytes.length === 0) return null;
  const isCut = isBeginning || bytes.length > MAX_EXCERPT_BYTES;
  const text = hide(decodeWhole(bytes).replaceAll('\0', '\uFFFD'), isCut);
  return Buffer.byteLength(text) > MAX_EXCERPT_BYTES ? decodeWhole(Buffer.from(text)) : text;
}

/** Drops a character that was cut in half. */
function decodeWhole(bytes: Buffer): string {
  return new StringDecoder().write(bytes.subarray(0, MAX_EXCERPT_BYTES));
}
