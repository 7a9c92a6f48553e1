import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let people = 0;

type Updated = { id: number; updated_at: string };

const query = (parameters: Record<string, string>) => `?${new URLSearchParams(parameters)}`;
const readIds = async (path: string) => (await store.get<Updated[]>(path)).body.map(({ id }) => id);

/** Checks that a list takes `updated_since`. @param change changes a record in a way that its `updated_at` shows */
async function expectUpdatedSince(
  list: string,
  create: (n: number) => Promise<Updated>,
  change: (id: number) => Promise<unknown>,
): Promise<void> {
  const first = await create(1);
  const second = await create(2);
  const third = await create(3);
  const path = `${store.store}/${list}`;
  const since = (updated_since: string, more: object = {}) =>
    readIds(`${path}${query({ updated_since, ...more })}`);
  expect(await since(first.updated_at)).toEqual(
    expect.arrayContaining([first.id, second.id, third.id]),
  );
  await change(second.id);
  const { body } = await store.get<Updated>(`${path}/${second.id}`);
  expect(body.updated_at > third.updated_at).toBe(true);
  expect(await since(body.updated_at)).toEqual([second.id]);
  expect(await since('2100-01-01')).toEqual([]);
  // A date is the start of that day.
  expect(await since('2026-01-01')).toEqual(await readIds(path));
  expect(await readIds(`${path}${query({ updated_since: ' ' })}`)).toEqual(await readIds(path));
  const page = await store.get<Updated[]>(
    `${path}${query({ updated_since: first.updated_at, limit: '1' })}`,
  );
  expect(page.body).toHaveLength(1);
  expect(page.headers.get('link')).toContain('updated_since=');
  for (const time of ['yesterday', '2026-02-30', '0']) {
    expectRefused(await store.get(`${path}${query({ updated_since: time })}`), 'updated_since');
  }
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const response = await store.post<T>(`${store.store}/${path}`, body);
  expect(response.status).toBeLessThan(300);
  return response.body;
}
const patch = (path: string, body: unknown) => store.patch(`${store.store}/${path}`, body);

describe('filters of the lists', () => {
  it('CARD-58 `updated_since` lists the cards whose `updated_at` is at or after this time; it works with `scope` and `as_of`', async () => {
    await expectUpdatedSince(
      'cards',
      (n) => post('cards', { card: { name: `Card ${n}` } }),
      (id) => patch(`cards/${id}`, { card: { name: 'Changed' } }),
    );
    const { id } = await post<CardJson>('cards', { card: { name: 'Old' } });
    const card = await post<CardJson>(`cards/${id}/archive`, {});
    const path = `${store.store}/cards`;
    const updated_since = card.updated_at;
    expect(await readIds(`${path}${query({ updated_since })}`)).toEqual([]);
    expect(await readIds(`${path}${query({ updated_since, scope: 'all' })}`)).toEqual([id]);
    const as_of = new Date().toISOString();
    await patch(`cards/${id}`, { card: { name: 'Later' } });
    const past = query({ updated_since, as_of, scope: 'all' });
    expect(await readIds(`${path}${past}`)).toEqual([id]);
    const next = new Date(Date.parse(updated_since) + 1).toISOString();
    const later = query({ updated_since: next, as_of, scope: 'all' });
    expect(await readIds(`${path}${later}`)).toEqual([]);
  });

  it('REWARD-32 `updated_since` lists the rewards whose `updated_at` is at or after this time; it works with the other filters and `as_of`', async () => {
    const { id: card_id } = await post<CardJson>('cards', { card: { name: 'Coffee' } });
    const create = (n: number) =>
      post<Updated>('rewards', { reward: { card_id, name: `Cup ${n}`, stamps_required: n } });
    await expectUpdatedSince('rewards', create, (id) =>
      patch(`rewards/${id}`, { reward: { name: 'Changed' } }),
    );
    const last = await create(9);
    const updated_since = last.updated_at;
    const path = `${store.store}/rewards`;
    const filters = { card_id: String(card_id), active: 'true' };
    expect(await readIds(`${path}${query({ updated_since, ...filters })}`)).toEqual([last.id]);
    expect(await readIds(`${path}${query({ updated_since, active: 'false' })}`)).toEqual([]);
    const as_of = new Date().toISOString();
    expect(await readIds(`${path}${query({ updated_since, as_of })}`)).toEqual([last.id]);
    await store.delete(`${path}/${last.id}`);
    expect(await readIds(`${path}${query({ updated_since })}`)).toEqual([]);
    expect(await readIds(`${path}${query({ updated_since, as_of })}`)).toEqual([last.id]);
  });

  it('LOC-30 `updated_since` lists the locations whose `updated_at` is at or after this time', async () => {
    await expectUpdatedSince(
      'locations',
      (n) => post('locations', { location: { name: `Shop ${n}`, address: `Main Street ${n}` } }),
      (id) => patch(`locations/${id}`, { location: { name: 'Changed' } }),
    );
  });

  it('POSTER-43 `updated_since` lists the posters whose `updated_at` is at or after this time; it works with the other filters', async () => {
    const { id: card_id } = await post<CardJson>('cards', { card: { name: 'Coffee' } });
    const create = () => post<Updated>('posters', { poster: { card_id } });
    await expectUpdatedSince('posters', create, (id) =>
      patch(`posters/${id}`, { poster: { title: 'Changed' } }),
    );
    const last = await create();
    const filters = { updated_since: last.updated_at, card_id: String(card_id), active: '1' };
    const path = `${store.store}/posters`;
    expect(await readIds(`${path}${query(filters)}`)).toEqual([last.id]);
    expect(await readIds(`${path}${query({ ...filters, active: '0' })}`)).toEqual([]);
  });
});

async function add(fields: object = {}): Promise<CustomerJson> {
  const customer = { first_name: 'Ivy', email: `ivy${++people}@example.com`, ...fields };
  return post<CustomerJson>('customers', { customer });
}
async function find(parameters: Record<string, string>): Promise<number[]> {
  const path = `${store.store}/customers${query(parameters)}`;
  const { status, body } = await store.get<CustomerListJson>(path);
  expect([status, body.pagination?.count]).toEqual([200, body.customers.length]);
  return body.customers.map(({ id }) => id);
}
const now = async () => (await add()).created_at;

describe('filters of the list of customers', () => {
  it('SEARCH-38 `birthday_month` finds customers who were born in this month, from 1 to 12; anything else is 422 `birthday_month`', async () => {
    const { id } = await add({ birthday: '1990-05-31' });
    const { id: second } = await add({ birthday: '2000-05-01' });
    const { id: december } = await add({ birthday: '1985-12-24' });
    await add();
    expect(await find({ birthday_month: '5' })).toEqual([second, id]);
    expect(await find({ birthday_month: '05' })).toEqual([second, id]);
    expect(await find({ birthday_month: '12' })).toEqual([december]);
    expect(await find({ birthday_month: '1' })).toEqual([]);
    await patch(`customers/${id}`, { customer: { birthday: '1990-06-30' } });
    expect(await find({ birthday_month: '5' })).toEqual([second]);
    await patch(`customers/${second}`, { customer: { birthday: null } });
    expect(await find({ birthday_month: '5' })).toEqual([]);
    for (const birthday_month of ['0', '13', '-1', 'may', '1.5']) {
      const path = `${store.store}/customers${query({ birthday_month })}`;
      expectRefused(await store.get(path), 'birthday_month');
    }
  });

  it('SEARCH-39 `card_id` finds customers who have this card; for an unknown card, or one of another store, there is nobody', async () => {
    const { card, customer } = await enrol(store);
    const { card: otherCard, customer: otherCustomer } = await enrol(store);
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
      expectRefused(await store.get(`${store.store}/customers${query({ card_id })}`), 'card_id');
    }
  });

  it('SEARCH-40 `min_stamps` finds customers who have at least so many stamps: with `card_id` on that card, else as their `stamp_count`', async () => {
    const { card, customer, path } = await enrol(store);
    const { card: second } = await enrol(store);
    const { id: cardless } = await add();
    await store.stamp(path, 3);
    type Enrolled = { id: number };
    const enrolment = await post<Enrolled>(`customers/${customer.id}/customer_cards`, {
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
      const list = `${store.store}/customers${query({ min_stamps })}`;
      expectRefused(await store.get(list), 'min_stamps');
    }
  });

  it('SEARCH-41 `inactive_since` finds customers who were created before this time, and none of whose cards has changed since', async () => {
    const { customer, path } = await enrol(store);
    const { id: cardless } = await add();
    const inactive_since = await now();
    const { id: newer } = await add();
    const before = await find({ inactive_since });
    expect(before).toEqual(expect.arrayContaining([customer.id, cardless]));
    expect(before).not.toContain(newer);
    await patch(`customers/${customer.id}`, { customer: { last_name: 'Moved' } });
    expect(await find({ inactive_since })).toContain(customer.id);
    await store.stamp(path);
    expect(await find({ inactive_since })).not.toContain(customer.id);
    expect(await find({ inactive_since: '2000-01-01' })).toEqual([]);
    expect(await find({ inactive_since: '2100-01-01' })).toContain(customer.id);
    const list = `${store.store}/customers${query({ inactive_since: 'long' })}`;
    expectRefused(await store.get(list), 'inactive_since');
  });

  it('SEARCH-42 `birthday_month`, `card_id`, `min_stamps` and `inactive_since` narrow each other and the other filters down, and find neither merged nor erased customers', async () => {
    const { card, customer, path } = await enrol(store);
    await store.stamp(path, 2);
    await patch(`customers/${customer.id}`, { customer: { birthday: '1990-03-01' } });
    const { id: friend } = await add({ birthday: '1991-03-01' });
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
      search: 'Ivy',
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
