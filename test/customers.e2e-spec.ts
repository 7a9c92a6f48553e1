import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type {
  CustomerJson,
  CustomerListJson,
  CreatedCustomerJson,
} from '#customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
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
const update = (id: number, customer: unknown) =>
  store.send<CustomerJson & Refused>('PATCH', `${store.store}/customers/${id}`, { customer });
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

describe('updating', () => {
  it('changes what is named and answers as it shows ever after', async () => {
    const { customer, card } = await enrol(store, { card: { initial_stamps: 2 } });
    const before = (await store.get<CustomerJson>(`${store.store}/customers/${customer.id}`)).body;
    const { status, body } = await update(customer.id, {
      last_name: ' Ådal ',
      phone: '+49 151 8888888',
      metadata: { a: { b: 1 }, c: 2 },
      external_references: [{ source: 'crm', external_id: 'u-1', metadata: { vip: true } }],
      sms_consent: 'true',
      id: 5,
      created_at: 'never',
      unknown: 1,
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      ...before,
      last_name: 'Ådal',
      phone: '+491518888888',
      metadata: { a: { b: 1 }, c: 2 },
      external_references: [
        {
          source: 'crm',
          external_id: 'u-1',
          metadata: { vip: true },
          created_at: expect.any(String),
          updated_at: expect.any(String),
        },
      ],
      sms_consent: true,
      updated_at: expect.any(String),
    });
    expect(body.updated_at > before.updated_at).toBe(true);
    expect(body.customer_cards[0]?.card_id).toBe(card.id);
    expect((await store.get(`${store.store}/customers/${customer.id}`)).body).toEqual(body);
    expect(await search('search=anna ådal')).toEqual(['Anna']);
    expect(
      (await update(customer.id, { metadata: { a: { d: 1 }, c: null } })).body.metadata,
    ).toEqual({ a: { d: 1 } });
  });

  it('leaves everything alone when it is already so', async () => {
    const { customer } = await enrol(store);
    const reference = { source: 'same', external_id: String(customer.id), metadata: { a: 1 } };
    const { body: before } = await update(customer.id, { external_references: [reference] });
    const events = (await service.history()).length;
    for (const same of [
      {},
      { first_name: 'Anna', email: customer.email, last_name: null, metadata: {} },
      { external_references: [{ ...reference, external_id: customer.id }] },
    ]) {
      expect((await update(customer.id, same)).body).toEqual(before);
    }
    expect(await service.history()).toHaveLength(events);
  });

  it.each([
    ['first_name', { first_name: null }],
    ['metadata', { metadata: null }],
    ['metadata', { metadata: { a: 'x'.repeat(17_000) } }],
    ['external_references', { external_references: null }],
    ['marketing_consent', { marketing_consent: null }],
    ['sms_consent', { sms_consent: null }],
    ['base', { email: null }],
    ['birthday', { birthday: '2023-02-30' }],
    ['birthday', { birthday: '2999-01-01' }],
    ['customer', 5],
  ])('refuses a wrong %s: %j', async (field, changes) => {
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    const { body: before } = await store.get(path);
    const { status, body } = await update(customer.id, changes);
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]]);
    expect((await store.get(path)).body).toEqual(before);
  });

  it('is 404 for one that is not there or of another store, whatever the fields', async () => {
    const { customer } = await enrol(store);
    const elsewhere = await service.newStore();
    expect((await update(999_999, { first_name: '' })).status).toBe(404);
    const foreign = await elsewhere.send('PATCH', `${elsewhere.store}/customers/${customer.id}`, {
      customer: { last_name: 'X' },
    });
    expect(foreign.status).toBe(404);
  });

  it('takes values over from whoever gave them up, and refuses those that are held', async () => {
    const one = await enrol(store);
    const two = await enrol(store);
    const { email } = one.customer;
    const taken = await update(two.customer.id, { email: email?.toUpperCase(), phone: '777 1' });
    expect([taken.status, Object.keys(taken.body.errors)]).toEqual([422, ['email']]);
    expect((await update(one.customer.id, { email: email?.toUpperCase() })).status).toBe(200);
    expect((await update(one.customer.id, { email: null, phone: '777 1' })).status).toBe(200);
    expect((await update(two.customer.id, { email })).body.email).toBe(email);
    const back = await update(one.customer.id, { email });
    expect(Object.keys(back.body.errors)).toEqual(['email']);
    const reference = { source: 'crm', external_id: `r${one.customer.id}` };
    expect((await update(one.customer.id, { external_references: [reference] })).status).toBe(200);
    const held = await update(two.customer.id, { external_references: [reference] });
    expect([held.status, Object.keys(held.body.errors)]).toEqual([422, ['external_references']]);
  });

  it('lets exactly one of ten customers have a value that all want at once', async () => {
    const ten = await Promise.all(Array.from({ length: 10 }, () => enrol(store)));
    const answers = await Promise.all(
      ten.map(({ customer }) => update(customer.id, { email: 'wanted@example.com', phone: null })),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    const lost = answers.filter((answer) => answer.status === 422);
    expect(lost.filter(({ body }) => Object.keys(body.errors).join() === 'email')).toHaveLength(9);
  });

  it('settles two customers who swap their addresses at once', async () => {
    const [one, two] = [await enrol(store), await enrol(store)];
    const { email: first } = one.customer;
    const { email: second } = two.customer;
    const answers = await Promise.all([
      update(one.customer.id, { email: second }),
      update(two.customer.id, { email: first }),
    ]);
    for (const { status } of answers) expect([200, 422]).toContain(status);
    const shown = await Promise.all(
      [one, two].map(({ customer }) =>
        store.get<CustomerJson>(`${store.store}/customers/${customer.id}`),
      ),
    );
    expect(new Set(shown.map(({ body }) => body.email)).size).toBe(2);
  });

  it('loses nothing when many change one customer at once', async () => {
    const { customer } = await enrol(store);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => update(customer.id, { metadata: { [`k${i}`]: i } })),
    );
    const { body } = await store.get<CustomerJson>(`${store.store}/customers/${customer.id}`);
    expect(Object.keys(body.metadata)).toHaveLength(20);
  });

  it('brings the row of an older fold up to date', async () => {
    const { customer } = await enrol(store);
    await service.database.query(
      `update customers set fold_version = 1, state = state - 'searchText' where id = $1`,
      [customer.id],
    );
    const { body } = await update(customer.id, { last_name: 'Umlauf' });
    expect(body).toMatchObject({ first_name: 'Anna', email: customer.email, last_name: 'Umlauf' });
    expect(await search('search=anna umlauf')).toEqual(['Anna']);
  });

  it('keeps what is personal out of events', async () => {
    const { customer } = await enrol(store);
    await update(customer.id, { last_name: 'Geheimnis', metadata: { hobby: 'geheimnis' } });
    const history = (await service.history()).filter(({ type }) => type === 'CustomerUpdated');
    expect(history.at(-1)?.data).toEqual({
      customerId: customer.id,
      personal: expect.any(String),
    });
    expect(JSON.stringify(history.map(({ data }) => data))).not.toMatch(/geheimnis/i);
  });

  it('counts birthdays by the day in the store', async () => {
    const [east, west] = [
      await service.newStore({ timeZone: 'Pacific/Kiritimati' }),
      await service.newStore({ timeZone: 'Pacific/Pago_Pago' }),
    ];
    const day = (offsetHours: number) =>
      new Date(Date.now() + offsetHours * 3_600_000).toISOString().slice(0, 10);
    const born = (client: Client, birthday: string) =>
      client.post<Refused>(`${client.store}/customers`, {
        customer: { first_name: 'Neo', phone: birthday, birthday },
      });
    expect((await born(east, day(14))).status).toBe(201);
    expect((await born(west, day(-11))).status).toBe(201);
    const tomorrow = await born(west, day(13));
    expect([tomorrow.status, Object.keys(tomorrow.body.errors)]).toEqual([422, ['birthday']]);
  });
});

describe('enrolling', () => {
  const enrolOn = (customerId: number, body: unknown) =>
    store.post<CustomerCardDetailJson & Refused>(
      `${store.store}/customers/${customerId}/customer_cards`,
      body,
    );

  it('answers with the new card, its welcome stamps and what they reach', async () => {
    const { card } = await enrol(store, { card: { initial_stamps: 3 }, rewards: [2, 5] });
    const { customer } = await enrol(store);
    const { status, body } = await enrolOn(customer.id, { card_id: String(card.id) });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      card_id: card.id,
      customer_id: customer.id,
      account_id: store.accountId,
      stamps_count: 3,
      code: expect.stringMatching(/^[2-9A-HJ-NP-Z]{8}$/),
    });
    expect(body.available_rewards.map((reward) => reward.stamps_required)).toEqual([2]);
    const path = `${store.store}/customers/${customer.id}/customer_cards`;
    expect((await store.get(`${path}/${body.id}`)).body).toEqual(body);
    expect((await store.get<unknown[]>(path)).body).toHaveLength(2);
    const events = (await service.history()).filter(
      ({ stream }) => stream === `customer_card-${body.id}`,
    );
    expect(events.map(({ type }) => type)).toEqual([
      'CustomerCardIssued',
      'StampsEarned',
      'RewardUnlocked',
    ]);
  });

  it('refuses what is unknown, over or there already', async () => {
    const { card, customer } = await enrol(store);
    const elsewhere = await service.newStore();
    const { card: foreign } = await enrol(elsewhere);
    expect((await enrolOn(customer.id, { card_id: foreign.id })).status).toBe(404);
    expect((await enrolOn(customer.id, { card_id: 999_999 })).status).toBe(404);
    expect((await enrolOn(999_999, { card_id: card.id })).status).toBe(404);
    expect((await enrolOn(999_999, {})).status).toBe(404);
    const { card: archived } = await enrol(store);
    await store.post(`${store.store}/cards/${archived.id}/archive`);
    const { card: over } = await enrol(store, { card: { expires_at: '2999-01-01' } });
    await store.send('PATCH', `${store.store}/cards/${over.id}`, {
      card: { expires_at: '2020-01-01' },
    });
    for (const body of [
      {},
      { card_id: 'x' },
      { card_id: card.id },
      { card_id: archived.id },
      { card_id: over.id },
    ]) {
      const answer = await enrolOn(customer.id, body);
      expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['card_id']]);
    }
  });

  it('gives one card of a template, however many ask at once', async () => {
    const { card } = await enrol(store);
    const { customer } = await enrol(store);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => enrolOn(customer.id, { card_id: card.id })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    expect(answers.filter((answer) => answer.body.errors?.['card_id'])).toHaveLength(9);
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

  it('whatever the case and however the accents are written', async () => {
    await create({ first_name: 'Élodie', last_name: 'Großmann', phone: '90001' });
    await create({ first_name: 'İpek', last_name: 'Παπαδόπουλος', phone: '90002' });
    for (const [term, found] of [
      ['e\u0301LO', 'Élodie'],
      ['GROSSM', 'Élodie'],
      ['ipek', 'İpek'],
      ['İPEK', 'İpek'],
      ['ΌΠΟΥΛΟΣ', 'İpek'],
      ['é', 'Élodie'],
    ] as const) {
      expect(await search(`search=${encodeURIComponent(term)}`)).toEqual([found]);
    }
  });

  it('names too long for an index as well', async () => {
    const first_name = '🙂🙃'.repeat(127);
    const last_name = Array.from({ length: 250 }, (_, i) => String.fromCodePoint(0x1f300 + i)).join(
      '',
    );
    const made = await create({ first_name, last_name, email: 'long@example.com' });
    expect(made.status).toBe(201);
    const { rows } = await service.database.query<{ long: boolean }>(
      'select long_search_text is not null as long from customers where id = $1',
      [made.body.id],
    );
    expect(rows).toEqual([{ long: true }]);
    expect(await search(`search=${encodeURIComponent('🙃🙂🙃')}`)).toEqual([first_name]);
    expect(await search('search=long@')).toEqual([first_name]);
    expect(await search(`search=${encodeURIComponent('🙃🙃')}`)).toEqual([]);
    // One character that compatibility forms write as eighteen.
    expect((await create({ first_name: 'ﷺ'.repeat(255), phone: '90003' })).status).toBe(201);
    expect(await search(`search=${encodeURIComponent('ﷺ')}`)).toHaveLength(1);
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
