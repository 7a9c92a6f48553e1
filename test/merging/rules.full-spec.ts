import { describe, expect, it } from '@jest/globals';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type {
  CustomerCardDetailJson,
  CustomerCardJson,
} from '#loyalty/stamping/customer-card.dto.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { sentSoFar, useSentEvents } from '../support/services/sent-events.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

let people = 0;

async function newCard(at: ContractClient = store, rewards: number[] = []): Promise<CardJson> {
  const { body: card } = await at.post<CardJson>(`${at.store}/cards`, { card: { name: 'Coffee' } });
  for (const stamps_required of rewards) {
    const reward = { card_id: card.id, name: `Reward at ${stamps_required}`, stamps_required };
    expect((await at.post<RewardJson>(`${at.store}/rewards`, { reward })).status).toBe(201);
  }
  return card;
}

async function newCustomer(fields: object = {}, at: ContractClient = store): Promise<CustomerJson> {
  const { status, body } = await at.post<CreatedCustomerJson>(`${at.store}/customers`, {
    customer: { first_name: 'Ada', email: `merged${++people}@mail.example`, ...fields },
  });
  expect(status).toBe(201);
  return body;
}

async function newCustomers(count: number): Promise<number[]> {
  const customers = await Promise.all(Array.from({ length: count }, () => newCustomer()));
  return customers.map(({ id }) => id);
}

async function issueCard(
  { id }: { id: number },
  card: CardJson,
  stamps: number,
  at: ContractClient = store,
): Promise<{ path: string; card: CustomerCardDetailJson }> {
  const cards = `${pathOf(id, at)}/customer_cards`;
  const { status, body } = await at.post<CustomerCardDetailJson>(cards, { card_id: card.id });
  expect(status).toBe(201);
  const path = `${cards}/${body.id}`;
  if (stamps > 0) await at.stamp(path, { stamps });
  return { path, card: body };
}

const pathOf = (id: number, at: ContractClient = store) => `${at.store}/customers/${id}`;
const read = async (id: number, at: ContractClient = store) =>
  (await at.get<CustomerJson>(pathOf(id, at))).body;
const merge = (id: number, from_customer_id: unknown, at: ContractClient = store) =>
  at.post<CustomerJson>(`${pathOf(id, at)}/merge`, { from_customer_id });
const unmerge = (id: number, from_customer_id: unknown, at: ContractClient = store) =>
  at.post<CustomerJson>(`${pathOf(id, at)}/unmerge`, { from_customer_id });
const search = async (query: Record<string, string>, at: ContractClient = store) =>
  (
    await at.get<CustomerListJson>(`${at.store}/customers?${new URLSearchParams(query)}`)
  ).body.customers.map(({ id }) => id);
const balances = ({ customer_cards }: CustomerJson) =>
  customer_cards.map(({ id, stamps_count }) => [id, stamps_count]);

async function merged(id: number, from: number, at: ContractClient = store): Promise<CustomerJson> {
  const { status, body } = await merge(id, from, at);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body;
}

async function unmerged(id: number, from: number): Promise<CustomerJson> {
  const { status, body } = await unmerge(id, from);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body;
}

/** Two customers with a card of the same template each. */
async function twoWithStamps(one: number, two: number, rewards: number[] = []) {
  const card = await newCard(store, rewards);
  const [survivor, other] = [await newCustomer(), await newCustomer()];
  return {
    card,
    survivor,
    other,
    survivorCard: await issueCard(survivor, card, one),
    gone: await issueCard(other, card, two),
  };
}

const expectMerged = (response: { status: number; body: unknown }, into: number) => {
  expectRefused(response as never, 'base', 'customer_merged');
  const { errors, resolution } = response.body as Failure;
  expect(`${errors?.['base']?.[0]} ${resolution}`).toContain(`customer ${into}`);
};

/** A change and its undoing leave a later time. */
const withoutTime = (customer: CustomerJson) => ({
  ...customer,
  updated_at: null,
  customer_cards: customer.customer_cards.map((card) => ({ ...card, updated_at: null })),
});

describe('merging customers', () => {
  it('MERGE-01 The response to a merge is the customer who goes on, as reads show it', async () => {
    const { survivor, other } = await twoWithStamps(1, 2);
    const { status, body } = await merge(survivor.id, other.id);
    expect(status).toBe(200);
    expect(body.id).toBe(survivor.id);
    expect(body).toEqual(await read(survivor.id));
  });

  it('MERGE-02 `from_customer_id` is required; one that is not an integer from 1 is 422 `from_customer_id`', async () => {
    const { id } = await newCustomer();
    for (const value of [undefined, null, 'x', 1.5, 0]) {
      expectRefused(await merge(id, value), 'from_customer_id');
      expectRefused(await unmerge(id, value), 'from_customer_id');
    }
  });

  it('MERGE-03 An unknown customer, or one of another store, is 404, in the path and in the body', async () => {
    const own = await newCustomer();
    const elsewhere = await service.newStore();
    const stranger = await newCustomer({}, elsewhere);
    for (const act of [merge, unmerge]) {
      expectFailure(await act(own.id, stranger.id), 404, 'not_found');
      expectFailure(await act(stranger.id, own.id), 404, 'not_found');
      expectFailure(await act(own.id, 999_999_999), 404, 'not_found');
    }
    expect((await read(own.id)).merged_into).toBeNull();
  });

  it('MERGE-04 Merging a customer with itself is 422 `from_customer_id`', async () => {
    const { id } = await newCustomer();
    expectRefused(await merge(id, id), 'from_customer_id');
  });

  it('MERGE-05 A customer who is merged already is 422 `base`, code `customer_merged`', async () => {
    const [one, two, three] = [await newCustomer(), await newCustomer(), await newCustomer()];
    await merged(one.id, two.id);
    expectMerged(await merge(one.id, two.id), one.id);
    expectMerged(await merge(three.id, two.id), one.id);
  });

  it('MERGE-06 A merged customer is still found by id, with `merged_into` and without cards; in all others `merged_into` is null', async () => {
    const [one, two] = [await newCustomer(), await newCustomer()];
    expect([one.merged_into, (await read(one.id)).merged_into]).toEqual([null, null]);
    expect((await merged(one.id, two.id)).merged_into).toBeNull();
    const { status, body } = await store.get<CustomerJson>(pathOf(two.id));
    expect([status, body.merged_into]).toEqual([200, one.id]);
    expect([body.first_name, body.customer_cards, body.stamp_count]).toEqual(['Ada', [], 0]);
    const listed = await store.get<CustomerCardJson[]>(`${pathOf(two.id)}/customer_cards`);
    expect([listed.status, listed.body]).toEqual([200, []]);
  });

  it('MERGE-07 A merged customer is not in the list and not in `customers_count`', async () => {
    const own = await service.newStore();
    const [one, two] = [await newCustomer({}, own), await newCustomer({}, own)];
    const count = async () => (await own.get<AccountJson>(own.store)).body.customers_count;
    expect(await count()).toBe(2);
    await merged(one.id, two.id, own);
    expect([await search({}, own), await count()]).toEqual([[one.id], 1]);
  });

  it('MERGE-08 A merged customer is found by no search', async () => {
    const one = await newCustomer();
    const name = `Zebulon${++people}`;
    const email = `zeb${people}@mail.example`;
    const two = await newCustomer({ first_name: name, email, phone: `+4915700${people}99` });
    expect(await search({ search: name })).toEqual([two.id]);
    await merged(one.id, two.id);
    expect(await search({ search: name })).toEqual([]);
    expect(await search({ search: email })).toEqual([]);
  });

  it('MERGE-09 The surviving customer keeps what it has', async () => {
    const phone = `49151${100_000 + ++people}`;
    const one = await newCustomer({ last_name: 'Berg' });
    const two = await newCustomer({
      first_name: 'Adelheid',
      last_name: 'Tal',
      phone: `+${phone}`,
      birthday: '1990-05-31',
    });
    const after = await merged(one.id, two.id);
    expect(after).toMatchObject({
      first_name: 'Ada',
      last_name: 'Berg',
      email: one.email,
      phone: `+${phone}`,
      birthday: '1990-05-31',
    });
    expect(await search({ search: phone })).toEqual([one.id]);
    expect(await read(two.id)).toMatchObject({
      first_name: 'Adelheid',
      last_name: 'Tal',
      email: two.email,
      phone: null,
    });
  });

  it("MERGE-10 `metadata` is merged key by key; where both have a key, the survivor's value stays", async () => {
    const one = await newCustomer({ metadata: { milk: 'oat', size: 'L' } });
    const two = await newCustomer({ metadata: { milk: 'cow', dog: { name: 'Rex' } } });
    const { metadata } = await merged(one.id, two.id);
    expect(metadata).toEqual({ milk: 'oat', size: 'L', dog: { name: 'Rex' } });
  });

  it("MERGE-11 All external references become the survivor's, and searches by them find it", async () => {
    const [mine, theirs] = [`M${++people}`, `T${people}`];
    const reference = (external_id: string) => [{ source: 'till', external_id }];
    const one = await newCustomer({ external_references: reference(mine) });
    const two = await newCustomer({ external_references: reference(theirs) });
    const { external_references } = await merged(one.id, two.id);
    expect(external_references).toEqual([...one.external_references, ...two.external_references]);
    for (const external_id of [mine, theirs]) {
      expect(await search({ source: 'till', external_id })).toEqual([one.id]);
      expect(await search({ search: external_id })).toEqual([one.id]);
    }
    expectRefused(
      await store.post(`${store.store}/customers`, {
        customer: {
          first_name: 'Eve',
          email: 'eve@x.example',
          external_references: reference(theirs),
        },
      }),
      'external_references',
      'taken',
    );
  });

  it('MERGE-12 A merge to more metadata or references than one customer may have is 422 on the field', async () => {
    const many = (prefix: string, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, i]));
    const external_references = (prefix: string) =>
      Array.from({ length: 60 }, (_, i) => ({ source: 'till', external_id: `${prefix}${i}` }));
    const one = await newCustomer({
      metadata: many('a', 30),
      external_references: external_references(`A${++people}-`),
    });
    const two = await newCustomer({
      metadata: many('b', 30),
      external_references: external_references(`B${people}-`),
    });
    expectRefused(await merge(one.id, two.id), ['external_references', 'metadata']);
    expect([await read(one.id), await read(two.id)]).toEqual([one, two]);
  });

  it('MERGE-13 A merge widens no consent', async () => {
    const bothConsents = { marketing_consent: true, sms_consent: true };
    const consents = ({ marketing_consent, sms_consent }: CustomerJson) => [
      marketing_consent,
      sms_consent,
    ];
    const phone = () => ({ phone: `+491520${++people}888` });
    const without = await newCustomer();
    expect(consents(await merged(without.id, (await newCustomer(bothConsents)).id))).toEqual([
      false,
      false,
    ]);
    const keeps = await newCustomer(bothConsents);
    expect(consents(await merged(keeps.id, (await newCustomer()).id))).toEqual([true, true]);
    // The phone that is taken over belongs to somebody who was never asked.
    const takes = await newCustomer(bothConsents);
    expect(consents(await merged(takes.id, (await newCustomer(phone())).id))).toEqual([
      false,
      false,
    ]);
    const both = await newCustomer(bothConsents);
    const customer = await newCustomer({ ...bothConsents, ...phone() });
    expect(consents(await merged(both.id, customer.id))).toEqual([true, true]);
  });

  it('MERGE-14 Every `email` and `phone` of merged customers stays taken', async () => {
    const one = await newCustomer();
    const phone = `+4915201${++people}77`;
    const two = await newCustomer({ phone });
    await merged(one.id, two.id);
    const create = (fields: object) =>
      store.post(`${store.store}/customers`, { customer: { first_name: 'Eve', ...fields } });
    expectRefused(await create({ email: two.email }), 'email', 'taken');
    expectRefused(await create({ phone }), 'phone', 'taken');
    expectRefused(
      await store.patch(pathOf(one.id), { customer: { email: two.email } }),
      'email',
      'taken',
    );
  });

  it("MERGE-15 A card whose template the survivor does not have becomes the survivor's as it is, with its id, code, uuid and stamps", async () => {
    const [coffee, cake] = [await newCard(), await newCard()];
    const [one, two] = [await newCustomer(), await newCustomer()];
    const survivorCard = await issueCard(one, coffee, 2);
    const moved = await issueCard(two, cake, 3);
    const after = await merged(one.id, two.id);
    expect(after.stamp_count).toBe(5);
    expect(balances(after)).toEqual([
      [survivorCard.card.id, 2],
      [moved.card.id, 3],
    ]);
    const { body } = await store.get<CustomerCardDetailJson>(
      `${pathOf(one.id)}/customer_cards/${moved.card.id}`,
    );
    expect(body).toMatchObject({
      uuid: moved.card.uuid,
      code: moved.card.code,
      issued_at: moved.card.issued_at,
      customer_id: one.id,
      stamps_count: 3,
    });
    expectRefused(
      await store.post(`${pathOf(one.id)}/customer_cards`, { card_id: cake.id }),
      'card_id',
      'taken',
    );
  });

  it("MERGE-16 Where both customers have a card of one template, all stamps are added together on the survivor's card, and the other card is closed", async () => {
    const { survivor, other, survivorCard, card } = await twoWithStamps(4, 3);
    const after = await merged(survivor.id, other.id);
    expect(balances(after)).toEqual([[survivorCard.card.id, 7]]);
    expect((await read(survivor.id)).stamp_count).toBe(7);
    const { body } = await store.get<CardJson>(`${store.store}/cards/${card.id}`);
    expect(body).toMatchObject({ customer_cards_count: 1 });
  });

  it('MERGE-17 Rewards that two cards reach together by a merge are unlocked and announced', async () => {
    const { survivor, other, survivorCard } = await twoWithStamps(4, 3, [5, 8]);
    const receiver = await sent.subscribe(store);
    await merged(survivor.id, other.id);
    const { body } = await store.get<CustomerCardDetailJson>(survivorCard.path);
    expect(body.available_rewards.map(({ stamps_required }) => stamps_required)).toEqual([5]);
    const sentEvents = (await sentSoFar(store, survivorCard.path, receiver)).filter(
      ({ type }) => type === 'reward.unlocked',
    );
    expect(sentEvents).toEqual([
      expect.objectContaining({
        data: expect.objectContaining({
          customer_card_id: survivorCard.card.id,
          stamps_count: 7,
          reward: expect.objectContaining({ stamps_required: 5 }),
        }),
      }),
    ]);
  });

  it('MERGE-18 Codes and uuids of all cards of merged customers find the survivor', async () => {
    const { survivor, other, gone } = await twoWithStamps(1, 1);
    const moved = await issueCard(other, await newCard(), 0);
    await merged(survivor.id, other.id);
    for (const { card } of [gone, moved]) {
      expect(await search({ search: card.code })).toEqual([survivor.id]);
      expect(await search({ search: card.uuid })).toEqual([survivor.id]);
    }
  });

  it("MERGE-19 Stamp, redeem and reading under the old path, with the merged customer and its card, reach the survivor's card: the response is about that one", async () => {
    const { survivor, other, survivorCard, gone } = await twoWithStamps(4, 3, [5]);
    const moved = await issueCard(other, await newCard(), 1);
    await merged(survivor.id, other.id);
    const added = await store.stamp(gone.path, { stamps: 2 });
    expect(added.status).toBe(200);
    expect(added.body).toMatchObject({
      id: survivorCard.card.id,
      customer_id: survivor.id,
      stamps_count: 9,
    });
    expect(added.body).toMatchObject((await store.get<CustomerCardDetailJson>(gone.path)).body);
    const whole = await store.stamp(moved.path, { stamps: 1 });
    expect(whole.body).toMatchObject({
      id: moved.card.id,
      customer_id: survivor.id,
      stamps_count: 2,
    });
    const [reward] = added.body.available_rewards;
    const redeemed = await store.post(`${gone.path}/redeem`, { reward_id: reward?.id });
    expect([redeemed.status, (await read(survivor.id)).stamp_count]).toEqual([200, 6]);
  });

  it('MERGE-20 Receipt numbers (`external_ref`) used before a merge return their first result, under the old path and the new one', async () => {
    const { card, survivor, other, survivorCard, gone } = await twoWithStamps(1, 0);
    const external_ref = `receipt-${++people}`;
    const first = await store.stamp(gone.path, { stamps: 2, external_ref });
    await merged(survivor.id, other.id);
    for (const path of [gone.path, survivorCard.path]) {
      const again = await store.stamp(path, { stamps: 2, external_ref });
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      const otherResponse = await store.stamp(path, { stamps: 1, external_ref });
      expectRefused(otherResponse, 'external_ref', 'taken');
      const existing = { type: 'customer_card', id: survivorCard.card.id };
      expect(otherResponse.body).toMatchObject({ existing });
    }
    const later = `later-${people}`;
    const added = await store.stamp(gone.path, { stamps: 1, external_ref: later });
    expect((await store.stamp(gone.path, { stamps: 1, external_ref: later })).body).toEqual(
      added.body,
    );
    expect((await read(survivor.id)).stamp_count).toBe(4);
    const third = await newCustomer();
    const last = await issueCard(third, card, 0);
    await merged(third.id, survivor.id);
    for (const path of [gone.path, survivorCard.path, last.path]) {
      const again = await store.stamp(path, { stamps: 2, external_ref });
      expect([again.status, again.body]).toEqual([200, first.body]);
    }
    expect((await read(third.id)).stamp_count).toBe(4);
  });

  it('MERGE-21 Any other command to a merged customer is 422 `base`, code `customer_merged`; the message names the one that goes on', async () => {
    const [one, two, three] = [await newCustomer(), await newCustomer(), await newCustomer()];
    const card = await newCard();
    await merged(one.id, two.id);
    const path = pathOf(two.id);
    expectMerged(await store.patch(path, { customer: { first_name: 'Eve' } }), one.id);
    expectMerged(await store.post(`${path}/customer_cards`, { card_id: card.id }), one.id);
    expectMerged(await merge(two.id, three.id), one.id);
    expectMerged(await unmerge(two.id, three.id), one.id);
  });

  it('MERGE-22 A merge sends `customer.updated` about both customers, with `previous_attributes`', async () => {
    const own = await service.newStore();
    const card = await newCard(own);
    const [one, two] = [
      await newCustomer({}, own),
      await newCustomer({ last_name: 'Tal', phone: '+4915123456789' }, own),
    ];
    const survivorCard = await issueCard(one, card, 4, own);
    const gone = await issueCard(two, card, 3, own);
    const receiver = await sent.subscribe(own);
    await merged(one.id, two.id, own);
    const all = await sentSoFar(own, survivorCard.path, receiver);
    expect(all.map(({ type }) => type).sort()).toEqual([
      'customer.updated',
      'customer.updated',
      'stamp.earned',
      'stamp.removed',
    ]);
    const bodies = receiver.events.map(({ body }) => body);
    const about = (id: number) =>
      bodies.find(
        ({ type, data }) => type === 'customer.updated' && (data as CustomerJson).id === id,
      );
    expect(about(one.id)).toMatchObject({
      data: { merged_into: null, last_name: 'Tal', phone: '+4915123456789' },
      previous_attributes: { last_name: null, phone: null },
    });
    expect(about(two.id)).toMatchObject({
      data: { merged_into: one.id, phone: null },
      previous_attributes: { phone: '+4915123456789' },
    });
    const data = (type: string) => all.find((event) => event.type === type)?.data;
    expect(data('stamp.removed')).toMatchObject({
      customer_id: two.id,
      customer_card_id: gone.card.id,
      stamps: 3,
      stamps_count: 0,
      source: 'adjustment',
    });
    expect(data('stamp.earned')).toMatchObject({
      customer_id: one.id,
      customer_card_id: survivorCard.card.id,
      stamps: 3,
      stamps_count: 7,
      source: 'adjustment',
    });
  });

  it("MERGE-23 A card that changes hands in a merge sends nothing of its own: it moves from the one's `customer_cards` to the other's", async () => {
    const own = await service.newStore();
    const [one, two] = [await newCustomer({}, own), await newCustomer({}, own)];
    const moved = await issueCard(two, await newCard(own), 2, own);
    const receiver = await sent.subscribe(own);
    await merged(one.id, two.id, own);
    const all = await sentSoFar(own, moved.path, receiver);
    const cards = all.map(({ type, data }) => [
      type,
      data['id'],
      (data['customer_cards'] as CustomerCardJson[]).map(({ id }) => id),
    ]);
    expect(cards).toEqual([
      ['customer.updated', one.id, [moved.card.id]],
      ['customer.updated', two.id, []],
    ]);
  });

  it('MERGE-24 Stamping limits neither stop a merge nor count what it moves', async () => {
    const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: 'Limited', max_stamps_per_request: 3, max_stamps_per_day: 3 },
    });
    const [one, two] = [await newCustomer(), await newCustomer()];
    const survivorCard = await issueCard(one, card, 1);
    await issueCard(two, card, 3);
    expect(balances(await merged(one.id, two.id))).toEqual([[survivorCard.card.id, 4]]);
    expect((await store.stamp(survivorCard.path, { stamps: 2 })).status).toBe(200);
  });
});

describe('unmerging customers', () => {
  it('MERGE-28 After unmerge both customers are as they were, and their values are their own again', async () => {
    const card = await newCard();
    const external_id = `U${++people}`;
    const one = await newCustomer({ metadata: { milk: 'oat' }, marketing_consent: true });
    const two = await newCustomer({
      last_name: 'Tal',
      phone: `+4915203${++people}66`,
      birthday: '1990-05-31',
      metadata: { milk: 'cow', dog: 'Rex' },
      external_references: [{ source: 'till', external_id }],
      marketing_consent: true,
    });
    await issueCard(one, card, 4);
    await issueCard(two, card, 3);
    await issueCard(two, await newCard(), 2);
    const before = [await read(one.id), await read(two.id)];
    await merged(one.id, two.id);
    const response = await unmerged(one.id, two.id);
    const after = [await read(one.id), await read(two.id)];
    expect(response).toEqual(after[0]);
    expect(after.map(withoutTime)).toEqual(before.map(withoutTime));
    expect(await search({ search: String(two.phone).slice(1) })).toEqual([two.id]);
    expect(await search({ source: 'till', external_id })).toEqual([two.id]);
  });

  it("MERGE-29 Unmerge gives back those of the added stamps that are still there: redemptions since are paid by the survivor's own stamps first", async () => {
    const { survivor, other, survivorCard, gone } = await twoWithStamps(4, 3, [5]);
    await merged(survivor.id, other.id);
    const { body } = await store.get<CustomerCardDetailJson>(survivorCard.path);
    const reward_id = body.available_rewards[0]?.id;
    expect((await store.post(`${survivorCard.path}/redeem`, { reward_id })).status).toBe(200);
    await unmerged(survivor.id, other.id);
    expect(balances(await read(survivor.id))).toEqual([[survivorCard.card.id, 0]]);
    expect(balances(await read(other.id))).toEqual([[gone.card.id, 2]]);
  });

  it('MERGE-30 After unmerge, stamps since the merge stay on the card that they were put on', async () => {
    const { survivor, other, survivorCard, gone } = await twoWithStamps(4, 3);
    const moved = await issueCard(other, await newCard(), 1);
    await merged(survivor.id, other.id);
    await store.stamp(gone.path, { stamps: 2 });
    await store.stamp(moved.path, { stamps: 5 });
    await unmerged(survivor.id, other.id);
    expect(balances(await read(survivor.id))).toEqual([[survivorCard.card.id, 6]]);
    expect(balances(await read(other.id))).toEqual([
      [gone.card.id, 3],
      [moved.card.id, 6],
    ]);
    expect((await store.stamp(gone.path, { stamps: 1 })).body).toMatchObject({
      id: gone.card.id,
      customer_id: other.id,
      stamps_count: 4,
    });
  });

  it('MERGE-31 A field that was changed since the merge stays as it is after unmerge', async () => {
    const one = await newCustomer();
    const two = await newCustomer({ last_name: 'Tal', birthday: '1990-05-31' });
    await merged(one.id, two.id);
    await store.patch(pathOf(one.id), { customer: { last_name: 'Berg' } });
    const after = await unmerged(one.id, two.id);
    expect([after.last_name, after.birthday]).toEqual(['Berg', null]);
    expect(await read(two.id)).toMatchObject({ last_name: 'Tal', birthday: '1990-05-31' });
  });

  it('MERGE-32 A consent that became false by the merge stays false after unmerge', async () => {
    const one = await newCustomer({ marketing_consent: true });
    const two = await newCustomer({ phone: `+4915204${++people}55` });
    expect((await merged(one.id, two.id)).marketing_consent).toBe(false);
    expect((await unmerged(one.id, two.id)).marketing_consent).toBe(false);
  });

  it('MERGE-33 Unmerging a pair that is not merged is 422 `base`', async () => {
    const [one, two, three] = [await newCustomer(), await newCustomer(), await newCustomer()];
    expectRefused(await unmerge(one.id, two.id), 'base');
    await merged(one.id, two.id);
    expectRefused(await unmerge(one.id, three.id), 'base');
    expectRefused(await unmerge(three.id, two.id), 'base');
    await unmerged(one.id, two.id);
    expectRefused(await unmerge(one.id, two.id), 'base');
  });

  it('MERGE-34 Merges into one customer are undone in reverse order; any other is 422 `base` and names the next', async () => {
    const [one, two, three] = [await newCustomer(), await newCustomer(), await newCustomer()];
    await merged(one.id, two.id);
    await merged(one.id, three.id);
    const refused = await unmerge(one.id, two.id);
    expectRefused(refused, 'base');
    expect((refused.body as unknown as Failure).errors?.['base']?.[0]).toContain(String(three.id));
    await unmerged(one.id, three.id);
    await unmerged(one.id, two.id);
  });

  it('MERGE-35 A customer into whom others are merged can be merged with them into a third one; such a chain is undone from its end', async () => {
    const card = await newCard();
    const customers = [await newCustomer(), await newCustomer(), await newCustomer()] as const;
    const [a, b, c] = customers;
    const cards = [];
    for (const [i, customer] of customers.entries())
      cards.push(await issueCard(customer, card, i + 1));
    const before = await Promise.all(customers.map(({ id }) => read(id)));
    await merged(b.id, a.id);
    await merged(c.id, b.id);
    expect([(await read(a.id)).merged_into, (await read(b.id)).merged_into]).toEqual([b.id, c.id]);
    expect(balances(await read(c.id))).toEqual([[cards[2]?.card.id, 6]]);
    expect(await search({ search: String(cards[0]?.card.code) })).toEqual([c.id]);
    expect((await store.stamp(String(cards[0]?.path), { stamps: 1 })).body).toMatchObject({
      id: cards[2]?.card.id,
      stamps_count: 7,
    });
    expectMerged(await unmerge(b.id, a.id), c.id);
    await unmerged(c.id, b.id);
    await unmerged(b.id, a.id);
    const after = await Promise.all(customers.map(({ id }) => read(id)));
    expect(after.map(({ stamp_count }) => stamp_count)).toEqual([1, 2, 4]);
    expect(after.slice(0, 2).map(withoutTime)).toEqual(before.slice(0, 2).map(withoutTime));
  });

  it('MERGE-36 Unmerge is 422 `base` if the survivor would be left without e-mail address and phone number', async () => {
    const phone = `+4915205${++people}44`;
    const one = await newCustomer();
    const two = await newCustomer({ phone });
    await merged(one.id, two.id);
    await store.patch(pathOf(one.id), { customer: { email: null } });
    expectRefused(await unmerge(one.id, two.id), 'base');
    await store.patch(pathOf(one.id), {
      customer: { email: `new${people}@mail.example`, phone: null },
    });
    const third = await newCustomer({ phone });
    expectRefused(await unmerge(one.id, two.id), 'phone', 'taken');
    await store.patch(pathOf(third.id), { customer: { phone: null } });
    await unmerged(one.id, two.id);
    expect((await read(two.id)).phone).toBe(phone);
  });
});

describe('merging at the same time', () => {
  it('MERGE-25 Of two merges in opposite directions at the same time one wins; the other is 422 `base`', async () => {
    for (let i = 0; i < 5; i++) {
      const { survivor, other } = await twoWithStamps(4, 3);
      const responses = await Promise.all([
        merge(survivor.id, other.id),
        merge(other.id, survivor.id),
      ]);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 422]);
      const winner = responses.find(({ status }) => status === 200)?.body.id ?? 0;
      const loser = responses.find(({ status }) => status === 422);
      expectMerged({ status: 422, body: loser?.body }, winner);
      expect((await read(winner)).stamp_count).toBe(7);
    }
  });

  it('MERGE-26 A stamp that comes during a merge, on either card, counts once', async () => {
    const { survivor, other, survivorCard, gone } = await twoWithStamps(0, 0);
    const stampings = [survivorCard, gone].flatMap(({ path }) =>
      Array.from({ length: 15 }, () => store.stamp(path, { stamps: 1 })),
    );
    const [response, ...stamped] = await Promise.all([merge(survivor.id, other.id), ...stampings]);
    expect([response.status, ...stamped.map(({ status }) => status)]).toEqual(
      Array.from({ length: 31 }, () => 200),
    );
    expect(balances(await read(survivor.id))).toEqual([[survivorCard.card.id, 30]]);
  });

  it('MERGE-27 A merge under the same `Idempotency-Key` repeats the response', async () => {
    const { survivor, other } = await twoWithStamps(4, 3);
    const again = () =>
      store.send<CustomerJson>(
        'POST',
        `${pathOf(survivor.id)}/merge`,
        { from_customer_id: other.id },
        { 'idempotency-key': `merge ${survivor.id}` },
      );
    const [first, second] = [await again(), await again()];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect((await read(survivor.id)).stamp_count).toBe(7);
  });
});

describe('merged customers', () => {
  it('MERGE-37 `as_of` shows and counts customers and cards as they were, before, during and after a merge', async () => {
    const own = await service.newStore();
    const card = await newCard(own);
    const [one, two] = [await newCustomer({}, own), await newCustomer({}, own)];
    const survivorCard = await issueCard(one, card, 1, own);
    const gone = await issueCard(two, card, 2, own);
    const moved = await issueCard(two, await newCard(own), 3, own);
    const times: string[] = [];
    const moment = async () => {
      times.push(new Date().toISOString());
      await read(one.id, own);
    };
    await moment();
    await merged(one.id, two.id, own);
    await moment();
    expect((await unmerge(one.id, two.id, own)).status).toBe(200);
    await moment();
    const statesAt = (time: string) => {
      const at = (path: string) => own.get<never>(`${path}?as_of=${time}`);
      return Promise.all([
        at(pathOf(one.id, own)).then(({ body }) => balances(body)),
        at(pathOf(two.id, own)).then(({ body }) => balances(body)),
        at(own.store).then(({ body }) => (body as AccountJson).customers_count),
        at(`${own.store}/cards/${card.id}`).then(
          ({ body }) => (body as CardJson).customer_cards_count,
        ),
      ]);
    };
    const apart = [
      [[survivorCard.card.id, 1]],
      [
        [gone.card.id, 2],
        [moved.card.id, 3],
      ],
      2,
      2,
    ];
    const together = [
      [
        [survivorCard.card.id, 3],
        [moved.card.id, 3],
      ],
      [],
      1,
      1,
    ];
    expect(await Promise.all(times.map(statesAt))).toEqual([apart, together, apart]);
    const { body } = await own.get<CustomerCardDetailJson>(`${gone.path}?as_of=${times[1]}`);
    expect([body.id, body.stamps_count]).toEqual([survivorCard.card.id, 3]);
  });

  it('MERGE-38 Merged customers are one person: erasing any of them erases all, and unmerge is 422 `base`, code `customer_erased`, since', async () => {
    for (const named of ['survivor', 'other'] as const) {
      const { survivor, other, survivorCard } = await twoWithStamps(4, 3);
      const email = `gone${++people}@mail.example`;
      await store.patch(pathOf(other.id), { customer: { email, metadata: { pet: 'cat' } } });
      await merged(survivor.id, other.id);
      const path = pathOf({ survivor, other }[named].id);
      expect((await store.post(`${path}/erase`, {})).status).toBe(204);
      for (const { id } of [survivor, other]) {
        expect(await read(id)).toMatchObject({ first_name: 'Erased', email: null, metadata: {} });
        expect((await read(id)).erased_at).not.toBeNull();
      }
      expect(balances(await read(survivor.id))).toEqual([[survivorCard.card.id, 7]]);
      expectRefused(await unmerge(survivor.id, other.id), 'base', 'customer_erased');
      expect((await store.post(`${path}/erase`, {})).status).toBe(204);
      await newCustomer({ email });
    }
  });

  it('MERGE-39 A merge with somebody who was erased is 422 `base`, code `customer_erased`', async () => {
    const [one, two] = [await newCustomer(), await newCustomer()];
    expect((await store.post(`${pathOf(two.id)}/erase`, {})).status).toBe(204);
    expectRefused(await merge(one.id, two.id), 'base', 'customer_erased');
    expectRefused(await merge(two.id, one.id), 'base', 'customer_erased');
  });

  it('MERGE-41 One person is at most 100 customers, chains included, with at most 1,000 cards, closed and second ones included', async () => {
    const [first, ...chain] = await newCustomers(40);
    let last = first ?? 0;
    for (const id of chain) {
      await merged(id, last);
      last = id;
    }
    const others = await newCustomers(59);
    for (const id of others) await merged(last, id);
    const [two, third, a, b] = (await newCustomers(4)) as [number, number, number, number];
    await merged(two, third);
    for (const pair of [
      [last, two],
      [two, last],
    ] as const) {
      expectRefused(await merge(...pair), 'base', 'limit_reached');
      expect((await read(pair[1])).merged_into).toBeNull();
    }
    await merged(last, a);
    expectRefused(await merge(last, b), 'base', 'limit_reached');
    expectRefused(await merge(b, last), 'base', 'limit_reached');
    await unmerged(last, a);
    const both = await Promise.all([merge(last, a), merge(last, b)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
    for (const response of both)
      if (response.status === 422) expectRefused(response, 'base', 'limit_reached');
    expect((await store.post(`${pathOf(first ?? 0)}/erase`)).status).toBe(204);
    expect((await read(last)).erased_at).not.toBeNull();
    // Closed cards and confirmed second cards count.
    const { survivor, other, gone, card } = await twoWithStamps(1, 2);
    const insertSecondCards = (count: number) =>
      service.running.database.query(
        `insert into decoy_cards (id, account_id, card_id, customer_id, uuid, sealed, state, confirmed_at)
           select nextval('decoy_cards_id'), $1, $2, $3, gen_random_uuid(), '', '{}', now()
           from generate_series(1, $4)`,
        [store.accountId, card.id, other.id, count],
      );
    await insertSecondCards(998);
    await merged(survivor.id, other.id);
    await unmerged(survivor.id, other.id);
    await insertSecondCards(1);
    expectRefused(await merge(survivor.id, other.id), 'base', 'limit_reached');
    expectRefused(await merge(other.id, survivor.id), 'base', 'limit_reached');
    expect((await read(other.id)).customer_cards[0]?.id).toBe(gone.card.id);
  });

  it('MERGE-40 A merge has no dry run: `dry_run` is an unknown parameter here and is ignored', async () => {
    const [one, two] = [await newCustomer(), await newCustomer()];
    const path = `${pathOf(one.id)}/merge?dry_run=true`;
    const { status, headers } = await store.post(path, { from_customer_id: two.id });
    expect([status, headers.get('x-dry-run')]).toEqual([200, null]);
    expect((await read(two.id)).merged_into).toBe(one.id);
  });
});
