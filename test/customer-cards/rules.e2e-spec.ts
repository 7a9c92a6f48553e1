import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type {
  CustomerCardDetailJson,
  CustomerCardJson,
} from '#loyalty/stamping/customer-card.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
} from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const PAST = '2020-01-01T00:00:00Z';
const LIST_SHAPE = [
  'apple_wallet_url',
  'card_id',
  'card_name',
  'code',
  'created_at',
  'google_wallet_url',
  'id',
  'issued_at',
  'pass_installed',
  'progress_percentage',
  'stamps_count',
  'stamps_remaining',
  'status',
  'updated_at',
  'uuid',
];

const show = async (path: string) => (await store.get<CustomerCardDetailJson>(path)).body;
const stamp = async (path: string, stamps: number) => (await store.stamp(path, stamps)).body;
const changeCard = (id: number, card: object) =>
  store.patch(`${store.store}/cards/${id}`, { card });

let people = 0;

async function makeCustomer(client: ContractClient = store): Promise<string> {
  const { status, body } = await client.post<CreatedCustomerJson>(`${client.store}/customers`, {
    customer: { first_name: 'Bea', email: `bea${people++}@example.com` },
  });
  expect(status).toBe(201);
  return `${client.store}/customers/${body.id}/customer_cards`;
}

async function makeCard(card: object = {}, client: ContractClient = store): Promise<CardJson> {
  const { body } = await client.post<CardJson>(`${client.store}/cards`, {
    card: { name: 'Tea', ...card },
  });
  return body;
}

const issue = (path: string, card_id: unknown) =>
  store.post<CustomerCardDetailJson>(path, { card_id });

describe('customer cards', () => {
  it("CCARD-01 The list has the customer's cards in the list shape, in the order of ids", async () => {
    const path = await makeCustomer();
    const cards = [await makeCard(), await makeCard(), await makeCard()];
    for (const card of [cards[2], cards[0], cards[1]]) await issue(path, card?.id);
    const { status, body } = await store.get<CustomerCardJson[]>(path);
    expect([status, body.map(({ card_id }) => card_id)]).toEqual([
      200,
      [cards[2]?.id, cards[0]?.id, cards[1]?.id],
    ]);
    const ids = body.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
  });

  it('CCARD-02 The list shape of a customer card has exactly the documented fields', async () => {
    const { path, customer } = await enrol(store, { rewards: [1] });
    const { body } = await store.get<CustomerCardJson[]>(path.slice(0, path.lastIndexOf('/')));
    expect(Object.keys(body[0] ?? {}).sort()).toEqual(LIST_SHAPE);
    expect(Object.keys(customer.customer_cards[0] ?? {}).sort()).toEqual(LIST_SHAPE);
  });

  it('CCARD-03 The detail shape of a customer card has exactly three more fields than the list shape', async () => {
    const { path, customer } = await enrol(store, { rewards: [1] });
    const detail = await show(path);
    const more = ['account_id', 'available_rewards', 'customer_id'];
    expect(Object.keys(detail).sort()).toEqual([...LIST_SHAPE, ...more].sort());
    expect([detail.account_id, detail.customer_id]).toEqual([store.accountId, customer.id]);
    const { body } = await store.get<CustomerCardJson[]>(path.slice(0, path.lastIndexOf('/')));
    expect(detail).toMatchObject(body[0] ?? {});
  });

  it('CCARD-04 The cards of an unknown customer, or of one of another store, are 404', async () => {
    const { customer } = await enrol(await service.newStore());
    for (const id of [999_999_999, customer.id]) {
      const path = `${store.store}/customers/${id}/customer_cards`;
      expectFailure(await store.get(path), 404, 'not_found');
    }
  });

  it('CCARD-05 A card of another customer or another store is 404', async () => {
    const { path, customerCard } = await enrol(store);
    const otherHolder = await enrol(store);
    const stranger = await service.newStore();
    const under = (id: number) => `${store.store}/customers/${id}/customer_cards`;
    for (const wrong of [
      `${under(otherHolder.customer.id)}/${customerCard.id}`,
      `${under(999_999_999)}/${customerCard.id}`,
      `${path}999`,
    ]) {
      expectFailure(await store.get(wrong), 404, 'not_found');
    }
    expectFailure(await stranger.get(path), 404, 'not_found');
    const misplaced = path.replace(store.store, stranger.store);
    expectFailure(await stranger.get(misplaced), 404, 'not_found');
  });

  it('CCARD-06 `status` is `active` below `stamps_required`', async () => {
    const { path } = await enrol(store, { card: { stamps_required: 3 } });
    expect((await show(path)).status).toBe('active');
    expect((await stamp(path, 2)).status).toBe('active');
  });

  it('CCARD-07 `status` is `completed` from `stamps_required` on', async () => {
    const { path } = await enrol(store, { card: { stamps_required: 3 } });
    expect((await stamp(path, 3)).status).toBe('completed');
    expect((await stamp(path, 3)).status).toBe('completed');
  });

  it('CCARD-08 `status` is `expired` once the template has expired, even if it was completed', async () => {
    for (const stamps of [1, 5]) {
      const { path, card } = await enrol(store, { card: { stamps_required: 3 } });
      await stamp(path, stamps);
      await changeCard(card.id, { expires_at: PAST });
      expect((await show(path)).status).toBe('expired');
    }
  });

  it('CCARD-09 `stamps_remaining` is the number of missing stamps, and 0 beyond that', async () => {
    const { path } = await enrol(store, { card: { stamps_required: 5 } });
    expect((await show(path)).stamps_remaining).toBe(5);
    expect((await stamp(path, 2)).stamps_remaining).toBe(3);
    expect((await stamp(path, 3)).stamps_remaining).toBe(0);
    expect((await stamp(path, 3)).stamps_remaining).toBe(0);
  });

  it('CCARD-10 `progress_percentage` is measured towards the cheapest active reward above the balance, by what each takes on the card (REWARD-27)', async () => {
    const { path, rewards } = await enrol(store, {
      rewards: [8, 4],
      card: { stamps_required: 20 },
    });
    expect((await stamp(path, 2)).progress_percentage).toBe(50);
    expect((await stamp(path, 2)).progress_percentage).toBe(50);
    const reward = { active: false };
    await store.patch(`${store.store}/rewards/${rewards[0]?.id}`, { reward });
    expect((await show(path)).progress_percentage).toBe(20);
  });

  it('CCARD-11 Without an active reward above the balance `progress_percentage` is measured towards `stamps_required`', async () => {
    const { path } = await enrol(store, { rewards: [1], card: { stamps_required: 8 } });
    expect((await stamp(path, 2)).progress_percentage).toBe(25);
  });

  it('CCARD-12 `progress_percentage` is rounded down and at most 100', async () => {
    const { path } = await enrol(store, { card: { stamps_required: 7 } });
    const progress: number[] = [(await show(path)).progress_percentage];
    for (let i = 0; i < 9; i++) progress.push((await stamp(path, 1)).progress_percentage);
    expect(progress).toEqual([0, 14, 28, 42, 57, 71, 85, 100, 100, 100]);
  });

  it('CCARD-13 Stamps are not capped: a card can have more than `stamps_required`', async () => {
    const { path } = await enrol(store, { card: { stamps_required: 3 } });
    expect((await stamp(path, 100)).stamps_count).toBe(100);
    expect((await show(path)).stamps_count).toBe(100);
  });

  it('CCARD-14 The wallet URLs are `{public}/passes/{uuid}/apple` and `/google`', async () => {
    const { uuid, apple_wallet_url, google_wallet_url } = (await enrol(store)).customerCard;
    expect(uuid).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    expect(apple_wallet_url).toBe(`https://cards.example/passes/${uuid}/apple`);
    expect(google_wallet_url).toBe(`https://cards.example/passes/${uuid}/google`);
  });

  it('CCARD-15 `code` has 8 characters, and no two cards share one', async () => {
    const enrolments = [await enrol(store), await enrol(store), await enrol(store)];
    const codes = enrolments.map(({ customerCard }) => customerCard.code);
    for (const code of codes) expect(code).toMatch(/^[2-9A-HJ-NP-Z]{8}$/);
    expect(new Set(codes).size).toBe(codes.length);
  });

  it('CCARD-16 `available_rewards` are the active rewards that the balance covers, cheapest first', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5, 1, 3] });
    const [five, one, three] = rewards.map(({ id, name, description, stamps_required }) => ({
      id,
      name,
      description,
      stamps_required,
    }));
    expect((await show(path)).available_rewards).toEqual([]);
    expect((await stamp(path, 3)).available_rewards).toEqual([one, three]);
    expect((await stamp(path, 2)).available_rewards).toEqual([one, three, five]);
    const reward = { active: false };
    await store.patch(`${store.store}/rewards/${three?.id}`, { reward });
    await store.delete(`${store.store}/rewards/${one?.id}`);
    expect((await stamp(path, 1)).available_rewards).toEqual([five]);
    expect((await show(path)).available_rewards).toEqual([five]);
  });

  it('CCARD-17 `pass_installed` is false until a wallet has the pass', async () => {
    expect((await enrol(store)).customerCard.pass_installed).toBe(false);
  });

  it("CCARD-18 A new customer card has the template's `initial_stamps`", async () => {
    const { path, customerCard } = await enrol(store, { card: { initial_stamps: 2 } });
    expect([customerCard.stamps_count, (await show(path)).stamps_count]).toEqual([2, 2]);
    const second = await makeCard({ initial_stamps: 4 });
    const { body } = await issue(await makeCustomer(), second.id);
    expect(body.stamps_count).toBe(4);
  });

  it('CCARD-19 A later change of `initial_stamps` does not affect existing cards', async () => {
    const { path, card } = await enrol(store, { card: { initial_stamps: 2 } });
    await changeCard(card.id, { initial_stamps: 5 });
    expect((await show(path)).stamps_count).toBe(2);
    const { body } = await issue(await makeCustomer(), card.id);
    expect(body.stamps_count).toBe(5);
  });

  it('CCARD-20 `card_name`, `stamps_remaining` and `status` follow changes of the template', async () => {
    const { path, card } = await enrol(store, { card: { stamps_required: 10 } });
    await stamp(path, 3);
    await changeCard(card.id, { name: 'Renamed', stamps_required: 4 });
    const full = {
      card_name: 'Renamed',
      status: 'completed',
      stamps_count: 4,
      stamps_remaining: 0,
    };
    expect(await stamp(path, 1)).toMatchObject(full);
    expect(await show(path)).toMatchObject(full);
    await changeCard(card.id, { stamps_required: 6 });
    expect(await show(path)).toMatchObject({ status: 'active', stamps_remaining: 2 });
  });
});

describe('issuing a card', () => {
  it('CCARD-21 `POST {card_id}` issues a card and returns 201 in the detail shape', async () => {
    const path = await makeCustomer();
    const card = await makeCard();
    const { status, body } = await issue(path, card.id);
    expect(status).toBe(201);
    expect(body).toMatchObject({ card_id: card.id, card_name: 'Tea', available_rewards: [] });
    expect(await show(`${path}/${body.id}`)).toEqual(body);
  });

  it('CCARD-22 A second card of the same template for one customer is 422 `card_id`, code `taken`', async () => {
    const { path, card } = await enrol(store);
    expectRefused(await issue(path.slice(0, path.lastIndexOf('/')), card.id), 'card_id', 'taken');
  });

  it('CCARD-23 Of two requests for the same card at the same time exactly one wins; the other is 422 `card_id`, code `taken`', async () => {
    const path = await makeCustomer();
    const { id } = await makeCard();
    const responses = await Promise.all(Array.from({ length: 10 }, () => issue(path, id)));
    expect(responses.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(422)]);
    for (const response of responses)
      if (response.status !== 201) expectRefused(response, 'card_id', 'taken');
    expect((await store.get<unknown[]>(path)).body).toHaveLength(1);
  });

  it('CCARD-24 A customer may hold cards of several templates', async () => {
    const path = await makeCustomer();
    for (let i = 0; i < 3; i++) expect((await issue(path, (await makeCard()).id)).status).toBe(201);
    expect((await store.get<unknown[]>(path)).body).toHaveLength(3);
  });

  it('CCARD-25 An unknown `card_id`, or one of another store, is 404', async () => {
    const path = await makeCustomer();
    const foreign = await makeCard({}, await service.newStore());
    for (const id of [999_999_999, foreign.id]) {
      expectFailure(await issue(path, id), 404, 'not_found');
    }
  });

  it('CCARD-26 A `card_id` of an archived or expired card is 422 `card_id`', async () => {
    const path = await makeCustomer();
    const archived = await makeCard();
    await store.post(`${store.store}/cards/${archived.id}/archive`);
    expectRefused(await issue(path, archived.id), 'card_id');
    expectRefused(await issue(path, (await makeCard({ expires_at: PAST })).id), 'card_id');
    expect((await store.get(path)).body).toEqual([]);
  });

  it('CCARD-27 A missing `card_id` is 422 `card_id`', async () => {
    const path = await makeCustomer();
    expectRefused(await store.post(path, {}), 'card_id');
    for (const wrong of [null, 'x', 1.5, []]) expectRefused(await issue(path, wrong), 'card_id');
  });

  it('CCARD-28 An unknown customer is 404', async () => {
    const { id } = await makeCard();
    const foreign = await enrol(await service.newStore());
    for (const customer of [999_999_999, foreign.customer.id]) {
      const path = `${store.store}/customers/${customer}/customer_cards`;
      expectFailure(await issue(path, id), 404, 'not_found');
      expectFailure(await store.post(path, {}), 404, 'not_found');
    }
  });

  it('CCARD-29 `issued_at` and `created_at` never change; each stamp updates `updated_at`', async () => {
    const { path, customerCard } = await enrol(store);
    expect(customerCard.created_at).toBe(customerCard.issued_at);
    const stamped = await stamp(path, 1);
    expect([stamped.issued_at, stamped.created_at]).toEqual([
      customerCard.issued_at,
      customerCard.issued_at,
    ]);
    expect(stamped.updated_at > customerCard.updated_at).toBe(true);
  });
});
