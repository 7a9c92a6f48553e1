import { describe, expect, it } from '@jest/globals';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { createId } from '#platform/kernel/randomness.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import type {
  CustomerCardDetailJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { sentSoFar, useSentEvents, type Sent } from '../support/services/sent-events.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

const PAST = '2020-01-01T00:00:00Z';
const REASON = 'Wrong card';

const adjust = (path: string, stamps: unknown, client = store) =>
  client.post<CustomerCardDetailJson>(`${path}/adjust`, { stamps, reason: REASON });
const reverse = (path: string, eventId: string | undefined, client = store) =>
  client.post<CustomerCardDetailJson>(`${path}/events/${eventId}/reverse`, { reason: REASON });
const redeem = (path: string, reward_id: number | undefined, client = store) =>
  client.post<RedemptionJson>(`${path}/redeem`, { reward_id });

/** The public ids of the card's events of a stored type, oldest first. */
async function eventIds(path: string, type: string): Promise<string[]> {
  const events = service.running.app.get(EventStore);
  const ids: string[] = [];
  for await (const event of events.readStream(`customer_card-${path.split('/').at(-1)}`)) {
    if (event.type === type) ids.push(toPublicEventId(event.id));
  }
  return ids;
}

/** The newest one. */
const eventId = async (path: string, type = 'StampsEarned') =>
  (await eventIds(path, type)).at(-1) ?? '';

const END = { expires_at: PAST };
async function end({ card }: { card: { id: number } }) {
  await store.patch(`${store.store}/cards/${card.id}`, { card: END });
  expect((await store.post(`${store.store}/cards/${card.id}/archive`)).status).toBe(200);
}

const changes = (sentEvents: Sent[]) =>
  sentEvents
    .filter(({ type }) => type !== 'customer.created' && type !== 'customer_card.created')
    .map(({ type, data }) => {
      if (type === 'reward.redeemed') return [type, data['stamps_spent'], data['stamps_remaining']];
      if (type === 'reward.unlocked') return [type, (data['reward'] as { name: string }).name];
      return [type, data['stamps'], data['stamps_count'], data['source']];
    });

describe('adjusting', () => {
  it('FIX-01 A positive adjustment adds the stamps and returns 200 with the card in the detail shape, and `event_id`', async () => {
    const { path, customerCard } = await enrol(store, { rewards: [3] });
    const { status, body } = await adjust(path, 3);
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual([...Object.keys(customerCard), 'event_id'].sort());
    expect([body.stamps_count, body.available_rewards.length]).toEqual([3, 1]);
    expect(body).toMatchObject((await store.get<CustomerCardDetailJson>(path)).body);
    expect((await adjust(path, '1000')).body.stamps_count).toBe(1003);
  });

  it('FIX-02 A negative adjustment takes the stamps off', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 5);
    expect((await adjust(path, -2)).body.stamps_count).toBe(3);
    expect((await adjust(path, -3)).body.stamps_count).toBe(0);
    expect(await store.readBalance(path)).toBe(0);
  });

  it('FIX-03 Taking off more than the card holds is 422 `base` with the code `insufficient_stamps`', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 5);
    expectRefused(await adjust(path, -6), 'base', 'insufficient_stamps');
    expect(await store.readBalance(path)).toBe(5);
  });

  it('FIX-04 `stamps` that is 0, beyond 1000 in either direction, missing or not an integer is 422 `stamps`', async () => {
    const { path } = await enrol(store);
    for (const stamps of [0, '0', -0, 1001, -1001, undefined, null, '', 'x', 1.5, []]) {
      expectRefused(await adjust(path, stamps), 'stamps');
    }
    expectRefused(await store.post(`${path}/adjust`), ['stamps', 'reason']);
    expect((await adjust(path, 1000)).status).toBe(200);
    expect((await adjust(path, -1000)).status).toBe(200);
  });

  it('FIX-05 `reason` that is missing, blank or longer than 500 is 422 `reason`, in `adjust` and `reverse`', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 5);
    const reversal = `${path}/events/${await eventId(path)}/reverse`;
    for (const reason of [undefined, null, ' ', 'x'.repeat(501), 5]) {
      expectRefused(await store.post(`${path}/adjust`, { stamps: 1, reason }), 'reason');
      expectRefused(await store.post(reversal, { reason }), 'reason');
    }
    const reason = '😀'.repeat(500);
    expect((await store.post(`${path}/adjust`, { stamps: 1, reason })).status).toBe(200);
    expect((await store.post(reversal, { reason })).status).toBe(200);
  });

  it('FIX-06 A positive adjustment sends `stamp.earned` with the source `adjustment`, then `reward.unlocked` for each active reward that comes within reach', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [2, 3, 4, 9] });
    const reward = { active: false };
    await own.patch(`${own.store}/rewards/${rewards[1]?.id}`, { reward });
    await adjust(path, 5, own);
    const sentEvents = await sentSoFar(own, path, receiver);
    expect(changes(sentEvents)).toEqual([
      ['stamp.earned', 5, 5, 'adjustment'],
      ['reward.unlocked', 'Reward at 2'],
      ['reward.unlocked', 'Reward at 4'],
    ]);
    const earned = sentEvents.find(({ type }) => type === 'stamp.earned')?.data;
    expect(earned).toMatchObject({ location_id: null, staff_ref: null, external_ref: null });
    expect(JSON.stringify(sentEvents)).not.toContain(REASON);
  });

  it('FIX-07 A negative adjustment sends `stamp.removed` only, with the number as a positive `stamps`', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path } = await enrol(own, { rewards: [3] });
    await own.stamp(path, 4);
    await adjust(path, -3, own);
    await adjust(path, 4, own);
    const sentEvents = await sentSoFar(own, path, receiver);
    expect(changes(sentEvents)).toEqual([
      ['stamp.earned', 4, 4, 'api'],
      ['reward.unlocked', 'Reward at 3'],
      ['stamp.removed', 3, 1, 'adjustment'],
      ['stamp.earned', 4, 5, 'adjustment'],
    ]);
    const removed = sentEvents.find(({ type }) => type === 'stamp.removed')?.data;
    const earned = sentEvents.find(({ type }) => type === 'stamp.earned')?.data;
    expect(Object.keys(removed ?? {})).toEqual(Object.keys(earned ?? {}));
    expect(removed?.['customer_card']).toMatchObject({ stamps_count: 1 });
  });

  it('FIX-08 Expired and archived cards can be adjusted, and their events reversed', async () => {
    const enrolled = await enrol(store);
    const { path } = enrolled;
    await store.stamp(path, 2);
    await end(enrolled);
    expectRefused(await store.stamp(path, 1), 'base', 'card_expired');
    expect((await adjust(path, 3)).body).toMatchObject({ status: 'expired', stamps_count: 5 });
    const [stamping] = await eventIds(path, 'StampsEarned');
    expect((await reverse(path, stamping)).body.stamps_count).toBe(3);
  });

  it('FIX-09 Adjustments count towards no limit and are not limited', async () => {
    const card = {
      max_stamps_per_day: 2,
      min_seconds_between_stamps: 60,
      max_stamps_per_request: 2,
    };
    const { path } = await enrol(store, { card });
    expect((await adjust(path, 5)).status).toBe(200);
    expect((await store.stamp(path, 2)).status).toBe(200);
    expect((await adjust(path, 5)).status).toBe(200);
    expectRefused(await store.stamp(path, 1), 'base', 'stamp_limit_reached');
    expect(await store.readBalance(path)).toBe(12);
  });

  it('FIX-10 Of many simultaneous adjustments all count, and the balance is never below zero', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 5);
    const responses = await Promise.all(Array.from({ length: 20 }, () => adjust(path, -2)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(await store.readBalance(path)).toBe(1);
    await Promise.all(Array.from({ length: 20 }, () => adjust(path, 2)));
    expect(await store.readBalance(path)).toBe(41);
  });
});

describe('reversing', () => {
  it('FIX-11 Reversing a stamping takes its stamps off, sends `stamp.removed`, and returns 200 with the card in the detail shape, and `event_id`', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, customerCard } = await enrol(own);
    await own.stamp(path, { stamps: 4, staff_ref: 'till 2', external_ref: 'R-1' });
    await own.stamp(path, 1);
    const [first] = await eventIds(path, 'StampsEarned');
    const { status, body } = await reverse(path, first, own);
    expect([status, body.stamps_count]).toEqual([200, 1]);
    expect(Object.keys(body).sort()).toEqual([...Object.keys(customerCard), 'event_id'].sort());
    const sentEvents = await sentSoFar(own, path, receiver);
    expect(changes(sentEvents).slice(2)).toEqual([['stamp.removed', 4, 1, 'adjustment']]);
    // The id that receivers see is the one that reverses.
    const stampEvent = receiver.events.find((event) => event.body['type'] === 'stamp.earned');
    expect(stampEvent?.body['id']).toBe(first);
  });

  it('FIX-12 Reversing a redemption gives back what it spent', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [3, 5] });
    await own.stamp(path, 7);
    expect((await redeem(path, rewards[0]?.id, own)).status).toBe(200);
    const { body } = await reverse(path, await eventId(path, 'RewardRedeemed'), own);
    expect([body.stamps_count, body.available_rewards.length]).toEqual([7, 2]);
    const sentEvents = await sentSoFar(own, path, receiver);
    expect(changes(sentEvents).slice(3)).toEqual([
      ['reward.redeemed', 3, 4],
      ['stamp.earned', 3, 7, 'adjustment'],
      ['reward.unlocked', 'Reward at 5'],
    ]);
  });

  it('FIX-13 Welcome stamps and adjustments can be reversed like a stamping', async () => {
    const { path } = await enrol(store, { card: { initial_stamps: 2 } });
    expect((await reverse(path, await eventId(path))).body.stamps_count).toBe(0);
    await adjust(path, 9);
    expect((await reverse(path, await eventId(path))).body.stamps_count).toBe(0);
    await store.stamp(path, 4);
    await adjust(path, -3);
    expect((await reverse(path, await eventId(path, 'StampsRemoved'))).body.stamps_count).toBe(4);
  });

  it('FIX-14 Reversing a stamping whose stamps are spent is 422 `base` with the code `insufficient_stamps`; after the redemption is reversed it succeeds', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 4);
    const stamping = await eventId(path);
    await redeem(path, rewards[0]?.id);
    expectRefused(await reverse(path, stamping), 'base', 'insufficient_stamps');
    expect(await store.readBalance(path)).toBe(1);
    await reverse(path, await eventId(path, 'RewardRedeemed'));
    expect((await reverse(path, stamping)).body.stamps_count).toBe(0);
  });

  it('FIX-15 An event can be reversed once; the second time is 422 `base`', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 4);
    const stamping = await eventId(path);
    expect((await reverse(path, stamping)).status).toBe(200);
    expectRefused(await reverse(path, stamping), 'base');
    await store.stamp(path, 9);
    expectRefused(await reverse(path, stamping), 'base');
    expect(await store.readBalance(path)).toBe(9);
  });

  it('FIX-16 Of many simultaneous reversals of an event exactly one wins', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 50);
    await store.stamp(path, 3);
    const stamping = await eventId(path);
    const responses = await Promise.all(Array.from({ length: 20 }, () => reverse(path, stamping)));
    const refused = responses.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(19);
    for (const response of refused) expectRefused(response, 'base');
    expect(await store.readBalance(path)).toBe(50);
  });

  it('FIX-17 A reversal cannot be reversed: 422 `base`', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 5);
    await redeem(path, rewards[0]?.id);
    await reverse(path, await eventId(path, 'RewardRedeemed'));
    expectRefused(await reverse(path, await eventId(path, 'StampsEarned')), 'base');
    const [stamping] = await eventIds(path, 'StampsEarned');
    await reverse(path, stamping);
    expectRefused(await reverse(path, await eventId(path, 'StampsRemoved')), 'base');
    expect(await store.readBalance(path)).toBe(0);
  });

  it('FIX-18 Neither the issue of a card nor the unlocking of a reward can be reversed: 422 `base`', async () => {
    const { path } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 5);
    for (const type of ['CustomerCardIssued', 'RewardUnlocked']) {
      expectRefused(await reverse(path, await eventId(path, type)), 'base');
    }
    expect(await store.readBalance(path)).toBe(5);
  });

  it('FIX-19 An event of another card or store, an id without an event, and an invalid event id are 404, even when `reason` is missing too', async () => {
    const { path } = await enrol(store);
    const otherHolder = await enrol(store);
    await store.stamp(path, 5);
    await store.stamp(otherHolder.path, 5);
    const knownEventId = await eventId(path);
    const ids = [
      await eventId(otherHolder.path),
      toPublicEventId(createId()),
      knownEventId.toLowerCase(),
      knownEventId.slice(0, -1),
      'evt_',
      '1',
      'x'.repeat(1_000),
      '%00',
    ];
    for (const id of ids) {
      expectFailure(await reverse(path, id), 404, 'not_found');
      expectFailure(await store.post(`${path}/events/${id}/reverse`, {}), 404, 'not_found');
    }
    const foreign = await service.newStore();
    const elsewhere = await enrol(foreign);
    expectFailure(await reverse(elsewhere.path, knownEventId, foreign), 404, 'not_found');
    expect([await store.readBalance(path), await store.readBalance(otherHolder.path)]).toEqual([
      5, 5,
    ]);
  });

  it('FIX-20 An unknown customer card is 404, in `adjust` and `reverse`', async () => {
    const { path } = await enrol(store);
    const otherHolder = await enrol(store);
    const foreign = await enrol(await service.newStore());
    await store.stamp(path, 5);
    const stamping = await eventId(path);
    const list = (path: string) => path.slice(0, path.lastIndexOf('/'));
    const ids = [path.split('/').at(-1), foreign.customerCard.id, 999_999_999, 'x'];
    for (const id of ids) {
      const wrong = `${list(otherHolder.path)}/${id}`;
      expectFailure(await adjust(wrong, 1), 404, 'not_found');
      expectFailure(await store.post(`${wrong}/adjust`, {}), 404, 'not_found');
      expectFailure(await reverse(wrong, stamping), 404, 'not_found');
    }
    expect(await store.readBalance(path)).toBe(5);
  });

  it('FIX-21 A reversed stamping no longer counts towards `max_stamps_per_day`, nor does `min_seconds_between_stamps` begin with it', async () => {
    const card = { max_stamps_per_day: 5, min_seconds_between_stamps: 3600 };
    const { path } = await enrol(store, { card });
    await store.stamp(path, 5);
    expectRefused(await store.stamp(path, 1), 'base', 'stamp_limit_reached');
    await reverse(path, await eventId(path));
    expectRefused(await store.stamp(path, 6), 'base', 'stamp_limit_reached');
    expect((await store.stamp(path, 1)).status).toBe(200);
    expectRefused(await store.stamp(path, 1), 'base', 'stamp_limit_reached');
    expect(await store.readBalance(path)).toBe(1);
  });

  it('FIX-22 On the same card the receipt number of a reversed stamping repeats the first response', async () => {
    const { path } = await enrol(store);
    const receipt = { external_ref: 'R-22' };
    const first = await store.stamp(path, { stamps: 5, ...receipt });
    await reverse(path, await eventId(path));
    const again = await store.stamp(path, { stamps: 5, ...receipt });
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await store.readBalance(path)).toBe(0);
  });

  it('FIX-23 A redemption that was reversed was still a redemption: its reward cannot be deleted', async () => {
    const { path, rewards } = await enrol(store, { rewards: [3] });
    await store.stamp(path, 5);
    await redeem(path, rewards[0]?.id);
    await reverse(path, await eventId(path, 'RewardRedeemed'));
    expectRefused(await store.delete(`${store.store}/rewards/${rewards[0]?.id}`), 'base');
  });

  it('FIX-24 `adjust` and `reverse` accept an `Idempotency-Key`: the repetition gets the first response and corrects nothing', async () => {
    const { path } = await enrol(store);
    await store.stamp(path, 5);
    const bodies = [
      [`${path}/adjust`, { stamps: 2, reason: REASON }],
      [`${path}/events/${await eventId(path)}/reverse`, { reason: REASON }],
    ] as const;
    for (const [action, body] of bodies) {
      const once = { 'idempotency-key': `correct ${action}` };
      const first = await store.send('POST', action, body, once);
      const again = await store.send('POST', action, body, once);
      expect([first.status, again.status]).toEqual([200, 200]);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await store.readBalance(path)).toBe(2);
  });

  it('FIX-25 Stamps that merging or unmerging customers has moved cannot be reversed: 422 `base`', async () => {
    const holder = await enrol(store);
    const { customer: two, path: otherPath } = await enrol(store, { on: holder.card });
    await store.stamp(holder.path, 2);
    await store.stamp(otherPath, 3);
    const expectFinal = async (path: string, ...types: string[]) => {
      for (const type of types) {
        const response = await reverse(path, await eventId(path, type));
        expectRefused(response, 'base');
        expect(response.body).toMatchObject({
          resolution: expect.stringMatching(/merge or unmerge/),
        });
      }
    };
    const change = (action: string) =>
      store.post(`${store.store}/customers/${holder.customer.id}/${action}`, {
        from_customer_id: two.id,
      });
    expect((await change('merge')).status).toBe(200);
    await expectFinal(holder.path, 'StampsEarned');
    expect(await store.readBalance(holder.path)).toBe(5);
    expectRefused(await reverse(otherPath, await eventId(otherPath)), 'base', 'customer_merged');
    expect((await change('unmerge')).status).toBe(200);
    await expectFinal(holder.path, 'StampsEarned', 'StampsRemoved');
    await expectFinal(otherPath, 'StampsEarned', 'StampsRemoved');
    expect([await store.readBalance(holder.path), await store.readBalance(otherPath)]).toEqual([
      2, 3,
    ]);
    const [stamping] = await eventIds(otherPath, 'StampsEarned');
    expect((await reverse(otherPath, stamping)).body.stamps_count).toBe(0);
  });
});
