import type { Customer, CustomerChanges } from '#loyalty/customers/customer.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** The fields that a row can change, by their names in the API. References stay: they are never removed. */
const FIELDS = {
  first_name: 'firstName',
  last_name: 'lastName',
  email: 'email',
  phone: 'phone',
  birthday: 'birthday',
  marketing_consent: 'marketingConsent',
  sms_consent: 'smsConsent',
} as const;

export type FormerValues =
  | { changes: CustomerChanges; errors?: never }
  | { changes?: never; errors: FieldIssues };

/**
 * Finds the changes that give a customer the values from before an import.
 * @returns errors for values that somebody has changed since
 */
export function findFormerValues(
  before: Customer,
  after: Customer,
  current: Customer,
): FormerValues {
  const changed = Object.entries(FIELDS).filter(([, name]) => before[name] !== after[name]);
  const isRestored = changed.every(([, name]) => current[name] === before[name]);
  if (isRestored) return { changes: {} };
  const later = changed.filter(([, name]) => current[name] !== after[name]);
  if (later.length > 0) {
    const issue = ISSUES.changed_since_import;
    return { errors: Object.fromEntries(later.map(([field]) => [field, [issue]])) };
  }
  return { changes: Object.fromEntries(changed.map(([, name]) => [name, before[name]])) };
}
