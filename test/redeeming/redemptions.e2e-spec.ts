import { describe, expect, it } from '@jest/globals';
import type { ListedRedemptionJson } from '#loyalty/history/redemption.dto.js';
import type { RedemptionJson } from '#loyalty/stamping/customer-card.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { sentSoFar, useSentEvents } from '../support/services/sent-events.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

const list = (query: Record<string, string | number> = {}, at = store) =>
  at.get<ListedRedemptionJson[]>(
    `${at.store}/redemptions?${new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    )}`,
  );
type Page = Awaited<ReturnType<typeof list>>;
const idsOf = async (query: Record<string, string | number>, at = store) => {
  const { status, body } = await list(query, at);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body.map(({ id }) => id);
};

/** Somebody with twenty stamps, of which each reward takes one. */
async function holder(at = store) {
  const enrolment = await enrol(at, {
    rewards: [1, 1],
    card: { stamps_required: 21, initial_stamps: 20 },
  });
  const [reward, otherReward] = enrolment.rewards.map(({ id }) => id);
  const redeem = async (body: object = {}) => {
    const path = `${enrolment.path}/redeem`;
    const response = await at.post<RedemptionJson>(path, { reward_id: reward, ...body });
    expect([response.status, response.body]).toEqual([200, expect.anything()]);
    return response.body.redemption;
  };
  return { ...enrolment, reward, other: otherReward, redeem };
}

async function location(): Promise<number> {
  const { body } = await store.post<LocationJson>(`${store.store}/locations`, {
    location: { name: 'Main street', address: 'Main Street 1, Springfield' },
  });
  return body.id;
}

describe('redemptions', () => {
  it('RECON-01 A redemption shows what was sent with it: `external_ref`, `staff_ref`, `location_id`, `note` and `occurred_at`; a repeated `external_ref` shows the same', async () => {
    const { redeem } = await holder();
    const occurred_at = new Date().toISOString();
    const details = {
      external_ref: 'recon-1',
      staff_ref: 'till 2',
      location_id: await location(),
      note: 'oat milk',
      occurred_at,
    };
    const redemption = await redeem(details);
    expect(redemption).toMatchObject({ ...details, redeemed_at: occurred_at });
    expect(await redeem({ external_ref: 'recon-1' })).toEqual(redemption);
  });

  it('RECON-02 `reward.redeemed` shows what was sent with the redemption, and `stamp.earned` shows `note` too', async () => {
    const own = await service.newStore();
    const { path, redeem } = await holder(own);
    const receiver = await sent.subscribe(own);
    const redemption = await redeem({
      external_ref: 'recon-2',
      note: 'oat milk',
      staff_ref: 'Ben',
    });
    await own.stamp(path, { note: 'brought a friend' });
    await own.post(`${path}/adjust`, { stamps: -1, reason: 'one too many' });
    const [redeemed, earned, removed] = await sentSoFar(own, path, receiver);
    expect(redeemed?.data).toMatchObject(redemption);
    expect([earned, removed].map((response) => [response?.type, response?.data])).toEqual([
      ['stamp.earned', expect.objectContaining({ note: 'brought a friend' })],
      ['stamp.removed', expect.objectContaining({ note: null })],
    ]);
  });

  it('RECON-03 The list of redemptions has each with exactly the documented fields, as soon as the response to it was sent', async () => {
    const own = await service.newStore();
    expect((await list({}, own)).body).toEqual([]);
    const { customer, customerCard, card, redeem } = await holder(own);
    const redemption = await redeem({ note: 'oat milk', external_ref: 'recon-3' });
    expect((await list({}, own)).body).toEqual([
      {
        ...redemption,
        customer_id: customer.id,
        customer_card_id: customerCard.id,
        card_id: card.id,
        reversed_at: null,
        event_id: expect.stringMatching(/^evt_/),
      },
    ]);
  });

  it('RECON-04 The list of redemptions is sorted by `redeemed_at`, newest first, so that those of an offline client stand where they happened', async () => {
    const own = await service.newStore();
    const { redeem } = await holder(own);
    const now = Date.now();
    const after = (seconds: number) => new Date(now + seconds * 1000).toISOString();
    const createdIds = [];
    for (const seconds of [5, 20, 10])
      createdIds.push(await redeem({ occurred_at: after(seconds) }));
    const [first, second, third] = createdIds.map(({ id }) => id);
    expect(await idsOf({}, own)).toEqual([second, third, first]);
  });

  it('RECON-05 `card_id`, `customer_id`, `reward_id` and `location_id` narrow the list of redemptions, alone and together', async () => {
    const location_id = await location();
    const one = await holder();
    const two = await holder();
    const plain = (await one.redeem()).id;
    const there = (await one.redeem({ location_id })).id;
    const other = (await one.redeem({ reward_id: one.other })).id;
    const others = (await two.redeem({ location_id })).id;
    const customer_id = one.customer.id;
    expect(await idsOf({ customer_id })).toEqual([other, there, plain]);
    expect(await idsOf({ card_id: one.card.id })).toEqual([other, there, plain]);
    expect(await idsOf({ reward_id: one.reward ?? 0 })).toEqual([there, plain]);
    expect(await idsOf({ location_id })).toEqual([others, there]);
    expect(await idsOf({ location_id, customer_id })).toEqual([there]);
    const all = { location_id, customer_id, card_id: one.card.id, reward_id: one.reward ?? 0 };
    expect(await idsOf(all)).toEqual([there]);
    expect(await idsOf({ ...all, reward_id: one.other ?? 0 })).toEqual([]);
  });

  it('RECON-06 `external_ref` finds exactly the one redemption with this receipt number', async () => {
    const redeemer = await holder();
    const { id } = await redeemer.redeem({ external_ref: 'recon-6' });
    await redeemer.redeem({ external_ref: 'recon-60' });
    await store.stamp(redeemer.path, { external_ref: 'recon-61' });
    expect(await idsOf({ external_ref: 'recon-6' })).toEqual([id]);
    expect(await idsOf({ external_ref: 'recon-6', customer_id: redeemer.customer.id })).toEqual([
      id,
    ]);
    for (const none of [
      { external_ref: 'recon' },
      { external_ref: 'recon-61' },
      { external_ref: 'recon-6', reward_id: redeemer.other ?? 0 },
      { external_ref: 'recon-6', to: '2026-01-01' },
    ]) {
      expect(await idsOf(none)).toEqual([]);
    }
  });

  it('RECON-07 `from` is inclusive and `to` exclusive; both go by `redeemed_at`', async () => {
    const { customer, redeem } = await holder();
    const now = Date.now();
    const after = (seconds: number) => new Date(now + seconds * 1000).toISOString();
    const one = (await redeem({ occurred_at: after(10) })).id;
    const two = (await redeem({ occurred_at: after(20) })).id;
    const within = (query: object) => idsOf({ customer_id: customer.id, ...query });
    expect(await within({ from: after(10) })).toEqual([two, one]);
    expect(await within({ from: after(10.001) })).toEqual([two]);
    expect(await within({ to: after(20) })).toEqual([one]);
    expect(await within({ from: after(10), to: after(20.001) })).toEqual([two, one]);
  });

  it('RECON-08 A filter that is no id, or no time, is 422 on the filter; a blank one is none', async () => {
    const filters = ['card_id', 'customer_id', 'reward_id', 'location_id', 'from', 'to'];
    const unfit = Object.fromEntries(filters.map((name) => [name, 'x']));
    expectRefused(await list(unfit), filters);
    expectRefused(await list({ external_ref: 'x'.repeat(256), limit: 0 }), [
      'external_ref',
      'limit',
    ]);
    const blank = Object.fromEntries([...filters, 'external_ref'].map((name) => [name, '']));
    expect((await list(blank)).body.length).toBeGreaterThan(0);
  });

  it('RECON-09 `limit` and `cursor` page the list of redemptions, and the `Link` keeps the filters', async () => {
    const { customer, redeem } = await holder();
    const createdIds: number[] = [];
    for (let i = 0; i < 5; i++) createdIds.push((await redeem()).id);
    const listedIds: number[] = [];
    let next: string | undefined = `${store.store}/redemptions?limit=2&customer_id=${customer.id}`;
    while (next !== undefined) {
      const page: Page = await store.get(next);
      listedIds.push(...page.body.map(({ id }) => id));
      expect(page.body.length).toBeLessThanOrEqual(2);
      const link: string | undefined = /<([^>]*)>; rel="next"/.exec(
        page.headers.get('link') ?? '',
      )?.[1];
      const url = link === undefined ? undefined : new URL(link, store.baseUrl);
      next = url && url.pathname + url.search;
      // New entries come before the next page.
      if (listedIds.length === 2) await redeem();
    }
    expect(listedIds).toEqual(createdIds.toReversed());
    expectRefused(await list({ cursor: 'x' }), 'cursor');
  });

  it('RECON-10 A redemption that is reversed stays in the list, with the time in `reversed_at`, which is null in all others', async () => {
    const { path, customer, redeem } = await holder();
    const { id } = await redeem();
    const { id: redemptionId } = await redeem();
    const { body: events } = await store.get<{ id: string; type: string }[]>(`${path}/events`);
    const event = events.filter(({ type }) => type === 'reward.redeemed').at(-1);
    const before = new Date().toISOString();
    const reversed = await store.post(`${path}/events/${event?.id}/reverse`, {
      reason: 'mistaken',
    });
    expect(reversed.status).toBe(200);
    const { body } = await list({ customer_id: customer.id });
    expect(body.map((redemption) => [redemption.id, redemption.reversed_at !== null])).toEqual([
      [redemptionId, false],
      [id, true],
    ]);
    expect(body[1]?.reversed_at?.localeCompare(before)).toBeGreaterThanOrEqual(0);
  });

  it('RECON-11 A redemption of an erased customer has the `note` null; everything else stays', async () => {
    const { customer, redeem } = await holder();
    const redemption = await redeem({
      note: 'oat milk',
      staff_ref: 'till 2',
      external_ref: 'rec-11',
    });
    expect((await store.post(`${store.store}/customers/${customer.id}/erase`)).status).toBe(204);
    for (const query of [{ customer_id: customer.id }, { external_ref: 'rec-11' }]) {
      const { body } = await list(query);
      expect(body).toEqual([expect.objectContaining({ ...redemption, note: null })]);
    }
  });

  it('RECON-12 Only redemptions of the store are listed, whatever the filters', async () => {
    const own = await service.newStore();
    const { customer, card, reward, redeem } = await holder(own);
    await redeem({ external_ref: 'recon-12' });
    for (const query of [
      { customer_id: customer.id },
      { card_id: card.id },
      { reward_id: reward ?? 0 },
      { external_ref: 'recon-12' },
    ]) {
      expect(await idsOf(query)).toEqual([]);
    }
    const stranger = await store.get(`${own.store}/redemptions`);
    expectFailure(stranger, 404, 'not_found');
  });

  it('RECON-13 After a merge, and after its undoing, a redemption keeps the customer and card that it was made with', async () => {
    const one = await holder();
    const two = await enrol(store);
    const redemption = await one.redeem({ note: 'oat milk' });
    const at = `${store.store}/customers/${two.customer.id}`;
    const body = { from_customer_id: one.customer.id };
    for (const action of ['merge', 'unmerge']) {
      expect((await store.post(`${at}/${action}`, body)).status).toBe(200);
      expect((await list({ customer_id: one.customer.id })).body).toEqual([
        {
          ...redemption,
          customer_id: one.customer.id,
          customer_card_id: one.customerCard.id,
          card_id: one.card.id,
          reversed_at: null,
          event_id: expect.stringMatching(/^evt_/),
        },
      ]);
    }
  });
});
