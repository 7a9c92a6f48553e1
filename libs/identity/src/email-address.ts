import { normalizeIdentifier } from '#kernel/text.js';

/** Returns the address as it is stored and looked up: what cannot be seen is no part of it. */
export function normalizeEmailAddress(text: string): string {
  return normalizeIdentifier(text);
}

/** A rough check: only a mail that arrives shows that an address is right. RFC 5321 allows 254 characters. */
export function isEmailAddress(text: string): boolean {
  return text.length <= 254 && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text);
}
