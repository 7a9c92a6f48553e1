import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerCardDetailJson, RedemptionJson } from '#stamping/customer-card.dto.js';
import type { LocationJson } from '#locations/location.dto.js';
import { startService, type Answer, type Client, type Service } from './support/service.js';
import { enrol } from './support/story.js';

type Refused = { code: string; errors: Record<string, string[]> };

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

describe('stamping', () => {
  it('answers with the card as it is now, and every later read agrees', async () => {
    const { path, rewards, card } = await enrol(store, { rewards: [3] });
    const stamped = await store.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps: '3' });
    expect(stamped.status).toBe(200);
    expect(stamped.body).toMatchObject({
      card_id: card.id,
      card_name: 'Coffee',
      status: 'active',
      stamps_count: 3,
      stamps_remaining: 7,
      progress_percentage: 30,
      pass_installed: false,
      account_id: store.accountId,
      available_rewards: [
        { id: rewards[0]?.id, name: 'Reward at 3', description: null, stamps_required: 3 },
      ],
    });
    expect(stamped.body.apple_wallet_url).toBe(
      `https://cards.example/passes/${stamped.body.uuid}/apple`,
    );
    const shown = await store.get<CustomerCardDetailJson>(path);
    expect(shown.body).toEqual(stamped.body);
    const { available_rewards, customer_id, account_id, ...listed } = shown.body;
    expect([available_rewards.length, customer_id, account_id]).toEqual([
      1,
      shown.body.customer_id,
      store.accountId,
    ]);
    expect((await store.get(path.slice(0, path.lastIndexOf('/')))).body).toEqual([listed]);
  });

  it('counts fifty parallel stamps of one card as fifty', async () => {
    const { path } = await enrol(store);
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        store.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps: 1 }),
      ),
    );
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    const balances = answers.map((answer) => answer.body.stamps_count).sort((a, b) => a - b);
    expect(balances).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    const { body } = await store.get<CustomerCardDetailJson>(path);
    expect(body.stamps_count).toBe(50);
  });

  it('sees a card or reward that was changed a moment ago', async () => {
    const { path, card, rewards } = await enrol(store, { rewards: [1] });
    await store.post(`${path}/stamp`, { stamps: 1 });
    await store.send('PATCH', `${store.store}/cards/${card.id}`, { card: { name: 'Tea' } });
    await store.send('PATCH', `${store.store}/rewards/${rewards[0]?.id}`, { active: false });
    const { body } = await store.post<CustomerCardDetailJson>(`${path}/stamp`, { stamps: 1 });
    expect(body).toMatchObject({ card_name: 'Tea', available_rewards: [] });
  });

  it('records who, through which channel and with which request', async () => {
    const { path } = await enrol(store);
    await store.send(
      'POST',
      `${path}/stamp`,
      { stamps: 1, source: 'pos' },
      { 'x-request-id': 'till-7.42' },
    );
    const recorded = (await service.history()).filter(
      ({ type, meta }) => type === 'StampsEarned' && meta.requestId === 'till-7.42',
    );
    expect(recorded).toMatchObject([
      { meta: { actor: { type: 'token' }, channel: 'pos', accountId: store.accountId } },
    ]);
  });

  it('keeps a note out of sight of whoever reads the events', async () => {
    const { path } = await enrol(store);
    await store.post(`${path}/stamp`, { stamps: 1, note: 'likes oat milk' });
    expect(JSON.stringify((await service.history()).map(({ data }) => data))).not.toContain('oat');
  });

  describe('with a receipt number', () => {
    it('counts once, and answers as it did the first time', async () => {
      const { path } = await enrol(store);
      const body = { stamps: 2, external_ref: `receipt ${path}` };
      const first = await store.post<CustomerCardDetailJson>(`${path}/stamp`, body);
      await store.post(`${path}/stamp`, { stamps: 5 });
      const again = await store.post<CustomerCardDetailJson>(`${path}/stamp`, body);
      expect(again.status).toBe(200);
      expect(again.body).toEqual(first.body);
      expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(7);
    });

    it('counts once when twenty arrive at the same time', async () => {
      const { path } = await enrol(store);
      const body = { stamps: 1, external_ref: `race ${path}` };
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => store.post<CustomerCardDetailJson>(`${path}/stamp`, body)),
      );
      expect(answers.map((answer) => [answer.status, answer.body.stamps_count])).toEqual(
        Array.from({ length: 20 }, () => [200, 1]),
      );
      expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(1);
    });

    it('refuses it for another count or another card, and before any other rule', async () => {
      const one = await enrol(store, { card: { max_stamps_per_request: 2 } });
      const two = await enrol(store);
      const external_ref = `used ${one.path}`;
      await store.post(`${one.path}/stamp`, { stamps: 2, external_ref });
      const otherCount = await store.post<Refused>(`${one.path}/stamp`, {
        stamps: 3,
        external_ref,
      });
      const otherCard = await store.post<Refused>(`${two.path}/stamp`, { stamps: 2, external_ref });
      expect([otherCount.status, otherCard.status]).toEqual([422, 422]);
      expect(Object.keys(otherCount.body.errors)).toEqual(['external_ref']);
      expect(Object.keys(otherCard.body.errors)).toEqual(['external_ref']);
    });

    it('is not used up by a refusal, and is one of its own for each operation and store', async () => {
      const { path, rewards } = await enrol(store, { rewards: [1] });
      const external_ref = `later ${path}`;
      const redeem = { reward_id: rewards[0]?.id, external_ref };
      expect((await store.post(`${path}/redeem`, redeem)).status).toBe(422);
      expect((await store.post(`${path}/stamp`, { stamps: 1, external_ref })).status).toBe(200);
      const redeemed = await store.post<RedemptionJson>(`${path}/redeem`, redeem);
      expect(redeemed.status).toBe(200);
      expect((await store.post<RedemptionJson>(`${path}/redeem`, redeem)).body).toEqual(
        redeemed.body,
      );
      const other = await service.newStore();
      const elsewhere = await enrol(other);
      expect(
        (await other.post(`${elsewhere.path}/stamp`, { stamps: 1, external_ref })).status,
      ).toBe(200);
    });
  });

  it('refuses what breaks a rule of the card', async () => {
    const limited = await enrol(store, { card: { max_stamps_per_day: 2 } });
    await store.post(`${limited.path}/stamp`, { stamps: 2 });
    expectRefused(
      await store.post(`${limited.path}/stamp`, { stamps: 1 }),
      'stamp_limit_reached',
      'base',
    );
    const expired = await enrol(store);
    await store.send('PATCH', `${store.store}/cards/${expired.card.id}`, {
      card: { expires_at: '2020-01-01T00:00:00Z' },
    });
    expectRefused(await store.post(`${expired.path}/stamp`, { stamps: 1 }), 'card_expired', 'base');
    const shown = await store.get<CustomerCardDetailJson>(expired.path);
    expect(shown.body.status).toBe('expired');
  });

  it.each([
    ['stamps', {}],
    ['stamps', { stamps: 0 }],
    ['stamps', { stamps: 101 }],
    ['stamps', { stamps: 1.5 }],
    ['stamps', { stamps: [1] }],
    ['stamps', { stamps: '1; drop table es.events' }],
    ['note', { stamps: 1, note: 'x'.repeat(501) }],
    ['note', { stamps: 1, note: { $gt: '' } }],
    ['staff_ref', { stamps: 1, staff_ref: 'a\0b' }],
    ['external_ref', { stamps: 1, external_ref: 'x'.repeat(256) }],
    ['location_id', { stamps: 1, location_id: 999_999 }],
    ['occurred_at', { stamps: 1, occurred_at: 'yesterday' }],
    ['occurred_at', { stamps: 1, occurred_at: '2019-01-01T00:00:00Z' }],
    ['source', { stamps: 1, source: 'app_scan' }],
  ])('refuses a wrong %s: %j', async (field, body) => {
    const { path } = await enrol(store);
    expectRefused(await store.post(`${path}/stamp`, body), 'validation_failed', field);
  });
});

describe('redeeming', () => {
  it('takes the stamps off and shows what is left', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.post(`${path}/stamp`, { stamps: 5 });
    const { status, body } = await store.post<RedemptionJson>(`${path}/redeem`, {
      reward_id: rewards[0]?.id,
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      redemption: {
        id: expect.any(Number),
        reward_id: rewards[0]?.id,
        reward_name: 'Reward at 3',
        stamps_spent: 3,
        stamps_remaining: 2,
        redeemed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      },
    });
  });

  it('lets one of fifty parallel redemptions of the last stamps win', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    await store.post(`${path}/stamp`, { stamps: 9 });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        store.post<Refused>(`${path}/redeem`, { reward_id: rewards[0]?.id }),
      ),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    const refused = answers.filter((answer) => answer.status === 422);
    expect(refused).toHaveLength(49);
    expect(new Set(refused.map((answer) => answer.body.code))).toEqual(
      new Set(['insufficient_stamps']),
    );
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(4);
  });

  it('refuses too few stamps, an inactive reward and one of another card', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const other = await enrol(store, { rewards: [1] });
    const reward_id = rewards[0]?.id;
    expectRefused(await store.post(`${path}/redeem`, { reward_id }), 'insufficient_stamps', 'base');
    await store.send('PATCH', `${store.store}/rewards/${reward_id}`, { reward: { active: false } });
    expectRefused(await store.post(`${path}/redeem`, { reward_id }), 'reward_inactive', 'base');
    await store.post(`${path}/stamp`, { stamps: 50 });
    const foreign = await store.post(`${path}/redeem`, { reward_id: other.rewards[0]?.id });
    expect(foreign.status).toBe(404);
    expectRefused(await store.post(`${path}/redeem`, {}), 'validation_failed', 'reward_id');
  });
});

describe('a location', () => {
  const newLocation = async (at: Client) => {
    const location = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
    const { body } = await at.post<LocationJson>(`${at.store}/locations`, { location });
    return { id: body.id, path: `${at.store}/locations/${body.id}` };
  };

  it('stands in the history of what was stamped and redeemed there', async () => {
    const { path, rewards, customerCard } = await enrol(store, { rewards: [1] });
    const { id, path: place } = await newLocation(store);
    const stamped = await store.post(`${path}/stamp`, { stamps: 2, location_id: id });
    const redeem = { reward_id: rewards[0]?.id, location_id: String(id) };
    const redeemed = await store.post(`${path}/redeem`, redeem);
    expect([stamped.status, redeemed.status]).toEqual([200, 200]);
    await store.send('DELETE', place);
    const history = await service.history();
    const recorded = history.filter(({ stream }) => stream === `customer_card-${customerCard.id}`);
    expect(recorded.map(({ type, data }) => [type, data['locationId']])).toEqual([
      ['CustomerCardIssued', undefined],
      ['StampsEarned', id],
      ['RewardUnlocked', undefined],
      ['RewardRedeemed', id],
    ]);
    const [named] = history.filter(({ stream }) => stream === `location-${id}`);
    expect(named?.data).toMatchObject({ name: 'Old Town' });
  });

  it('must be one of the store that is not deleted', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1] });
    const other = await service.newStore();
    const foreign = await newLocation(other);
    const deleted = await newLocation(store);
    await store.send('DELETE', deleted.path);
    await store.post(`${path}/stamp`, { stamps: 1 });
    for (const location_id of [foreign.id, deleted.id, 999_999]) {
      const stamp = await store.post(`${path}/stamp`, { stamps: 1, location_id });
      expectRefused(stamp, 'validation_failed', 'location_id');
      const redeem = { reward_id: rewards[0]?.id, location_id };
      expectRefused(await store.post(`${path}/redeem`, redeem), 'validation_failed', 'location_id');
    }
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(1);
  });

  it('is not asked for again when a receipt number is', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1] });
    const { id, path: place } = await newLocation(store);
    const deed = { location_id: id, external_ref: `here ${path}` };
    const stamp = { stamps: 3, ...deed };
    const redeem = { reward_id: rewards[0]?.id, ...deed };
    const stamped = await store.post(`${path}/stamp`, stamp);
    const redeemed = await store.post(`${path}/redeem`, redeem);
    await store.send('DELETE', place);
    const again = await store.post(`${path}/stamp`, stamp);
    expect([again.status, again.body]).toEqual([200, stamped.body]);
    const redeemedAgain = await store.post(`${path}/redeem`, redeem);
    expect([redeemedAgain.status, redeemedAgain.body]).toEqual([200, redeemed.body]);
  });

  it('that is unknown is said after a customer card that is', async () => {
    const { customerCard } = await enrol(store);
    const other = await enrol(store);
    const wrong = `${store.store}/customers/${other.customer.id}/customer_cards/${customerCard.id}`;
    const stamp = { stamps: 1, location_id: 999_999 };
    expect((await store.post(`${wrong}/stamp`, stamp)).status).toBe(404);
    expect((await store.post(`${other.path}999/stamp`, stamp)).status).toBe(404);
  });
});

describe('whose card it is', () => {
  it('is found only under its own customer and store', async () => {
    const { path, customerCard } = await enrol(store);
    const other = await enrol(store);
    const wrongCustomer = `${store.store}/customers/${other.customer.id}/customer_cards/${customerCard.id}`;
    const stranger = await service.newStore();
    const foreign = path.replace(store.store, stranger.store);
    for (const [client, wrong] of [
      [store, wrongCustomer],
      [stranger, foreign],
      [stranger, path],
      [store, `${path}999`],
      [store, `${path}x`],
      [store, path.replace(/\d+$/, '99999999999999999999')],
    ] as const) {
      expect((await client.get(wrong)).status).toBe(404);
      expect((await client.post(`${wrong}/stamp`, { stamps: 1 })).status).toBe(404);
      expect((await client.post(`${wrong}/stamp`, { stamps: 'wrong' })).status).toBe(404);
      expect((await client.post(`${wrong}/redeem`, { reward_id: 1 })).status).toBe(404);
    }
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(0);
  });
});

function expectRefused(answer: Answer<unknown>, code: string, field: string): void {
  expect(answer.status).toBe(422);
  const { body } = answer as Answer<Refused>;
  expect([body.code, Object.keys(body.errors)]).toEqual([code, [field]]);
}
