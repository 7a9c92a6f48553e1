import { describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const toPath = ({ id }: { id: number }) => `${store.store}/customers/${id}`;
const update = (customer: { id: number }, changes: object) =>
  store.patch<CustomerJson>(toPath(customer), { customer: changes });
const show = async (customer: { id: number }) =>
  (await store.get<CustomerJson>(toPath(customer))).body;

describe('concurrent changes', () => {
  it('of ten customers to one e-mail address succeed once, and get 422 otherwise', async () => {
    const ten = await Promise.all(Array.from({ length: 10 }, () => enrol(store)));
    const responses = await Promise.all(
      ten.map(({ customer }) => update(customer, { email: 'wanted@example.com', phone: null })),
    );
    const rejections = responses.filter(({ status }) => status !== 200);
    expect(rejections).toHaveLength(9);
    for (const response of rejections) expectRefused(response, 'email', 'taken');
  });

  it('that swap the addresses of two customers leave them two different ones', async () => {
    const [one, two] = [(await enrol(store)).customer, (await enrol(store)).customer];
    const responses = await Promise.all([
      update(one, { email: two.email }),
      update(two, { email: one.email }),
    ]);
    for (const response of responses)
      if (response.status !== 200) expectRefused(response, 'email', 'taken');
    const emails = (await Promise.all([one, two].map(show))).map(({ email }) => email);
    expect(new Set(emails).size).toBe(2);
  });

  it('of one customer are all stored', async () => {
    const { customer } = await enrol(store);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => update(customer, { metadata: { [`k${i}`]: i } })),
    );
    expect(Object.keys((await show(customer)).metadata)).toHaveLength(20);
  });

  it('of one store are all stored', async () => {
    const own = await service.newStore();
    const changes = [
      { name: 'Bakery' },
      { store_name: 'The Corner' },
      { time_zone: 'Asia/Kolkata' },
      { locale: 'fr' },
    ];
    const responses = await Promise.all(
      changes.map((account) => own.patch(own.store, { account })),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await own.get(own.store)).body).toMatchObject(Object.assign({}, ...changes));
  });
});
