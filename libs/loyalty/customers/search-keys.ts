import { findEmailKey, findReadableAddress } from '#platform/kernel/email-address.js';
import { removeInvisible } from '#platform/kernel/text.js';
import type { PersonalFields } from './customer.events.js';

/**
 * Returns what addresses are compared by: they are the same in any case, and in any spelling of the domain. This folds
 * less than `foldCase`: weiß@ and weiss@ may be two people. Every address that is accepted has a key. A Node.js with an
 * older Unicode may not know its domain, and still has to read the history.
 */
export function createEmailKey(email: string): string {
  return findEmailKey(email) ?? email.normalize('NFKC').toLowerCase();
}

/** Returns the address as search finds it: as it was given, as people read its domain, and last as it is compared. */
function listEmailForms(email: string): string[] {
  const key = foldCase(createEmailKey(email));
  const forms = [email, findReadableAddress(email) ?? email].map(foldCase);
  return [...new Set(forms)].filter((form) => form !== key).concat(key);
}

/**
 * Normalizes text, so that search finds it in any case or accent encoding. Upper-casing first unifies ß with ss, both
 * lower-case sigmas, and i with and without a dot. What cannot be seen is left out, since nobody types it.
 */
export function foldCase(text: string): string {
  return removeInvisible(text)
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll('ς', 'σ')
    .replaceAll('i\u0307', 'i');
}

/** @param phone in ASCII digits */
export function extractDigits(phone: string): string {
  return phone.replaceAll(/\D/g, '');
}

/** @property searchText names and e-mail with case folded, for search: the database folds only ASCII */
export type SearchKeys = { searchText: string; phoneDigits: string | null };

/** The search keys of merged and erased customers, whom no search finds. */
export const NO_SEARCH_KEYS: SearchKeys = { searchText: '', phoneDigits: null };

export function createSearchKeys(personal: PersonalFields): SearchKeys {
  const { firstName, lastName, email, phone } = personal;
  const names = [firstName, lastName].filter((name) => name !== null).join(' ');
  return {
    searchText: [foldCase(names), ...(email === null ? [''] : listEmailForms(email))].join('\n'),
    phoneDigits: phone === null ? null : extractDigits(phone),
  };
}
