/** A rough check: only a mail that arrives shows that an address is right. RFC 5321 allows 254 characters. */
export function isEmailAddress(text: string): boolean {
  return text.length <= 254 && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text);
}
