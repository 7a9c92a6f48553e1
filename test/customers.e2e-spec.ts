import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type {
  CustomerJson,
  CustomerListJson,
  CreatedCustomerJson,
} from '#customers/customer.dto.js';
import { startService, type Client, type Service } from './support/service.js';
import { enrol } from './support/story.js';

type Refused = { code: string; errors: Record<string, string[]> };

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

const create = (customer: object, more: object = {}) =>
  store.post<CreatedCustomerJson & Refused>(`${store.store}/customers`, { customer, ...more });
const search = async (query: string) => {
  const { body } = await store.get<CustomerListJson>(`${store.store}/customers?${query}`);
  return body.customers.map((customer) => customer.first_name);
};

describe('creating', () => {
  it('answers with every field and shows the same ever after', async () => {
    const made = await create({
      first_name: ' Änne ',
      last_name: null,
      email: 'Anne@Example.com',
      phone: '+49 (0)151 2345678',
      birthday: '1990-02-28',
      metadata: { size: 'L', gone: null },
      external_references: [{ source: 'pos', external_id: 77 }],
      marketing_consent: 1,
    });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(Number),
      account_id: store.accountId,
      first_name: 'Änne',
      last_name: null,
      email: 'Anne@Example.com',
      phone: '+491512345678',
      birthday: '1990-02-28',
      stamp_count: 0,
      metadata: { size: 'L' },
      external_references: [
        {
          source: 'pos',
          external_id: '77',
          metadata: {},
          created_at: expect.any(String),
          updated_at: expect.any(String),
        },
      ],
      customer_cards: [],
      marketing_consent: true,
      sms_consent: false,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const shown = await store.get(`${store.store}/customers/${made.body.id}`);
    expect(shown.body).toEqual(made.body);
  });

  it('enrols on a card with its welcome stamps', async () => {
    const { card } = await enrol(store, { card: { initial_stamps: 2 }, rewards: [2] });
    const { body } = await create({ first_name: 'Bo', phone: '555 01' }, { card_id: card.id });
    expect(body.customer_card).toMatchObject({ stamps_count: 2, card_id: card.id });
    expect(body.customer_card?.code).toMatch(/^[2-9A-HJ-NP-Z]{8}$/);
    expect(body.customer_card?.available_rewards).toHaveLength(1);
    expect(body.stamp_count).toBe(2);
    expect(body.customer_cards).toHaveLength(1);
    const shown = await store.get<CustomerJson>(`${store.store}/customers/${body.id}`);
    expect(shown.body.customer_cards).toEqual(body.customer_cards);
  });

  it.each([
    ['first_name', { email: 'x@example.com' }],
    ['first_name', { first_name: '  ', email: 'x@example.com' }],
    ['last_name', { first_name: 'X', last_name: 'x'.repeat(256), email: 'x@example.com' }],
    ['email', { first_name: 'X', email: 'nobody' }],
    ['phone', { first_name: 'X', phone: 'call me' }],
    ['base', { first_name: 'X' }],
    ['birthday', { first_name: 'X', email: 'x@example.com', birthday: '2023-02-29' }],
    ['birthday', { first_name: 'X', email: 'x@example.com', birthday: '2999-01-01' }],
    ['metadata', { first_name: 'X', email: 'x@example.com', metadata: [] }],
    ['metadata', { first_name: 'X', email: 'x@example.com', metadata: { a: 'x'.repeat(17_000) } }],
    ['external_references', { first_name: 'X', email: 'x@example.com', external_references: {} }],
    [
      'external_references',
      {
        first_name: 'X',
        email: 'x@example.com',
        external_references: [{ source: 'POS!', external_id: 1 }],
      },
    ],
    ['sms_consent', { first_name: 'X', email: 'x@example.com', sms_consent: 'maybe' }],
  ])('refuses a wrong %s: %j', async (field, customer) => {
    const { status, body } = await create(customer);
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]]);
  });

  it('refuses a card that is unknown, archived or expired', async () => {
    const { card } = await enrol(store);
    const person = { first_name: 'Cy', email: 'cy@example.com' };
    expect((await create(person, { card_id: 999_999 })).status).toBe(404);
    await store.post(`${store.store}/cards/${card.id}/archive`);
    const archived = await create(person, { card_id: card.id });
    expect([archived.status, Object.keys(archived.body.errors)]).toEqual([422, ['card_id']]);
    const { card: old } = await enrol(store);
    await store.send('PATCH', `${store.store}/cards/${old.id}`, {
      card: { expires_at: '2020-01-01' },
    });
    const expired = await create(person, { card_id: old.id });
    expect([expired.status, Object.keys(expired.body.errors)]).toEqual([422, ['card_id']]);
    expect(await search('search=cy@example.com')).toEqual([]);
  });
});

describe('uniqueness', () => {
  it('holds e-mail whatever its case, phone and references, per store', async () => {
    const first = { first_name: 'Di', email: 'Di@Example.com', phone: '+49 151 7777777' };
    expect(
      (await create({ ...first, external_references: [{ source: 'crm', external_id: 'x' }] }))
        .status,
    ).toBe(201);
    for (const [field, second] of [
      ['email', { email: 'dI@example.COM' }],
      ['phone', { phone: '+49-151-7777777' }],
      [
        'external_references',
        { email: 'free@example.com', external_references: [{ source: 'crm', external_id: 'x' }] },
      ],
    ] as const) {
      const { status, body } = await create({ first_name: 'Other', ...second });
      expect([status, Object.keys(body.errors)]).toEqual([422, [field]]);
    }
    const elsewhere = await service.newStore();
    const there = await elsewhere.post(`${elsewhere.store}/customers`, { customer: first });
    expect(there.status).toBe(201);
  });

  it('lets exactly one of twenty simultaneous creations win', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => create({ first_name: 'Ed', email: 'ed@example.com' })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    const lost = answers.filter((answer) => answer.status === 422);
    expect(lost).toHaveLength(19);
    expect(lost.every((answer) => Object.keys(answer.body.errors).join() === 'email')).toBe(true);
  });
});

describe('finding', () => {
  let path: string;
  beforeAll(async () => {
    ({ path } = await enrol(store));
    await create({
      first_name: 'Ömer',
      last_name: 'Çelik_100%',
      email: 'omer@example.com',
      phone: '0171-55 66 77',
      external_references: [{ source: 'erp', external_id: 'E-9' }],
    });
  });

  it.each([
    ['search=ÖMER', ['Ömer']],
    ['search=ömer çel', ['Ömer']],
    ['search=OMER@EX', ['Ömer']],
    ['search=_100%25', ['Ömer']],
    ['search=%25%25', []],
    ['search=715566', ['Ömer']],
    ['search=(0171) 55', ['Ömer']],
    ['search=E-9', ['Ömer']],
    ['search=e-9', []],
    ['source=erp&external_id=E-9', ['Ömer']],
    ['source=pos&external_id=E-9', []],
    ['source=erp&external_id=E-9&search=nobody', []],
  ])('%s', async (query, found) => {
    expect(await search(encodeURI(query).replaceAll('%25', '%'))).toEqual(found);
  });

  it('by the code or uuid of a card, exactly', async () => {
    const { body: card } = await store.get<{ code: string; uuid: string }>(path);
    expect(await search(`search=${card.code}`)).toEqual(['Anna']);
    expect(await search(`search=${card.uuid}`)).toEqual(['Anna']);
    expect(await search(`search=${card.code.slice(0, 7)}`)).toEqual([]);
  });

  it('needs both halves of a reference', async () => {
    const half = await store.get<Refused>(`${store.store}/customers?source=erp`);
    expect([half.status, Object.keys(half.body.errors)]).toEqual([422, ['external_id']]);
    const other = await store.get<Refused>(`${store.store}/customers?external_id=9`);
    expect([other.status, Object.keys(other.body.errors)]).toEqual([422, ['source']]);
  });
});

describe('the list', () => {
  it('is newest first, in pages with true counts', async () => {
    const big = await service.newStore();
    for (let i = 1; i <= 25; i++) {
      await big.post(`${big.store}/customers`, {
        customer: { first_name: `C${i}`, email: `c${i}@example.com` },
      });
    }
    const page = async (query: string) =>
      (await big.get<CustomerListJson>(`${big.store}/customers?${query}`)).body;
    const first = await page('');
    expect(first.pagination).toEqual({ count: 25, items: 20, page: 1, pages: 2 });
    expect(first.customers.map((one) => one.first_name).slice(0, 2)).toEqual(['C25', 'C24']);
    expect((await page('page=2')).customers).toHaveLength(5);
    expect(await page('page=9')).toEqual({
      customers: [],
      pagination: { count: 25, items: 20, page: 9, pages: 2 },
    });
    expect((await page('items=0')).pagination).toMatchObject({ items: 1, pages: 25 });
    expect((await page('items=1000')).pagination).toMatchObject({ items: 100, pages: 1 });
    expect((await page('search=c1@')).pagination).toMatchObject({ count: 1, pages: 1 });
    expect((await page('search=nobody')).pagination).toMatchObject({ count: 0, pages: 1 });
  });

  it('shows no personal data in the events', async () => {
    await create({ first_name: 'Zacharias', email: 'very.private@example.com' });
    const text = JSON.stringify(
      (await service.history()).map(({ type, data, meta }) => ({ type, data, meta })),
    );
    expect(text).toContain('CustomerCreated');
    expect(text).not.toMatch(/zacharias|very\.private/i);
  });
});
