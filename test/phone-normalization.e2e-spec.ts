import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { CustomerListJson } from '#customers/customer-list.dto.js';
import type { CustomerJson } from '#customers/customer.dto.js';
import { newPhoneNormalization, normalizePhones } from './support/services/phone-normalization.js';
import { startService, type Client, type LocalService } from './support/services/service.js';

let service: LocalService;
let pool: Pool;

beforeAll(async () => {
  service = await startService();
  pool = service.app.get(Pool);
});
afterAll(() => service.stop());

async function add(store: Client, phone: string): Promise<CustomerJson> {
  const customer = { first_name: 'Ada', phone };
  const response = await store.post<CustomerJson>(`${store.store}/customers`, { customer });
  expect(response.status).toBe(201);
  return response.body;
}

const setCountry = (store: Client, country: string | null) =>
  store.send('PATCH', store.store, { account: { country } });

const phonesOf = async (store: Client) =>
  (await store.get<CustomerListJson>(`${store.store}/customers?items=100`)).body.customers.map(
    ({ phone }) => phone,
  );

describe('a pass over the customers of a store', () => {
  const passOf = async ({ accountId }: Client) =>
    (
      await service.database.query<{ after_id: number; is_repeated: boolean; due_at: Date | null }>(
        'select after_id, is_repeated, due_at from phone_normalizations where account_id = $1',
        [accountId],
      )
    ).rows[0];

  it('goes on where it was killed, changes nobody twice, and lets another store have its turn', async () => {
    const store = await service.newStore();
    const phones = Array.from({ length: 203 }, (_, i) => `0171 ${5_000_000 + i}`);
    await Promise.all(phones.map((phone) => add(store, phone)));
    await normalizePhones(service);
    const other = await service.newStore();
    await add(other, '0171 1234567');
    for (const one of [store, other]) await setCountry(one, 'DE');
    // Dies after the customers of its slice were changed, before it has said so.
    const killed = new Proxy(pool, {
      get: (target, name) =>
        name === 'query'
          ? async (query: { name: string }) => {
              if (query.name === 'phone_normalizations_go_on') throw new Error('killed');
              return target.query(query as never);
            }
          : Reflect.get(target, name),
    });
    const first = newPhoneNormalization(service, killed);
    await expect(first.takeTurn()).rejects.toThrow('killed');
    expect(await passOf(store)).toMatchObject({ after_id: 0, is_repeated: true });
    expect((await phonesOf(store)).length).toBe(100);
    // The next slice of this store, and then the other one's turn.
    const next = newPhoneNormalization(service);
    await next.takeTurn();
    await next.takeTurn();
    expect(await phonesOf(other)).toEqual(['+491711234567']);
    const { after_id } = (await passOf(store)) ?? { after_id: 0 };
    expect(after_id).toBeGreaterThan(0);
    await Promise.all([normalizePhones(service), normalizePhones(service)]);
    const { rows } = await service.database.query(
      `select count(*) as customers, count(*) filter (where state ->> 'phone' like '+49171%') as changed
       from customers where account_id = $1`,
      [store.accountId],
    );
    expect(rows).toEqual([{ customers: 203, changed: 203 }]);
    const history = await service.history();
    const changes = history.filter(
      ({ type, meta }) => type === 'CustomerPhoneNormalized' && meta.accountId === store.accountId,
    );
    expect(new Set(changes.map(({ stream }) => stream)).size).toBe(203);
    expect(changes).toHaveLength(203);
  });

  it('is followed by another for commands that read the former country, and starts anew when the store changes', async () => {
    const store = await service.newStore({ country: 'DE' });
    await normalizePhones(service);
    const pass = await passOf(store);
    expect(pass).toMatchObject({ is_repeated: false, due_at: expect.any(Date) });
    // As a command leaves it that had read no country.
    const { id } = await add(store, '+4930999');
    await service.database.query(
      `update customers set state = jsonb_set(state, '{phone}', '"0151 12345678"') where id = $1`,
      [id],
    );
    await normalizePhones(service);
    expect(await phonesOf(store)).toEqual(['0151 12345678']);
    await service.database.query(
      'update phone_normalizations set due_at = now() where account_id = $1',
      [store.accountId],
    );
    await normalizePhones(service);
    expect(await phonesOf(store)).toEqual(['+4915112345678']);
    expect(await passOf(store)).toMatchObject({ is_repeated: false, due_at: null });
    await setCountry(store, null);
    await setCountry(store, 'DE');
    await newPhoneNormalization(service).takeTurn();
    expect(await passOf(store)).toMatchObject({ is_repeated: false, due_at: expect.any(Date) });
  });

  it('begins with the commit that gives the store another country, and with no other one', async () => {
    const store = await service.newStore();
    expect(await passOf(store)).toBeUndefined();
    await setCountry(store, 'DE');
    expect(await passOf(store)).toMatchObject({ is_repeated: true, due_at: expect.any(Date) });
    await normalizePhones(service);
    const pass = await passOf(store);
    expect(pass).toMatchObject({ is_repeated: false });
    await store.send('PATCH', store.store, { account: { store_name: 'Renamed' } });
    await setCountry(store, null);
    expect(await passOf(store)).toEqual(pass);
    await setCountry(store, 'AT');
    expect(await passOf(store)).toMatchObject({ is_repeated: true });
    expect(await passOf(await service.newStore({ country: 'DE' }))).toMatchObject({
      is_repeated: true,
    });
  });

  it('does nothing for a country that was changed while it was gone through', async () => {
    const store = await service.newStore();
    await add(store, '0171 7654321');
    await normalizePhones(service);
    await setCountry(store, 'AT');
    const changing = new Proxy(pool, {
      get: (target, name) =>
        name === 'query'
          ? async (query: { name: string }) => {
              if (query.name === 'phone_normalizations_finish') await setCountry(store, 'DE');
              return target.query(query as never);
            }
          : Reflect.get(target, name),
    });
    await newPhoneNormalization(service, changing).takeTurn();
    expect(await passOf(store)).toMatchObject({ after_id: 0, is_repeated: true });
  });

  it('is found among those of many stores by an index, and so are the customers', async () => {
    const { database } = service;
    await normalizePhones(service);
    await database.query(`
      insert into phone_normalizations (account_id, revision, due_at)
      select 1000000 + i, 1, case when i % 100 = 0 then now() + interval '1 day' end
      from generate_series(1, 100000) i;
      analyze phone_normalizations`);
    const plans = new Map<string, string>();
    const explaining = new Proxy(pool, {
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
    const normalization = newPhoneNormalization(service, explaining);
    expect(await normalization.takeTurn()).toBe(false);
    await database.query(
      'update phone_normalizations set due_at = now() where account_id = 1000100',
    );
    expect(await normalization.takeTurn()).toBe(true);
    expect(plans.get('phone_normalizations_due')).toMatch(
      /Index Scan using phone_normalizations_due/,
    );
    expect(plans.get('phone_normalizations_next')).toMatch(/customers_phone_unknown/);
    const [, pages] =
      /Buffers: shared hit=(\d+)/.exec(plans.get('phone_normalizations_due') ?? '') ?? [];
    expect(Number(pages)).toBeLessThan(10);
    await database.query('delete from phone_normalizations where account_id > 1000000');
  });
});
