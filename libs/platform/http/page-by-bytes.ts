/** By default a page ends near this size, whatever its limit, and the next page continues. */
export const PAGE_BYTES = 4 * 1024 * 1024;
/** Only a few pages larger than this are built at once. */
const LARGE_BYTES = 512 * 1024;
/** Size of a step: while a response is being built it uses several times as much memory. */
const STEP_BYTES = 256 * 1024;
const MAX_STEP_COUNT = 500;

/**
 * Reads a page a few elements at a time, so that memory never holds more of them than the page has.
 * @param limit null: no limit
 * @param first how many to read while no size is known yet
 * @param find returns the elements after one, in order; fewer than requested only at the end of the list
 * @param waitToGrow called each time before a page that is already large goes on
 * @returns `hasMore` is true when the page ended before the list did
 */
export async function readPage<T>(
  {
    limit,
    first,
    maxBytes = PAGE_BYTES,
  }: { limit: number | null; first: number; maxBytes?: number | undefined },
  find: (after: T | undefined, count: number) => Promise<T[]>,
  getBytes: (element: T) => number,
  waitToGrow: () => Promise<void>,
): Promise<{ page: T[]; hasMore: boolean }> {
  const page: T[] = [];
  let bytes = 0;
  for (let count = first; ;) {
    // One element more than the page shows whether there is a next page.
    const missingCount = limit === null ? count : Math.min(count, limit - page.length + 1);
    const elements = await find(page.at(-1), missingCount);
    for (const element of elements) {
      const size = getBytes(element);
      if (page.length === limit || (page.length > 0 && bytes + size > maxBytes)) {
        return { page, hasMore: true };
      }
      page.push(element);
      bytes += size;
    }
    if (elements.length < missingCount) return { page, hasMore: false };
    if (bytes > LARGE_BYTES) await waitToGrow();
    const average = Math.max(1, bytes / page.length);
    count = Math.max(
      1,
      Math.min(MAX_STEP_COUNT, Math.ceil(Math.min(maxBytes - bytes, STEP_BYTES) / average)),
    );
  }
}
