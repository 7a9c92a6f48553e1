import { describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const search = async (term: string) => {
  const query = new URLSearchParams({ search: term });
  const { body } = await store.get<CustomerListJson>(`${store.store}/customers?${query}`);
  return body.customers.map((customer) => customer.first_name);
};

describe('the customer search', () => {
  it('finds names that are too long for an index', async () => {
    const first_name = '🙂🙃'.repeat(127);
    const last_name = Array.from({ length: 250 }, (_, i) => String.fromCodePoint(0x1f300 + i));
    const create = (customer: object) =>
      store.post<CustomerJson>(`${store.store}/customers`, { customer });
    const creation = await create({
      first_name,
      last_name: last_name.join(''),
      email: 'long@example.com',
    });
    expect(creation.status).toBe(201);
    const { rows } = await service.running.database.query<{ long: boolean }>(
      'select long_search_text is not null as long from customers where id = $1',
      [creation.body.id],
    );
    expect(rows).toEqual([{ long: true }]);
    expect(await search('🙃🙂🙃')).toEqual([first_name]);
    expect(await search('long@')).toEqual([first_name]);
    expect(await search('🙃🙃')).toEqual([]);
    // One character, which compatibility decomposition turns into eighteen.
    expect((await create({ first_name: 'ﷺ'.repeat(255), phone: '90003' })).status).toBe(201);
    expect(await search('ﷺ')).toHaveLength(1);
  });

  it('finds a customer whose read model an older version projected, once they have changed', async () => {
    const { customer } = await enrol(store);
    await service.running.database.query(
      `update customers set projection_version = 1, state = state - 'searchText' where id = $1`,
      [customer.id],
    );
    const { body } = await store.patch(`${store.store}/customers/${customer.id}`, {
      customer: { last_name: 'Umlauf' },
    });
    expect(body).toMatchObject({ first_name: 'Anna', email: customer.email, last_name: 'Umlauf' });
    expect(await search('anna umlauf')).toEqual(['Anna']);
  });
});
