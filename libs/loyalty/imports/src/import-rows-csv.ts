import { BYTE_ORDER_MARK, renderCsvLine } from '#kernel/csv.js';
import type { FieldErrors } from '#kernel/errors.js';
import type { CustomerImport, RowState } from './customer-import.js';

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
      row,
      status,
      Object.entries(errors ?? {})
        .map(([field, messages]) =>
          field === 'base' ? messages.join(', ') : `${field} ${messages.join(', ')}`,
        )
        .join('; '),
    ]),
  ];
  return BYTE_ORDER_MARK + lines.map((cells) => renderCsvLine(cells, separator ?? ',')).join('');
}
