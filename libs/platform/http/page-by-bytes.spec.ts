import { describe, expect, it } from '@jest/globals';
import { PAGE_BYTES, readPage } from './page-by-bytes.js';

const KIB = 1024;

/** Creates a list of elements with these sizes. Records how many elements each read requests. */
function createList(sizes: number[]) {
  const elements = sizes.map((bytes, i) => ({ i, bytes }));
  const counts: number[] = [];
  let waitCount = 0;
  const page = async (limit: number | null, first = 16) => {
    const { page, hasMore } = await readPage<(typeof elements)[number]>(
      { limit, first },
      async (after, count) => {
        counts.push(count);
        const from = after === undefined ? 0 : after.i + 1;
        return elements.slice(from, from + count);
      },
      ({ bytes }) => bytes,
      async () => void waitCount++,
    );
    return { count: page.length, more: hasMore };
  };
  return { page, counts, getWaitCount: () => waitCount };
}

const repeat = (count: number, bytes: number) => Array.from({ length: count }, () => bytes);

describe('readPage', () => {
  it('returns a small page without waiting', async () => {
    const list = createList(repeat(300, KIB));
    expect(await list.page(250)).toEqual({ count: 250, more: true });
    expect(await list.page(300)).toEqual({ count: 300, more: false });
    expect(await list.page(null)).toEqual({ count: 300, more: false });
    expect(list.getWaitCount()).toBe(0);
  });

  it('ends a page before it would be too large', async () => {
    const list = createList(repeat(250, 100 * KIB));
    const count = Math.floor(PAGE_BYTES / (100 * KIB));
    expect(await list.page(250)).toEqual({ count, more: true });
    expect(await list.page(count)).toEqual({ count, more: true });
    expect(await createList(repeat(count, 100 * KIB)).page(null)).toEqual({ count, more: false });
    expect(list.getWaitCount()).toBeGreaterThan(2);
  });

  it('reads less than one and a half times what the page can hold', async () => {
    const list = createList(repeat(250, 100 * KIB));
    await list.page(250);
    const readCount = list.counts.reduce((sum, count) => sum + count, 0);
    expect(readCount * 100 * KIB).toBeLessThan(PAGE_BYTES * 1.5);
  });

  it('returns at least one element, however large it is', async () => {
    const list = createList([2 * PAGE_BYTES, 1]);
    expect(await list.page(10)).toEqual({ count: 1, more: true });
  });

  it('returns an empty page of an empty list', async () => {
    expect(await createList([]).page(10)).toEqual({ count: 0, more: false });
    expect(await createList(repeat(16, 0)).page(null)).toEqual({ count: 16, more: false });
  });

  it('reads in steps of 256 KiB and 500 elements at most, and never more than are missing', async () => {
    const kibs = createList(repeat(5_000, KIB));
    await kibs.page(null);
    expect(kibs.counts).toEqual([16, ...repeat(15, 256), 240, 1]);
    const empty = createList(repeat(1_600, 0));
    expect(await empty.page(null, 20)).toEqual({ count: 1_600, more: false });
    expect(empty.counts).toEqual([20, 500, 500, 500, 500]);
    const odd = createList(repeat(30, 100 * KIB));
    await odd.page(null, 2);
    expect(odd.counts.slice(0, 3)).toEqual([2, 3, 3]);
    const few = createList(repeat(300, KIB));
    await few.page(20);
    expect(few.counts).toEqual([16, 5]);
    const large = createList(repeat(3, 300 * KIB));
    await large.page(null, 1);
    expect(large.counts).toEqual([1, 1, 1, 1]);
  });

  it('fills a page to exactly its size, and leaves an element beyond that to the next page', async () => {
    expect(await createList(repeat(4, PAGE_BYTES / 4)).page(null, 1)).toEqual({
      count: 4,
      more: false,
    });
    expect(await createList(repeat(5, PAGE_BYTES / 4)).page(null, 1)).toEqual({
      count: 4,
      more: true,
    });
    expect(await createList([PAGE_BYTES, 0]).page(null)).toEqual({ count: 2, more: false });
    expect(await createList([1, PAGE_BYTES]).page(null)).toEqual({ count: 1, more: true });
  });

  it('waits before a page grows beyond half a mebibyte, but not before', async () => {
    const below = createList([...repeat(2, 256 * KIB), 0]);
    await below.page(null, 2);
    expect(below.getWaitCount()).toBe(0);
    const above = createList([256 * KIB, 256 * KIB + 1, 0]);
    await above.page(null, 2);
    expect(above.getWaitCount()).toBe(2);
  });
});
