import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#cards/card.dto.js';
import type { RewardJson } from '#rewards/reward.dto.js';
import { startService, type Client, type Service } from './support/service.js';
import { enrol } from './support/story.js';

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

describe('cards', () => {
  it('are made with defaults and shown with every field', async () => {
    const made = await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(Number),
      name: 'Coffee',
      card_color: '#6B4226',
      text_color: '#FFFFFF',
      stamp_icon: 'coffee',
      stamp_color: '#6B4226',
      stamp_background_color: '#FFFFFF',
      stamps_required: 10,
      initial_stamps: 0,
      show_member_field: true,
      show_stamps_to_reward_field: true,
      auxiliary_fields: [],
      strip_type: 'color',
      strip_color: null,
      strip_opacity: 100,
      strip_preset: null,
      header_text: null,
      expires_at: null,
      archived_at: null,
      rewards_count: 0,
      customer_cards_count: 0,
      max_stamps_per_request: null,
      max_stamps_per_day: null,
      min_seconds_between_stamps: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.any(String),
    });
    const shown = await store.get<CardJson>(`${store.store}/cards/${made.body.id}`);
    expect(shown.body).toEqual(made.body);
  });

  it('change only what is named, and not at all when nothing changes', async () => {
    const { card } = await enrol(store, { card: { header_text: 'Hi', stamps_required: 5 } });
    const path = `${store.store}/cards/${card.id}`;
    const changed = await store.send<CardJson>('PATCH', path, {
      card: { name: 'Tea', header_text: null, archived_at: 'now', id: 1 },
    });
    expect(changed.body).toMatchObject({
      name: 'Tea',
      header_text: null,
      stamps_required: 5,
      archived_at: null,
      id: card.id,
    });
    const same = await store.send<CardJson>('PATCH', path, { card: { name: 'Tea' } });
    expect(same.body).toEqual(changed.body);
    const events = (await service.history()).filter(({ stream }) => stream === `card-${card.id}`);
    expect(events.map(({ type }) => type)).toEqual(['CardCreated', 'CardUpdated']);
    const refused = await store.send<{ errors: object }>('PATCH', path, {
      card: { name: null, stamps_required: null },
    });
    expect(Object.keys(refused.body.errors)).toEqual(['name', 'stamps_required']);
    const tooMany = await store.send<{ errors: object }>('PATCH', path, {
      card: { initial_stamps: 5 },
    });
    expect(Object.keys(tooMany.body.errors)).toEqual(['initial_stamps']);
  });

  it('hide in the archive, and count what belongs to them', async () => {
    const own = await service.newStore();
    const one = await enrol(own, { rewards: [1, 2] });
    const two = await enrol(own);
    const archived = await own.post<CardJson>(`${own.store}/cards/${two.card.id}/archive`);
    expect(archived.body.archived_at).toEqual(expect.any(String));
    const list = async (scope: string) =>
      (await own.get<CardJson[]>(`${own.store}/cards${scope}`)).body.map((card) => card.id);
    expect(await list('')).toEqual([one.card.id]);
    expect(await list('?scope=')).toEqual([one.card.id]);
    expect(await list('?scope=nonsense')).toEqual([one.card.id]);
    expect(await list('?scope=archived')).toEqual([two.card.id]);
    expect(await list('?scope=all')).toEqual([one.card.id, two.card.id]);
    const { body } = await own.get<CardJson>(`${own.store}/cards/${one.card.id}`);
    expect([body.rewards_count, body.customer_cards_count]).toEqual([2, 1]);
    expect((await own.get(`${own.store}/cards/${two.card.id}`)).status).toBe(200);
    const back = await own.post<CardJson>(`${own.store}/cards/${two.card.id}/unarchive`);
    expect(back.body.archived_at).toBeNull();
  });
});

describe('rewards', () => {
  it('stand on a card, in order', async () => {
    const own = await service.newStore();
    const { card, rewards } = await enrol(own, { rewards: [5, 3] });
    const [five, three] = rewards;
    expect(five).toEqual({
      id: expect.any(Number),
      account_id: own.accountId,
      card_id: card.id,
      name: 'Reward at 5',
      description: null,
      stamps_required: 5,
      position: 1,
      active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(three?.position).toBe(2);
    const first = {
      card_id: card.id,
      name: 'First',
      stamps_required: 50,
      position: 0,
      active: false,
    };
    await own.post(`${own.store}/rewards`, { reward: first });
    const list = async (query: string) =>
      (await own.get<RewardJson[]>(`${own.store}/rewards?${query}`)).body.map((one) => one.name);
    expect(await list('')).toEqual(['First', 'Reward at 5', 'Reward at 3']);
    expect(await list('active=0')).toEqual(['First']);
    expect(await list('active=yes')).toEqual(['Reward at 5', 'Reward at 3']);
    expect(await list('active=')).toHaveLength(3);
    expect(await list(`card_id=${card.id}`)).toHaveLength(3);
    expect(await list('card_id=999999')).toEqual([]);
  });

  it('go only while nobody has redeemed them', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1, 2] });
    const [used, unused] = rewards.map((reward) => `${store.store}/rewards/${reward.id}`);
    await store.post(`${path}/stamp`, { stamps: 5 });
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    const refused = await store.send<{ errors: object; resolution: string }>('DELETE', used ?? '');
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['base']]);
    expect(refused.body.resolution).toContain('active');
    const gone = await store.send('DELETE', unused ?? '');
    expect([gone.status, gone.text]).toEqual([204, '']);
    expect((await store.get(unused ?? '')).status).toBe(404);
    expect((await store.send('DELETE', unused ?? '')).status).toBe(404);
    const redeem = await store.post(`${path}/redeem`, { reward_id: rewards[1]?.id });
    expect(redeem.status).toBe(404);
  });

  it('need a card of the store', async () => {
    const other = await enrol(await service.newStore());
    for (const card_id of [999_999, other.card.id]) {
      const reward = { card_id, name: 'x', stamps_required: 1 };
      expect((await store.post(`${store.store}/rewards`, { reward })).status).toBe(404);
    }
  });
});
