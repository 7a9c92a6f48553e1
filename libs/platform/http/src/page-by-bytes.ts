/** Near this a page ends, whatever its limit: the next one goes on. */
export const PAGE_BYTES = 4 * 1024 * 1024;
/** More than this, and only a few such pages are made at once. */
const LARGE_BYTES = 512 * 1024;
/** Asked for at once: what is made for the answer takes several times as much until it is done. */
const STEP_BYTES = 1024 * 1024;
const MOST_AT_ONCE = 500;

/**
 * The elements of a page, asked for a few at a time, so that no more of them are ever in memory than it has.
 * @param limit null: as many as there are
 * @param first how many to begin with, whose size nobody knows yet
 * @param find those behind an element, in order: fewer than asked for only at the end
 * @param grown called each time before a page goes on that is large already
 * @returns with `more`: the page ended before the list did
 */
export async function pageByBytes<T>(
  { limit, first }: { limit: number | null; first: number },
  find: (after: T | undefined, count: number) => Promise<T[]>,
  bytesOf: (element: T) => number,
  grown: () => Promise<void>,
): Promise<{ page: T[]; more: boolean }> {
  const page: T[] = [];
  let bytes = 0;
  for (let count = first; ;) {
    // One more than the page has says whether there are more.
    const left = limit === null ? count : Math.min(count, limit - page.length + 1);
    const found = await find(page.at(-1), left);
    for (const element of found) {
      const size = bytesOf(element);
      if (page.length === limit || (page.length > 0 && bytes + size > PAGE_BYTES)) {
        return { page, more: true };
      }
      page.push(element);
      bytes += size;
    }
    if (found.length < left) return { page, more: false };
    if (bytes > LARGE_BYTES) await grown();
    const average = Math.max(1, bytes / page.length);
    count = Math.max(
      1,
      Math.min(MOST_AT_ONCE, Math.ceil(Math.min(PAGE_BYTES - bytes, STEP_BYTES) / average)),
    );
  }
}
