import { describe, expect, it } from '@jest/globals';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const stamp = async (path: string) => {
  const response = await store.stamp(path);
  expect(response.status).toBe(200);
  return response.body;
};

const addReward = async (card: { id: number }, stamps_required: number) => {
  const reward = { card_id: card.id, name: 'Cake', stamps_required };
  const { status, body } = await store.post<RewardJson>(`${store.store}/rewards`, { reward });
  expect(status).toBe(201);
  return body;
};

const listNames = ({ available_rewards }: CustomerCardDetailJson) =>
  available_rewards.map(({ name }) => name);

/** An api caches a card's template from the first stamp on. Every change must invalidate it. */
describe('a card that was stamped before', () => {
  it('offers a reward that is added later, and lets customers redeem it', async () => {
    const { card, path } = await enrol(store);
    await stamp(path);
    const first = await addReward(card, 2);
    expect((await stamp(path)).available_rewards).toEqual([
      { id: first.id, name: 'Cake', description: null, stamps_required: 2 },
    ]);
    const second = await addReward(card, 1);
    const { available_rewards } = await stamp(path);
    expect(available_rewards.map(({ id }) => id)).toEqual([second.id, first.id]);
    const response = await store.post(`${path}/redeem`, { reward_id: second.id });
    expect(response.status).toBe(200);
  });

  it('reflects a renamed, moved, disabled or deleted reward at the next stamp', async () => {
    const { card, rewards, path } = await enrol(store, { rewards: [2, 3] });
    const [two, three] = rewards.map(({ id }) => `${store.store}/rewards/${id}`);
    await stamp(path);
    await store.patch(`${two}`, { reward: { name: 'Tea' } });
    expect(listNames(await stamp(path))).toEqual(['Tea']);
    await store.patch(`${three}`, { reward: { name: 'Pie', stamps_required: 4 } });
    expect(listNames(await stamp(path))).toEqual(['Tea']);
    expect(listNames(await stamp(path))).toEqual(['Tea', 'Pie']);
    await store.patch(`${two}`, { reward: { active: false } });
    expect(listNames(await stamp(path))).toEqual(['Pie']);
    await store.delete(`${three}`);
    expect(listNames(await stamp(path))).toEqual([]);
    await addReward(card, 5);
    expect(listNames(await stamp(path))).toEqual(['Cake']);
  });

  it('accepts a location that is added later, and refuses one that is deleted, at the next stamp', async () => {
    const { path } = await enrol(store);
    const stampAt = async (id: number) => {
      const response = await store.stamp(path, { location_id: id });
      return response.status;
    };
    const addLocation = async () => {
      const location = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
      const { body } = await store.post<{ id: number }>(`${store.store}/locations`, { location });
      return body.id;
    };
    const first = await addLocation();
    expect([await stampAt(first), await stampAt(first)]).toEqual([200, 200]);
    const second = await addLocation();
    expect([await stampAt(second), await stampAt(first)]).toEqual([200, 200]);
    await store.delete(`${store.store}/locations/${first}`);
    expect([await stampAt(first), await stampAt(second)]).toEqual([422, 200]);
    const stranger = await service.newStore();
    const { path: foreignPath } = await enrol(stranger);
    const foreign = { stamps: 1, location_id: second };
    expectRefused(await stranger.post(`${foreignPath}/stamp`, foreign), 'location_id');
  });

  it('shows changed rewards and its new name when it is read, without another stamp', async () => {
    const { card, rewards, path } = await enrol(store, { rewards: [2] });
    await stamp(path);
    await stamp(path);
    const read = async () => {
      const { status, body } = await store.get<CustomerCardDetailJson>(path);
      expect(status).toBe(200);
      return body;
    };
    const reward = `${store.store}/rewards/${rewards[0]?.id}`;
    await store.patch(reward, { reward: { name: 'Tea' } });
    expect(listNames(await read())).toEqual(['Tea']);
    await addReward(card, 1);
    expect(listNames(await read())).toEqual(['Cake', 'Tea']);
    await store.delete(reward);
    expect(listNames(await read())).toEqual(['Cake']);
    await store.patch(`${store.store}/cards/${card.id}`, { card: { name: 'Tea card' } });
    expect((await read()).card_name).toBe('Tea card');
  });

  it('has its new limit and its new name at the next stamp', async () => {
    const { card, path } = await enrol(store);
    await stamp(path);
    const changes = { name: 'Tea card', max_stamps_per_day: 2 };
    const { status } = await store.patch(`${store.store}/cards/${card.id}`, { card: changes });
    expect(status).toBe(200);
    expect((await stamp(path)).card_name).toBe('Tea card');
    expectRefused(await store.stamp(path), 'base', 'stamp_limit_reached');
  });
});
