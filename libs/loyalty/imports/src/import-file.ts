import { parse } from 'csv-parse';
import { InvalidFieldsError } from '#kernel/errors.js';
import { normalizeText } from '#kernel/text.js';
import { decodeText, findSeparator, type Encoding, type Separator } from './text-encoding.js';

export const MAX_IMPORT_ROWS = 50_000;
const MAX_COLUMNS = 200;
const MAX_HEADER_LENGTH = 255;
/** Parsed at once, so that other work of the process comes between. */
const CHUNK_LENGTH = 64 * 1024;
/** The row of a spreadsheet after its header. */
const FIRST_ROW = 2;

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
  encoding: Encoding;
  separator: Separator | null;
};

/** @throws InvalidFieldsError for what cannot be read; it names the row */
export async function readFile(bytes: Uint8Array, format: ImportFormat): Promise<ImportFile> {
  const decoded = decodeText(bytes);
  if (!decoded) throw createFileError('The file is not in the encoding that its first bytes name');
  const { text, encoding } = decoded;
  if (format === 'ndjson') {
    return { ...(await readNdjson(text)), encoding, separator: null };
  }
  return { ...(await readCsv(text)), encoding };
}

export function createFileError(message: string): InvalidFieldsError {
  return new InvalidFieldsError({ base: [message] });
}

async function readCsv(text: string): Promise<Omit<ImportFile, 'encoding'>> {
  const { separator, rest } = findSeparator(text);
  const records: string[][] = [];
  const parser = parse({
    delimiter: separator,
    // Inches, or a nickname in the middle of a name.
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: false,
    max_record_size: 1024 * 1024,
  });
  const parsed = new Promise<void>((resolve, reject) => {
    parser.on('readable', () => {
      for (let record: unknown; (record = parser.read()) !== null;) {
        records.push(record as string[]);
        if (records.length > 2 * MAX_IMPORT_ROWS) parser.destroy(createTooManyRowsError());
      }
    });
    parser.on('end', resolve);
    parser.on('error', reject);
  });
  parsed.catch(() => undefined);
  for (let at = 0; at < rest.length && !parser.destroyed; at += CHUNK_LENGTH) {
    parser.write(rest.slice(at, at + CHUNK_LENGTH));
    await giveWay();
  }
  if (!parser.destroyed) parser.end();
  try {
    await parsed;
  } catch (error) {
    if (error instanceof InvalidFieldsError) throw error;
    throw createFileError(
      `Row ${records.length + 1} cannot be read: a quotation mark is not closed, or the row is too long`,
    );
  }
  const [header = [], ...others] = records;
  const headers = header.map(toHeader);
  while (headers.at(-1) === '') headers.pop();
  assertHeaders(headers);
  const rows = others.flatMap((record, i): FileRow[] => {
    const cells = record.map(normalizeText);
    if (cells.every((cell) => cell === '')) return [];
    const row = i + FIRST_ROW;
    if (cells.slice(headers.length).some((cell) => cell !== '')) {
      throw createFileError(`Row ${row} has more cells than the header`);
    }
    return [{ row, cells: headers.map((_, at) => cells[at] ?? '') }];
  });
  assertRowCount(rows.length);
  return { headers, rows, separator };
}

async function readNdjson(text: string): Promise<Pick<ImportFile, 'headers' | 'rows'>> {
  const indexes = new Map<string, number>();
  const rows: FileRow[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (i % 1_000 === 0) await giveWay();
    if (line.trim() === '') continue;
    const row = i + 1;
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
  return {
    headers,
    rows: rows.map(({ row, cells }) => ({ row, cells: headers.map((_, at) => cells[at] ?? '') })),
  };
}

function parseLine(line: string, row: number): object {
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

function giveWay(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
