/** Parses an id of a query or form. @returns null for everything else */
export function parseId(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Finds the sentence about what a form has done, which the page after it names. @returns empty without one */
export function findNotice(name: unknown, notices: Readonly<Record<string, unknown>>): string {
  const notice =
    typeof name === 'string' && Object.hasOwn(notices, name) ? notices[name] : undefined;
  return typeof notice === 'string' ? notice : '';
}
