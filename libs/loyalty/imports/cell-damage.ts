import { normalizeNumber } from '#platform/kernel/text.js';
import type { ImportField } from './import-columns.js';
import { REPLACEMENT } from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** Matches the errors that spreadsheets show in a cell, in their languages, and numbers that are wider than their column. */
const SPREADSHEET_ERROR =
  /^#[¡¿]?[\p{Lu}\d/_ ]+[!?]$|^#(?:N\/A|NA|N\/D|NV|GETTING_DATA)$|^#{2,}$|^Err:\d{3}$/u;
/** Names that programs write for a value that is missing. Nobody is called so in this spelling. */
const MISSING = new Set(
  String.raw`nan NaN NaT None NULL null <NA> N/A n/a (null) undefined \N`.split(' '),
);
/** Matches a number with an exponent as programs write it, unlike the 12E5 that somebody may use as an id. */
const EXPONENT = /^[+-]?\d+(?:[.,٫]\d*[eE]\+?|[eE]\+)\d+$/;
const FRACTION_OF_ZEROS = /^[+-]?\d+[.,٫]0+$/;

/** Finds why a cell does not have what somebody wrote, but what a program has made of it. */
export function findDamage(field: ImportField, text: string): Issue | undefined {
  if (text.length > 1 && text.startsWith('"') && text.endsWith('"')) {
    return ISSUES.still_quoted;
  }
  if (text.includes(REPLACEMENT)) {
    return ISSUES.lost_character;
  }
  if (SPREADSHEET_ERROR.test(text) || MISSING.has(text)) return ISSUES.changed_by_spreadsheet;
  if (field !== 'external_id') return undefined;
  const number = normalizeNumber(text).normalize('NFKC');
  return EXPONENT.test(number) || FRACTION_OF_ZEROS.test(number)
    ? ISSUES.changed_by_spreadsheet
    : undefined;
}
