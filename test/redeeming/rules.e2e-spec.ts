import { describe, expect, it } from '@jest/globals';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { BatchResultsJson } from '#loyalty/stamping/batch.dto.js';
import type {
  CustomerCardDetailJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { sentSoFar, useSentEvents } from '../support/services/sent-events.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

const PAST = '2020-01-01T00:00:00Z';

const redeem = (path: string, body: object) => store.post<RedemptionJson>(`${path}/redeem`, body);

/** A card with rewards, the first of which is meant, and stamps on it. */
async function holding(stamps: number, rewards: number[]) {
  const enrolled = await enrol(store, { rewards });
  if (stamps > 0) await store.stamp(enrolled.path, stamps);
  const reward_id = enrolled.rewards[0]?.id;
  const reward = `${store.store}/rewards/${reward_id}`;
  return { ...enrolled, reward_id, reward };
}

describe('redeeming', () => {
  it('REDEEM-01 Redeeming returns 200 `{success, redemption, event_id}`', async () => {
    const { path, reward_id } = await holding(3, [3]);
    const { status, body } = await redeem(path, { reward_id });
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      redemption: {
        id: expect.any(Number),
        reward_id,
        reward_name: 'Reward at 3',
        stamps_spent: 3,
        stamps_remaining: 0,
        redeemed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        external_ref: null,
        staff_ref: null,
        location_id: null,
        note: null,
        occurred_at: body.redemption.redeemed_at,
      },
      event_id: expect.stringMatching(/^evt_/),
    });
  });

  it("REDEEM-02 Redeeming deducts exactly the reward's `stamps_required`, or less where the reward was unlocked for less (REDEEM-25); the rest stays", async () => {
    const { path, reward_id } = await holding(12, [5]);
    expect((await redeem(path, { reward_id })).body.redemption.stamps_spent).toBe(5);
    expect(await store.readBalance(path)).toBe(7);
  });

  it('REDEEM-03 `stamps_remaining` of a redemption is the remaining balance, and every later read agrees', async () => {
    const { path, reward_id } = await holding(10, [3]);
    for (const left of [7, 4, 1]) {
      const { body } = await redeem(path, { reward_id });
      expect([body.redemption.stamps_remaining, await store.readBalance(path)]).toEqual([
        left,
        left,
      ]);
    }
  });

  it('REDEEM-04 Redeeming without `reward_id` is 422 `reward_id`', async () => {
    const { path } = await holding(3, [3]);
    expectRefused(await store.post(`${path}/redeem`), 'reward_id');
    for (const reward_id of [undefined, null, 'x', 1.5, []]) {
      expectRefused(await redeem(path, { reward_id }), 'reward_id');
    }
  });

  it('REDEEM-05 An unknown reward, or one of another store, is 404', async () => {
    const { path } = await holding(30, [3]);
    const foreign = await enrol(await service.newStore(), { rewards: [1] });
    for (const reward_id of [999_999_999, foreign.rewards[0]?.id]) {
      expectFailure(await redeem(path, { reward_id }), 404, 'not_found');
    }
  });

  it('REDEEM-06 A reward of another card is 404', async () => {
    const { path } = await holding(30, [3]);
    const otherHolder = await holding(0, [1]);
    expectFailure(await redeem(path, { reward_id: otherHolder.reward_id }), 404, 'not_found');
    expect(await store.readBalance(path)).toBe(30);
  });

  it('REDEEM-07 A deleted reward is 404', async () => {
    const { path, reward_id, reward } = await holding(30, [3]);
    await store.delete(reward);
    expectFailure(await redeem(path, { reward_id }), 404, 'not_found');
  });

  it('REDEEM-08 An inactive reward is 422 `base` with the code `reward_inactive`', async () => {
    const { path, reward_id, reward } = await holding(3, [3]);
    await store.patch(reward, { reward: { active: false } });
    expectRefused(await redeem(path, { reward_id }), 'base', 'reward_inactive');
    await store.patch(reward, { reward: { active: true } });
    expect((await redeem(path, { reward_id })).status).toBe(200);
  });

  it('REDEEM-09 An inactive reward is reported before too few stamps', async () => {
    const { path, reward_id, reward } = await holding(0, [3]);
    await store.patch(reward, { reward: { active: false } });
    expectRefused(await redeem(path, { reward_id }), 'base', 'reward_inactive');
  });

  it('REDEEM-10 Too few stamps are 422 `base` with the code `insufficient_stamps`', async () => {
    const { path, reward_id } = await holding(2, [3]);
    expectRefused(await redeem(path, { reward_id }), 'base', 'insufficient_stamps');
    expect(await store.readBalance(path)).toBe(2);
  });

  it('REDEEM-11 Of fifty simultaneous requests for the last stamps exactly one wins, and the balance is never below zero', async () => {
    const { path, reward_id } = await holding(9, [5]);
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => redeem(path, { reward_id })),
    );
    const refused = responses.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(49);
    for (const response of refused) expectRefused(response, 'base', 'insufficient_stamps');
    expect(await store.readBalance(path)).toBe(4);
  });

  it('REDEEM-12 Redeeming on an expired card is 422 `base` with the code `card_expired`', async () => {
    const { path, reward_id, card } = await holding(3, [3]);
    await store.patch(`${store.store}/cards/${card.id}`, { card: { expires_at: PAST } });
    expectRefused(await redeem(path, { reward_id }), 'base', 'card_expired');
    expect(await store.readBalance(path)).toBe(3);
  });

  it('REDEEM-13 Redeeming still works on customer cards of an archived card', async () => {
    const { path, reward_id, card } = await holding(3, [3]);
    await store.post(`${store.store}/cards/${card.id}/archive`);
    expect((await redeem(path, { reward_id })).status).toBe(200);
  });

  it('REDEEM-14 A reward may be redeemed again once there are enough stamps again', async () => {
    const { path, reward_id } = await holding(3, [3]);
    expect((await redeem(path, { reward_id })).status).toBe(200);
    expectRefused(await redeem(path, { reward_id }), 'base', 'insufficient_stamps');
    await store.stamp(path, 3);
    expect((await redeem(path, { reward_id })).status).toBe(200);
  });

  it('REDEEM-15 Redeeming checks the optional fields as stamping does', async () => {
    const { path, reward_id } = await holding(100, [3]);
    for (const [field, wrong] of [
      ['skip_notifications', 'later'],
      ['location_id', 999_999_999],
      ['staff_ref', 'x'.repeat(256)],
      ['external_ref', 'x'.repeat(256)],
      ['occurred_at', 'yesterday'],
      ['occurred_at', PAST],
      ['occurred_at', new Date(Date.now() + 360_000).toISOString()],
      ['note', 'x'.repeat(501)],
      ['source', 'app_scan'],
    ] as const) {
      expectRefused(await redeem(path, { reward_id, [field]: wrong }), field);
    }
    expect(await store.readBalance(path)).toBe(100);
    const fit = {
      skip_notifications: true,
      staff_ref: 'till 2',
      external_ref: `fit ${path}`,
      occurred_at: new Date().toISOString(),
      note: 'with oat milk',
      source: 'pos',
    };
    const { status, body } = await redeem(path, { reward_id, ...fit });
    expect([status, body.redemption.redeemed_at]).toEqual([200, fit.occurred_at]);
  });
});

describe('redeeming with a receipt number', () => {
  it('REDEEM-16 Repeating an `external_ref` with the same card and reward returns the first result with `Idempotent-Replayed: true`', async () => {
    const { path, reward_id } = await holding(10, [3]);
    const body = { reward_id, external_ref: `once ${path}` };
    const first = await redeem(path, body);
    await store.stamp(path, 5);
    const again = await redeem(path, body);
    expect([again.status, again.body]).toEqual([200, first.body]);
    const replayed = [first, again].map(({ headers }) => headers.get('idempotent-replayed'));
    expect(replayed).toEqual([null, 'true']);
    expect(await store.readBalance(path)).toBe(12);
    const atOnce = { reward_id, external_ref: `race ${path}` };
    const responses = await Promise.all(Array.from({ length: 10 }, () => redeem(path, atOnce)));
    for (const response of responses) expect(response.body).toEqual(responses[0]?.body);
    const firsts = responses.filter(({ headers }) => !headers.has('idempotent-replayed'));
    expect(firsts).toHaveLength(1);
    expect(await store.readBalance(path)).toBe(9);
  });

  it('REDEEM-17 A used `external_ref` with another reward or card is 422 `external_ref`, code `taken`, on another card until the redemption is reversed (RECEIPT-12)', async () => {
    const { path, reward_id, rewards } = await holding(10, [3, 4]);
    const external_ref = `other ${path}`;
    await redeem(path, { reward_id, external_ref });
    const otherResponse = await redeem(path, { reward_id: rewards[1]?.id, external_ref });
    expectRefused(otherResponse, 'external_ref', 'taken');
    const elsewhere = await holding(10, [3]);
    const onAnother = await redeem(elsewhere.path, {
      reward_id: elsewhere.reward_id,
      external_ref,
    });
    expectRefused(onAnother, 'external_ref', 'taken');
    expect([await store.readBalance(path), await store.readBalance(elsewhere.path)]).toEqual([
      7, 10,
    ]);
  });

  it('REDEEM-18 An `external_ref` is used up only by a redemption that succeeds', async () => {
    const { path, reward_id } = await holding(0, [3]);
    const body = { reward_id, external_ref: `refused ${path}` };
    expectRefused(await redeem(path, body), 'base', 'insufficient_stamps');
    await store.stamp(path, 3);
    expect((await redeem(path, body)).status).toBe(200);
  });

  it('REDEEM-19 A repeated `external_ref` of a redemption is detected before any other rule is checked', async () => {
    const { path, reward_id, reward, card } = await holding(3, [3]);
    const locations = `${store.store}/locations`;
    const location = { name: 'Main street', address: 'Main Street 1' };
    const { id } = (await store.post<{ id: number }>(locations, { location })).body;
    const body = { reward_id, external_ref: `rules ${path}`, location_id: id };
    const first = await redeem(path, body);
    await store.delete(`${locations}/${id}`);
    expect((await redeem(path, body)).body).toEqual(first.body);
    await store.patch(reward, { reward: { active: false } });
    expect((await redeem(path, body)).body).toEqual(first.body);
    await store.patch(`${store.store}/cards/${card.id}`, { card: { expires_at: PAST } });
    expect((await redeem(path, body)).body).toEqual(first.body);
  });

  it('REDEEM-20 An unknown customer card is 404', async () => {
    const { path, reward_id } = await holding(3, [3]);
    const stranger = await service.newStore();
    expectFailure(await redeem(`${path}999`, { reward_id }), 404, 'not_found');
    expectFailure(await stranger.post(`${path}/redeem`, { reward_id }), 404, 'not_found');
    const misplaced = path.replace(store.store, stranger.store);
    expectFailure(await stranger.post(`${misplaced}/redeem`, { reward_id }), 404, 'not_found');
    expect(await store.readBalance(path)).toBe(3);
  });
});

describe('a redemption', () => {
  it('REDEEM-21 Redeeming sends `reward.redeemed` and nothing else', async () => {
    const own = await service.newStore();
    const { path, rewards, customerCard } = await enrol(own, { rewards: [3] });
    await own.stamp(path, 10);
    const receiver = await sent.subscribe(own);
    const reward_id = rewards[0]?.id;
    const { body } = await own.post<RedemptionJson>(`${path}/redeem`, { reward_id });
    await own.post(`${path}/redeem`, { reward_id });
    const all = await sentSoFar(own, path, receiver);
    expect(all.map(({ type }) => type)).toEqual(['reward.redeemed', 'reward.redeemed']);
    expect(all[0]?.data).toMatchObject({
      ...body.redemption,
      customer_card_id: customerCard.id,
    });
  });
});

describe('an unlocked reward', () => {
  const change = async (path: string, stamps_required: number) =>
    expect((await store.patch(path, { reward: { stamps_required } })).status).toBe(200);

  it('REDEEM-25 An unlocked reward takes the lower of its threshold now and the one that it was unlocked at, by id and by code, and in a dry run', async () => {
    const { path, customerCard, reward_id, reward } = await holding(9, [4]);
    await change(reward, 10);
    const spent = { stamps_spent: 4, stamps_remaining: 5 };
    const dry = await store.post<RedemptionJson>(`${path}/redeem?dry_run=true`, { reward_id });
    expect([dry.status, dry.body.redemption]).toEqual([200, expect.objectContaining(spent)]);
    const byCode = `${store.store}/customer_cards/by_code/${customerCard.code}`;
    const redeemed = await redeem(byCode, { reward_id });
    expect(redeemed.body.redemption).toMatchObject(spent);
    await change(reward, 2);
    const { body } = await redeem(path, { reward_id });
    expect(body.redemption).toMatchObject({ stamps_spent: 2, stamps_remaining: 3 });
    expect(await store.readBalance(path)).toBe(3);
  });

  it('REDEEM-26 A redemption locks the rewards that the balance no longer covers, by what each takes on the card', async () => {
    const { path, reward_id, reward, rewards } = await holding(6, [4, 1]);
    await change(reward, 7);
    // It leaves what the first one takes on this card.
    expect((await redeem(path, { reward_id: rewards[1]?.id })).status).toBe(200);
    expect((await redeem(path, { reward_id })).body.redemption.stamps_spent).toBe(4);
    await store.stamp(path, 5);
    expectRefused(await redeem(path, { reward_id }), 'base', 'insufficient_stamps');
    await store.stamp(path, 1);
    expect((await redeem(path, { reward_id })).body.redemption.stamps_spent).toBe(7);
  });

  it('REDEEM-27 Reversing a redemption unlocks what it has locked for what that took before', async () => {
    const { path, reward_id, reward } = await holding(4, [4]);
    await change(reward, 7);
    await redeem(path, { reward_id });
    const { body: events } = await store.get<{ id: string }[]>(
      `${path}/events?type=reward.redeemed`,
    );
    const reason = 'Rung up by mistake';
    const reversed = await store.post<CustomerCardDetailJson>(
      `${path}/events/${events[0]?.id}/reverse`,
      { reason },
    );
    expect([reversed.status, reversed.body.available_rewards]).toEqual([
      200,
      [expect.objectContaining({ id: reward_id, stamps_required: 4 })],
    ]);
    expect((await redeem(path, { reward_id })).body.redemption.stamps_spent).toBe(4);
  });

  it('REDEEM-28 Fewer stamps than a reward takes on the card are 422 `base`, code `insufficient_stamps`, also when an adjustment or reversal took them off', async () => {
    const { path, reward_id, reward } = await holding(4, [4]);
    await change(reward, 7);
    await store.post(`${path}/adjust`, { stamps: -1, reason: 'One too many' });
    const refused = await redeem(path, { reward_id });
    expectRefused(refused, 'base', 'insufficient_stamps');
    expect(refused.body).toMatchObject({
      errors: { base: ['This reward takes 4 stamps and the card holds 3'] },
    });
    await store.stamp(path, 1);
    expect((await redeem(path, { reward_id })).body.redemption.stamps_spent).toBe(4);
  });

  it('REDEEM-29 Many simultaneous requests with the same `external_ref` count once, and all get the same response, even if the balance covers only one', async () => {
    const { path, reward_id } = await holding(4, [3]);
    const body = { reward_id, external_ref: 'redeem-29' };
    const responses = await Promise.all(Array.from({ length: 20 }, () => redeem(path, body)));
    for (const response of responses)
      expect([response.status, response.body]).toEqual([200, responses[0]?.body]);
    expect(await store.readBalance(path)).toBe(1);
  });

  it('REDEEM-30 `occurred_at` up to 5 minutes before the card was issued counts as the time when it was issued, in a batch too (STAMP-25)', async () => {
    const { path, customerCard, reward_id } = await holding(9, [3]);
    const { id: customer_card_id, issued_at } = customerCard;
    const before = (ms: number) => new Date(Date.parse(issued_at) - ms).toISOString();
    const { body } = await redeem(path, { reward_id, occurred_at: before(5 * 60_000) });
    expect(body.redemption).toMatchObject({ redeemed_at: issued_at, occurred_at: issued_at });
    expectRefused(await redeem(path, { reward_id, occurred_at: before(300_001) }), 'occurred_at');
    const operation = { customer_card_id, occurred_at: before(1_000) };
    const batch = await store.post<BatchResultsJson>(`${store.store}/batch`, {
      operations: [
        { ...operation, operation: 'redeem', reward_id, external_ref: 'redeem-30' },
        { ...operation, operation: 'stamp', stamps: 1, external_ref: 'redeem-30' },
      ],
    });
    expect(batch.body.results.map(({ status }) => status)).toEqual([200, 200]);
    const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events?limit=3`);
    expect(entries.map(({ occurred_at }) => occurred_at)).toEqual(Array(3).fill(issued_at));
  });
});

describe('a dry run', () => {
  const tried = (path: string, reward_id: unknown, dry = 'true') =>
    store.post<RedemptionJson>(`${path}/redeem?dry_run=${dry}`, { reward_id });

  it('REDEEM-22 With `dry_run=true` in the query the response to redeeming is the same, with the header `X-Dry-Run: true`, and nothing is stored or sent', async () => {
    const { path, reward_id } = await holding(5, [3]);
    const before = (await service.running.history()).length;
    const currentCard = await store.get(path);
    const dry = await tried(path, reward_id);
    expect([dry.status, dry.headers.get('x-dry-run')]).toEqual([200, 'true']);
    expect((await store.get(path)).body).toEqual(currentCard.body);
    expect((await service.running.history()).length).toBe(before);
    const real = await redeem(path, { reward_id });
    expect(real.headers.get('x-dry-run')).toBeNull();
    const { id, redeemed_at, occurred_at } = real.body.redemption;
    const later = { id, redeemed_at, occurred_at };
    expect({ ...dry.body.redemption, ...later }).toEqual(real.body.redemption);
  });

  it('REDEEM-23 A dry run is refused in the same cases as the redemption itself', async () => {
    const { path, reward_id, reward } = await holding(2, [3]);
    expectRefused(await tried(path, 'x'), 'reward_id');
    expectRefused(await tried(path, reward_id), 'base', 'insufficient_stamps');
    await store.patch(reward, { reward: { active: false } });
    expectRefused(await tried(path, reward_id), 'base', 'reward_inactive');
    expectFailure(await tried(path, 999_999_999), 404, 'not_found');
    expectFailure(await tried(`${path}999`, reward_id), 404, 'not_found');
  });

  it('REDEEM-24 `dry_run` that is not a boolean is 422 `dry_run`, and deducts nothing', async () => {
    const { path, reward_id } = await holding(6, [3]);
    for (const dry of ['yes', '']) expectRefused(await tried(path, reward_id, dry), 'dry_run');
    expect(await store.readBalance(path)).toBe(6);
    expect((await tried(path, reward_id, 'false')).status).toBe(200);
    expect(await store.readBalance(path)).toBe(3);
  });
});
