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

/** A sentence about what a form has done, which may name what it has done it to. */
type FlashMessage = string | ((values: { name: string }) => string);

/**
 * Finds the sentence about what a form has done, which the query of the page after it gives.
 * @param name of the thing that the sentence is about
 * @returns empty without one
 */
export function findFlashMessage(
  done: unknown,
  messages: Readonly<Record<string, FlashMessage>>,
  name = '',
): string {
  const message =
    typeof done === 'string' && Object.hasOwn(messages, done) ? messages[done] : undefined;
  return typeof message === 'function' ? message({ name }) : (message ?? '');
}
