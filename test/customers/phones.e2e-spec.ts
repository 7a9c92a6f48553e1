import { describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { createClaimChanges } from '#loyalty/customers/customer.commands.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { CustomerEvent } from '#loyalty/customers/customer.events.js';
import { PhoneConflicts } from '#loyalty/customers/phone-conflicts.service.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { normalizePhones } from '../support/services/phone-normalization.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const service = useService();
async function add(store: ContractClient, phone: string, more = {}): Promise<CustomerJson> {
  const response = await store.post<CustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Ada', phone, ...more },
  });
  expect(response.status).toBe(201);
  return response.body;
}

const setCountry = async (store: ContractClient, country: string | null) =>
  expect((await store.patch(store.store, { account: { country } })).status).toBe(200);

const phonesOf = async (store: ContractClient) =>
  (await store.get<CustomerListJson>(`${store.store}/customers?items=100`)).body.customers.map(
    ({ phone }) => phone,
  );

const findIds = async (store: ContractClient, query: Record<string, string>) =>
  (
    await store.get<CustomerListJson>(`${store.store}/customers?${new URLSearchParams(query)}`)
  ).body.customers.map(({ id }) => id);

async function conflictsOf(store: ContractClient): Promise<object[]> {
  const conflicts = [];
  const { app } = service.running;
  for await (const conflict of new PhoneConflicts(app.get(Pool), app.get(PersonalKeys)).find(
    store.accountId,
  )) {
    conflicts.push(conflict);
  }
  return conflicts;
}

/** Stores a number as it was stored before its country changed it. */
async function storeFormer({ accountId }: ContractClient, id: number, phone: string) {
  const { app } = service.running;
  const keys = app.get(PersonalKeys);
  const context = {
    accountId,
    actor: { type: 'system', id: 0 },
    channel: 'system',
    requestId: 'former-number',
  } as const;
  await app.get(CommandPipeline).handleCommand({
    readModel: customerReadModel,
    id,
    context,
    load: () => Promise.resolve(null),
    decide: (state) => {
      const events: CustomerEvent[] = [
        {
          type: 'CustomerPhoneNormalized',
          data: { customerId: id, country: null, personal: { phone } },
        },
      ];
      return { events, ...createClaimChanges(keys, context, id, state, events) };
    },
    respond: () => true,
  });
}

describe('phone numbers of a store', () => {
  it("CUST-58 When the store gets another `country`, its customers' phone numbers take the form that they have there, in the background", async () => {
    const store = await service.newStore();
    const { id } = await add(store, '0171 1234567');
    const otherCustomer = await add(store, '(0151) 12345678');
    await add(store, '+436641234567');
    await add(store, '12');
    await normalizePhones(service.running);
    expect(await phonesOf(store)).toEqual(['12', '+436641234567', '015112345678', '01711234567']);
    await setCountry(store, 'DE');
    await normalizePhones(service.running);
    const inGermany = ['12', '+436641234567', '+4915112345678', '+491711234567'];
    expect(await phonesOf(store)).toEqual(inGermany);
    expect(await findIds(store, { phone: '0171/1234567' })).toEqual([id]);
    expect(await findIds(store, { search: '0151 123' })).toEqual([otherCustomer.id]);
    const customer = { first_name: 'B', phone: '0049 171 1234567' };
    expectRefused(await store.post(`${store.store}/customers`, { customer }), 'phone', 'taken');
    // A number with a country code keeps it, whichever country comes next.
    await setCountry(store, 'AT');
    await add(store, '0664 7654321');
    await normalizePhones(service.running);
    expect(await phonesOf(store)).toEqual(['+436647654321', ...inGermany]);
  });

  it('CUST-75 A `phone` in a former spelling of its country becomes that of today', async () => {
    const store = await service.newStore({ country: 'MX' });
    const { id } = await add(store, '+52 1 55 1234 5678');
    for (const phone of [
      '+52 55 1234 5678',
      '52 1 55 1234 5678',
      '0052 1 55 1234 5678',
      '55 1234 5678',
      '1 55 1234 5678',
      '01 55 1234 5678',
      '044 55 1234 5678',
      '045 55 1234 5678',
      '+52 044 55 1234 5678',
    ]) {
      const customer = { first_name: 'B', phone };
      expectRefused(await store.post(`${store.store}/customers`, { customer }), 'phone', 'taken');
      expect([phone, await findIds(store, { phone })]).toEqual([phone, [id]]);
      expect([phone, await findIds(store, { search: phone })]).toEqual([phone, [id]]);
    }
    await add(store, '+54 9 11 15 2345 6789');
    await add(store, '+229 97 12 34 56');
    expect(await phonesOf(store)).toEqual(['+2290197123456', '+5491123456789', '+525512345678']);
  });

  it('CUST-76 A `phone` whose country has added digits that do not follow from the others is 422 `phone`', async () => {
    const store = await service.newStore();
    const customer = { first_name: 'B', phone: '+225 21 21 21 21' };
    const refused = await store.post(`${store.store}/customers`, { customer });
    expectRefused(refused, 'phone');
    expect(refused.body).toMatchObject({
      errors: { phone: [expect.stringContaining('they have 10 digits now')] },
      error_codes: { phone: ['phone_outdated'] },
    });
  });

  it("CUST-77 Argentina's numbers with and without the 9 after the country code are one number", async () => {
    const store = await service.newStore({ country: 'AR' });
    const mobile = await add(store, '+54 9 11 2345 6789');
    const fixed = await add(store, '011 4321 1234');
    expect(await phonesOf(store)).toEqual(['+541143211234', '+5491123456789']);
    for (const [phone, id] of [
      ['+54 11 2345 6789', mobile.id],
      ['11 2345-6789', mobile.id],
      ['011 15 2345 6789', mobile.id],
      ['+54 9 11 4321 1234', fixed.id],
    ] as const) {
      const customer = { first_name: 'B', phone };
      expectRefused(await store.post(`${store.store}/customers`, { customer }), 'phone', 'taken');
      expect([phone, await findIds(store, { phone })]).toEqual([phone, [id]]);
    }
    // The owner of a number may write it in another way.
    const path = `${store.store}/customers/${mobile.id}`;
    const changed = await store.patch(path, { customer: { phone: '+54 11 2345 6789' } });
    expect(changed.body).toMatchObject({ phone: '+541123456789' });
    expect(await findIds(store, { phone: '+54 9 11 2345 6789' })).toEqual([mobile.id]);
  });

  it('CUST-78 Numbers that were stored before their country changed them take the form of today once, in the background', async () => {
    const store = await service.newStore();
    const first = await add(store, '+52 55 1234 5678');
    const second = await add(store, '+52 55 8765 4321');
    const third = await add(store, '+229 01 97 12 34 56');
    const { database } = service.running;
    await storeFormer(store, second.id, '+5215512345678');
    await storeFormer(store, third.id, '+22966000000');
    // As the migration does.
    await database.query(
      `insert into phone_normalizations (account_id, revision) select id, revision from accounts where id = $1
       on conflict (account_id) do update set due_at = now(), is_repeated = true`,
      [store.accountId],
    );
    await normalizePhones(service.running);
    expect(await phonesOf(store)).toEqual(['+2290166000000', '+5215512345678', '+525512345678']);
    expect(await conflictsOf(store)).toEqual([
      {
        accountId: store.accountId,
        customerId: second.id,
        heldBy: first.id,
        maskedPhone: '+52…78',
      },
    ]);
  });

  it('CUST-60 A phone number whose new form another customer has already stays as it is, and both customers with it', async () => {
    const store = await service.newStore();
    const first = await add(store, '0171 1234567');
    const second = await add(store, '49 171 1234567');
    const third = await add(store, '0151 12345678', { email: 'third@example.com' });
    const fourth = await add(store, '+4915112345678', { email: 'fourth@example.com' });
    expect(await conflictsOf(store)).toEqual([]);
    await setCountry(store, 'DE');
    await normalizePhones(service.running);
    expect(await phonesOf(store)).toEqual([
      '+4915112345678',
      '015112345678',
      '491711234567',
      '+491711234567',
    ]);
    const { accountId } = store;
    const [one, two] = [
      { accountId, customerId: second.id, heldBy: first.id, maskedPhone: '+49…67' },
      { accountId, customerId: third.id, heldBy: fourth.id, maskedPhone: '+49…78' },
    ];
    expect(await conflictsOf(store)).toEqual([one, two]);
    // The other fields of somebody who is listed can be changed.
    const path = `${store.store}/customers`;
    const renamed = await store.patch(`${path}/${second.id}`, { customer: { last_name: 'B' } });
    expect(renamed.status).toBe(200);
    const merged = await store.post(`${path}/${first.id}/merge`, { from_customer_id: second.id });
    expect(merged.status).toBe(200);
    expect(await conflictsOf(store)).toEqual([two]);
    // Once the number is free, it is the other one's.
    await store.patch(`${path}/${fourth.id}`, { customer: { phone: null } });
    expect(await conflictsOf(store)).toEqual([]);
    await service.running.database.query(
      'update phone_normalizations set due_at = now() where account_id = $1',
      [accountId],
    );
    await normalizePhones(service.running);
    expect(await findIds(store, { phone: '0151 12345678' })).toEqual([third.id]);
    const back = await store.post(`${path}/${first.id}/unmerge`, { from_customer_id: second.id });
    expect(back.status).toBe(200);
    expect(await conflictsOf(store)).toEqual([one]);
  });

  /** Two customers with one number, of whom the first keeps its digits because the second has it. */
  async function addConflict(store: ContractClient): Promise<[CustomerJson, CustomerJson]> {
    const consents = { marketing_consent: true, sms_consent: true };
    const digits = await add(store, '0171 1234567', { email: 'd@example.com', ...consents });
    const international = await add(store, '+49 171 1234567', { email: 'i@example.com' });
    await setCountry(store, 'DE');
    await normalizePhones(service.running);
    return [digits, international];
  }
  const NOTATIONS = ['0171 1234567', '+49 171 1234567', '0049171 1234567', '49 171 1234567'];
  const merge = async (
    store: ContractClient,
    verb: 'merge' | 'unmerge',
    id: number,
    from: number,
  ) =>
    expect(
      (await store.post(`${store.store}/customers/${id}/${verb}`, { from_customer_id: from }))
        .status,
    ).toBe(200);
  const claimsOf = async ({ accountId }: ContractClient) =>
    (
      await service.running.database.query<{ stream_id: string }>(
        `select stream_id from es.claims where account_id = $1 and kind = 'phone' order by stream_id`,
        [accountId],
      )
    ).rows.map(({ stream_id: stream }) => Number(stream.slice('customer-'.length)));

  it('CUST-64 When two customers with one number are merged, the survivor gets it in E.164 format, in either direction', async () => {
    for (const isDigitsFirst of [true, false]) {
      const store = await service.newStore();
      const pair = await addConflict(store);
      const [survivor, other] = isDigitsFirst ? pair : pair.toReversed();
      if (!survivor || !other) throw new Error('there are two customers');
      const read = async ({ id }: { id: number }) =>
        (await store.get<CustomerJson>(`${store.store}/customers/${id}`)).body;
      const before = [await read(survivor), await read(other)];
      await merge(store, 'merge', survivor.id, other.id);
      const { phone, marketing_consent, sms_consent } = await read(survivor);
      expect([phone, marketing_consent, sms_consent]).toEqual([
        '+491711234567',
        isDigitsFirst,
        isDigitsFirst,
      ]);
      expect(await claimsOf(store)).toEqual([survivor.id, other.id].toSorted((a, b) => a - b));
      expect(await conflictsOf(store)).toEqual([]);
      const customer = { first_name: 'B', phone: '0171 1234567' };
      expectRefused(await store.post(`${store.store}/customers`, { customer }), 'phone', 'taken');
      await merge(store, 'unmerge', survivor.id, other.id);
      const after = [await read(survivor), await read(other)];
      expect(after.map(({ phone }) => phone)).toEqual(before.map(({ phone }) => phone));
      expect(await claimsOf(store)).toEqual([survivor.id, other.id].toSorted((a, b) => a - b));
      expect(await conflictsOf(store)).toMatchObject([{ customerId: pair[0].id }]);
      // Once the number is free, it is the other one's, as if there had been no merge.
      await store.patch(`${store.store}/customers/${pair[1].id}`, { customer: { phone: null } });
      await service.running.database.query(
        'update phone_normalizations set due_at = now() where account_id = $1',
        [store.accountId],
      );
      await normalizePhones(service.running);
      expect(await findIds(store, { phone: '0171 1234567' })).toEqual([pair[0].id]);
    }
  });

  it('CUST-66 A merge recognises one number before the store has a country too, by the country of the number in E.164 format', async () => {
    const store = await service.newStore();
    const survivor = await add(store, '0171 1234567', { email: 'one@example.com' });
    const other = await add(store, '+49 171 1234567');
    await merge(store, 'merge', survivor.id, other.id);
    expect(await findIds(store, { phone: '+491711234567' })).toEqual([survivor.id]);
    const customer = { first_name: 'B', phone: '0171 1234567' };
    expectRefused(await store.post(`${store.store}/customers`, { customer }), 'phone', 'taken');
    await setCountry(store, 'DE');
    await normalizePhones(service.running);
    for (const notation of NOTATIONS) {
      expect(await findIds(store, { phone: notation })).toEqual([survivor.id]);
    }
    await merge(store, 'unmerge', survivor.id, other.id);
    expect(await phonesOf(store)).toEqual(['+491711234567', '01711234567']);
    expect(await conflictsOf(store)).toMatchObject([{ customerId: survivor.id, heldBy: other.id }]);
  });

  it("CUST-65 Of merged customers the survivor's number is adapted to another `country` first, and those of the others while it is free", async () => {
    const store = await service.newStore();
    const first = await add(store, '49 171 1234567', { email: 'first@example.com' });
    const second = await add(store, '+43 664 1234567', { email: 'second@example.com' });
    const third = await add(store, '0171 1234567', { email: 'third@example.com' });
    await merge(store, 'merge', second.id, first.id);
    await merge(store, 'merge', third.id, second.id);
    await setCountry(store, 'DE');
    await normalizePhones(service.running);
    expect(await phonesOf(store)).toEqual(['+491711234567']);
    expect(await findIds(store, { phone: '0171 1234567' })).toEqual([third.id]);
  });

  it('SEARCH-33 After a merge of two customers with one number, `phone` and `search` find the survivor in every notation', async () => {
    for (const isDigitsFirst of [true, false]) {
      const store = await service.newStore();
      const pair = (await addConflict(store)).map(({ id }) => id);
      const [survivor = 0, other = 0] = isDigitsFirst ? pair : pair.toReversed();
      await merge(store, 'merge', survivor, other);
      for (const notation of NOTATIONS) {
        expect(await findIds(store, { phone: notation })).toEqual([survivor]);
        expect(await findIds(store, { search: notation })).toEqual([survivor]);
      }
      await merge(store, 'unmerge', survivor, other);
      for (const notation of NOTATIONS) {
        expect(await findIds(store, { phone: notation })).toEqual([pair[1]]);
      }
      expect(await findIds(store, { search: '0171 1234567' })).toEqual(pair.toReversed());
    }
  });

  it('CUST-59 A phone number that takes the form of another `country` sends `customer.updated`', async () => {
    const store = await service.newStore();
    const { id, updated_at: before } = await add(store, '0171 1234567');
    await setCountry(store, 'DE');
    await startDispatcher(service.running);
    const { body: events } = await eventually(
      () => store.get<object[]>(`${store.store}/events`),
      ({ body }) => body.length === 3,
    );
    expect(events).toMatchObject([
      { type: 'customer.created', data: { phone: '01711234567' } },
      { type: 'store.updated', data: { country: 'DE' } },
      {
        type: 'customer.updated',
        data: { id, phone: '+491711234567' },
        previous_attributes: { phone: '01711234567' },
      },
    ]);
    const { body: entries } = await store.get<HistoryEntryJson[]>(
      `${store.store}/history?customer_id=${id}`,
    );
    expect(entries).toMatchObject([
      {
        type: 'customer.phone_normalized',
        channel: 'system',
        actor: { type: 'system', id: 0 },
        customer_id: id,
      },
      { type: 'customer.created' },
    ]);
    const { body } = await store.get<CustomerJson>(`${store.store}/customers/${id}`);
    expect(body.updated_at > before).toBe(true);
    const past = await store.get<CustomerJson>(
      `${store.store}/customers/${id}?as_of=${encodeURIComponent(before)}`,
    );
    expect(past.body.phone).toBe('01711234567');
  });
});
