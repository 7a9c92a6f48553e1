/** Marks the text as UTF-8 for spreadsheets, which otherwise guess. */
export const BYTE_ORDER_MARK = '\uFEFF';

/** Matches what a spreadsheet would run, with the blanks that it skips before it. */
const FORMULA = String.raw`[^\S\t\r\n]*[=+\-@＝＋－＠]`;
/** Matches what a spreadsheet would take for a number or a date, which begins with a digit and has no letter. */
const NUMBER = String.raw`\p{Nd}[^\p{L}]*$`;
/** Matches positions before a formula: the beginning, and after what separates cells in other notations. */
const createFormulaPattern = (apostrophe: string) =>
  new RegExp(
    String.raw`^${apostrophe}(?='*(?:[\t\r\n]|${FORMULA}))|(?<=[;\t\r\n])${apostrophe}(?='*${FORMULA})`,
    'gu',
  );
const UNGUARDED = createFormulaPattern('');
const GUARDED = createFormulaPattern("'");
/** Matches the mark of a text before a number, as spreadsheets write it, or correct it while somebody types. */
const TEXT_MARK = new RegExp(`^['‘’](?=['‘’]*${NUMBER})`, 'u');
/** Matches the apostrophe of a text that is an apostrophe and a number: the mark of a text in spreadsheets would be alike. */
const MARKED_NUMBER = new RegExp(`^(?=['‘’]+${NUMBER})`, 'u');

/** Renders a line of CSV (RFC 4180). Null is an empty cell; lists and objects are JSON. */
export function renderCsvLine(values: readonly unknown[], separator = ','): string {
  return `${values.map(renderCell).join(separator)}\r\n`;
}

/**
 * Puts an apostrophe before what a spreadsheet would take for a formula, so that it shows the text instead. A text that
 * has one there gets another, so that taking one off restores every text; so does one before a number.
 */
export function guardFormulas(text: string): string {
  return text.replaceAll(UNGUARDED, "'").replace(MARKED_NUMBER, "'");
}

/**
 * Takes off the apostrophes that `guardFormulas` has put before formulas, and the one by which spreadsheets and their
 * exports mark a number as text, so that it keeps its zeros and all of its digits. Shopify writes ids so.
 */
export function unguardFormulas(text: string): string {
  return text.replaceAll(GUARDED, '').replace(TEXT_MARK, '');
}

function renderCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return quote(guardFormulas(typeof value === 'string' ? value : JSON.stringify(value)));
}

function quote(text: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
