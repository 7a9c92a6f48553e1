import { unguardFormulas } from '#platform/kernel/csv.js';
import { createFileError } from './file-error.js';
import type { Separator } from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';

/** Of one row in characters. Parsing one holds the event loop for some milliseconds. */
export const MAX_ROW_LENGTH = 1024 * 1024;
/** Of text that shows whether the next row is too long, with the line end after it. */
const MIN_AHEAD = MAX_ROW_LENGTH + 16;

const QUOTE = '"';
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * A row of a file.
 * @property row as spreadsheets count: a quoted line end begins no row
 * @property hasMore whether cells after those that were asked for have text
 */
export type DelimitedRow = { row: number; cells: string[]; hasMore: boolean };

/**
 * Reads rows of text with separators as RFC 4180 defines them, one at a time. Every line end may be another one. Quotes
 * in the middle of a cell are text: inches, or a nickname. Blanks around a quoted cell are not.
 */
export class DelimitedText {
  /** The number of the latest row. */
  row = 0;
  private text = '';
  private isComplete = false;
  private at = 0;
  private rowStart = 0;
  private readonly parts: Iterator<string>;
  private readonly separatorCode: number;

  /** @param parts the text, of which no more than a few rows of the maximum length are held */
  constructor(parts: Iterable<string>, separator: Separator) {
    this.parts = parts[Symbol.iterator]();
    this.separatorCode = separator.charCodeAt(0);
  }

  /**
   * Reads the next row, and leaves out the cells after some number of them.
   * @returns undefined after the last one
   * @throws InvalidFieldsError for a row that is too long, or has a quotation mark that is not closed
   */
  next(maxCells: number): DelimitedRow | undefined {
    this.readAhead();
    if (this.at >= this.text.length) return undefined;
    this.row++;
    this.rowStart = this.at;
    const cells: string[] = [];
    let hasMore = false;
    for (;;) {
      const cell = this.readCell();
      if (cells.length < maxCells) cells.push(cell);
      else hasMore ||= cell.trim() !== '';
      if (this.text.charCodeAt(this.at) !== this.separatorCode) break;
      this.at++;
    }
    if (this.text.charCodeAt(this.at) === CARRIAGE_RETURN) this.at++;
    // The line feed of CRLF, or one alone.
    if (this.text.charCodeAt(this.at) === LINE_FEED) this.at++;
    return { row: this.row, cells, hasMore };
  }

  /** Reads so much text that it has the next row, or shows that the row is too long. */
  private readAhead(): void {
    if (this.isComplete || this.text.length - this.at >= MIN_AHEAD) return;
    const parts = [this.text.slice(this.at)];
    // As much again, so that what is left is not copied for each part.
    for (let length = 0; length < MIN_AHEAD;) {
      const { value, done } = this.parts.next();
      if (done) {
        this.isComplete = true;
        break;
      }
      parts.push(value);
      length += value.length;
    }
    this.text = parts.join('');
    this.at = 0;
  }

  private readCell(): string {
    const start = this.at;
    const opening = this.skipBlanks(start);
    if (this.text[opening] === QUOTE) {
      const quoted = this.readQuoted(opening);
      if (quoted !== undefined) return quoted;
    }
    while (!this.isCellEnd(this.at)) this.at++;
    if (this.at - this.rowStart > MAX_ROW_LENGTH) throw this.createTooLongError();
    return this.text.slice(start, this.at);
  }

  /** @returns undefined when the quotation marks are a part of the text, with the position after them */
  private readQuoted(opening: number): string | undefined {
    let closing = this.findQuote(opening + 1);
    while (this.text[closing + 1] === QUOTE) closing = this.findQuote(closing + 2);
    const end = this.skipBlanks(closing + 1);
    const isWhole = this.isCellEnd(end);
    this.at = isWhole ? end : closing + 1;
    return isWhole ? this.text.slice(opening + 1, closing).replaceAll('""', QUOTE) : undefined;
  }

  private findQuote(from: number): number {
    const at = this.text.indexOf(QUOTE, from);
    const length = (at < 0 ? this.text.length : at) - this.rowStart;
    if (length > MAX_ROW_LENGTH) throw this.createTooLongError();
    if (at < 0) {
      throw createFileError(ISSUES.file_row_unclosed({ row: this.row }));
    }
    return at;
  }

  private skipBlanks(from: number): number {
    let at = from;
    while (this.isBlank(this.text.charCodeAt(at)) && at - this.rowStart <= MAX_ROW_LENGTH) at++;
    return at;
  }

  /** Tells whether it is a space, a tab that separates nothing, or a hard space. */
  private isBlank(code: number): boolean {
    return code === 0x20 || code === 0xa0 || (code === 0x09 && code !== this.separatorCode);
  }

  private isCellEnd(at: number): boolean {
    if (at >= this.text.length || at - this.rowStart > MAX_ROW_LENGTH) return true;
    const code = this.text.charCodeAt(at);
    return code === this.separatorCode || code === LINE_FEED || code === CARRIAGE_RETURN;
  }

  private createTooLongError(): Error {
    return createFileError(
      ISSUES.file_row_too_long_or_unclosed({ row: this.row, max: MAX_ROW_LENGTH }),
    );
  }
}

/** Returns the text of a cell: without the apostrophes of exports, or what is in `="…"`, by which programs keep zeros. */
export function readCellText(cell: string): string {
  const unguarded = unguardFormulas(cell);
  if (unguarded !== cell) return unguarded;
  const trimmed = cell.trim();
  if (!trimmed.startsWith('="') || !trimmed.endsWith(QUOTE) || trimmed.length < 3) return cell;
  const text = trimmed.slice(2, -1);
  const isWhole = !text.replaceAll('""', '').includes(QUOTE);
  return isWhole ? text.replaceAll('""', QUOTE) : cell;
}
