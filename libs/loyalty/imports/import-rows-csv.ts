import { BYTE_ORDER_MARK, renderCsvLine } from '#platform/kernel/csv.js';
import { renderMessages, type FieldIssues } from '#platform/kernel/issues.js';
import type { CustomerImport, RowState } from './customer-import.js';

type ListedRow = {
  row: number;
  state: RowState;
  errors: FieldIssues | null;
  cells: string[] | null;
};

/**
 * Renders rows with their row number, state and errors after the columns of their own file, and with its separator. The
 * added columns are ignored when the file is imported again.
 * @param describe renders the errors of a row: in English, unless a page has them in its language
 */
export function renderRowsAsCsv(
  { columns, separator }: Pick<CustomerImport, 'columns' | 'separator'>,
  rows: readonly ListedRow[],
  describe: (issues: FieldIssues) => string = renderMessages,
): string {
  const lines = [
    [...columns.map(({ name }) => name), 'import_row', 'import_status', 'import_errors'],
    ...rows.map(({ row, state, errors, cells }) => [
      ...columns.map((_, i) => cells?.[i] ?? ''),
      row,
      state,
      describe(errors ?? {}),
    ]),
  ];
  return BYTE_ORDER_MARK + lines.map((cells) => renderCsvLine(cells, separator ?? ',')).join('');
}
