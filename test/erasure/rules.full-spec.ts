import { describe, expect, it } from '@jest/globals';
import type { CustomerExportJson } from '#loyalty/customers/customer-export.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { startSecondApi } from '../support/services/second-api.js';
import type { Client } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { useWebhooks } from '../support/services/webhook-dispatcher.js';

const service = useService();
const store = service.useStore();
const otherStore = service.useStore();

let people = 0;

/** Somebody of whom every field is known, with a card that holds three stamps. */
async function person() {
  const n = ++people;
  const fields = {
    first_name: `Wilhelmina${n}`,
    last_name: `Quibbleworth${n}`,
    email: `wilhelmina${n}@quibble.example`,
    phone: `+49151234500${String(n).padStart(2, '0')}`,
    birthday: '1987-06-05',
    metadata: { allergy: `walnuts ${n}` },
    external_references: [{ source: 'till', external_id: `W-${n}`, metadata: { tier: 'gold' } }],
    marketing_consent: true,
    sms_consent: true,
  };
  const { body: card } = await store.post<{ id: number }>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  const { body: reward } = await store.post<{ id: number }>(`${store.store}/rewards`, {
    reward: { card_id: card.id, name: 'Espresso', stamps_required: 2 },
  });
  const { status, body: customer } = await store.post<CreatedCustomerJson>(
    `${store.store}/customers`,
    { customer: fields, card_id: card.id },
  );
  expect(status).toBe(201);
  const path = `${store.store}/customers/${customer.id}`;
  const cardPath = `${path}/customer_cards/${customer.customer_card?.id}`;
  await store.post(`${cardPath}/stamp`, { stamps: 3, note: 'likes oat milk' });
  return { fields, customer, path, card, reward, cardPath };
}

const erase = (path: string, client = store) => client.post(`${path}/erase`);

async function erased() {
  const somebody = await person();
  expect((await erase(somebody.path)).status).toBe(204);
  return somebody;
}

const show = async (path: string) => (await store.get<CustomerJson>(path)).body;

const findCustomers = async (query: string) =>
  (
    await store.get<CustomerListJson>(`${store.store}/customers?items=100&${query}`)
  ).body.customers.map(({ id }) => id);

describe('erasing a person', () => {
  it('ERASE-01 Erasing a customer is 204 without a body, and 204 again', async () => {
    const { path } = await person();
    for (const _ of [1, 2]) {
      const { status, text } = await erase(path);
      expect([status, text]).toEqual([204, '']);
    }
  });

  it('ERASE-02 An erased customer has `first_name` "Erased", `erased_at`, consents false, and every other personal field empty', async () => {
    const { path, customer } = await erased();
    const now = await show(path);
    expect(now).toEqual({
      id: customer.id,
      account_id: store.accountId,
      first_name: 'Erased',
      last_name: null,
      email: null,
      phone: null,
      birthday: null,
      stamp_count: 3,
      metadata: {},
      external_references: [],
      customer_cards: [expect.objectContaining({ stamps_count: 3 })],
      marketing_consent: false,
      sms_consent: false,
      unconfirmed_consents: [],
      created_at: customer.created_at,
      updated_at: now.erased_at,
      erased_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      merged_into: null,
    });
  });

  it('ERASE-03 `erased_at` is the time of the first request', async () => {
    const { path } = await erased();
    const { erased_at } = await show(path);
    await erase(path);
    expect((await show(path)).erased_at).toBe(erased_at);
  });

  it('ERASE-04 An erased customer stays in the list and in its `count`', async () => {
    const own = await service.newStore();
    const { customer } = await enrol(own);
    const before = await own.get<CustomerListJson>(`${own.store}/customers`);
    expect((await own.post(`${own.store}/customers/${customer.id}/erase`)).status).toBe(204);
    const after = await own.get<CustomerListJson>(`${own.store}/customers`);
    expect(after.body.pagination).toEqual(before.body.pagination);
    expect(after.body.customers).toEqual([
      expect.objectContaining({ id: customer.id, first_name: 'Erased' }),
    ]);
  });

  it('ERASE-05 No search finds an erased customer: not by what they were called, nor by "Erased", nor by a card\'s code or uuid', async () => {
    const { fields, customer } = await person();
    const code = customer.customer_card?.code ?? '';
    const uuid = customer.customer_card?.uuid ?? '';
    const queries = [
      `search=${fields.first_name}`,
      `search=${fields.last_name}`,
      `search=${fields.email}`,
      `search=${encodeURIComponent(fields.phone)}`,
      `search=W-${people}`,
      `source=till&external_id=W-${people}`,
      `search=${code}`,
      `search=${uuid}`,
    ];
    for (const query of queries)
      expect([query, await findCustomers(query)]).toEqual([query, [customer.id]]);
    await erase(`${store.store}/customers/${customer.id}`);
    for (const query of [...queries, 'search=erased', 'search=Erased']) {
      expect([query, await findCustomers(query)]).toEqual([query, []]);
    }
  });

  it('ERASE-06 The e-mail address, phone number and external references of an erased customer are available again at once', async () => {
    const { fields } = await erased();
    const again = await store.post<CustomerJson>(`${store.store}/customers`, { customer: fields });
    expect([again.status, again.body.email]).toEqual([201, fields.email]);
  });

  it('ERASE-07 Any later change of an erased customer or their cards is 422 `base`, code `customer_erased`', async () => {
    const { path, cardPath, reward, card } = await erased();
    const { body: second } = await store.post<{ id: number }>(`${store.store}/cards`, {
      card: { name: 'Tea' },
    });
    const before = (await store.get<CustomerCardDetailJson>(cardPath)).body;
    const changes = [
      store.patch(path, { customer: { first_name: 'Anna' } }),
      store.patch(path, { customer: { marketing_consent: false } }),
      store.post(`${path}/customer_cards`, { card_id: second.id }),
      store.post(`${path}/customer_cards`, { card_id: card.id }),
      store.stamp(cardPath),
      store.stamp(cardPath, { note: 'back again' }),
      store.post(`${cardPath}/stamp?dry_run=true`, { stamps: 1 }),
      store.post(`${cardPath}/redeem`, { reward_id: reward.id }),
    ];
    for (const change of changes) expectRefused(await change, 'base', 'customer_erased');
    expect((await store.get<CustomerCardDetailJson>(cardPath)).body).toEqual(before);
  });

  it('ERASE-08 The cards of an erased customer can be read as before, with the balance they had', async () => {
    const { cardPath, path } = await erased();
    const detail = await store.get<CustomerCardDetailJson>(cardPath);
    expect([detail.status, detail.body.stamps_count]).toEqual([200, 3]);
    const list = await store.get<CustomerCardDetailJson[]>(`${path}/customer_cards`);
    expect(list.body.map(({ stamps_count }) => stamps_count)).toEqual([3]);
  });

  it('ERASE-09 Erasing a customer of another store is 404', async () => {
    const { path } = await person();
    expectFailure(
      await erase(path.replace(store.store, otherStore.store), otherStore),
      404,
      'not_found',
    );
    expectFailure(await erase(`${store.store}/customers/999999999`), 404, 'not_found');
    expect((await show(path)).erased_at).toBeNull();
  });

  it('ERASE-10 An erasure that is repeated with its `Idempotency-Key` is replayed', async () => {
    const { path } = await person();
    const once = () =>
      store.send('POST', `${path}/erase`, undefined, { 'idempotency-key': 'gone' });
    const [first, second] = [await once(), await once()];
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([204, null]);
    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([204, 'true']);
  });

  it('ERASE-11 Responses stored about an erased customer are gone', async () => {
    const email = `kept${++people}@quibble.example`;
    const key = { 'idempotency-key': `create ${email}` };
    const body = { customer: { first_name: 'Wilhelmina', email } };
    const create = () => store.send<CustomerJson>('POST', `${store.store}/customers`, body, key);
    const first = await create();
    const path = `${store.store}/customers/${first.body.id}`;
    const same = { customer: { first_name: 'Wilhelmina' } };
    const change = () => store.send('PATCH', path, same, { 'idempotency-key': 'unchanged' });
    expect((await change()).status).toBe(200);
    await erase(path);
    for (const repeat of [create, change]) {
      const response = await repeat();
      expectRefused(response, 'base', 'customer_erased');
      expect(response.headers.get('idempotent-replayed')).toBe('true');
      expect(response.text).not.toContain('Wilhelmina');
    }
    expect(await findCustomers(`search=${email}`)).toEqual([]);
  });

  it('ERASE-12 An `external_ref` stays used up after an erasure: the same one again gets its first result', async () => {
    const { path, cardPath } = await person();
    const stamp = () => store.stamp(cardPath, { external_ref: 'R-1' });
    const first = await stamp();
    await erase(path);
    const again = await stamp();
    expect([again.status, again.body.stamps_count]).toEqual([200, first.body.stamps_count]);
  });
});

it('ERASE-23 `as_of` shows `erased_at` as it was: null before the erasure, when nothing else is left of the customer either, and its time since', async () => {
  const { path, fields, cardPath } = await person();
  const { body: stamped } = await store.get<CustomerCardDetailJson>(cardPath);
  const before = stamped.updated_at;
  expect((await erase(path)).status).toBe(204);
  const { erased_at } = await show(path);
  const then = await store.get<CustomerJson>(`${path}?as_of=${before}`);
  expect(then.body).toMatchObject({ first_name: 'Erased', erased_at: null, stamp_count: 3 });
  expect(then.text).not.toContain(fields.last_name);
  const since = await show(`${path}?as_of=${erased_at}`);
  expect(since).toMatchObject({ first_name: 'Erased', erased_at, stamp_count: 3 });
  const card = await store.get<CustomerCardDetailJson>(`${cardPath}?as_of=${before}`);
  expect(card.body.stamps_count).toBe(3);
});

describe('what goes out about an erased person', () => {
  const { startDispatcher } = useWebhooks(() => service.running);
  type Envelope = { id: string; type: string; data: { customer?: object } & Partial<CustomerJson> };
  const feedOf = async (own: Client) => await own.get<Envelope[]>(`${own.store}/events`);

  it('ERASE-13 An erasure sends `customer.updated`: "Erased", `erased_at`, and empty `previous_attributes`', async () => {
    const own = await service.newStore();
    const { customer } = await enrol(own);
    await own.post(`${own.store}/customers/${customer.id}/erase`);
    await startDispatcher();
    const { body } = await eventually(
      () => feedOf(own),
      (feed) => feed.body.length === 4,
    );
    expect(body.at(-1)).toMatchObject({
      type: 'customer.updated',
      data: { id: customer.id, first_name: 'Erased', email: null, erased_at: expect.any(String) },
      previous_attributes: {},
    });
  });

  it('ERASE-24 The response to an erasure comes once no live process can still send data about the customer in webhooks, the feed, messages or updates of passes', async () => {
    const own = await service.newStore();
    const email = 'quincy@quibble.example';
    const { customer } = await enrol(own, { email });
    await startDispatcher();
    const { program, second } = await startSecondApi(service.running, own);
    await eventually(
      () => feedOf(second),
      (feed) => feed.text.includes(email),
    );
    expect((await own.post(`${own.store}/customers/${customer.id}/erase`)).status).toBe(204);
    expect((await feedOf(second)).text).not.toContain(email);
    await program.kill('SIGTERM');
  });

  it('ERASE-14 What goes out about an erased customer, and what the feed shows of before, keeps its ids and has nothing personal', async () => {
    const own = await service.newStore();
    const email = 'quentin@quibble.example';
    const { customer, path } = await enrol(own, { email });
    await own.stamp(path, { note: 'likes oat milk' });
    await startDispatcher();
    const before = await eventually(
      () => feedOf(own),
      (feed) => feed.body.length === 4,
    );
    expect(before.text).toContain(email);
    await own.post(`${own.store}/customers/${customer.id}/erase`);
    const after = await eventually(
      () => feedOf(own),
      (feed) => feed.body.length === 5 && !feed.text.includes(email),
    );
    expect(after.body.map(({ id }) => id).slice(0, 4)).toEqual(before.body.map(({ id }) => id));
    const gone = { id: customer.id, first_name: 'Erased', last_name: null, email: null };
    expect(after.body[0]).toEqual(before.body[0]);
    expect(after.body[1]?.data).toMatchObject({ ...gone, erased_at: expect.any(String) });
    expect(after.body[2]?.data.customer).toEqual({ ...gone, phone: null });
    expect(after.body[3]).toEqual({
      ...before.body[3],
      data: { ...before.body[3]?.data, note: null, customer: { ...gone, phone: null } },
    });
  });
});

describe('erasing somebody who was merged and unmerged', () => {
  /** The one who went on for both until then, with their responses. */
  async function former() {
    const gone = await person();
    const { customer } = await enrol(store);
    const path = `${store.store}/customers/${customer.id}`;
    const change = (action: string) =>
      store.post(`${path}/${action}`, { from_customer_id: gone.customer.id });
    expect((await change('merge')).status).toBe(200);
    const patch = () =>
      store.send(
        'PATCH',
        path,
        { customer: { metadata: { own: 1 } } },
        { 'idempotency-key': path },
      );
    expect((await patch()).status).toBe(200);
    await store.stamp(gone.cardPath, { note: 'likes oat milk' });
    expect((await change('unmerge')).status).toBe(200);
    return { gone, path, patch, before: await show(path), since: new Date().toISOString() };
  }

  it('ERASE-19 Erasing somebody who was unmerged leaves the other customer as they are: no field changes, and searches find them', async () => {
    const { gone, path, before } = await former();
    expect((await erase(gone.path)).status).toBe(204);
    expect(await show(path)).toEqual(before);
    expect(
      await findCustomers(new URLSearchParams({ search: before.email ?? '' }).toString()),
    ).toEqual([before.id]);
    expect((await show(gone.path)).first_name).toBe('Erased');
  });

  it("ERASE-20 After the erasure of a customer who was unmerged, the other one's history, `export` and `as_of` have nothing personal from before", async () => {
    const { gone, path, before, since } = await former();
    const { last_name, phone, metadata, external_references } = gone.fields;
    const values = [last_name, phone, metadata.allergy, external_references[0]?.external_id];
    const texts = async () => [
      (await store.get(`${path}/export`)).text,
      (await store.get(`${store.store}/history?customer_id=${before.id}`)).text,
      (await store.get(`${store.store}/history?customer_id=${gone.customer.id}`)).text,
      (await store.get(`${gone.cardPath}/events`)).text,
      (await store.get(`${path}?as_of=${since}`)).text,
    ];
    for (const value of [...values, 'likes oat milk', before.email]) {
      expect((await texts()).filter((text) => text.includes(value ?? ''))).not.toEqual([]);
    }
    expect((await erase(gone.path)).status).toBe(204);
    for (const text of await texts()) {
      expect([...values, 'likes oat milk'].filter((value) => text.includes(value ?? ''))).toEqual(
        [],
      );
    }
    const past = await show(`${path}?as_of=${since}`);
    expect(past).toMatchObject({ first_name: 'Erased', email: null, erased_at: null });
    expect((await show(gone.path)).customer_cards[0]?.stamps_count).toBe(4);
  });

  it('ERASE-21 After the erasure of a customer who was unmerged, responses stored before about the other one are gone too', async () => {
    const { gone, path, patch } = await former();
    expect((await patch()).headers.get('idempotent-replayed')).toBe('true');
    expect((await erase(gone.path)).status).toBe(204);
    const before = await show(path);
    expectRefused(await patch(), 'base', 'customer_erased');
    expect(await show(path)).toEqual(before);
  });
});

describe('the export of a person', () => {
  const exported = async (path: string) => {
    const response = await store.get<CustomerExportJson>(`${path}/export`);
    expect(response.status).toBe(200);
    return response;
  };

  it('ERASE-15 The export of a customer is a file (`Content-Disposition`) with the customer, the history of each record oldest first, and the consents', async () => {
    const { customer, path, cardPath } = await person();
    await store.patch(path, { customer: { sms_consent: false } });
    await store.get(cardPath);
    const { body, headers } = await exported(path);
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="customer-${customer.id}.json"`,
    );
    expect(body.customer).toEqual(await show(path));
    expect(body.history.map(({ record, sequence, type }) => [record, sequence, type])).toEqual([
      ['customer', 0, 'customer.created'],
      ['customer', 1, 'customer.updated'],
      ['customer_card', 0, 'customer_card.created'],
      ['customer_card', 1, 'stamp.earned'],
      ['customer_card', 2, 'reward.unlocked'],
    ]);
    expect(body.consents.map(({ name, value }) => [name, value])).toEqual([
      ['marketing_consent', true],
      ['sms_consent', true],
      ['sms_consent', false],
    ]);
  });

  it('ERASE-16 The export of a customer has all that was recorded, notes included', async () => {
    const { fields, path } = await person();
    const { body } = await exported(path);
    const { external_references: references, ...plain } = fields;
    expect(body.history[0]?.data).toMatchObject({ ...plain, source: 'api' });
    expect(body.history[0]?.data).toMatchObject({
      external_references: references.map((reference) => expect.objectContaining(reference)),
    });
    expect(body.history.find(({ type }) => type === 'stamp.earned')).toMatchObject({
      channel: 'api',
      actor: { type: 'token' },
      data: { stamps: 3, note: 'likes oat milk' },
    });
  });

  it('ERASE-17 The export of an erased person is what is left', async () => {
    const { fields, path } = await erased();
    const { body, text } = await exported(path);
    expect(body.customer.first_name).toBe('Erased');
    expect(body.history.map(({ type }) => type)).toContain('stamp.earned');
    for (const value of [fields.first_name, fields.email, fields.phone, 'oat milk', 'walnuts']) {
      expect(text).not.toContain(value);
    }
  });

  it('ERASE-18 The export of a customer of another store is 404', async () => {
    const { path } = await person();
    const theirs = `${path.replace(store.store, otherStore.store)}/export`;
    expectFailure(await otherStore.get(theirs), 404, 'not_found');
  });

  it('ERASE-22 The export of a merged customer, or of one into whom others are merged, has the records, cards and histories of all of them', async () => {
    const [survivor, merged] = [await person(), await person()];
    const same = await person();
    const { body: shared } = await store.post<CustomerCardDetailJson>(
      `${same.path}/customer_cards`,
      { card_id: survivor.card.id },
    );
    await store.stamp(`${same.path}/customer_cards/${shared.id}`, { note: 'decaf' });
    for (const [into, from] of [
      [merged, same],
      [survivor, merged],
    ] as const) {
      const body = { from_customer_id: from.customer.id };
      expect((await store.post(`${into.path}/merge`, body)).status).toBe(200);
    }
    const all = [survivor, merged, same];
    const ids = all.map(({ customer }) => customer.id);
    for (const { path, customer } of all) {
      const { body, text } = await exported(path);
      expect(body.customer).toEqual(await show(path));
      const others = body.merged_customers.map(({ id }) => id);
      expect([customer.id, ...others].sort()).toEqual([...ids].sort());
      for (const { fields } of all) expect(text).toContain(fields.email);
      const records = new Set(
        body.history.map(({ record, record_id }) => `${record} ${record_id}`),
      );
      expect([...records].sort()).toEqual(
        [
          ...ids.map((id) => `customer ${id}`),
          ...all.map(({ cardPath }) => `customer_card ${cardPath.split('/').at(-1)}`),
          `customer_card ${shared.id}`,
        ].sort(),
      );
      const notes = body.history.map(({ data }) => (data as { note?: string }).note);
      expect(notes.filter((note) => note === 'decaf')).toHaveLength(1);
      expect(body.consents).toHaveLength(6);
    }
  });
});
