/** Parses an id or a number of a query or form. @returns null for everything else */
export function parsePositiveInteger(text: unknown): number | null {
  return typeof text === 'string' && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}

/** Parses the id after which a page of a list begins. @returns null for the first page */
export function parseCursor(text: unknown): number[] | null {
  const id = parsePositiveInteger(text);
  return id === null ? null : [id];
}

/**
 * Takes a page of the rows. One more than its size has to be read, which tells whether there is another page.
 * @returns `last` is the last of the page, which the next page follows; undefined: this is the last page
 */
export function takePage<T>(rows: readonly T[], size: number): { page: T[]; last: T | undefined } {
  const page = rows.slice(0, size);
  return { page, last: rows.length > size ? page.at(-1) : undefined };
}

/** Finds the sentence about what a form has done, which the page after it names. @returns empty without one */
export function findFlashMessage(
  name: unknown,
  messages: Readonly<Record<string, unknown>>,
): string {
  const message =
    typeof name === 'string' && Object.hasOwn(messages, name) ? messages[name] : undefined;
  return typeof message === 'string' ? message : '';
}
