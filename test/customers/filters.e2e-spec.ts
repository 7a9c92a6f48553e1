import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
const otherStore = service.useStore();
let customers: string;

beforeAll(async () => {
  customers = `${store.store}/customers`;
});

let people = 0;
async function add(fields: object = {}, at = store): Promise<CustomerJson> {
  const first_name = `Nina${people++}`;
  const { status, body } = await at.post<CustomerJson>(`${at.store}/customers`, {
    customer: { first_name, email: `nina${people}@example.com`, ...fields },
  });
  expect(status).toBe(201);
  return body;
}

const list = (query: Record<string, string>, at = store) =>
  at.get<CustomerListJson>(`${at.store}/customers?${new URLSearchParams(query)}`);
const findIds = async (query: Record<string, string>, at = store) => {
  const { status, body } = await list(query, at);
  expect([status, body.pagination?.count]).toEqual([200, body.customers.length]);
  return body.customers.map(({ id }) => id);
};

describe('the list of customers', () => {
  it('SEARCH-25 `email` finds the one customer with exactly this e-mail address, ignoring case; anything that is none is 422 `email`', async () => {
    const { id } = await add({ email: 'Straße.Weiß@Example.com' });
    await add({ email: 'straße.weiß@example.com.au' });
    await add({ email: 'strasse.weiss@example.com' });
    await add({ email: 'x.straße.weiß@example.com' });
    await add({ email: 'straße.weiß@example.com' }, otherStore);
    for (const email of ['Straße.Weiß@Example.com', ' STRAßE.weiß@EXAMPLE.com ']) {
      expect(await findIds({ email })).toEqual([id]);
    }
    expect(await findIds({ email: 'weiß@example.com' })).toEqual([]);
    expect(await findIds({ email: '%@example.com' })).toEqual([]);
    expectRefused(await list({ email: 'weiß' }), 'email');
    await store.patch(`${customers}/${id}`, { customer: { email: 'weiss@example.org' } });
    expect(await findIds({ email: 'Straße.Weiß@Example.com' })).toEqual([]);
    expect(await findIds({ email: 'weiss@example.org' })).toEqual([id]);
  });

  it('CUST-62 The filter `email` and `search` find an address in every spelling of its domain', async () => {
    const { id: typed } = await add({ email: 'Typed@Grüße.example' });
    const { id: coded } = await add({ email: 'coded@xn--gre-6ka8l.example' });
    for (const domain of ['grüße.example', 'XN--gre-6ka8l.example', 'GRU\u0308ßE。example']) {
      expect(await findIds({ email: `typed@${domain}` })).toEqual([typed]);
      expect(await findIds({ email: `CODED@${domain}` })).toEqual([coded]);
    }
    for (const search of ['@grüße.ex', 'GRÜSSE.example', 'xn--gre-6ka8l']) {
      expect(await findIds({ search })).toEqual([coded, typed]);
    }
    expect(await findIds({ email: 'typed@grusse.example' })).toEqual([]);
  });

  it('SEARCH-26 `phone` finds the one customer with exactly this phone number, in any notation that a write accepts; anything without digits is 422 `phone`', async () => {
    const { id } = await add({ phone: '+49 151 2345 6000' });
    const { id: local } = await add({ phone: '0151 / 2345-6000' });
    await add({ phone: '+4915123456000' }, otherStore);
    for (const phone of ['+4915123456000', '+49 (151) 23456000', '+49-151-23456-000']) {
      expect(await findIds({ phone })).toEqual([id]);
    }
    expect(await findIds({ phone: '0151 23456000' })).toEqual([local]);
    expect(await findIds({ phone: '23456000' })).toEqual([]);
    for (const phone of ['none', '4.9E+12', '+4915123456000.0', '4915123456000,00']) {
      expectRefused(await list({ phone }), 'phone');
    }
    const german = await service.newStore({ country: 'DE' });
    const { id: germanId } = await add({ phone: '0151 23456000' }, german);
    for (const phone of [
      '0151/23456000',
      '0049 151 23456000',
      '49151 23456000',
      '+4915123456000',
    ]) {
      const { body } = await list({ phone }, german);
      expect([phone, body.customers.map(({ id }) => id)]).toEqual([phone, [germanId]]);
    }
  });

  it('SEARCH-27 `code` finds the customer who holds the card with this code, ignoring case, after a merge too', async () => {
    const { customer, customerCard } = await enrol(store);
    const { code } = customerCard;
    expect(await findIds({ code })).toEqual([customer.id]);
    expect(await findIds({ code: ` ${code.toLowerCase()} ` })).toEqual([customer.id]);
    expect(await findIds({ code: code.slice(1) })).toEqual([]);
    expect(await findIds({ code }, otherStore)).toEqual([]);
    const { id } = await add();
    await store.post(`${customers}/${id}/merge`, { from_customer_id: customer.id });
    expect(await findIds({ code })).toEqual([id]);
  });

  it('SEARCH-28 `updated_since` finds customers whose `updated_at` is at or after this time; anything that is no ISO 8601 time is 422 `updated_since`', async () => {
    const at = await service.newStore();
    const customerIds = [await add({}, at), await add({}, at), await add({}, at)];
    const [first, , third] = customerIds;
    const change = { customer: { last_name: 'Berg' } };
    const path = `${at.store}/customers/${first?.id}`;
    const { body: changed } = await at.patch<CustomerJson>(path, change);
    const since = (updated_since: string) => findIds({ updated_since }, at);
    expect(await since(changed.updated_at)).toEqual([first?.id]);
    const justAfter = new Date(Date.parse(changed.updated_at) + 1).toISOString();
    expect(await since(justAfter)).toEqual([]);
    expect(await since(third?.updated_at ?? '')).toEqual([third?.id, first?.id]);
    expect(await since('2026-01-01')).toEqual(customerIds.map(({ id }) => id).toReversed());
    expectRefused(await list({ updated_since: 'yesterday' }), 'updated_since');
  });

  it('SEARCH-29 The filters narrow each other down, and `search`, `source` and `external_id`; a blank one is none', async () => {
    const phone = '+4915123457000';
    const reference = { source: 'till', external_id: 'N-1' };
    const customer = { first_name: 'Olga', email: 'olga@example.com', phone };
    const { customer: holder, customerCard } = await enrol(store, { email: 'olga2@example.com' });
    await store.patch(`${customers}/${holder.id}`, {
      customer: { ...customer, external_references: [reference] },
    });
    const { code } = customerCard;
    const all = { email: 'OLGA@example.com', phone, code, search: 'olg', ...reference };
    const since = { updated_since: '2026-01-01', items: '1' };
    expect(await findIds({ ...all, ...since })).toEqual([holder.id]);
    const { phone: nobodys } = await add({ phone: '+4915123457001' });
    expect(await findIds({ ...all, phone: nobodys ?? '' })).toEqual([]);
    expect(await findIds({ ...all, search: 'anna' })).toEqual([]);
    expect(await findIds({ ...all, external_id: 'N-2' })).toEqual([]);
    expect(await findIds({ ...all, updated_since: '2126-01-01' })).toEqual([]);
    const blank = await list({ email: '', phone: ' ', code: '', updated_since: '' });
    expect(blank.body.pagination).toEqual((await list({})).body.pagination);
  });

  it('SEARCH-30 The filters find neither merged nor erased customers', async () => {
    const erased = (await enrol(store, { email: 'erased@example.com' })).customer;
    await store.patch(`${customers}/${erased.id}`, { customer: { phone: '+4915123458000' } });
    const merged = await add({ email: 'merged@example.com', phone: '+4915123458001' });
    const into = await add({ email: 'into@example.com', phone: '+4915123458002' });
    const before = new Date().toISOString();
    expect((await store.post(`${customers}/${erased.id}/erase`)).status).toBe(204);
    const merging = { from_customer_id: merged.id };
    expect((await store.post(`${customers}/${into.id}/merge`, merging)).status).toBe(200);
    for (const query of [
      { email: 'erased@example.com' },
      { phone: '+4915123458000' },
      { code: (erased as CreatedCustomerJson).customer_card?.code ?? '' },
      { email: 'merged@example.com' },
      { phone: '+4915123458001' },
    ]) {
      expect([query, await findIds(query)]).toEqual([query, []]);
    }
    expect(await findIds({ updated_since: before })).toEqual([into.id]);
  });

  it('SEARCH-31 In `email` and `phone` a `+` that was not encoded as `%2B` is understood', async () => {
    const { id } = await add({ email: 'pat+shop@example.com', phone: '+4915123459000' });
    for (const query of ['email=pat+shop@example.com', 'phone=+4915123459000']) {
      const { body } = await store.get<CustomerListJson>(`${customers}?${query}`);
      expect(body.customers.map((customer) => customer.id)).toEqual([id]);
    }
  });
});
