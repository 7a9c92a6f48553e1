import type { FieldErrors } from '#kernel/errors.js';
import type { CustomerImport, RowState } from './customer-import.js';

/** What a spreadsheet would run as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
/** A phone number, which is none. */
const PHONE = /^\+?\d[\d ()/.-]*$/;

type ListedRow = {
  row: number;
  status: RowState;
  errors: FieldErrors | null;
  data: Record<string, string> | null;
};

/**
 * Renders rows with their row number, state and errors after the columns of their own file, and with its separator. The
 * added columns are ignored when the file is imported again.
 */
export function renderRowsAsCsv(
  { columns, separator }: Pick<CustomerImport, 'columns' | 'separator'>,
  rows: readonly ListedRow[],
): string {
  const names = columns.map(({ name }) => name);
  const lines = [
    [...names, 'import_row', 'import_status', 'import_errors'],
    ...rows.map(({ row, status, errors, data }) => [
      ...names.map((name) => data?.[name] ?? ''),
      String(row),
      status,
      Object.entries(errors ?? {})
        .map(([field, messages]) =>
          field === 'base' ? messages.join(', ') : `${field} ${messages.join(', ')}`,
        )
        .join('; '),
    ]),
  ];
  const separatedBy = separator ?? ',';
  // Excel reads UTF-8 only with its mark.
  return `\uFEFF${lines.map((cells) => cells.map(renderCell).join(separatedBy)).join('\r\n')}\r\n`;
}

/** Quotes a cell, and puts an apostrophe before what a spreadsheet would run. */
function renderCell(text: string): string {
  const harmless = FORMULA.test(text) && !PHONE.test(text) ? `'${text}` : text;
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
