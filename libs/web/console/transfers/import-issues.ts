import type { FieldIssues } from '#platform/kernel/issues.js';
import type { ImportColumn, ImportField } from '#loyalty/imports/import-columns.js';
import type { Translations } from '#translations/translations.js';
import { toFieldSentences } from '#web/pages/error-sentences.js';

const MAX_VALUE_LENGTH = 60;
/** No number of stamps, or none that a card can have. */
const WRONG_NUMBER = new Set(['not_integer', 'too_small', 'too_large', 'out_of_range']);

/** Describes why a row or a whole import failed: each field with its sentences. */
export function describeIssues(issues: FieldIssues, t: Translations): string {
  const { fields } = t.transfers;
  const ofFile = { ...t, issues: { ...t.issues, contact_missing: t.transfers.contactMissing } };
  return Object.entries(toFieldSentences(issues, ofFile))
    .map(([field, sentences]) => {
      const label = Object.hasOwn(fields, field) ? fields[field as keyof typeof fields] : '';
      return (label === '' ? '' : `${label}: `) + sentences.join(' ');
    })
    .join(' ');
}

/** Describes why a row failed, with the value that each field has in the file. */
export function describeRowIssues(
  issues: FieldIssues,
  cells: readonly string[],
  columns: readonly ImportColumn[],
  t: Translations,
): string {
  const { fields, issueOfValue, wrongStamps, wrongBirthday } = t.transfers;
  return Object.entries(issues)
    .map(([field, list]) => {
      const value = findValue(field, cells, columns);
      const one = { [field]: list };
      if (value === '' || !Object.hasOwn(fields, field)) return describeIssues(one, t);
      const label = fields[field as ImportField];
      const codes = list.map(({ code }) => code);
      if (field === 'stamps' && codes.every((code) => WRONG_NUMBER.has(code)))
        return wrongStamps({ field: label, value });
      if (field === 'birthday' && codes.includes('not_date'))
        return wrongBirthday({ field: label, value });
      const problem = toFieldSentences(one, t)[field]?.join(' ') ?? '';
      return issueOfValue({ field: label, value, problem });
    })
    .join(' ');
}

/** Finds by what people know the customer of a row. */
export function findRowName(cells: readonly string[], columns: readonly ImportColumn[]): string {
  const find = (field: ImportField) => findValue(field, cells, columns);
  const name = [find('first_name'), find('last_name')].filter(Boolean).join(' ');
  return name || find('email') || find('phone');
}

function findValue(
  field: string,
  cells: readonly string[],
  columns: readonly ImportColumn[],
): string {
  const text = cells[columns.findIndex((column) => column.field === field)]?.trim() ?? '';
  // A minus as it is set, not the hyphen of a keyboard.
  const value = field === 'stamps' ? text.replace(/^-(?=\d)/, '\u2212') : text;
  return value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value;
}
