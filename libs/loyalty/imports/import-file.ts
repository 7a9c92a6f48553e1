import type { InvalidFieldsError } from '#platform/kernel/errors.js';
import { normalizeText } from '#platform/kernel/text.js';
import { Pace } from '#platform/kernel/pace.js';
import { DelimitedText, MAX_ROW_LENGTH, readCellText } from './delimited-text.js';
import { createFileError } from './file-error.js';
import { findBinaryProblem, findTextProblem } from './file-formats.js';
import {
  decodeText,
  findSeparator,
  MAX_COUNTED,
  type DecodedText,
  type Separator,
} from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

export const MAX_IMPORT_ROWS = 50_000;
/** Blank ones included. */
const MAX_FILE_ROWS = 2 * MAX_IMPORT_ROWS;
const MAX_COLUMNS = 200;
const MAX_HEADER_LENGTH = 255;
/** Of JSON. A row is an object without others in it, and parsing many levels takes long. */
const MAX_DEPTH = 16;

export const IMPORT_FORMATS = ['csv', 'ndjson'] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/**
 * A row of a file, its cells in the order of the columns.
 * @property row as spreadsheets count, the header being row 1; in NDJSON the line
 */
export type FileRow = { row: number; cells: string[] };

/** @property separator null: not CSV */
export type ImportFile = {
  headers: string[];
  rowsTotal: number;
  encoding: string;
  separator: Separator | null;
};

type TakeRow = (row: FileRow) => void;
type Table = Pick<ImportFile, 'headers' | 'rowsTotal'>;

/**
 * Reads a file with all of its rows.
 * @param declared its encoding; null: nobody has said it
 * @throws InvalidFieldsError for what cannot be read; it names the row
 */
export async function readFile(
  bytes: Uint8Array,
  format: ImportFormat,
  declared: string | null,
): Promise<ImportFile & { rows: FileRow[] }> {
  const rows: FileRow[] = [];
  const file = await scanFile(bytes, format, declared, (row) => rows.push(row));
  const pace = new Pace();
  for (const { cells } of rows) {
    if (pace.isDue()) await pace.giveWay();
    while (cells.length < file.headers.length) cells.push('');
  }
  return { ...file, rows };
}

/**
 * Reads a file without holding its rows or its text, and lets other work of the process come between its rows.
 * @param takeRow gets each row, whose last cells may be missing
 * @throws InvalidFieldsError as `readFile` does
 */
export async function scanFile(
  bytes: Uint8Array,
  format: ImportFormat,
  declared: string | null,
  takeRow: TakeRow,
): Promise<ImportFile> {
  assertNoProblem(findBinaryProblem(bytes));
  const decoded = await decodeText(bytes, declared);
  if (!decoded) {
    throw createFileError(ISSUES.file_encoding_mismatch({ encoding: String(declared) }));
  }
  const { encoding, readParts } = decoded;
  const beginning = [...sliceParts(readParts(), 0, MAX_COUNTED)].join('');
  assertNoProblem(findTextProblem(beginning));
  if (format === 'ndjson') {
    await assertUndamaged(decoded, (end) => countLines(sliceParts(readParts(), 0, end)));
    return { ...(await readNdjson(readParts(), takeRow)), encoding, separator: null };
  }
  const { separator, start } = findSeparator(beginning);
  const readTable = (end?: number) => sliceParts(readParts(), start, end);
  await assertUndamaged(decoded, (end) => countRows(readTable(end), separator));
  return { ...(await readCsv(readTable, separator, takeRow)), encoding, separator };
}

/** Reads the characters of a text between two places, as `slice` does. */
function* sliceParts(parts: Iterable<string>, start: number, end = Infinity): Generator<string> {
  let at = 0;
  for (const part of parts) {
    if (at >= end) return;
    yield part.slice(Math.max(0, start - at), end - at);
    at += part.length;
  }
}

function assertNoProblem(problem: Issue | undefined): void {
  if (problem !== undefined) throw createFileError(problem);
}

/** @param countRowsTo counts the rows of the text before the damage, the damaged one included */
async function assertUndamaged(
  { encoding, damagedAt }: DecodedText,
  countRowsTo: (end: number) => Promise<number>,
): Promise<void> {
  if (damagedAt === null) return;
  const row = await countRowsTo(damagedAt);
  throw createFileError(
    row > MAX_FILE_ROWS
      ? ISSUES.file_damaged_after({ row: MAX_FILE_ROWS, encoding })
      : ISSUES.file_damaged_row({ row, encoding }),
  );
}

async function countLines(parts: Iterable<string>): Promise<number> {
  const pace = new Pace();
  let count = 1;
  for (const part of parts) {
    if (pace.isDue()) await pace.giveWay();
    count += part.split('\n').length - 1;
    if (count > MAX_FILE_ROWS) break;
  }
  return count;
}

async function countRows(parts: Iterable<string>, separator: Separator): Promise<number> {
  const table = new DelimitedText(appendPart(parts, '-'), separator);
  const pace = new Pace();
  try {
    while (table.row <= MAX_FILE_ROWS && table.next(0)) {
      if (pace.isDue()) await pace.giveWay();
    }
  } catch {
    // The damage is in a quoted cell.
  }
  return table.row;
}

function* appendPart(parts: Iterable<string>, last: string): Generator<string> {
  yield* parts;
  yield last;
}

async function readCsv(
  readTable: () => Iterable<string>,
  separator: Separator,
  takeRow: TakeRow,
): Promise<Table> {
  const table = new DelimitedText(readTable(), separator);
  const { cells: names, hasMore } = table.next(MAX_COLUMNS) ?? { cells: [], hasMore: false };
  if (hasMore) throw createTooManyColumnsError();
  const headers = names.map((name) => toHeader(readCellText(name)));
  while (headers.at(-1) === '') headers.pop();
  if (headers.length === 0) {
    for (const part of readTable())
      if (part.trim() !== '') assertNoProblem(ISSUES.file_blank_start);
  }
  assertHeaders(headers);
  const pace = new Pace();
  let rowsTotal = 0;
  for (let next; (next = table.next(headers.length)) !== undefined;) {
    const { row } = next;
    if (row > MAX_FILE_ROWS) throw createTooManyRowsError();
    if (next.hasMore) throw createFileError(ISSUES.file_row_too_wide({ row }));
    if (pace.isDue()) await pace.giveWay();
    const cells = next.cells.map((cell) => normalizeText(readCellText(cell)));
    if (cells.every((cell) => cell === '')) continue;
    takeRow({ row, cells });
    assertRowCount(++rowsTotal);
  }
  return { headers, rowsTotal };
}

async function readNdjson(parts: Iterable<string>, takeRow: TakeRow): Promise<Table> {
  const indexes = new Map<string, number>();
  const pace = new Pace();
  let row = 0;
  let rowsTotal = 0;
  for (const line of splitLines(parts)) {
    row++;
    if (row > MAX_FILE_ROWS) throw createTooManyRowsError();
    if (line.length > MAX_ROW_LENGTH) {
      throw createFileError(ISSUES.file_row_too_long({ row, max: MAX_ROW_LENGTH }));
    }
    if (pace.isDue()) await pace.giveWay();
    if (line.trim() === '') continue;
    const values = new Map<number, string>();
    for (const [name, value] of Object.entries(parseLine(line, row))) {
      const header = toHeader(name);
      if (!indexes.has(header)) indexes.set(header, indexes.size);
      if (indexes.size > MAX_COLUMNS) throw createTooManyColumnsError();
      values.set(indexes.get(header) ?? 0, normalizeText(renderValue(value, name, row)));
    }
    takeRow({ row, cells: Array.from({ length: indexes.size }, (_, i) => values.get(i) ?? '') });
    assertRowCount(++rowsTotal);
  }
  const headers = [...indexes.keys()];
  assertHeaders(headers);
  return { headers, rowsTotal };
}

/** Splits text at line feeds. Of a line that is too long it returns only the beginning, and nothing after. */
function* splitLines(parts: Iterable<string>): Generator<string> {
  let rest = '';
  for (const part of parts) {
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_ROW_LENGTH) break;
  }
  if (rest !== '') yield rest;
}

function parseLine(line: string, row: number): object {
  if (isTooDeep(line)) throw createFileError(ISSUES.file_row_too_deep({ row, max: MAX_DEPTH }));
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw createFileError(ISSUES.file_row_not_json({ row }));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw createFileError(ISSUES.file_row_not_object({ row }));
  }
  return value;
}

/** Tells whether JSON has more levels than any row, without parsing it. */
function isTooDeep(json: string): boolean {
  let depth = 0;
  let isString = false;
  for (let i = 0; i < json.length; i++) {
    const character = json[i];
    if (isString && character === '\\') i++;
    else if (character === '"') isString = !isString;
    else if (isString) continue;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

function renderValue(value: unknown, name: string, row: number): string {
  if (value === null) return '';
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  // JSON rounds off the last digits of a larger number.
  if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return String(value);
  throw createFileError(ISSUES.file_cell_type({ row, name }));
}

/** Returns a header as JSON columns can hold it. */
function toHeader(text: string): string {
  return normalizeText(text.replaceAll('\0', '').toWellFormed());
}

function assertHeaders(headers: string[]): void {
  if (headers.length === 0) throw createFileError(ISSUES.file_empty);
  if (headers.length > MAX_COLUMNS) throw createTooManyColumnsError();
  if (headers.some((header) => header.length > MAX_HEADER_LENGTH)) {
    throw createFileError(ISSUES.file_header_too_long({ max: MAX_HEADER_LENGTH }));
  }
}

function createTooManyColumnsError(): InvalidFieldsError {
  return createFileError(ISSUES.file_too_many_columns({ max: MAX_COLUMNS }));
}

function assertRowCount(count: number): void {
  if (count > MAX_IMPORT_ROWS) throw createTooManyRowsError();
}

function createTooManyRowsError(): InvalidFieldsError {
  return createFileError(ISSUES.file_too_many_rows({ max: MAX_IMPORT_ROWS }));
}
