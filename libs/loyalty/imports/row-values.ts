import { findEmailKey } from '#platform/kernel/email-address.js';
import { normalizePhone } from '#loyalty/customers/contact.js';
import type { UniqueCustomerValue } from '#loyalty/customers/customer.js';
import { getPhoneKey } from '#loyalty/customers/phone-plans.js';
import { normalizeCardCode } from '#loyalty/stamping/card-code.js';
import type { ImportColumn, ImportField } from './import-columns.js';

/** The system that external ids are of, if no column names it. */
export const DEFAULT_SOURCE = 'import';

/** Shorter numbers are found in too many cells that hold something else. */
const MIN_PHONE_DIGITS = 7;
/** Longer texts are no list of addresses. */
const MAX_CELL_LENGTH = 1_000;

const ADDRESS = /[^\s<>()[\]"',;]+@[^\s<>()[\]"',;]+/g;
/** What spreadsheets add to numbers. */
const FRACTION_OF_ZEROS = /[.,]0+$/;

/** What a row says that leads to people. @property code of a card; null: there is none */
export type RowValues = { values: UniqueCustomerValue[]; code: string | null };

/**
 * Lists the e-mail addresses and phone numbers of all cells of a row, and its external id, so that an erasure finds the row
 * whatever became of it: with errors, about nobody or several people, or in a column that nobody has chosen.
 * @param country of the store
 */
export function listRowValues(
  cells: readonly string[],
  columns: readonly ImportColumn[],
  country: string | null,
): RowValues {
  const values = cells.flatMap((cell): UniqueCustomerValue[] => {
    if (cell === '' || cell.length > MAX_CELL_LENGTH) return [];
    return cell.includes('@') ? listEmails(cell) : listPhones(cell, country);
  });
  const get = (field: ImportField) => cells[columns.findIndex((column) => column.field === field)];
  const externalId = get('external_id')?.trim();
  if (externalId) {
    const source = (get('external_source')?.trim() || DEFAULT_SOURCE).toLowerCase();
    for (const id of new Set([externalId, externalId.replace(FRACTION_OF_ZEROS, '')])) {
      values.push({ kind: 'external_references', value: JSON.stringify([source, id]) });
    }
  }
  const code = get('code');
  return { values, code: code ? normalizeCardCode(code) : null };
}

function listEmails(cell: string): UniqueCustomerValue[] {
  return [...cell.matchAll(ADDRESS)].flatMap(([address]) => {
    const value = findEmailKey(address);
    return value === undefined ? [] : [{ kind: 'email', value }];
  });
}

function listPhones(cell: string, country: string | null): UniqueCustomerValue[] {
  if (cell.replaceAll(/\P{Nd}/gu, '').length < MIN_PHONE_DIGITS) return [];
  return cell.split(/[;,]/).flatMap((part) => {
    const phone = normalizePhone(part.replace(FRACTION_OF_ZEROS, ''), country);
    return phone === undefined ? [] : [{ kind: 'phone', value: getPhoneKey(phone) }];
  });
}
