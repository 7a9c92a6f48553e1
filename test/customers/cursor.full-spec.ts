import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import type { ApiResponse } from '../support/services/service.js';

const service = useSharedService();
const store = service.useStore();
let people = 0;

async function add(at = store, fields: object = {}): Promise<number> {
  const customer = { first_name: 'Mia', email: `mia${++people}@example.com`, ...fields };
  const { status, body } = await at.post<CustomerJson>(`${at.store}/customers`, { customer });
  expect(status).toBe(201);
  return body.id;
}
const list = (query: Record<string, string>, at = store) =>
  at.get<CustomerListJson>(`${at.store}/customers?${new URLSearchParams(query)}`);

/** Finds the path and query of the next page, or null. */
function findNext({ headers }: ApiResponse<unknown>): string | null {
  const url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (url === undefined) return null;
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}

/** Reads all pages. @param between runs while each page is read */
async function readAll(
  query: Record<string, string>,
  at = store,
  between: () => Promise<unknown>[] = () => [],
): Promise<number[]> {
  const ids: number[] = [];
  const first = `${at.store}/customers?${new URLSearchParams({ cursor: '', ...query })}`;
  for (let path: string | null = first; path !== null;) {
    const running = between();
    const page: ApiResponse<CustomerListJson> = await at.get<CustomerListJson>(path);
    expect(page.status).toBe(200);
    ids.push(...page.body.customers.map(({ id }) => id));
    path = findNext(page);
    await Promise.all(running);
  }
  return ids;
}

type Change = { kind: 'create' | 'merge' | 'unmerge' | 'erase'; one: number; other: number };

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('create', 'merge', 'merge', 'unmerge', 'erase'),
  one: fc.nat(50),
  other: fc.nat(50),
});

describe('reading all customers', () => {
  it('SEARCH-34 With a blank `cursor` the list of customers begins with the lowest id, and its `Link` leads to the next page, as in other lists', async () => {
    const quiet = await service.newStore();
    const ids: number[] = [];
    for (let i = 0; i < 7; i++) ids.push(await add(quiet));
    for (const items of ['1', '3', '7', '100']) {
      expect(await readAll({ items }, quiet)).toEqual(ids);
    }
    expect(await readAll({}, await service.newStore())).toEqual([]);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.array(change, { maxLength: 3 }), { minLength: 1, maxLength: 12 }),
        async (items, rounds) => {
          const at = await service.newStore();
          const all = await Promise.all(Array.from({ length: 10 }, () => add(at)));
          const path = (id: number) => `${at.store}/customers/${id}`;
          const touched = new Set<number>();
          const apply = async ({ kind, one, other }: Change): Promise<void> => {
            const id = all[one % all.length] ?? 0;
            const second = all[other % all.length] ?? 0;
            if (kind === 'create') return void all.push(await add(at));
            touched.add(kind === 'erase' ? id : second);
            if (kind === 'erase') await at.post(`${path(id)}/erase`, {});
            else if (kind === 'unmerge') await at.post(`${path(second)}/unmerge`, {});
            else if (id !== second) {
              await at.post(`${path(id)}/merge`, { from_customer_id: second });
            }
          };
          const before = [...all];
          const left = [...rounds];
          const listed = await readAll({ items: String(items) }, at, () =>
            (left.shift() ?? []).map(apply),
          );
          expect(listed).toEqual([...new Set(listed)].sort((a, b) => a - b));
          // Erasing a person erases those who were merged with them, but lists them still.
          const stayed = before.filter((id) => !touched.has(id));
          expect(listed).toEqual(expect.arrayContaining(stayed));
        },
      ),
      { numRuns: 25 },
    );
  });

  it('SEARCH-35 With a `cursor` the `page` and `pages` are null, and `count` is that of all pages', async () => {
    const quiet = await service.newStore();
    for (let i = 0; i < 5; i++) await add(quiet);
    const first = await list({ cursor: '', items: '2' }, quiet);
    const pagination = { count: 5, items: 2, page: null, pages: null };
    expect(first.body.pagination).toEqual(pagination);
    const second = await quiet.get<CustomerListJson>(findNext(first) ?? '');
    expect(second.body.pagination).toEqual(pagination);
    expect(Object.keys(second.body)).toEqual(['customers', 'pagination']);
    expect(second.body.customers).toHaveLength(2);
    const [single] = second.body.customers;
    const byId = await quiet.get<CustomerJson>(`${quiet.store}/customers/${single?.id}`);
    expect(single).toEqual(byId.body);
    expect((await list({ cursor: ' ' }, quiet)).body.pagination.items).toBe(20);
    // Without it nothing changes.
    const newestFirst = await list({}, quiet);
    expect(newestFirst.body.pagination).toEqual({ count: 5, items: 20, page: 1, pages: 1 });
    expect(newestFirst.headers.get('link')).toBeNull();
  });

  it('SEARCH-36 The filters work with a `cursor`, and the links keep them', async () => {
    const shop = await service.newStore();
    const named: number[] = [];
    for (let i = 0; i < 6; i++) {
      await add(shop);
      named.push(await add(shop, { first_name: `Zoë ${i}` }));
    }
    expect(await readAll({ search: 'zoë', items: '2' }, shop)).toEqual(named);
    expect(await readAll({ search: 'zoë 3', items: '2' }, shop)).toEqual([named[3]]);
    expect(await readAll({ updated_since: '2100-01-01', items: '2' }, shop)).toEqual([]);
    const { body } = await list({ cursor: '', search: 'zoë', items: '2' }, shop);
    expect(body.pagination.count).toBe(6);
  });

  it('SEARCH-37 A `cursor` that the list did not issue is 422 `cursor`, and a `page` above 1 with it 422 `page`', async () => {
    const otherStore = await service.newStore();
    for (let i = 0; i < 3; i++) await add(otherStore);
    const next = findNext(await list({ cursor: '', items: '1' }, otherStore));
    const foreign = new URL(next ?? '', 'http://any.invalid').searchParams.get('cursor') ?? '';
    expect(foreign).not.toBe('');
    for (const cursor of ['x', '1', foreign, `${foreign}x`, 'x'.repeat(5_000)]) {
      expectRefused(await list({ cursor }), 'cursor');
    }
    expectRefused(await list({ cursor: '', page: '2' }), 'page');
    expect((await list({ cursor: '', page: '1' })).status).toBe(200);
    const twice = await store.get(`${store.store}/customers?cursor=&cursor=`);
    expect(twice.status).toBeLessThan(500);
  });
});
