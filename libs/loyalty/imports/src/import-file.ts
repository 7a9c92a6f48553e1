import type { InvalidFieldsError } from '#kernel/errors.js';
import { normalizeText } from '#kernel/text.js';
import { DelimitedText, MAX_ROW_LENGTH, readCellText } from './delimited-text.js';
import { createFileError } from './file-error.js';
import {
  FILE_PROBLEMS,
  findBinaryProblem,
  findTextProblem,
  type FileProblem,
} from './file-formats.js';
import { Pace } from './pace.js';
import { decodeText, findSeparator, type DecodedText, type Separator } from './text-encoding.js';

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
  rows: FileRow[];
  encoding: string;
  separator: Separator | null;
};

/**
 * Reads a file, and lets other work of the process come between its rows.
 * @param declared its encoding; null: nobody has said it
 * @throws InvalidFieldsError for what cannot be read; it names the row
 */
export async function readFile(
  bytes: Uint8Array,
  format: ImportFormat,
  declared: string | null,
): Promise<ImportFile> {
  assertNoProblem(findBinaryProblem(bytes));
  const decoded = await decodeText(bytes, declared);
  if (!decoded) {
    throw createFileError(
      `The file begins with the mark of another encoding than ${declared}, which it was sent as`,
    );
  }
  const { text, encoding } = decoded;
  assertNoProblem(findTextProblem(text));
  if (format === 'ndjson') {
    assertUndamaged(decoded, countLines);
    return { ...(await readNdjson(text)), encoding, separator: null };
  }
  const { separator, rest } = findSeparator(text);
  assertUndamaged(decoded, (before) => countRows(findSeparator(before).rest, separator));
  return { ...(await readCsv(rest, separator)), encoding, separator };
}

function assertNoProblem(problem: FileProblem | undefined): void {
  if (problem !== undefined) throw createFileError(FILE_PROBLEMS[problem]);
}

/** @param countRowsOf counts the rows of the text before the damage, the damaged one included */
function assertUndamaged(
  { text, encoding, damagedAt }: DecodedText,
  countRowsOf: (before: string) => number,
): void {
  if (damagedAt === null) return;
  const row = countRowsOf(text.slice(0, damagedAt));
  throw createFileError(
    `Row ${row} has a character that is not in the encoding ${encoding}, unlike the others: save the file as UTF-8, or send it with the charset that it has`,
  );
}

function countLines(before: string): number {
  return before.split('\n').length;
}

function countRows(before: string, separator: Separator): number {
  const table = new DelimitedText(`${before}-`, separator);
  try {
    while (table.next(0));
  } catch {
    // The damage is in a quoted cell.
  }
  return table.row;
}

async function readCsv(
  text: string,
  separator: Separator,
): Promise<Pick<ImportFile, 'headers' | 'rows'>> {
  const table = new DelimitedText(text, separator);
  const { cells: names, hasMore } = table.next(MAX_COLUMNS) ?? { cells: [], hasMore: false };
  if (hasMore) throw createTooManyColumnsError();
  const headers = names.map((name) => toHeader(readCellText(name)));
  while (headers.at(-1) === '') headers.pop();
  if (headers.length === 0 && text.trim() !== '') assertNoProblem('blankStart');
  assertHeaders(headers);
  const pace = new Pace();
  const rows: FileRow[] = [];
  for (let next; (next = table.next(headers.length)) !== undefined;) {
    const { row } = next;
    if (row > MAX_FILE_ROWS) throw createTooManyRowsError();
    if (next.hasMore) throw createFileError(`Row ${row} has more cells than the header`);
    if (pace.isDue()) await pace.giveWay();
    const cells = next.cells.map((cell) => normalizeText(readCellText(cell)));
    if (cells.every((cell) => cell === '')) continue;
    while (cells.length < headers.length) cells.push('');
    rows.push({ row, cells });
    assertRowCount(rows.length);
  }
  return { headers, rows };
}

async function readNdjson(text: string): Promise<Pick<ImportFile, 'headers' | 'rows'>> {
  const indexes = new Map<string, number>();
  const rows: FileRow[] = [];
  const pace = new Pace();
  for (let at = 0, row = 1; at < text.length; row++) {
    const lineEnd = text.indexOf('\n', at);
    const end = lineEnd < 0 ? text.length : lineEnd;
    if (row > MAX_FILE_ROWS) throw createTooManyRowsError();
    if (end - at > MAX_ROW_LENGTH) {
      throw createFileError(
        `Row ${row} cannot be read: it has more than ${MAX_ROW_LENGTH} characters`,
      );
    }
    if (pace.isDue()) await pace.giveWay();
    const line = text.slice(at, end);
    at = end + 1;
    if (line.trim() === '') continue;
    const cells: string[] = [];
    for (const [name, value] of Object.entries(parseLine(line, row))) {
      const header = toHeader(name);
      if (!indexes.has(header)) indexes.set(header, indexes.size);
      if (indexes.size > MAX_COLUMNS) throw createTooManyColumnsError();
      cells[indexes.get(header) ?? 0] = normalizeText(renderValue(value, name, row));
    }
    rows.push({ row, cells });
    assertRowCount(rows.length);
  }
  const headers = [...indexes.keys()];
  assertHeaders(headers);
  for (const { cells } of rows) {
    if (pace.isDue()) await pace.giveWay();
    for (const i of headers.keys()) cells[i] ??= '';
  }
  return { headers, rows };
}

function parseLine(line: string, row: number): object {
  if (isTooDeep(line)) throw createFileError(`Row ${row} has more than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw createFileError(`Row ${row} is not valid JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw createFileError(`Row ${row} is not a JSON object`);
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
  // A larger one has lost its last digits by now.
  if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return String(value);
  throw createFileError(
    `Row ${row}: ${name} must be a string, a boolean, null or a number of at most 15 digits`,
  );
}

/** Returns a header as JSON columns can hold it. */
function toHeader(text: string): string {
  return normalizeText(text.replaceAll('\0', '').toWellFormed());
}

function assertHeaders(headers: string[]): void {
  if (headers.length === 0) throw createFileError('The file is empty');
  if (headers.length > MAX_COLUMNS) throw createTooManyColumnsError();
  if (headers.some((header) => header.length > MAX_HEADER_LENGTH)) {
    throw createFileError(`A header has more than ${MAX_HEADER_LENGTH} characters`);
  }
}

function createTooManyColumnsError(): InvalidFieldsError {
  return createFileError(`The file has more than ${MAX_COLUMNS} columns`);
}

function assertRowCount(count: number): void {
  if (count > MAX_IMPORT_ROWS) throw createTooManyRowsError();
}

function createTooManyRowsError(): InvalidFieldsError {
  return createFileError(`The file has more than ${MAX_IMPORT_ROWS} rows: divide it`);
}
