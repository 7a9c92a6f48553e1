import { startOf } from './answer.js';

/** Of the lines of all heads of one answer; and again of chunk extensions and trailers. */
const LINES_LIMIT = 16 * 1024;
const MOST_FIELDS = 256;
const MOST_INTERIM = 16;
const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const LF = 0x0a;

const PROTOCOL = 'HTTP/1.';
// What is matched is bounded, and no part of an expression can match in two ways: nothing backtracks far.
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
  /** Names as they came and values, in turn. */
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
 * The answer to one POST over HTTP/1.1 (RFC 9112), read as its bytes arrive. Whatever leaves room for two readings of
 * where it ends is refused.
 */
export class HttpResponse {
  /** Of the final answer, once it is complete; interim ones (1xx) are passed over. */
  head: Head | undefined;
  fault: 'invalid' | 'too large' | undefined;
  /** Whether anything at all has arrived. */
  hasBegun = false;
  /** How long the body is so far. */
  size = 0;
  /** The beginning of the body. */
  readonly start: Buffer[] = [];

  private expected: Expected = 'status line';
  private line = '';
  private room = LINES_LIMIT;
  private interim = 0;
  private status = 0;
  private fields: string[] = [];
  /** The last field so far: the next line may continue it. */
  private open: { name: string; given: string } | undefined;
  private length: number | undefined;
  private codings: string[] = [];
  /** How much is still to come of the body or chunk. */
  private left = 0;
  private persists = true;

  /** @param kept how much of the body is kept */
  constructor(private readonly kept: number) {}

  get isOver(): boolean {
    return this.expected === 'nothing';
  }

  /** Whether the connection may be used for another request. */
  get isReusable(): boolean {
    return this.isOver && this.persists && this.fault === undefined;
  }

  read(bytes: Buffer): void {
    this.hasBegun ||= bytes.length > 0;
    let at = 0;
    while (at < bytes.length && this.fault === undefined) {
      if (this.isOver) {
        // Nobody asked for these: they must never be taken for the answer to the next request.
        this.persists = false;
        return;
      }
      const isBody = this.expected === 'body' || this.expected === 'chunk';
      at = isBody ? this.readBody(bytes, at) : this.readLine(bytes, at);
    }
  }

  /** The connection has ended. That is how a body of unknown length ends, and nothing else. */
  end(): void {
    if (this.expected === 'body' && this.left === Infinity) this.expected = 'nothing';
  }

  /** Undefined unless it came exactly once. */
  field(name: string): string | undefined {
    const { fields = [] } = this.head ?? {};
    let found: string | undefined;
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i]?.toLowerCase() !== name) continue;
      if (found !== undefined) return undefined;
      found = fields[i + 1];
    }
    return found;
  }

  private readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.left);
    if (this.size < this.kept)
      this.start.push(startOf(bytes.subarray(at, end), this.kept - this.size));
    this.size += end - at;
    this.left -= end - at;
    if (this.left === 0) this.expected = this.expected === 'chunk' ? 'chunk end' : 'nothing';
    return end;
  }

  private readLine(bytes: Buffer, at: number): number {
    const lf = bytes.indexOf(LF, at);
    const end = lf === -1 ? bytes.length : lf + 1;
    this.line += bytes.toString('latin1', at, end);
    if (this.line.length > this.room) this.fault = 'too large';
    else if (lf !== -1) {
      const line = this.line;
      this.line = '';
      if (line.endsWith('\r\n')) this.take(line.slice(0, -2));
      else this.fault = 'invalid';
    } else if (this.expected === 'status line' && !couldBegin(this.line)) this.fault = 'invalid';
    return end;
  }

  private take(line: string): void {
    switch (this.expected) {
      case 'status line':
        return this.takeStatusLine(line);
      case 'field':
      case 'trailer':
        return this.takeFieldLine(line);
      case 'chunk size':
        return this.takeChunkSize(line);
      case 'chunk end':
        if (line !== '') this.fault = 'invalid';
        this.expected = 'chunk size';
    }
  }

  private takeStatusLine(line: string): void {
    const [, minor, status] = STATUS_LINE.exec(line) ?? [];
    this.room -= line.length + 2;
    this.status = Number(status);
    if (status === undefined || this.status === SWITCHING_PROTOCOLS) this.fault = 'invalid';
    this.persists = minor === '1';
    this.fields = [];
    this.length = undefined;
    this.codings = [];
    this.expected = 'field';
  }

  private takeFieldLine(line: string): void {
    this.room -= line.length + 2;
    if (line !== '' && isBlank(line.charCodeAt(0))) return this.takeContinuation(line);
    if (this.open) this.takeField(this.open);
    this.open = undefined;
    if (this.fault !== undefined) return;
    if (line === '') return this.expected === 'field' ? this.endHead() : this.finish();
    const [, name, given] = FIELD.exec(line) ?? [];
    if (name === undefined || given === undefined) this.fault = 'invalid';
    else this.open = { name, given };
    if (this.fields.length >= 2 * MOST_FIELDS) this.fault = 'too large';
  }

  /** A value that goes on in the next line is read as if a space stood in between (RFC 9112, section 5.2). */
  private takeContinuation(line: string): void {
    if (!this.open || !CONTINUED.test(line)) this.fault = 'invalid';
    else
      this.open.given = `${withoutBlanksAtEnd(this.open.given)} ${line.replace(BLANKS_AT_START, '')}`;
  }

  private takeField({ name, given }: { name: string; given: string }): void {
    const value = trimmed(given);
    this.fields.push(name, value);
    switch (name.toLowerCase()) {
      case 'content-length':
        if (this.length !== undefined || this.codings.length > 0 || !LENGTH.test(value)) {
          this.fault = 'invalid';
        }
        this.length = Number(value);
        break;
      case 'transfer-encoding':
        if (this.length !== undefined || this.expected === 'trailer') this.fault = 'invalid';
        this.codings.push(...tokens(value));
        if (!this.codings.every((coding) => CODING.test(coding))) this.fault = 'invalid';
        // With a tab behind it, llhttp does not know "chunked", and other parsers do.
        if (given.trimStart().includes('\t')) this.fault = 'invalid';
        break;
      case 'connection':
      case 'proxy-connection':
        if (tokens(value).includes('close')) this.persists = false;
    }
  }

  private endHead(): void {
    const { status, fields, length, codings } = this;
    const chunked = codings.indexOf('chunked');
    if (chunked !== -1 && chunked < codings.length - 1) this.fault = 'invalid';
    else if (status < 200) {
      if (!this.persists || ++this.interim > MOST_INTERIM) this.fault = 'invalid';
      this.expected = 'status line';
    } else {
      this.head = { status, fields };
      this.fields = [];
      this.room = LINES_LIMIT;
      if (status === NO_CONTENT || status === NOT_MODIFIED || length === 0) this.finish();
      else if (chunked !== -1) this.expected = 'chunk size';
      else this.expectBody(length ?? Infinity);
    }
  }

  private expectBody(length: number): void {
    this.expected = 'body';
    this.left = length;
    if (length === Infinity) this.persists = false;
  }

  private takeChunkSize(line: string): void {
    const [, size, extensions = ''] = CHUNK.exec(line) ?? [];
    this.room -= extensions.length;
    if (size === undefined) this.fault = 'invalid';
    this.left = Number.parseInt(size ?? '', 16);
    this.expected = this.left === 0 ? 'trailer' : 'chunk';
  }

  private finish(): void {
    this.expected = 'nothing';
  }
}

function couldBegin(line: string): boolean {
  return line.startsWith(PROTOCOL) || PROTOCOL.startsWith(line);
}

function tokens(value: string): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((token) => trimmed(token));
}

/** Without the spaces and tabs around it, and only those. */
function trimmed(value: string): string {
  return withoutBlanksAtEnd(value.replace(BLANKS_AT_START, ''));
}

function withoutBlanksAtEnd(value: string): string {
  let to = value.length;
  while (to > 0 && isBlank(value.charCodeAt(to - 1))) to--;
  return value.slice(0, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
