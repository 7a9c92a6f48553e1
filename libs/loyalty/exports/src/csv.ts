/** Marks the text as UTF-8 for spreadsheets, which otherwise guess. */
export const BYTE_ORDER_MARK = '\uFEFF';

/** The beginning of a text that a spreadsheet would run, with what it skips before it. */
const FORMULA = /^[\t\r\n]|^\s*[=+\-@＝＋－＠]/u;
/** The same after what separates cells in other notations: spreadsheets of many countries split at semicolons. */
const LATER_FORMULA = /(?<=[;\t\r\n])(?=\s*[=+\-@＝＋－＠])/gu;

/** Renders a line of CSV (RFC 4180). Null is an empty cell; lists and objects are JSON. */
export function renderCsvLine(values: unknown[]): string {
  return `${values.map(renderCell).join(',')}\r\n`;
}

function renderCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return quote(defuse(typeof value === 'string' ? value : JSON.stringify(value)));
}

/** Puts an apostrophe before what a spreadsheet would take for a formula, so that it shows the text instead. */
export function defuse(text: string): string {
  const later = text.replaceAll(LATER_FORMULA, "'");
  return FORMULA.test(text) ? `'${later}` : later;
}

function quote(text: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
