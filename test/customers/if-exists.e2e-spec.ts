import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';

const service = useSharedService();
const store = service.useStore({ country: 'DE' });
const otherStore = service.useStore({ country: 'DE' });
let people = 0;

const unique = () => {
  const n = String(++people).padStart(5, '0');
  return {
    email: `exists${n}@example.com`,
    phone: `+491514${n}99`,
    external_references: [{ source: 'till', external_id: `exists-${n}` }],
  };
};
const post = (fields: object, beside: object = { if_exists: 'return' }, at = store) =>
  at.post<CreatedCustomerJson>(`${at.store}/customers`, {
    customer: { first_name: 'Ada', ...fields },
    ...beside,
  });
async function create(fields: object, at = store): Promise<CreatedCustomerJson> {
  const { status, body } = await post(fields, {}, at);
  expect(status).toBe(201);
  return body;
}
async function newCard(fields: object = {}): Promise<CardJson> {
  const card = { name: 'Coffee', ...fields };
  return (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
}
const get = async (id: number) =>
  (await store.get<CreatedCustomerJson>(`${store.store}/customers/${id}`)).body;
const count = async () =>
  (await store.get<CustomerListJson>(`${store.store}/customers`)).body.pagination.count;

describe('creating a customer who may exist', () => {
  it('CUST-67 `if_exists` is `error`, the default, or `return`; anything else is 422 `if_exists`', async () => {
    const values = unique();
    await create(values);
    for (const beside of [{}, { if_exists: 'error' }, { if_exists: null }]) {
      expectRefused(await post({ email: values.email }, beside), 'email', 'taken');
    }
    for (const if_exists of ['update', 'RETURN', '', true, 1, {}]) {
      expectRefused(await post(unique(), { if_exists }), 'if_exists');
    }
    // Inside the wrapper it is unknown, like every other field that belongs beside it.
    const inside = await post({ ...values, if_exists: 'return' }, {});
    expectRefused(inside, ['email', 'phone', 'external_references'], 'taken');
    expect(inside.headers.get('x-unknown-parameters')).toContain('if_exists');
    const bare = { first_name: 'Ada', email: values.email, if_exists: 'return' };
    expect((await store.post(`${store.store}/customers`, bare)).status).toBe(200);
  });

  it('CUST-68 With `if_exists` `return` the response is whoever has the `email`, the `phone` or one of the references, as they are, with 200', async () => {
    const values = unique();
    await create(values, otherStore);
    const first = await post(values);
    expect(first.status).toBe(201);
    const existing = await get(first.body.id);
    const spellings = [
      { email: ` ${values.email.toUpperCase()} ` },
      { phone: values.phone.replace('+49', '0') },
      { phone: `00${values.phone.slice(1)}` },
      { ...unique(), external_references: values.external_references },
      { ...unique(), phone: values.phone },
      {
        ...values,
        first_name: 'Grace',
        birthday: '1990-05-31',
        metadata: { milk: 'oat' },
        marketing_consent: true,
        sms_consent: true,
      },
    ];
    for (const fields of spellings) {
      const { status, body } = await post(fields, { if_exists: 'return', send_card_links: true });
      expect([status, body]).toEqual([200, existing]);
    }
    expect(await get(first.body.id)).toEqual(existing);
    const { id } = await create({ email: `changed-${values.email}` });
    const path = `${store.store}/customers/${id}`;
    await store.patch(path, { customer: { email: `left-${values.email}` } });
    expect((await post({ email: `changed-${values.email}` })).status).toBe(201);
    expect((await post({ email: `left-${values.email}` })).body.id).toBe(id);
  });

  it('CUST-69 With `if_exists` and `card_id` a customer is enrolled on that card unless they have it, and the response has `customer_card`', async () => {
    const values = unique();
    const { id } = await create(values);
    const card = await newCard({ initial_stamps: 2 });
    const beside = { if_exists: 'return', card_id: card.id };
    const first = await post(values, beside);
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({
      id,
      stamp_count: 2,
      customer_card: { card_id: card.id, stamps_count: 2 },
    });
    expect(first.body.customer_cards).toHaveLength(1);
    const second = await post(values, beside);
    expect([second.status, second.body]).toEqual([200, first.body]);
    expect(await get(id)).toEqual({ ...first.body, customer_card: undefined });
    const added = await post(unique(), beside);
    expect(added.status).toBe(201);
    expect(Object.keys(added.body.customer_card ?? {})).toEqual(
      Object.keys(first.body.customer_card ?? {}),
    );

    expect((await store.post(`${store.store}/cards/${card.id}/archive`, {})).status).toBe(200);
    expect((await post(values, beside)).status).toBe(200);
    const stranger = unique();
    await create(stranger);
    expectRefused(await post(stranger, beside), 'card_id');
    const expired = await newCard({ expires_at: '2020-01-01T00:00:00Z' });
    expectRefused(await post(stranger, { ...beside, card_id: expired.id }), 'card_id');
    const missing = await post(values, { ...beside, card_id: 999_999_999 });
    expect(missing.status).toBe(404);
  });

  it('CUST-70 With `if_exists` `return`, values that different customers have are 422 `base` with the code `ambiguous`, and nothing is created', async () => {
    const [one, two] = [unique(), unique()];
    const [first, second] = [await create(one), await create(two)];
    const before = await count();
    const card = await newCard();
    for (const fields of [
      { email: two.email, phone: one.phone },
      {
        ...unique(),
        external_references: [...one.external_references, ...two.external_references],
      },
    ]) {
      const refused = await post(fields, { if_exists: 'return', card_id: card.id });
      expectRefused(refused, 'base', 'ambiguous');
      expect(refused.body).toMatchObject({
        error: expect.stringMatching(`${first.id}.*${second.id}`),
      });
    }
    expect(await count()).toBe(before);
    expect((await get(first.id)).customer_cards).toEqual([]);
  });

  it('CUST-71 Of merged customers `if_exists` returns the one that goes on', async () => {
    const [one, two] = [unique(), unique()];
    const [goesOn, merged] = [await create(one), await create(two)];
    const merge = { from_customer_id: merged.id };
    const path = `${store.store}/customers/${goesOn.id}`;
    expect((await store.post(`${path}/merge`, merge)).status).toBe(200);
    for (const fields of [
      // Stays with the one who was merged.
      { email: two.email },
      // Moves.
      { ...unique(), external_references: two.external_references },
      // Of both, who are one person.
      { email: one.email, phone: two.phone },
    ]) {
      const { status, body } = await post(fields);
      expect([status, body.id]).toEqual([200, goesOn.id]);
    }
    expect((await store.post(`${path}/erase`, {})).status).toBe(204);
    const again = await post(two);
    expect(again.status).toBe(201);
    expect([goesOn.id, merged.id]).not.toContain(again.body.id);
  });

  it('CUST-72 The body with `if_exists` has to be valid for a new customer, whoever exists', async () => {
    const values = unique();
    await create(values);
    expectRefused(await post({ ...values, first_name: ' ' }), 'first_name');
    const { external_references } = values;
    expectRefused(await post({ external_references }), 'base');
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    expectRefused(await post({ ...values, birthday: tomorrow }), 'birthday');
  });

  it('CUST-73 Of twenty requests with `if_exists` at once, in whatever spelling, one is 201, and the others are 200 with the same customer', async () => {
    const card = await newCard();
    for (const beside of [{}, { card_id: card.id }]) {
      const { email, phone } = unique();
      const spellings = [
        { phone },
        { phone: phone.replace('+49', '0') },
        { phone: phone.replace('+49', '0049 ') },
        { phone: `${phone.slice(0, 6)} / ${phone.slice(6)}`, email },
        { email: email.toUpperCase(), phone },
      ];
      const before = await count();
      const responses = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          post(spellings[i % spellings.length] ?? {}, { if_exists: 'return', ...beside }),
        ),
      );
      const statuses = responses.map(({ status }) => status).sort();
      expect(statuses).toEqual([...Array.from({ length: 19 }, () => 200), 201]);
      expect(new Set(responses.map(({ body }) => body.id)).size).toBe(1);
      expect(new Set(responses.map(({ body }) => body.customer_card?.id)).size).toBe(1);
      expect(await count()).toBe(before + 1);
    }
    const { email } = unique();
    const emails = [email, email.toUpperCase(), email.replace('com', 'COM'), ` ${email}`];
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, i) => post({ email: emails[i % emails.length] })),
    );
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(19);
    expect(new Set(responses.map(({ body }) => body.id)).size).toBe(1);
    // Somebody who exists is enrolled once.
    const enrolments = await Promise.all(
      Array.from({ length: 10 }, () => post({ email }, { if_exists: 'return', card_id: card.id })),
    );
    expect(enrolments.map(({ status }) => status)).toEqual(enrolments.map(() => 200));
    expect(new Set(enrolments.map(({ body }) => body.customer_card?.id)).size).toBe(1);
  });

  it('CUST-74 Under an `Idempotency-Key` a request with `if_exists` repeats the status of the first response too', async () => {
    const card = await newCard();
    const values = unique();
    const send = (key: string, first_name = 'Ada') =>
      store.send<CreatedCustomerJson>(
        'POST',
        `${store.store}/customers`,
        { customer: { first_name, ...values }, if_exists: 'return', card_id: card.id },
        { 'idempotency-key': key },
      );
    const [firstKey, secondKey] = [randomUUID(), randomUUID()];
    const first = await send(firstKey);
    expect(first.status).toBe(201);
    const second = await send(secondKey);
    expect(second.status).toBe(200);
    for (const [key, response] of [
      [firstKey, first],
      [secondKey, second],
    ] as const) {
      const repeated = await send(key);
      expect([repeated.status, repeated.body]).toEqual([response.status, response.body]);
      expect(repeated.headers.get('idempotent-replayed')).toBe('true');
      expectRefused(await send(key, 'Grace'), 'idempotency_key', 'idempotency_key_reused');
    }
    // The stored response is erased with the person whom it is about.
    const path = `${store.store}/customers/${first.body.id}`;
    expect((await store.post(`${path}/erase`, {})).status).toBe(204);
    for (const key of [firstKey, secondKey]) {
      expectRefused(await send(key), 'base', 'customer_erased');
    }
  });
});
