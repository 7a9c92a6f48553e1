import { describe, expect, it } from '@jest/globals';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type Failure,
} from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Whole numbers as programs write floats. */
const FRACTIONS = [
  '4915112345678.0',
  '4915112345678.00',
  '4915112345678,0',
  '+4915112345678.0',
  '49 151 12345678.0',
  '030.0',
];

const service = useSharedService();
const store = service.useStore();
const otherStore = service.useStore();

let people = 0;
const address = () => `person${++people}@example.com`;
const LONG = 'x'.repeat(256);
const DAY_MS = 24 * 60 * 60_000;

const post = (customer: object, beside: object = {}, client = store) =>
  client.post<CreatedCustomerJson>(`${client.store}/customers`, { customer, ...beside });

async function create(fields: object = {}, client = store): Promise<CreatedCustomerJson> {
  const { status, body } = await post(
    { first_name: 'Ada', email: address(), ...fields },
    {},
    client,
  );
  expect(status).toBe(201);
  return body;
}

const pathOf = ({ id }: { id: number }) => `${store.store}/customers/${id}`;
const patch = (customer: { id: number }, changes: unknown) =>
  store.patch<CustomerJson>(pathOf(customer), { customer: changes });
const show = async (customer: { id: number }) =>
  (await store.get<CustomerJson>(pathOf(customer))).body;

async function change(customer: { id: number }, changes: object): Promise<CustomerJson> {
  const { status, body } = await patch(customer, changes);
  expect(status).toBe(200);
  return body;
}

/** Refused when it is made and when it is changed, whatever of it is wrong. */
async function expectRefusedBothWays(fields: object, field: string, code?: string): Promise<void> {
  expectRefused(await post({ first_name: 'Ada', email: address(), ...fields }), field, code);
  expectRefused(await patch(await create(), fields), field, code);
}

const reference = (external_id: unknown, metadata?: object) => ({
  source: 'pos',
  external_id,
  ...(metadata && { metadata }),
});
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, i]));
const dayAt = (timeZone: string, at: number) =>
  new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' }).format(at);

describe('customers', () => {
  it('CUST-01 A customer can be created with `first_name` and an e-mail address or a phone number', async () => {
    expect((await post({ first_name: 'Ada', email: address() })).status).toBe(201);
    expect((await post({ first_name: 'Ada', phone: '0101' })).status).toBe(201);
  });

  it('CUST-02 A customer has exactly the documented fields', async () => {
    const createdCustomer = await create({ external_references: [reference('exact')] });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(createdCustomer).toEqual({
      id: expect.any(Number),
      account_id: store.accountId,
      first_name: 'Ada',
      last_name: null,
      email: createdCustomer.email,
      phone: null,
      birthday: null,
      stamp_count: 0,
      metadata: {},
      external_references: [
        { source: 'pos', external_id: 'exact', metadata: {}, created_at: time, updated_at: time },
      ],
      customer_cards: [],
      marketing_consent: false,
      sms_consent: false,
      unconfirmed_consents: [],
      created_at: time,
      updated_at: time,
      erased_at: null,
      merged_into: null,
    });
    expect(await show(createdCustomer)).toEqual(createdCustomer);
  });

  it('CUST-03 A customer without a `first_name` is 422 `first_name`', async () => {
    expectRefused(await post({ email: address() }), 'first_name');
    expectRefused(await post({ first_name: null, email: address() }), 'first_name');
  });

  it('CUST-04 A `first_name` that is blank or longer than 255 is 422 `first_name`', async () => {
    for (const first_name of ['', '  ', LONG]) {
      await expectRefusedBothWays({ first_name }, 'first_name');
    }
    expect((await create({ first_name: LONG.slice(1) })).first_name).toHaveLength(255);
  });

  it('CUST-05 A `last_name` longer than 255 is 422 `last_name`', async () => {
    await expectRefusedBothWays({ last_name: LONG }, 'last_name');
    expect((await create({ last_name: LONG.slice(1) })).last_name).toHaveLength(255);
  });

  it('CUST-06 A customer with neither `email` nor `phone` is 422 `base`', async () => {
    expectRefused(await post({ first_name: 'Ada' }), 'base');
    expectRefused(await post({ first_name: 'Ada', email: ' ', phone: null }), 'base');
  });

  it('CUST-07 A PATCH that removes the last of `email` and `phone` is 422 `base`', async () => {
    expectRefused(await patch(await create(), { email: null }), 'base');
    const both = await create({ phone: '0701' });
    expectRefused(await patch(both, { email: null, phone: '' }), 'base');
    await change(both, { email: null });
    expectRefused(await patch(both, { phone: null }), 'base');
  });

  it('CUST-08 A PATCH that removes one of `email` and `phone` is accepted', async () => {
    expect(await change(await create({ phone: '0801' }), { email: null })).toMatchObject({
      email: null,
      phone: '0801',
    });
    const both = await create({ phone: '0802' });
    expect(await change(both, { phone: null })).toMatchObject({ email: both.email, phone: null });
  });

  it('CUST-09 `email` is trimmed and otherwise stored as sent, but for what CONV-51 and CONV-52 say', async () => {
    expect((await create({ email: '  Ada.LOVE@Example.COM ' })).email).toBe('Ada.LOVE@Example.COM');
  });

  it('CUST-10 An `email` that is not an e-mail address is 422 `email`', async () => {
    for (const email of ['ada', 'ada@', '@example.com', 'a b@example.com', 'ada@example', 7]) {
      await expectRefusedBothWays({ email }, 'email');
    }
  });

  it('CUST-11 An `email` that another customer of the store has, in any case, is 422 `email`, code `taken`', async () => {
    await create({ email: 'Ünique@example.com' });
    expectRefused(await post({ first_name: 'B', email: 'üNIQUE@EXAMPLE.com' }), 'email', 'taken');
  });

  it('CUST-61 Two spellings of an `email` are the same when the local parts differ in case alone and the domains have the same A-label', async () => {
    const local = address().split('@')[0] ?? '';
    const customer = await create({ email: `${local}@Müller.example` });
    for (const domain of [
      'xn--mller-kva.example',
      'XN--MLLER-KVA.example',
      'MU\u0308LLER。example',
      'ｍüller．example',
    ]) {
      const attributes = { first_name: 'B', email: `${local.toUpperCase()}@${domain}` };
      expectRefused(await post(attributes), 'email', 'taken');
    }
    for (const domain of ['mueller.example', 'muller.example']) {
      await create({ email: `${local}@${domain}` });
    }
    const email = `${local}@xn--mller-kva.example`;
    expect((await change(customer, { email })).email).toBe(email);
  });

  it('CUST-63 An `email` whose domain has no A-label, or is an IP address, is 422 `email`', async () => {
    for (const domain of [
      'b..de',
      'b\uFFFD.de',
      'xn--zzzz99999.de',
      '10.1.2.3',
      'b.de/x',
      'b%2Ede.de',
    ]) {
      await expectRefusedBothWays({ email: `a@${domain}` }, 'email');
    }
  });

  it('CUST-12 Customers of two stores may have the same `email` and `phone`', async () => {
    const contact = { email: address(), phone: '+4915112121212' };
    await create(contact);
    expect(await create(contact, otherStore)).toMatchObject(contact);
  });

  it('CUST-13 A PATCH to a taken `email` or `phone` is 422 on the field, code `taken`', async () => {
    const holder = await create({ phone: '1301' });
    const customer = await create();
    expectRefused(await patch(customer, { email: holder.email?.toUpperCase() }), 'email', 'taken');
    expectRefused(await patch(customer, { phone: '13-01' }), 'phone', 'taken');
  });

  it("CUST-14 A PATCH may change the case of the customer's own `email`", async () => {
    const customer = await create();
    const email = customer.email?.toUpperCase();
    expect((await change(customer, { email })).email).toBe(email);
  });

  it('CUST-15 An `email` or `phone` that its customer no longer uses is available again', async () => {
    const customer = await create({ phone: '1501' });
    const { email } = customer;
    await change(customer, { email: email?.toUpperCase() });
    await change(customer, { email: address() });
    expect((await create({ email })).email).toBe(email);
    expectRefused(await patch(customer, { email }), 'email', 'taken');
    await change(customer, { phone: null });
    expect((await create({ phone: '1501' })).phone).toBe('1501');
  });

  it('CUST-16 Of two creates at the same time with the same `email` exactly one wins; the other is 422 `email`, code `taken`', async () => {
    const email = address();
    const responses = await Promise.all([
      post({ first_name: 'A', email }),
      post({ first_name: 'B', email }),
    ]);
    const [won, lost] = responses.sort((a, b) => a.status - b.status);
    expect(won?.status).toBe(201);
    if (!lost) throw new Error('two were asked');
    expectRefused(lost, 'email', 'taken');
  });

  it('CUST-17 A `phone` that starts with `+` or `00` is stored in E.164 format', async () => {
    expect((await create({ phone: ' +49 (0)151 / 1717-171' })).phone).toBe('+491511717171');
    expect((await create({ phone: '0049 151 1717172' })).phone).toBe('+491511717172');
  });

  it("CUST-18 A `phone` without `+` or `00` in front is stored in E.164 format if it is possible in the store's `country`, else as digits only", async () => {
    expect((await create({ phone: '(0151) 18-18.18' })).phone).toBe('0151181818');
    expect((await create({ phone: '030.1234567' })).phone).toBe('0301234567');
    expect((await create({ phone: '0171.123.45.00' })).phone).toBe('01711234500');
    const german = await service.newStore({ country: 'DE' });
    for (const [phone, storedPhone] of [
      ['(0151) 18-18.1818', '+4915118181818'],
      ['12', '12'],
      ['0151 1818181818181818', '01511818181818181818'],
    ]) {
      const customer = { first_name: 'Ada', phone };
      const response = await german.post<CustomerJson>(`${german.store}/customers`, { customer });
      expect([response.status, response.body.phone]).toEqual([201, storedPhone]);
      const path = `${german.store}/customers/${response.body.id}`;
      const same = await german.patch<CustomerJson>(path, { customer: { phone } });
      expect(same.body).toEqual(response.body);
    }
  });

  it('CUST-19 A `phone` without digits, or with anything besides digits, a `+` in front and punctuation, is 422 `phone`', async () => {
    for (const phone of [
      'call me',
      '+',
      '-',
      '0171 FLOWERS',
      '+49 171 1234567 ext. 5',
      '0171 12345, 0172 12345',
      '0171 12345#5',
      '0171+12345',
      '½ 12345',
      '② 12345',
    ]) {
      await expectRefusedBothWays({ phone }, 'phone');
    }
    for (const phone of [
      '4.91711E+11',
      '4,91711E+11',
      '4.91711e11',
      '４．９Ｅ＋１１',
      '٤٫٩E+١١',
      ...FRACTIONS,
    ]) {
      await expectRefusedBothWays({ phone }, 'phone');
      const { body } = await post({ first_name: 'Ada', phone });
      expect(body).toMatchObject({
        errors: { phone: ['looks like a spreadsheet has changed it'] },
      });
    }
  });

  it('CUST-20 A `phone` that another customer of the store has, in any notation, is 422 `phone`, code `taken`', async () => {
    await create({ phone: '+49 151 2020202' });
    expectRefused(await post({ first_name: 'B', phone: '+49-(151)-2020202' }), 'phone', 'taken');
    await create({ phone: '2020 2020' });
    expectRefused(await post({ first_name: 'B', phone: '20-20-20-20' }), 'phone', 'taken');
  });

  it('CUST-57 In a store with a `country` all notations of a `phone` are one number', async () => {
    const german = await service.newStore({ country: 'DE' });
    const post = (phone: string) =>
      german.post<CustomerJson>(`${german.store}/customers`, {
        customer: { first_name: 'Ada', phone },
      });
    expect((await post('0171 1234567')).body.phone).toBe('+491711234567');
    for (const phone of [
      '+49 171 1234567',
      '+49 (0)171 / 12 34 567',
      '0049 171 1234567',
      '49 171 1234567',
      '\u202A+49 171 1234567\u202C',
      '٠١٧١ ١٢٣٤٥٦٧',
      '＋４９ １７１ １２３４５６７',
    ]) {
      expectRefused(await post(phone), 'phone', 'taken');
    }
  });

  it('CUST-21 A `birthday` that does not exist, or is not `YYYY-MM-DD`, is 422 `birthday`', async () => {
    for (const birthday of ['2023-02-29', '1990-13-01', '1.5.1990', '1990-5-1', 19900501]) {
      await expectRefusedBothWays({ birthday }, 'birthday');
    }
    expect((await create({ birthday: '2024-02-29' })).birthday).toBe('2024-02-29');
  });

  it('CUST-22 A `birthday` after today is 422 `birthday`', async () => {
    const now = Date.now();
    await expectRefusedBothWays({ birthday: dayAt('UTC', now + DAY_MS) }, 'birthday');
    await expectRefusedBothWays({ birthday: '2999-12-31' }, 'birthday');
    expect((await create({ birthday: dayAt('UTC', now) })).birthday).not.toBeNull();
  });

  it("CUST-23 Today, the latest `birthday`, is determined in the store's time zone", async () => {
    const east = await service.newStore({ timeZone: 'Pacific/Kiritimati' });
    const west = await service.newStore({ timeZone: 'Pacific/Pago_Pago' });
    // The two are 25 hours apart: today in the east is never today in the west.
    const birthday = dayAt('Pacific/Kiritimati', Date.now());
    expect((await create({ birthday }, east)).birthday).toBe(birthday);
    expectRefused(
      await post({ first_name: 'Ada', email: address(), birthday }, {}, west),
      'birthday',
    );
  });

  it('CUST-24 `metadata` in a PATCH is merged: keys that are not named stay', async () => {
    const customer = await create({ metadata: { a: 1, b: 2 } });
    expect((await change(customer, { metadata: { b: 3, c: 4 } })).metadata).toEqual({
      a: 1,
      b: 3,
      c: 4,
    });
  });

  it('CUST-25 A null in `metadata` removes its key', async () => {
    const customer = await create({ metadata: { a: 1, b: 2, never: null } });
    expect(customer.metadata).toEqual({ a: 1, b: 2 });
    expect((await change(customer, { metadata: { a: null, gone: null } })).metadata).toEqual({
      b: 2,
    });
  });

  it('CUST-26 The merge of `metadata` is shallow: a nested object is replaced as a whole', async () => {
    const customer = await create({ metadata: { a: { b: 1, c: 2 } } });
    expect((await change(customer, { metadata: { a: { d: null } } })).metadata).toEqual({
      a: { d: null },
    });
  });

  it('CUST-27 More than 50 keys of `metadata` after the merge are 422 `metadata`', async () => {
    await expectRefusedBothWays({ metadata: many(51) }, 'metadata');
    const full = await create({ metadata: { ...many(50), gone: null } });
    expectRefused(await patch(full, { metadata: { more: 1 } }), 'metadata');
    expect((await change(full, { metadata: { more: 1, key0: null } })).metadata).toHaveProperty(
      'more',
    );
  });

  it('CUST-28 More than 16 KiB of `metadata` are 422 `metadata`', async () => {
    await expectRefusedBothWays({ metadata: { a: 'é'.repeat(8_192) } }, 'metadata');
    const large = await create({ metadata: { a: 'x'.repeat(10_000) } });
    expectRefused(await patch(large, { metadata: { b: 'x'.repeat(10_000) } }), 'metadata');
  });

  it('CUST-29 `metadata` that is not an object, or holds a number like `1e400` or an integer beyond ±9007199254740991 (2^53 − 1), is 422 `metadata`', async () => {
    for (const metadata of [[], 'a', 1, true])
      await expectRefusedBothWays({ metadata }, 'metadata');
    const body = '{"customer":{"first_name":"Far","phone":"1029","metadata":{"a":[1e400]}}}';
    expectRefused(await store.post(`${store.store}/customers`, body), 'metadata');
    for (const number of ['9007199254740993', '-9007199254740993', '9007199254740992', '1e300']) {
      for (const metadata of [`{"a":${number}}`, `{"a":{"b":[1,{"c":${number}}]}}`]) {
        const customer = `{"customer":{"first_name":"Far","phone":"1029","metadata":${metadata}}}`;
        const refused = await store.post<Failure>(`${store.store}/customers`, customer);
        expectRefused(refused, 'metadata');
        expect(refused.body.errors?.['metadata']?.[0]).toContain('send it as a string');
        const reference = `{"source":"till","external_id":"far","metadata":${metadata}}`;
        const referring = `{"customer":{"first_name":"Far","phone":"1029","external_references":[${reference}]}}`;
        expectRefused(
          await store.post(`${store.store}/customers`, referring),
          'external_references',
        );
      }
    }
    const { metadata } = await create({
      metadata: { most: 9007199254740991, least: -9007199254740991, long: '9007199254740993' },
    });
    expect(metadata).toEqual({
      most: 9007199254740991,
      least: -9007199254740991,
      long: '9007199254740993',
    });
  });

  it('CUST-30 `external_references` in a PATCH are added to the existing ones; none is removed', async () => {
    const customer = await create({ external_references: [reference('30a')] });
    await change(customer, { external_references: [] });
    const { external_references } = await change(customer, {
      external_references: [reference('30b')],
    });
    expect(external_references.map((externalReference) => externalReference.external_id)).toEqual([
      '30a',
      '30b',
    ]);
  });

  it('CUST-31 An existing external reference, by `source` and `external_id`, has its `metadata` merged', async () => {
    const customer = await create({ external_references: [reference('31', { a: 1, b: 2 })] });
    const { external_references } = await change(customer, {
      external_references: [reference('31', { b: null, c: 3 })],
    });
    expect(external_references).toMatchObject([{ external_id: '31', metadata: { a: 1, c: 3 } }]);
    expect(external_references[0]?.metadata).not.toHaveProperty('b');
  });

  it('CUST-32 `external_id` may be a number and is returned as a string', async () => {
    const { external_references } = await create({ external_references: [reference(32)] });
    expect(external_references[0]?.external_id).toBe('32');
  });

  it('CUST-33 A `source` that does not match `[a-z0-9_-]{1,64}` is 422 `external_references`', async () => {
    for (const source of ['POS', 'a b', 'é', '', 'x'.repeat(65), null, 5]) {
      await expectRefusedBothWays(
        { external_references: [{ source, external_id: '33' }] },
        'external_references',
      );
    }
    const { external_references } = await create({
      external_references: [{ source: 'a-z_0'.padEnd(64, '9'), external_id: '33' }],
    });
    expect(external_references).toHaveLength(1);
  });

  it('CUST-34 An `external_id` that is missing, blank, longer than 255, or a number so long that its last digits would be lost (2^53 and more), is 422 `external_references`', async () => {
    for (const external_id of [undefined, null, '', '  ', LONG, {}, true, 2 ** 53]) {
      await expectRefusedBothWays(
        { external_references: [reference(external_id)] },
        'external_references',
      );
    }
  });

  it('CUST-35 A reference that appears twice in a body is applied twice, in order', async () => {
    const { external_references } = await create({
      external_references: [reference('35', { a: 1, b: 1 }), reference('35', { a: 2, b: null })],
    });
    expect(external_references.map((externalReference) => externalReference.metadata)).toEqual([
      { a: 2 },
    ]);
  });

  it('CUST-36 `external_references` are sorted by `source` and `external_id`', async () => {
    const { external_references } = await create({
      external_references: [
        { source: 'web', external_id: '36a' },
        { source: 'crm', external_id: '36z' },
        { source: 'crm', external_id: '36b' },
      ],
    });
    expect(
      external_references.map(
        (externalReference) => `${externalReference.source} ${externalReference.external_id}`,
      ),
    ).toEqual(['crm 36b', 'crm 36z', 'web 36a']);
  });

  it('CUST-37 An external reference that another customer of the store holds is 422 `external_references`, code `taken`', async () => {
    await create({ external_references: [reference('37')] });
    await expectRefusedBothWays(
      { external_references: [reference('37')] },
      'external_references',
      'taken',
    );
  });

  it('CUST-38 Customers of two stores may hold the same external reference', async () => {
    await create({ external_references: [reference('38')] });
    const there = await create({ external_references: [reference('38')] }, otherStore);
    expect(there.external_references).toHaveLength(1);
  });

  it('CUST-39 Writing a reference again updates its `updated_at`, not its `created_at`', async () => {
    const customer = await create({ external_references: [reference('39')] });
    const [before] = customer.external_references;
    const { external_references } = await change(customer, {
      external_references: [reference('39', { a: 1 })],
    });
    const [after] = external_references;
    expect(after?.created_at).toBe(before?.created_at);
    expect(Date.parse(after?.updated_at ?? '')).toBeGreaterThan(
      Date.parse(before?.updated_at ?? ''),
    );
  });

  it('CUST-40 Consents are false unless given', async () => {
    expect(await create()).toMatchObject({ marketing_consent: false, sms_consent: false });
    expect(await create({ marketing_consent: null, sms_consent: true })).toMatchObject({
      marketing_consent: false,
      sms_consent: true,
    });
  });

  it('CUST-41 With `card_id` the response has `customer_card`, in the detail shape', async () => {
    const { card } = await enrol(store, { card: { initial_stamps: 1 }, rewards: [1] });
    const { body } = await post({ first_name: 'Ada', email: address() }, { card_id: card.id });
    const { customer_card } = body;
    const path = `${pathOf(body)}/customer_cards/${customer_card?.id}`;
    expect((await store.get(path)).body).toEqual(customer_card);
    expect(customer_card).toMatchObject({
      card_id: card.id,
      customer_id: body.id,
      stamps_count: 1,
    });
    expect(customer_card?.available_rewards).toHaveLength(1);
    const { customer_card: _, ...createdCustomer } = body;
    expect(await show(body)).toEqual(createdCustomer);
  });

  it('CUST-42 Without `card_id` the response has no `customer_card`', async () => {
    expect(await create()).not.toHaveProperty('customer_card');
    const { body } = await post({ first_name: 'Ada', email: address() }, { card_id: null });
    expect(body).not.toHaveProperty('customer_card');
  });

  it('CUST-43 An unknown `card_id`, or one of another store, is 404, and no customer is created', async () => {
    const { card: foreign } = await enrol(otherStore);
    for (const card_id of [foreign.id, 999_999_999]) {
      const email = address();
      expectFailure(await post({ first_name: 'Ada', email }, { card_id }), 404, 'not_found');
      await create({ email });
    }
  });

  it('CUST-44 A `card_id` of an archived card is 422 `card_id`, and no customer is created', async () => {
    const { card } = await enrol(store);
    await store.post(`${store.store}/cards/${card.id}/archive`);
    const email = address();
    expectRefused(await post({ first_name: 'Ada', email }, { card_id: card.id }), 'card_id');
    await create({ email });
  });

  it('CUST-45 A `card_id` of an expired card is 422 `card_id`, and no customer is created', async () => {
    const { card } = await enrol(store);
    await store.patch(`${store.store}/cards/${card.id}`, { card: { expires_at: '2020-01-01' } });
    const email = address();
    expectRefused(await post({ first_name: 'Ada', email }, { card_id: card.id }), 'card_id');
    await create({ email });
  });

  it('CUST-46 `send_card_links` without `card_id` is accepted and has no effect', async () => {
    const { status, body } = await post(
      { first_name: 'Ada', email: address() },
      { send_card_links: true },
    );
    expect(status).toBe(201);
    expect(body.customer_cards).toEqual([]);
  });

  it('CUST-47 A customer of another store is 404, for reading and changing', async () => {
    const { id } = await create({}, otherStore);
    expectFailure(await store.get(pathOf({ id })), 404, 'not_found');
    expectFailure(await patch({ id }, { last_name: 'X' }), 404, 'not_found');
  });

  it('CUST-48 PATCH changes only the fields it names', async () => {
    const customer = await create({
      last_name: 'Love',
      phone: '4801',
      birthday: '1990-01-02',
      metadata: { a: 1 },
      external_references: [reference('48')],
      marketing_consent: true,
      sms_consent: true,
    });
    const changes = { last_name: 'King', sms_consent: false };
    const after = await change(customer, changes);
    expect(after).toEqual({ ...customer, ...changes, updated_at: after.updated_at });
  });

  it('CUST-49 null in a PATCH clears `last_name`, `email`, `phone` and `birthday`', async () => {
    const named = { last_name: 'Love', phone: '4901', birthday: '1990-01-02' };
    const cleared = { last_name: null, phone: null, birthday: null };
    expect(await change(await create(named), cleared)).toMatchObject(cleared);
    expect((await change(await create({ phone: '4902' }), { email: null })).email).toBeNull();
  });

  it('CUST-50 null in a PATCH for `first_name`, `metadata`, `external_references` or a consent is 422 on the field', async () => {
    const customer = await create();
    for (const field of [
      'first_name',
      'metadata',
      'external_references',
      'marketing_consent',
      'sms_consent',
    ]) {
      expectRefused(await patch(customer, { [field]: null }), field);
    }
  });

  it('CUST-51 `stamp_count` is the sum of the current stamps of all cards', async () => {
    const { customer, path } = await enrol(store, { card: { initial_stamps: 2 } });
    const { card } = await enrol(store, { card: { initial_stamps: 3 } });
    await store.post(`${pathOf(customer)}/customer_cards`, { card_id: card.id });
    await store.stamp(path, 4);
    expect((await show(customer)).stamp_count).toBe(9);
  });

  it('CUST-52 `customer_cards` has each card of the customer in the list shape', async () => {
    const { customer } = await enrol(store);
    const { card } = await enrol(store);
    const cards = `${pathOf(customer)}/customer_cards`;
    await store.post(cards, { card_id: card.id });
    const { customer_cards } = await show(customer);
    expect(customer_cards).toHaveLength(2);
    expect(customer_cards).toEqual((await store.get(cards)).body);
  });

  it('CUST-53 A change updates `updated_at`, not `created_at`', async () => {
    const customer = await create();
    const same = await change(customer, { first_name: 'Ada' });
    expect(same).toEqual(customer);
    const after = await change(customer, { first_name: 'Grace' });
    expect(after.created_at).toBe(customer.created_at);
    expect(Date.parse(after.updated_at)).toBeGreaterThan(Date.parse(customer.updated_at));
  });

  it('CUST-54 Read-only fields are ignored, on create and on PATCH', async () => {
    const fields = {
      id: 1,
      account_id: 1,
      stamp_count: 50,
      customer_cards: [{}],
      created_at: '2000-01-01',
      updated_at: '2000-01-01',
      whatever: {},
    };
    const createdCustomer = await create(fields);
    expect(createdCustomer).toMatchObject({
      account_id: store.accountId,
      stamp_count: 0,
      customer_cards: [],
    });
    expect(createdCustomer).not.toHaveProperty('whatever');
    expect(await change(createdCustomer, fields)).toEqual(createdCustomer);
  });

  it('CUST-55 A PATCH that is refused changes nothing', async () => {
    const holder = await create();
    const customer = await create({ metadata: { a: 1 } });
    expectRefused(
      await patch(customer, { last_name: 'New', email: holder.email }),
      'email',
      'taken',
    );
    expectRefused(await patch(customer, { last_name: 'New', metadata: [] }), 'metadata');
    expectRefused(await patch(customer, { last_name: 'New', email: null }), 'base');
    expect(await show(customer)).toEqual(customer);
  });
});
