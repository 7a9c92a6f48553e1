/** Parses a tag that a phone or a page was given. @returns null for none, and for what no tag looks like */
export function parseTag(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
