/** Parses the tag that a phone or a page sends. @returns null when it is missing or invalid */
export function parseTag(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
