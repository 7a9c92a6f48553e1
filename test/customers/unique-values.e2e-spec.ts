import { describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectRefused, useSharedService, type Failure } from '../support/http/contract.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let people = 0;

const unique = () => {
  const n = ++people;
  return {
    email: `taken${n}@example.com`,
    phone: `+4915140${String(n).padStart(5, '0')}`,
    external_references: [{ source: 'till', external_id: `taken-${n}` }],
  };
};
const post = (fields: object, at = store) =>
  at.post<CustomerJson>(`${at.store}/customers`, { customer: { first_name: 'Ada', ...fields } });
const patch = (id: number, fields: object) =>
  store.patch(`${store.store}/customers/${id}`, { customer: fields });
async function create(fields: object, at = store): Promise<number> {
  const { status, body } = await post(fields, at);
  expect(status).toBe(201);
  return body.id;
}
function expectTaken(
  response: ApiResponse<unknown>,
  fields: string | string[],
  existing: object,
): void {
  expectRefused(response, fields, 'taken');
  expect((response.body as Failure & { existing?: object }).existing).toEqual(existing);
}

describe('a value that another record has', () => {
  it('ERR-25 A unique value that another record has is 422 `taken` on its field, with `existing` `{type, id}`', async () => {
    const other = await service.newStore();
    const values = unique();
    await create(values, other);
    const id = await create(values);
    const existing = { type: 'customer', id };
    const bystander = await create(unique());
    for (const [field, value] of Object.entries(values)) {
      const fields = { ...unique(), [field]: value };
      expectTaken(await post(fields), field, existing);
      expectTaken(await patch(bystander, { [field]: value }), field, existing);
      // Of its own it is no conflict.
      expect((await patch(id, { [field]: value })).status).toBe(200);
    }
    const upper = { email: values.email.toUpperCase() };
    const racing = await Promise.all(
      Array.from({ length: 5 }, () => post({ email: `race-${values.email}` })),
    );
    const [winner] = racing.filter(({ status }) => status === 201);
    for (const lost of racing.filter(({ status }) => status !== 201)) {
      expectTaken(lost, 'email', { type: 'customer', id: winner?.body.id });
    }
    const goesOn = await create(unique());
    const merge = { from_customer_id: id };
    const merged = await store.post(`${store.store}/customers/${goesOn}/merge`, merge);
    expect(merged.status).toBe(200);
    expectTaken(await post(upper), 'email', { type: 'customer', id: goesOn });

    const one = await enrol(store, { rewards: [1] });
    const two = await enrol(store, { rewards: [1] });
    const existingCard = { type: 'customer_card', id: one.customerCard.id };
    const cards = `${store.store}/customers/${one.customer.id}/customer_cards`;
    expectTaken(await store.post(cards, { card_id: one.card.id }), 'card_id', existingCard);
    const stamping = { stamps: 2, external_ref: `taken ${one.path}` };
    expect((await store.post(`${one.path}/stamp`, stamping)).status).toBe(200);
    const redemption = { reward_id: one.rewards[0]?.id, external_ref: stamping.external_ref };
    expect((await store.post(`${one.path}/redeem`, redemption)).status).toBe(200);
    const [code] = [two.customerCard.code];
    for (const [path, body] of [
      [`${two.path}/stamp`, stamping],
      [`${two.path}/stamp?dry_run=true`, stamping],
      [`${one.path}/stamp`, { ...stamping, stamps: 1 }],
      [`${store.store}/customer_cards/by_code/${code}/stamp`, stamping],
      [`${two.path}/redeem`, { ...redemption, reward_id: two.rewards[0]?.id }],
      [`${store.store}/customer_cards/by_code/${code}/redeem`, redemption],
    ] as const) {
      expectTaken(await store.post(path, body), 'external_ref', existingCard);
    }
    const there = await enrol(other);
    expect((await other.post(`${there.path}/stamp`, stamping)).status).toBe(200);
  });

  it('ERR-26 If several values are taken, `errors` has them all, and `existing` is the holder of the first of `email`, `phone` and `external_references`', async () => {
    const [one, two, three] = [unique(), unique(), unique()];
    const [first, second, third] = [await create(one), await create(two), await create(three)];
    const { email } = one;
    const { phone } = two;
    const { external_references } = three;
    expectTaken(
      await post({ external_references, phone, email }),
      ['email', 'phone', 'external_references'],
      { type: 'customer', id: first },
    );
    const own = unique();
    expectTaken(
      await post({ ...own, external_references, phone }),
      ['phone', 'external_references'],
      { type: 'customer', id: second },
    );
    const references = [...own.external_references, ...external_references];
    expectTaken(await post({ ...own, external_references: references }), 'external_references', {
      type: 'customer',
      id: third,
    });
    expectRefused(await post({ email, birthday: 'yesterday' }), 'birthday');
    expectRefused(await post({ email, first_name: ' ' }), 'first_name');
  });

  it('ERR-27 A value that is taken has `existing` in problem details too, and no other failure has it', async () => {
    const { email } = unique();
    const id = await create({ email });
    const problem = { accept: 'application/problem+json' };
    const path = `${store.store}/customers`;
    const body = { customer: { first_name: 'Ada', email } };
    const response = await store.send('POST', path, body, problem);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expectTaken(response, 'email', { type: 'customer', id });
    expect(response.body).toMatchObject({ status: 422, type: expect.stringMatching(/#taken$/) });
    // The rejection that is stored under a key has it as well.
    const key = { 'idempotency-key': `taken ${email}` };
    const keyed = [
      await store.send('POST', path, body, key),
      await store.send('POST', path, body, { ...key, ...problem }),
    ];
    for (const response of keyed) expectTaken(response, 'email', { type: 'customer', id });
    for (const failure of [await post({ first_name: '' }), await store.get(`${path}/999999999`)]) {
      expect(failure.body).not.toHaveProperty('existing');
    }
  });
});
