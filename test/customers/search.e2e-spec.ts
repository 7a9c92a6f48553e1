import { describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectRefused, useSharedService, type ContractClient } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();

let people = 0;

async function create(store: ContractClient, customer: object = {}): Promise<CustomerJson> {
  const { status, body } = await store.post<CustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Ada', email: `p${++people}@mail.example`, ...customer },
  });
  expect(status).toBe(201);
  return body;
}

const list = async (store: ContractClient, query: Record<string, string> = {}) => {
  const { status, body } = await store.get<CustomerListJson>(
    `${store.store}/customers?${new URLSearchParams(query)}`,
  );
  expect(status).toBe(200);
  return body;
};
const namesFor = async (store: ContractClient, search: string) =>
  (await list(store, { search })).customers.map((customer) => customer.first_name);

/** A store with one customer to be found and one who never is. */
async function storeWith(customer: object): Promise<ContractClient> {
  const store = await service.newStore();
  await create(store, { first_name: 'Found', ...customer });
  await create(store, { first_name: 'Nobody', email: 'nobody@else.example' });
  return store;
}

describe('finding customers', () => {
  it('SEARCH-01 The list of customers is `{customers, pagination}`, newest first', async () => {
    const store = await service.newStore();
    const createdIds = [await create(store), await create(store), await create(store)];
    const body = await list(store);
    expect(Object.keys(body).sort()).toEqual(['customers', 'pagination']);
    expect(body.customers).toEqual(createdIds.reverse());
    expect(body.pagination).toEqual({ count: 3, items: 20, page: 1, pages: 1 });
  });

  it('SEARCH-02 The list and the single customer show the same', async () => {
    const store = await service.newStore();
    const { customer, path } = await enrol(store);
    await store.stamp(path, 2);
    const { body } = await store.get(`${store.store}/customers/${customer.id}`);
    expect((await list(store)).customers).toEqual([body]);
  });

  it('SEARCH-03 Only customers of the store are listed', async () => {
    const store = await storeWith({});
    const otherStore = await storeWith({ first_name: 'Elsewhere' });
    expect((await list(store)).pagination.count).toBe(2);
    expect(await namesFor(store, 'elsewhere')).toEqual([]);
    expect(await namesFor(otherStore, 'elsewhere')).toEqual(['Elsewhere']);
  });

  it('SEARCH-04 `search` finds a part of the first name', async () => {
    const store = await storeWith({ first_name: 'Wilhelmina' });
    for (const term of ['Wilh', 'helm', 'mina', 'W']) {
      expect(await namesFor(store, term)).toEqual(['Wilhelmina']);
    }
  });

  it('SEARCH-05 `search` finds a part of the last name', async () => {
    const store = await storeWith({ last_name: 'Quastenflosser' });
    for (const term of ['Quasten', 'flosser', 'tenfl', 'q']) {
      expect(await namesFor(store, term)).toEqual(['Found']);
    }
  });

  it('SEARCH-06 `search` finds a part of the full name, across the space between', async () => {
    const store = await storeWith({ first_name: 'Grace', last_name: 'Hopper' });
    expect(await namesFor(store, 'Grace Hopper')).toEqual(['Grace']);
    expect(await namesFor(store, 'ce Hop')).toEqual(['Grace']);
    expect(await namesFor(store, 'Hopper Grace')).toEqual([]);
  });

  it('SEARCH-07 `search` finds a part of the e-mail address', async () => {
    const store = await storeWith({ email: 'Grace.Hopper@navy.example' });
    for (const term of ['grace.hopper@navy.example', 'hopper@', 'navy']) {
      expect(await namesFor(store, term)).toEqual(['Found']);
    }
  });

  it('SEARCH-08 Search ignores case, for non-ASCII letters too', async () => {
    const store = await storeWith({ first_name: 'Élodie', last_name: 'Strauß ΟΔΥΣΣΕΥΣ' });
    await create(store, { first_name: 'İpek' });
    for (const term of ['éLODIE', 'E\u0301lodie', 'STRAUSS', 'strauß', 'οδυσσευς', 'Οδυσσευσ']) {
      expect(await namesFor(store, term)).toEqual(['Élodie']);
    }
    for (const term of ['ipek', 'IPEK', 'İPEK'])
      expect(await namesFor(store, term)).toEqual(['İpek']);
  });

  it('SEARCH-09 A term of digits and phone punctuation finds the digits of a phone', async () => {
    const store = await storeWith({ phone: '+49 151 23456789' });
    for (const term of ['+49 151 23456789', '4915123', '(151) 234-56', '51/23.45', '789']) {
      expect(await namesFor(store, term)).toEqual(['Found']);
    }
    for (const term of ['151 2345x', '9999']) expect(await namesFor(store, term)).toEqual([]);
  });

  it('SEARCH-32 A term of digits finds a phone in any notation, and from its beginning also a part of it: `0171 12` finds `+4917112…` in Germany', async () => {
    const store = await service.newStore({ country: 'DE' });
    await create(store, { first_name: 'Found', phone: '0171 2345678' });
    await create(store, { first_name: 'Other', phone: '+44 20 7946 0958' });
    for (const term of [
      '0171 2345678',
      '0171/23',
      '(0171)',
      '0049 171 23',
      '49 171 2345678',
      '+49 (0)171 2345678',
      '٠١٧١ ٢٣٤',
      '345678',
    ]) {
      expect([term, await namesFor(store, term)]).toEqual([term, ['Found']]);
    }
    for (const term of ['020 7946', '0171 234567 8 9']) {
      expect([term, await namesFor(store, term)]).toEqual([term, []]);
    }
    // With another digit it would be the number of somebody else.
    await create(store, { first_name: 'Stranger', phone: '0171 23456780' });
    expect(await namesFor(store, '491712345678.0')).toEqual([]);
    expect(await namesFor(store, '0171.2345678')).toEqual(['Stranger', 'Found']);
    expect(await namesFor(store, '0171.23456780')).toEqual(['Stranger']);
  });

  it('SEARCH-10 `search` finds the code of a card, in full only, in any case', async () => {
    const store = await storeWith({});
    const { customerCard } = await enrol(store);
    expect(await namesFor(store, customerCard.code)).toEqual(['Anna']);
    expect(await namesFor(store, customerCard.code.toLowerCase())).toEqual(['Anna']);
    expect(await namesFor(store, `${customerCard.code.toLowerCase()}\r`)).toEqual(['Anna']);
    expect(await namesFor(store, customerCard.code.slice(0, 7))).toEqual([]);
  });

  it('SEARCH-11 `search` finds the uuid of a card, in full only', async () => {
    const store = await storeWith({});
    const { customerCard } = await enrol(store);
    expect(await namesFor(store, customerCard.uuid)).toEqual(['Anna']);
    expect(await namesFor(store, customerCard.uuid.slice(0, 23))).toEqual([]);
  });

  it('SEARCH-12 `search` finds an external id, in full only', async () => {
    const store = await storeWith({
      external_references: [{ source: 'erp', external_id: 'Order-77' }],
    });
    expect(await namesFor(store, 'Order-77')).toEqual(['Found']);
    for (const term of ['Order-7', 'order-77']) expect(await namesFor(store, term)).toEqual([]);
  });

  it('SEARCH-13 `%` and `_` are ordinary characters in `search`', async () => {
    const store = await storeWith({ last_name: '100%_sure\\' });
    for (const term of ['%', '_', '0%_s', 'sure\\']) {
      expect(await namesFor(store, term)).toEqual(['Found']);
    }
    for (const term of ['F%d', '%%']) expect(await namesFor(store, term)).toEqual([]);
    expect(await namesFor(store, 'F__nd')).toEqual([]);
  });

  it('SEARCH-14 A blank `search` is the same as none', async () => {
    const store = await storeWith({});
    for (const term of ['', '   '])
      expect(await namesFor(store, term)).toEqual(['Nobody', 'Found']);
  });

  it("SEARCH-15 `search` follows changes: a customer's former name finds nobody", async () => {
    const store = await service.newStore();
    const customer = await create(store, { last_name: 'Before', phone: '1234567' });
    await store.patch(`${store.store}/customers/${customer.id}`, {
      customer: { last_name: 'After', email: 'after@mail.example', phone: '7654321' },
    });
    for (const term of ['before', customer.email ?? '', '1234567']) {
      expect(await namesFor(store, term)).toEqual([]);
    }
    for (const term of ['ada after', 'after@mail', '7654321']) {
      expect(await namesFor(store, term)).toEqual(['Ada']);
    }
  });

  it('SEARCH-16 `source` and `external_id` together find the one customer who holds exactly that reference', async () => {
    const store = await storeWith({ external_references: [{ source: 'erp', external_id: '16' }] });
    await create(store, { external_references: [{ source: 'pos', external_id: '16' }] });
    const matches = await list(store, { source: 'erp', external_id: '16' });
    expect(matches.customers.map((customer) => customer.first_name)).toEqual(['Found']);
    expect(matches.pagination.count).toBe(1);
    for (const query of [
      { source: 'web', external_id: '16' },
      { source: 'erp', external_id: '1' },
      { source: 'erp', external_id: '16', search: 'nobody' },
    ]) {
      expect((await list(store, query)).customers).toEqual([]);
    }
  });

  it('SEARCH-17 Only one of `source` and `external_id` is 422 on the missing field', async () => {
    const store = await service.newStore();
    expectRefused(await store.get(`${store.store}/customers?source=erp`), 'external_id');
    expectRefused(await store.get(`${store.store}/customers?external_id=16`), 'source');
    expectRefused(await store.get(`${store.store}/customers?external_id=16&source=`), 'source');
  });

  it('SEARCH-18 `page` defaults to 1 and `items` to 20', async () => {
    const store = await service.newStore();
    for (let i = 0; i < 21; i++) await create(store);
    const { customers, pagination } = await list(store);
    expect(customers).toHaveLength(20);
    expect(pagination).toEqual({ count: 21, items: 20, page: 1, pages: 2 });
  });

  it('SEARCH-19 `items` is clamped to 1 to 100, and the response shows the value used', async () => {
    const store = await storeWith({});
    for (const [items, inForce] of [
      ['0', 1],
      ['-5', 1],
      ['2', 2],
      ['101', 100],
      ['1000000', 100],
    ] as const) {
      const { customers, pagination } = await list(store, { items });
      expect(pagination.items).toBe(inForce);
      expect(customers).toHaveLength(Math.min(2, inForce));
    }
  });

  it('SEARCH-20 `items` that is not an integer is 422 `items`', async () => {
    const store = await service.newStore();
    for (const items of ['x', '1.5', '1e2']) {
      expectRefused(await store.get(`${store.store}/customers?items=${items}`), 'items');
    }
  });

  it('SEARCH-21 `page` that is not an integer from 1 is 422 `page`', async () => {
    const store = await service.newStore();
    for (const page of ['0', '-1', 'x', '1.5']) {
      expectRefused(await store.get(`${store.store}/customers?page=${page}`), 'page');
    }
  });

  it('SEARCH-22 A page past the end is empty, with correct counts and the requested page', async () => {
    const store = await storeWith({});
    for (const page of ['2', '10000']) {
      expect(await list(store, { page })).toEqual({
        customers: [],
        pagination: { count: 2, items: 20, page: Number(page), pages: 1 },
      });
    }
  });

  it('SEARCH-23 `count` and `pages` say how many there are; `pages` is at least 1', async () => {
    const store = await service.newStore();
    expect((await list(store)).pagination).toMatchObject({ count: 0, pages: 1 });
    for (let i = 0; i < 5; i++) await create(store, { last_name: i < 3 ? 'Few' : null });
    expect((await list(store, { items: '2' })).pagination).toMatchObject({ count: 5, pages: 3 });
    const { pagination } = await list(store, { items: '2', search: 'few' });
    expect(pagination).toMatchObject({ count: 3, pages: 2 });
  });

  it('SEARCH-24 Page after page shows each customer once', async () => {
    const store = await service.newStore();
    const createdIds: number[] = [];
    for (let i = 0; i < 7; i++) createdIds.unshift((await create(store)).id);
    const listedIds: number[] = [];
    for (const page of ['1', '2', '3', '4']) {
      const { customers } = await list(store, { page, items: '2', search: 'ada' });
      listedIds.push(...customers.map(({ id }) => id));
    }
    expect(listedIds).toEqual(createdIds);
  });
});
