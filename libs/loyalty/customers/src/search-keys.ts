import { removeInvisible } from '#kernel/text.js';
import type { PersonalFields } from './customer.events.js';

/**
 * Addresses that differ only in case are the same. This folds less than `foldCase`: weiß@ and weiss@ may be
 * two people.
 */
export function emailKey(email: string): string {
  return email.normalize('NFKC').toLowerCase();
}

/**
 * One normal form for text that search finds in any case or accent encoding. Upper-casing first unifies ß
 * with ss, both lower-case sigmas, and i with and without a dot. What cannot be seen is left out, since nobody types it.
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
export function digitsOf(phone: string): string {
  return phone.replaceAll(/\D/g, '');
}

/** @property searchText names and e-mail with case folded, for search: the database folds only ASCII */
export type SearchKeys = { searchText: string; phoneDigits: string | null };

/** Of somebody who is found by no search: merged, or erased. */
export const NOT_FOUND: SearchKeys = { searchText: '', phoneDigits: null };

export function searchKeys(personal: PersonalFields): SearchKeys {
  const { firstName, lastName, email, phone } = personal;
  const names = [firstName, lastName].filter((name) => name !== null).join(' ');
  return {
    searchText: foldCase([names, email ?? ''].join('\n')),
    phoneDigits: phone === null ? null : digitsOf(phone),
  };
}
