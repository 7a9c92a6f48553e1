/** Marks the text as UTF-8 for spreadsheets, which otherwise guess. */
export const BYTE_ORDER_MARK = '\uFEFF';

/** Matches what a spreadsheet would run, with the blanks that it skips before it. */
const FORMULA = String.raw`[^\S\t\r\n]*[=+\-@＝＋－＠]`;
/** Matches positions before a formula: the beginning, and after what separates cells in other notations. */
const createFormulaPattern = (apostrophe: string) =>
  new RegExp(
    String.raw`^${apostrophe}(?='*(?:[\t\r\n]|${FORMULA}))|(?<=[;\t\r\n])${apostrophe}(?='*${FORMULA})`,
    'gu',
  );
const UNGUARDED = createFormulaPattern('');
const GUARDED = createFormulaPattern("'");

/** Renders a line of CSV (RFC 4180). Null is an empty cell; lists and objects are JSON. */
export function renderCsvLine(values: readonly unknown[], separator = ','): string {
  return `${values.map(renderCell).join(separator)}\r\n`;
}

/**
 * Puts an apostrophe before what a spreadsheet would take for a formula, so that it shows the text instead. A text that
 * has one there gets another, so that taking one off restores every text.
 */
export function guardFormulas(text: string): string {
  return text.replaceAll(UNGUARDED, "'");
}

/** Takes off the apostrophes that `guardFormulas` has put before formulas. */
export function unguardFormulas(text: string): string {
  return text.replaceAll(GUARDED, '');
}

function renderCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return quote(guardFormulas(typeof value === 'string' ? value : JSON.stringify(value)));
}

function quote(text: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
