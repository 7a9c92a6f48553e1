import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { newPhoneNormalization, normalizePhones } from '../support/services/phone-normalization.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let pool: Pool;

beforeAll(async () => {
  service = await startService();
  pool = service.app.get(Pool);
});
afterAll(() => service.stop());

async function addCustomer(store: Client, phone: string): Promise<CustomerJson> {
  const customer = { first_name: 'Ada', phone };
  const response = await store.post<CustomerJson>(`${store.store}/customers`, { customer });
  expect(response.status).toBe(201);
  return response.body;
}

const setCountry = (store: Client, country: string | null) =>
  store.send('PATCH', store.store, { account: { country } });

const listPhones = async (store: Client) =>
  (await store.get<CustomerListJson>(`${store.store}/customers?items=100`)).body.customers.map(
    ({ phone }) => phone,
  );

describe('phone normalization', () => {
  const findProgress = async ({ accountId }: Client) =>
    (
      await service.database.query<{ after_id: number; is_repeated: boolean; due_at: Date | null }>(
        'select after_id, is_repeated, due_at from phone_normalizations where account_id = $1',
        [accountId],
      )
    ).rows[0];

  it('resumes where it was killed, changes no customer twice, and works round robin with other stores', async () => {
    const store = await service.newStore();
    const phones = Array.from({ length: 203 }, (_, i) => `0171 ${5_000_000 + i}`);
    await Promise.all(phones.map((phone) => addCustomer(store, phone)));
    await normalizePhones(service);
    const otherStore = await service.newStore();
    await addCustomer(otherStore, '0171 1234567');
    for (const client of [store, otherStore]) await setCountry(client, 'DE');
    // Dies after it has changed a batch of customers, before it has stored its progress.
    const killedPool = new Proxy(pool, {
      get: (target, name) =>
        name === 'query'
          ? async (query: { name: string }) => {
              if (query.name === 'phone_normalizations_advance') throw new Error('killed');
              return target.query(query as never);
            }
          : Reflect.get(target, name),
    });
    const first = newPhoneNormalization(service, killedPool);
    await expect(first.normalizeNext()).rejects.toThrow('killed');
    expect(await findProgress(store)).toMatchObject({ after_id: 0, is_repeated: true });
    expect((await listPhones(store)).length).toBe(100);
    // First the other store, as the failure of one delays no other, and then the next batch of this store.
    const next = newPhoneNormalization(service);
    await next.normalizeNext();
    expect(await listPhones(otherStore)).toEqual(['+491711234567']);
    await next.normalizeNext();
    const { after_id } = (await findProgress(store)) ?? { after_id: 0 };
    expect(after_id).toBeGreaterThan(0);
    await Promise.all([normalizePhones(service), normalizePhones(service)]);
    const { rows } = await service.database.query(
      `select count(*) as customers, count(*) filter (where state ->> 'phone' like '+49171%') as changed
       from customers where account_id = $1`,
      [store.accountId],
    );
    expect(rows).toEqual([{ customers: 203, changed: 203 }]);
    const history = await service.history();
    const changeEvents = history.filter(
      ({ type, meta }) => type === 'CustomerPhoneNormalized' && meta.accountId === store.accountId,
    );
    expect(new Set(changeEvents.map(({ stream }) => stream)).size).toBe(203);
    expect(changeEvents).toHaveLength(203);
  });

  it('runs again later for phones saved under the former country, and once more after the country changes', async () => {
    const store = await service.newStore({ country: 'DE' });
    await normalizePhones(service);
    const progress = await findProgress(store);
    expect(progress).toMatchObject({ is_repeated: false, due_at: expect.any(Date) });
    // As a command leaves it that has loaded the store before it had a country.
    const { id } = await addCustomer(store, '+4930999');
    await service.database.query(
      `update customers set state = jsonb_set(state, '{phone}', '"0151 12345678"') where id = $1`,
      [id],
    );
    await normalizePhones(service);
    expect(await listPhones(store)).toEqual(['0151 12345678']);
    await service.database.query(
      'update phone_normalizations set due_at = now() where account_id = $1',
      [store.accountId],
    );
    await normalizePhones(service);
    expect(await listPhones(store)).toEqual(['+4915112345678']);
    expect(await findProgress(store)).toMatchObject({ is_repeated: false, due_at: null });
    await setCountry(store, null);
    await setCountry(store, 'DE');
    await newPhoneNormalization(service).normalizeNext();
    expect(await findProgress(store)).toMatchObject({
      is_repeated: false,
      due_at: expect.any(Date),
    });
  });

  it('starts with a commit that sets a country, and not with one that renames the store or clears the country', async () => {
    const store = await service.newStore();
    expect(await findProgress(store)).toBeUndefined();
    await setCountry(store, 'DE');
    expect(await findProgress(store)).toMatchObject({
      is_repeated: true,
      due_at: expect.any(Date),
    });
    await normalizePhones(service);
    const progress = await findProgress(store);
    expect(progress).toMatchObject({ is_repeated: false });
    await store.send('PATCH', store.store, { account: { store_name: 'Renamed' } });
    await setCountry(store, null);
    expect(await findProgress(store)).toEqual(progress);
    await setCountry(store, 'AT');
    expect(await findProgress(store)).toMatchObject({ is_repeated: true });
    expect(await findProgress(await service.newStore({ country: 'DE' }))).toMatchObject({
      is_repeated: true,
    });
  });

  it('starts over when the country changes while it runs', async () => {
    const store = await service.newStore();
    await addCustomer(store, '0171 7654321');
    await normalizePhones(service);
    await setCountry(store, 'AT');
    const changingPool = new Proxy(pool, {
      get: (target, name) =>
        name === 'query'
          ? async (query: { name: string }) => {
              if (query.name === 'phone_normalizations_finish') await setCountry(store, 'DE');
              return target.query(query as never);
            }
          : Reflect.get(target, name),
    });
    await newPhoneNormalization(service, changingPool).normalizeNext();
    expect(await findProgress(store)).toMatchObject({ after_id: 0, is_repeated: true });
  });

  it('finds the due store among 100,000, and its customers, by an index', async () => {
    const { database } = service;
    await normalizePhones(service);
    await database.query(`
      insert into phone_normalizations (account_id, revision, due_at)
      select 1000000 + i, 1, case when i % 100 = 0 then now() + interval '1 day' end
      from generate_series(1, 100000) i;
      analyze phone_normalizations`);
    const plans = new Map<string, string>();
    const explainingPool = new Proxy(pool, {
      get: (target, name) =>
        name === 'query'
          ? async (query: { name: string; text: string; values?: unknown[] }) => {
              const { text, values = [] } = query;
              const { rows } = await target.query<Record<string, string>>(
                `explain (analyze, buffers, timing off, summary off) ${text}`,
                values,
              );
              plans.set(query.name, rows.map((row) => row['QUERY PLAN']).join('\n'));
              return target.query(query as never);
            }
          : Reflect.get(target, name),
    });
    const normalization = newPhoneNormalization(service, explainingPool);
    expect(await normalization.normalizeNext()).toBe(false);
    await database.query(
      'update phone_normalizations set due_at = now() where account_id = 1000100',
    );
    expect(await normalization.normalizeNext()).toBe(true);
    expect(plans.get('phone_normalizations_due')).toMatch(
      /Index Scan using phone_normalizations_due/,
    );
    expect(plans.get('phone_normalizations_next')).toMatch(/customers_phone_known/);
    const [, pages] =
      /Buffers: shared hit=(\d+)/.exec(plans.get('phone_normalizations_due') ?? '') ?? [];
    expect(Number(pages)).toBeLessThan(10);
    await database.query('delete from phone_normalizations where account_id > 1000000');
  });
});
