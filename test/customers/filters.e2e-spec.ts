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

describe('filters of the list of customers by their cards and dates', () => {
  const own = service.useStore();
  const find = (query: Record<string, string>) => findIds(query, own);
  async function post<T>(path: string, body: unknown): Promise<T> {
    const response = await own.post<T>(`${own.store}/${path}`, body);
    expect(response.status).toBeLessThan(300);
    return response.body;
  }
  const patch = (path: string, body: unknown) => own.patch(`${own.store}/${path}`, body);

  it('SEARCH-38 `birthday_month` finds customers who were born in this month, from 1 to 12; anything else is 422 `birthday_month`', async () => {
    const { id } = await add({ birthday: '1990-05-31' }, own);
    const { id: second } = await add({ birthday: '2000-05-01' }, own);
    const { id: december } = await add({ birthday: '1985-12-24' }, own);
    await add({}, own);
    expect(await find({ birthday_month: '5' })).toEqual([second, id]);
    expect(await find({ birthday_month: '05' })).toEqual([second, id]);
    expect(await find({ birthday_month: '12' })).toEqual([december]);
    expect(await find({ birthday_month: '1' })).toEqual([]);
    await patch(`customers/${id}`, { customer: { birthday: '1990-06-30' } });
    expect(await find({ birthday_month: '5' })).toEqual([second]);
    await patch(`customers/${second}`, { customer: { birthday: null } });
    expect(await find({ birthday_month: '5' })).toEqual([]);
    for (const birthday_month of ['0', '13', '-1', 'may', '1.5']) {
      expectRefused(await list({ birthday_month }, own), 'birthday_month');
    }
  });

  it('SEARCH-39 `card_id` finds customers who have this card; for an unknown card, or one of another store, there is nobody', async () => {
    const { card, customer } = await enrol(own);
    const { card: otherCard, customer: otherCustomer } = await enrol(own);
    expect(await find({ card_id: String(card.id) })).toEqual([customer.id]);
    await post(`customers/${otherCustomer.id}/customer_cards`, { card_id: card.id });
    expect(await find({ card_id: String(card.id) })).toEqual([otherCustomer.id, customer.id]);
    expect(await find({ card_id: String(otherCard.id) })).toEqual([otherCustomer.id]);
    await post(`cards/${card.id}/archive`, {});
    expect(await find({ card_id: String(card.id) })).toHaveLength(2);
    const foreign = await enrol(await service.newStore());
    expect(await find({ card_id: String(foreign.card.id) })).toEqual([]);
    expect(await find({ card_id: '999999999' })).toEqual([]);
    for (const card_id of ['0', 'x']) {
      expectRefused(await list({ card_id }, own), 'card_id');
    }
  });

  it('SEARCH-40 `min_stamps` finds customers who have at least so many stamps: with `card_id` on that card, else as their `stamp_count`', async () => {
    const { card, customer, path } = await enrol(own);
    const { card: second } = await enrol(own);
    const { id: cardless } = await add({}, own);
    await own.stamp(path, 3);
    const enrolment = await post<{ id: number }>(`customers/${customer.id}/customer_cards`, {
      card_id: second.id,
    });
    await post(`customers/${customer.id}/customer_cards/${enrolment.id}/stamp`, { stamps: 4 });
    expect(await find({ min_stamps: '7' })).toEqual([customer.id]);
    expect(await find({ min_stamps: '8' })).toEqual([]);
    expect(await find({ min_stamps: '1' })).not.toContain(cardless);
    const of = (id: number, min_stamps: string) => find({ card_id: String(id), min_stamps });
    expect(await of(card.id, '3')).toEqual([customer.id]);
    expect(await of(card.id, '4')).toEqual([]);
    expect(await of(second.id, '4')).toEqual([customer.id]);
    for (const min_stamps of ['0', '-1', 'many', '1e3']) {
      expectRefused(await list({ min_stamps }, own), 'min_stamps');
    }
  });

  it('SEARCH-41 `inactive_since` finds customers who were created before this time, and none of whose cards has changed since', async () => {
    const { customer, path } = await enrol(own);
    const { id: cardless } = await add({}, own);
    const { created_at: inactive_since } = await add({}, own);
    const { id: newer } = await add({}, own);
    const before = await find({ inactive_since });
    expect(before).toEqual(expect.arrayContaining([customer.id, cardless]));
    expect(before).not.toContain(newer);
    await patch(`customers/${customer.id}`, { customer: { last_name: 'Moved' } });
    expect(await find({ inactive_since })).toContain(customer.id);
    await own.stamp(path);
    expect(await find({ inactive_since })).not.toContain(customer.id);
    expect(await find({ inactive_since: '2000-01-01' })).toEqual([]);
    expect(await find({ inactive_since: '2100-01-01' })).toContain(customer.id);
    expectRefused(await list({ inactive_since: 'long' }, own), 'inactive_since');
  });

  it('SEARCH-42 `birthday_month`, `card_id`, `min_stamps` and `inactive_since` narrow each other and the other filters down, and find neither merged nor erased customers', async () => {
    const { card, customer, path } = await enrol(own);
    await own.stamp(path, 2);
    await patch(`customers/${customer.id}`, { customer: { birthday: '1990-03-01' } });
    const { id: friend } = await add({ birthday: '1991-03-01' }, own);
    await post(`customers/${friend}/customer_cards`, { card_id: card.id });
    const card_id = String(card.id);
    const all = {
      card_id,
      birthday_month: '3',
      min_stamps: '2',
      inactive_since: '2100-01-01',
      updated_since: '2020-01-01',
      search: 'Anna',
    };
    expect(await find(all)).toEqual([customer.id]);
    expect(await find({ ...all, cursor: '' })).toEqual([customer.id]);
    for (const [name, value] of Object.entries({
      birthday_month: '4',
      min_stamps: '3',
      inactive_since: '2020-01-01',
      updated_since: '2100-01-01',
      search: 'Nina',
    })) {
      expect(await find({ ...all, [name]: value })).toEqual([]);
    }
    const both = { card_id, birthday_month: '3' };
    expect(await find(both)).toEqual([friend, customer.id]);
    await post(`customers/${customer.id}/merge`, { from_customer_id: friend });
    expect(await find(both)).toEqual([customer.id]);
    expect(await find({ inactive_since: '2100-01-01' })).not.toContain(friend);
    await post(`customers/${customer.id}/erase`, {});
    expect(await find({ card_id })).toEqual([]);
    expect(await find({ inactive_since: '2100-01-01' })).not.toContain(customer.id);
    expect(await find({ min_stamps: '2' })).not.toContain(customer.id);
  });
});
