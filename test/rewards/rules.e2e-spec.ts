import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { ExplanationJson } from '#loyalty/history/explanation.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type {
  CustomerCardDetailJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let rewards: string;

beforeAll(async () => {
  rewards = `${store.store}/rewards`;
});

async function makeCard(client: ContractClient = store): Promise<CardJson> {
  const response = await client.post<CardJson>(`${client.store}/cards`, {
    card: { name: 'Coffee' },
  });
  return response.body;
}

async function make(reward: object, client: ContractClient = store): Promise<RewardJson> {
  const { status, body } = await client.post<RewardJson>(`${client.store}/rewards`, {
    reward: { name: 'Cake', stamps_required: 5, ...reward },
  });
  expect(status).toBe(201);
  return body;
}

const post = (reward: object) => store.post<RewardJson>(rewards, { reward });
const patch = (id: number, reward: object) =>
  store.patch<RewardJson>(`${rewards}/${id}`, { reward });
const show = async (id: number) => (await store.get<RewardJson>(`${rewards}/${id}`)).body;

describe('making a reward', () => {
  it('REWARD-01 A reward can be created with `card_id`, `name` and `stamps_required`', async () => {
    const { id } = await makeCard();
    const { status, body } = await post({ card_id: id, name: 'Cake', stamps_required: 5 });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      account_id: store.accountId,
      card_id: id,
      name: 'Cake',
      description: null,
      stamps_required: 5,
      position: 1,
      active: true,
    });
    expect(await show(body.id)).toEqual(body);
  });

  it('REWARD-02 A reward has exactly the documented fields', async () => {
    const reward = await make({ card_id: (await makeCard()).id });
    expect(Object.keys(await show(reward.id)).sort()).toEqual([
      'account_id',
      'active',
      'card_id',
      'created_at',
      'description',
      'id',
      'name',
      'position',
      'stamps_required',
      'updated_at',
    ]);
  });

  it('REWARD-03 A reward without `card_id`, `name` or `stamps_required` is 422 on that field', async () => {
    const whole = { card_id: (await makeCard()).id, name: 'Cake', stamps_required: 5 };
    for (const field of Object.keys(whole)) {
      expectRefused(await post({ ...whole, [field]: undefined }), field);
      expectRefused(await post({ ...whole, [field]: null }), field);
    }
  });

  it('REWARD-04 An unknown `card_id`, or one of another store, is 404', async () => {
    const { id } = await makeCard(await service.newStore());
    for (const card_id of [999_999_999, id]) {
      const response = await post({ card_id, name: 'Cake', stamps_required: 5 });
      expectFailure(response, 404, 'not_found');
    }
  });

  it('REWARD-05 The card of a new reward may be archived', async () => {
    const { id } = await makeCard();
    await store.post(`${store.store}/cards/${id}/archive`);
    expect((await make({ card_id: id })).card_id).toBe(id);
  });

  it("REWARD-06 `stamps_required` below 1 is 422 `stamps_required`; it may be more than the card's", async () => {
    const { id: card_id, stamps_required: full } = await makeCard();
    for (const stamps_required of [1, full + 1, 1000]) {
      expect((await make({ card_id, stamps_required })).stamps_required).toBe(stamps_required);
    }
    for (const stamps_required of [0, -1, 1.5, 'x']) {
      expectRefused(await post({ card_id, name: 'Cake', stamps_required }), 'stamps_required');
    }
  });

  it('REWARD-07 The first reward of a card has `position` 1, the next one more than the last', async () => {
    const [one, two] = [await makeCard(), await makeCard()];
    expect((await make({ card_id: one.id })).position).toBe(1);
    expect((await make({ card_id: one.id })).position).toBe(2);
    expect((await make({ card_id: one.id, position: 7 })).position).toBe(7);
    expect((await make({ card_id: one.id })).position).toBe(8);
    expect((await make({ card_id: two.id })).position).toBe(1);
  });

  it('REWARD-08 A `position` below 0 is 422 `position`; 0 is accepted', async () => {
    const { id: card_id } = await makeCard();
    expect((await make({ card_id, position: 0 })).position).toBe(0);
    for (const position of [-1, 0.5, 'first']) {
      const response = await post({ card_id, name: 'Cake', stamps_required: 5, position });
      expectRefused(response, 'position');
    }
  });
});

describe('listing rewards', () => {
  /** Rewards on two cards, made in another order than they are listed in. */
  async function several() {
    const own = await service.newStore();
    const [one, two] = [await makeCard(own), await makeCard(own)];
    const createReward = async (
      name: string,
      card: CardJson,
      position: number,
      stamps: number,
      rest = {},
    ) => make({ name, card_id: card.id, position, stamps_required: stamps, ...rest }, own);
    await createReward('f', two, 1, 1);
    await createReward('d', one, 2, 5);
    await createReward('e', one, 2, 5, { active: false });
    await createReward('c', one, 2, 3);
    await createReward('b', one, 1, 9, { active: false });
    await createReward('a', one, 0, 20);
    const list = async (query = '') =>
      (await own.get<RewardJson[]>(`${own.store}/rewards${query}`)).body
        .map(({ name }) => name)
        .join('');
    return { own, one, two, list };
  }

  it('REWARD-09 The list of rewards is sorted by card, `position`, `stamps_required` and id', async () => {
    const { list } = await several();
    expect(await list()).toBe('abcdef');
  });

  it('REWARD-10 The list and the single reward show the same', async () => {
    const { own } = await several();
    const { body } = await own.get<RewardJson[]>(`${own.store}/rewards`);
    for (const reward of body) {
      expect((await own.get(`${own.store}/rewards/${reward.id}`)).body).toEqual(reward);
    }
  });

  it('REWARD-11 `card_id` lists the rewards of one card; for an unknown card the list is empty', async () => {
    const { one, two, list } = await several();
    expect(await list(`?card_id=${one.id}`)).toBe('abcde');
    expect(await list(`?card_id=${two.id}`)).toBe('f');
    expect(await list('?card_id=999999999')).toBe('');
    const elsewhere = await enrol(store, { rewards: [1] });
    expect(await list(`?card_id=${elsewhere.card.id}`)).toBe('');
  });

  it("REWARD-12 A `card_id` in the list's query that is not an integer is 422 `card_id`", async () => {
    for (const card of ['x', '1.5', '1,2']) {
      expectRefused(await store.get(`${rewards}?card_id=${card}`), 'card_id');
    }
  });

  it('REWARD-13 `active` false or 0 lists the inactive rewards only', async () => {
    const { list } = await several();
    for (const value of ['false', '0']) expect(await list(`?active=${value}`)).toBe('be');
  });

  it('REWARD-14 Any other `active` that is not blank lists the active rewards only', async () => {
    const { list, one } = await several();
    for (const value of ['true', '1', 'yes', 'x'])
      expect(await list(`?active=${value}`)).toBe('acdf');
    expect(await list(`?active=true&card_id=${one.id}`)).toBe('acd');
  });

  it('REWARD-15 A blank `active` lists active and inactive rewards', async () => {
    const { list } = await several();
    for (const query of ['?active=', '?active=%20', '?active'])
      expect(await list(query)).toBe('abcdef');
  });
});

describe('a reward', () => {
  it('REWARD-16 A reward of another store is 404, for reading, changing and deleting', async () => {
    const otherStore = await service.newStore();
    const reward = await make({ card_id: (await makeCard(otherStore)).id }, otherStore);
    const path = `${rewards}/${reward.id}`;
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await store.patch(path, { reward: { name: 'Mine' } }), 404, 'not_found');
    expectFailure(await store.delete(path), 404, 'not_found');
    expect((await otherStore.get(`${otherStore.store}/rewards/${reward.id}`)).body).toEqual(reward);
  });

  it('REWARD-17 Every writable field is accepted on create and on PATCH', async () => {
    const { id: card_id } = await makeCard();
    const written = {
      name: 'Tart',
      description: 'With cream',
      stamps_required: 4,
      position: 3,
      active: false,
    };
    const created = await make({ card_id, ...written });
    expect(created).toMatchObject(written);
    const { id } = await make({ card_id });
    const { status, body } = await patch(id, written);
    expect(status).toBe(200);
    expect(body).toMatchObject(written);
    expect(await show(id)).toEqual(body);
  });

  it('REWARD-18 PATCH changes only the fields it names', async () => {
    const { id } = await make({ card_id: (await makeCard()).id, description: 'With cream' });
    for (const change of [{ name: 'Tart' }, { stamps_required: 2 }, { active: false }]) {
      const before = await show(id);
      const { body } = await patch(id, change);
      expect({ ...body, updated_at: '' }).toEqual({ ...before, ...change, updated_at: '' });
    }
  });

  it('REWARD-19 `card_id` in a PATCH is ignored', async () => {
    const [one, two] = [await makeCard(), await makeCard()];
    const { id } = await make({ card_id: one.id });
    for (const card_id of [two.id, 999_999_999, 'x', null]) {
      const { status, body } = await patch(id, { card_id, name: 'Tart' });
      expect([status, body.card_id, body.name]).toEqual([200, one.id, 'Tart']);
    }
  });

  it('REWARD-20 null in a PATCH clears `description`; for any other field it is 422 on the field', async () => {
    const { id } = await make({ card_id: (await makeCard()).id, description: 'With cream' });
    const { status, body } = await patch(id, { description: null });
    expect([status, body.description]).toEqual([200, null]);
    for (const field of ['name', 'stamps_required', 'position', 'active']) {
      expectRefused(await patch(id, { [field]: null }), field);
    }
  });

  it('REWARD-21 A PATCH that is refused changes nothing', async () => {
    const reward = await make({ card_id: (await makeCard()).id });
    expectRefused(await patch(reward.id, { name: 'Tart', position: -1 }), 'position');
    expect(await show(reward.id)).toEqual(reward);
  });

  it('REWARD-22 A change updates `updated_at`, not `created_at`', async () => {
    const reward = await make({ card_id: (await makeCard()).id });
    const { body } = await patch(reward.id, { name: 'Tart' });
    expect(body.created_at).toBe(reward.created_at);
    expect(body.updated_at > reward.updated_at).toBe(true);
  });

  it('REWARD-23 A deleted reward is gone: 404, and in no list', async () => {
    const { id: card_id } = await makeCard();
    const [gone, remaining] = [await make({ card_id }), await make({ card_id })];
    const path = `${rewards}/${gone.id}`;
    expect((await store.delete(path)).status).toBe(204);
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await store.patch(path, { reward: { name: 'Back' } }), 404, 'not_found');
    expectFailure(await store.delete(path), 404, 'not_found');
    const { body } = await store.get<RewardJson[]>(`${rewards}?card_id=${card_id}`);
    expect(body.map(({ id }) => id)).toEqual([remaining.id]);
  });

  it('REWARD-24 A reward that was ever redeemed cannot be deleted: 422 `base`, with the advice to set `active` to false', async () => {
    const { path, rewards: cardRewards } = await enrol(store, { rewards: [1] });
    const id = cardRewards[0]?.id;
    await store.stamp(path);
    await store.post(`${path}/redeem`, { reward_id: id });
    const refused = await store.delete<Failure>(`${rewards}/${id}`);
    expectRefused(refused, 'base');
    expect(refused.body.resolution).toMatch(/active.*false/);
    expect((await store.get(`${rewards}/${id}`)).status).toBe(200);
    for (let race = 0; race < 20; race++) {
      const customer = await enrol(store, { rewards: [1] });
      await store.stamp(customer.path);
      const contested = customer.rewards[0]?.id;
      const requests = [
        () => store.delete(`${rewards}/${contested}`),
        () => store.post(`${customer.path}/redeem`, { reward_id: contested }),
      ];
      if (race % 2 === 1) requests.reverse();
      const statuses = (await Promise.all(requests.map((send) => send()))).map(
        ({ status }) => status,
      );
      if (race % 2 === 1) statuses.reverse();
      expect([
        [204, 404],
        [422, 200],
      ]).toContainEqual(statuses);
    }
  });

  it("REWARD-25 A redemption keeps the reward's name at that time", async () => {
    const { path, rewards: cardRewards } = await enrol(store, { rewards: [2] });
    const id = cardRewards[0]?.id ?? 0;
    await store.stamp(path, 2);
    const redeem = { reward_id: id, external_ref: `name ${path}` };
    const { body } = await store.post<RedemptionJson>(`${path}/redeem`, redeem);
    expect(body.redemption.reward_name).toBe('Reward at 2');
    await patch(id, { name: 'Renamed' });
    expect((await store.post<RedemptionJson>(`${path}/redeem`, redeem)).body).toEqual(body);
    await store.stamp(path, 2);
    const customerCard = await store.get<CustomerCardDetailJson>(path);
    expect(customerCard.body.available_rewards[0]?.name).toBe('Renamed');
  });
});

describe('an unlocked reward', () => {
  const change = async (id: number | undefined, reward: object) => {
    expect((await patch(id ?? 0, reward)).status).toBe(200);
  };
  const post = async <B>(path: string, body: object): Promise<B> => {
    const { status, body: result } = await store.post<B>(path, body);
    expect([status, result]).toEqual([200, expect.anything()]);
    return result;
  };
  const stamp = (path: string, stamps: number) =>
    post<CustomerCardDetailJson>(`${path}/stamp`, { stamps });
  const available = async (path: string): Promise<number[][]> => {
    const { body } = await store.get<CustomerCardDetailJson>(path);
    return body.available_rewards.map(({ id, stamps_required }) => [id, stamps_required]);
  };

  it('REWARD-27 An unlocked reward takes, until a redemption locks it, the lower of its `stamps_required` now and when it was unlocked', async () => {
    const { path, rewards: cardRewards } = await enrol(store, { rewards: [5, 8] });
    const [five, eight] = cardRewards.map(({ id }) => id);
    const { updated_at: unlockedAt } = await stamp(path, 9);
    await change(five, { stamps_required: 20 });
    await change(eight, { stamps_required: 7 });
    const both = [
      [five, 5],
      [eight, 7],
    ];
    expect(await available(path)).toEqual(both);
    const { body: explained } = await store.get<ExplanationJson>(`${path}/explain`);
    expect(
      explained.rewards.map(({ id, stamps_required, state }) => [id, stamps_required, state]),
    ).toEqual(both.map((each) => [...each, 'unlocked']));
    const past = await store.get<CustomerCardDetailJson>(`${path}?as_of=${unlockedAt}`);
    expect(past.body.available_rewards.map(({ stamps_required }) => stamps_required)).toEqual([
      5, 8,
    ]);
    const { redemption } = await post<RedemptionJson>(`${path}/redeem`, { reward_id: five });
    expect(redemption).toMatchObject({ stamps_spent: 5, stamps_remaining: 4 });
    expect(await available(path)).toEqual([]);
  });

  it('REWARD-28 An unlocked reward takes the lower `stamps_required` however often that changes, and while the reward is inactive or the card archived', async () => {
    const { path, card, rewards: cardRewards } = await enrol(store, { rewards: [5] });
    const id = cardRewards[0]?.id;
    const { stamps_count: stamps } = await stamp(path, 6);
    for (const [threshold, takes] of [
      [10, 5],
      [30, 5],
      [2, 2],
      [6, 5],
      [9, 5],
    ] as const) {
      await change(id, { stamps_required: threshold });
      expect([threshold, await available(path)]).toEqual([threshold, [[id, takes]]]);
    }
    await change(id, { active: false, stamps_required: 12 });
    expect(await available(path)).toEqual([]);
    await change(id, { active: true });
    expect((await store.post(`${store.store}/cards/${card.id}/archive`)).status).toBe(200);
    expect(await available(path)).toEqual([[id, 5]]);
    await post(`${path}/adjust`, { stamps: -stamps, reason: 'Counted again' });
    expect(await available(path)).toEqual([]);
    await post(`${path}/adjust`, { stamps: 4, reason: 'Counted again' });
    expect(await available(path)).toEqual([]);
    await stamp(path, 1);
    expect(await available(path)).toEqual([[id, 5]]);
  });

  it('REWARD-29 Of a reward that the card has not unlocked, `stamps_required` counts as it is now, also when the reward was made or lowered after the last stamp', async () => {
    const { path, card, rewards: cardRewards } = await enrol(store, { rewards: [9] });
    const id = cardRewards[0]?.id;
    await stamp(path, 6);
    await change(id, { stamps_required: 5 });
    const later = await make({ card_id: card.id, stamps_required: 4 });
    expect(await available(path)).toEqual([
      [later.id, 4],
      [id, 5],
    ]);
    await change(id, { stamps_required: 7 });
    await change(later.id, { stamps_required: 7 });
    expect(await available(path)).toEqual([]);
    await stamp(path, 1);
    await change(id, { stamps_required: 8 });
    await change(later.id, { stamps_required: 8 });
    expect(await available(path)).toEqual([
      [id, 7],
      [later.id, 7],
    ]);
  });

  it('REWARD-30 After a merge a reward takes the lower of what it took on the two cards', async () => {
    const { path, card, customer, rewards: cardRewards } = await enrol(store, { rewards: [6, 3] });
    const [six, three] = cardRewards.map(({ id }) => id);
    await stamp(path, 6);
    await change(six, { stamps_required: 4 });
    const { customer: otherCustomer, path: otherPath } = await enrol(store, { on: card });
    const seldom = await make({ card_id: card.id, stamps_required: 5 });
    await stamp(otherPath, 5);
    for (const id of [six, three, seldom.id]) await change(id, { stamps_required: 15 });
    await post(`${store.store}/customers/${customer.id}/merge`, {
      from_customer_id: otherCustomer.id,
    });
    expect(await available(path)).toEqual([
      [three, 3],
      [six, 4],
      [seldom.id, 5],
    ]);
    await post(`${store.store}/customers/${customer.id}/unmerge`, {
      from_customer_id: otherCustomer.id,
    });
    expect(await available(otherPath)).toEqual([
      [three, 3],
      [six, 4],
      [seldom.id, 5],
    ]);
  });

  it("REWARD-31 After unmerge the survivor's card has unlocked what it had before the merge, for what it took then, and what was unlocked since", async () => {
    const {
      path,
      card,
      customer,
      rewards: cardRewards,
    } = await enrol(store, { rewards: [6, 3, 4] });
    const [six, three, four] = cardRewards.map(({ id }) => id);
    await stamp(path, 6);
    await change(six, { stamps_required: 4 });
    const { customer: otherCustomer, path: otherPath } = await enrol(store, { on: card });
    const seldom = await make({ card_id: card.id, stamps_required: 2 });
    const sum = await make({ card_id: card.id, stamps_required: 10 });
    await stamp(otherPath, 5);
    for (const id of [six, three, four, seldom.id]) await change(id, { stamps_required: 9 });
    await post(`${store.store}/customers/${customer.id}/merge`, {
      from_customer_id: otherCustomer.id,
    });
    expect(await available(path)).toEqual([
      [seldom.id, 2],
      [three, 3],
      [six, 4],
      [four, 4],
      [sum.id, 10],
    ]);
    // 11 stamps - 3, of which 5 go back.
    await post(`${path}/redeem`, { reward_id: three });
    await post(`${store.store}/customers/${customer.id}/unmerge`, {
      from_customer_id: otherCustomer.id,
    });
    expect(await available(path)).toEqual([[three, 3]]);
    await stamp(path, 5);
    expect(await available(path)).toEqual([
      [three, 3],
      [four, 4],
      [six, 6],
    ]);
    expect(await available(otherPath)).toEqual([
      [seldom.id, 2],
      [three, 3],
      [six, 4],
      [four, 4],
    ]);
    await change(sum.id, { stamps_required: 12 });
    await stamp(path, 2);
    expect(await available(path)).toEqual([
      [three, 3],
      [four, 4],
      [six, 6],
      [seldom.id, 9],
    ]);
  });
});
