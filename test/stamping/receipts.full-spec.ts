import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ListedRedemptionJson } from '#loyalty/history/redemption.dto.js';
import type {
  ChangedCustomerCardJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import type { ReversedReceiptJson } from '#loyalty/stamping/receipt-reversal.dto.js';
import type { EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService();
const store = service.useStore();
let dispatcher: Program;

beforeAll(async () => {
  dispatcher = await startDispatcher(service.running);
});
afterAll(() => dispatcher.kill('SIGTERM'));

const REASON = 'Wrong card';
const EVENT_ID = /^evt_/;
const ZERO_WIDTH = '\u200B';

let receipts = 0;
const newReceipt = () => `receipts-${++receipts}`;

const redeem = (path: string, body: object, client = store) =>
  client.post<RedemptionJson>(`${path}/redeem`, body);
const adjust = (path: string, body: object, client = store) =>
  client.post<ChangedCustomerCardJson>(`${path}/adjust`, { stamps: 1, reason: REASON, ...body });
const reverse = (path: string, eventId: string | null) =>
  store.post<ChangedCustomerCardJson>(`${path}/events/${eventId}/reverse`, { reason: REASON });
const expectTaken = (response: ApiResponse) => expectRefused(response, 'external_ref', 'taken');
const byCode = ({ code }: { code: string }) => `${store.store}/customer_cards/by_code/${code}`;

describe('event_id', () => {
  it('RECEIPT-01 The responses of stamp, redeem, adjust and reverse have `event_id`, the id of the event that they wrote, by id and by code', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    const reward_id = rewards[0]?.id;
    const scanned = byCode(customerCard);
    const stamped = [
      await store.stamp(path, { stamps: 5 }),
      await store.stamp(scanned, { stamps: 5 }),
    ];
    const redeemed = [await redeem(path, { reward_id }), await redeem(scanned, { reward_id })];
    const adjusted = [await adjust(path, { stamps: 2 }), await adjust(path, { stamps: -1 })];
    const ids = [...stamped, ...redeemed, ...adjusted].map(({ body }) => body.event_id);
    const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events`);
    const listed = entries.filter(({ stamps }) => stamps !== null).toReversed();
    expect(ids).toEqual(listed.map(({ id }) => id));
    const { body: redemptions } = await store.get<ListedRedemptionJson[]>(
      `${store.store}/redemptions?customer_id=${customerCard.customer_id}`,
    );
    expect(redemptions.map(({ event_id }) => event_id)).toEqual([ids[3], ids[2]]);
    for (const id of ids.toReversed()) {
      const { status, body } = await reverse(path, id);
      const [entry] = (await store.get<HistoryEntryJson[]>(`${path}/events?limit=5`)).body.filter(
        ({ reverses }) => reverses === id,
      );
      expect([status, body.event_id]).toEqual([200, entry?.id]);
    }
  });

  it('RECEIPT-02 A repetition by receipt number has the `event_id` of the first result', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    const external_ref = newReceipt();
    const redemption = { reward_id: rewards[0]?.id, external_ref };
    const stamping = { stamps: 4, external_ref };
    const first = [await store.stamp(path, stamping), await redeem(path, redemption)];
    for (const at of [path, byCode(customerCard)]) {
      const again = [await store.stamp(at, stamping), await redeem(at, redemption)];
      expect(again.map(({ body }) => body)).toEqual(first.map(({ body }) => body));
    }
    expect(first.map(({ body }) => body.event_id)).toEqual([
      expect.stringMatching(EVENT_ID),
      expect.stringMatching(EVENT_ID),
    ]);
  });

  it('RECEIPT-03 In a dry run `event_id` is null', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1], card: { initial_stamps: 1 } });
    const dry = [
      await store.stamp(`${path}`, {}),
      await store.post<ChangedCustomerCardJson>(`${path}/stamp?dry_run=true`, { stamps: 1 }),
      await store.post<RedemptionJson>(`${path}/redeem?dry_run=true`, {
        reward_id: rewards[0]?.id,
      }),
    ];
    expect(dry.map(({ body }) => body.event_id)).toEqual([
      expect.stringMatching(EVENT_ID),
      null,
      null,
    ]);
  });
});

describe('the receipt number of an adjustment', () => {
  it('RECEIPT-04 `adjust` accepts `external_ref`: repeated with the same card and `stamps` it returns the first result with `Idempotent-Replayed: true`, and changes nothing', async () => {
    for (const stamps of [3, -2]) {
      const { path } = await enrol(store, { card: { initial_stamps: 5 } });
      const external_ref = newReceipt();
      const first = await adjust(path, { stamps, external_ref });
      await adjust(path, { stamps: 1 });
      const again = await adjust(path, { stamps, external_ref, reason: 'once more' });
      expect([again.status, again.body]).toEqual([200, first.body]);
      const replayed = [first, again].map(({ headers }) => headers.get('idempotent-replayed'));
      expect(replayed).toEqual([null, 'true']);
      expect(await store.readBalance(path)).toBe(5 + stamps + 1);
    }
  });

  it('RECEIPT-05 The receipt number of an adjustment with other `stamps` or another card is 422 `external_ref`, code `taken`', async () => {
    const { path } = await enrol(store, { card: { initial_stamps: 5 } });
    const otherHolder = await enrol(store);
    const external_ref = newReceipt();
    await adjust(path, { stamps: 2, external_ref });
    for (const stamps of [1, -2]) expectTaken(await adjust(path, { stamps, external_ref }));
    expectTaken(await adjust(otherHolder.path, { stamps: 2, external_ref }));
    expectRefused(await adjust(path, { external_ref: 'x'.repeat(256) }), 'external_ref');
    expect([await store.readBalance(path), await store.readBalance(otherHolder.path)]).toEqual([
      7, 0,
    ]);
  });

  it('RECEIPT-06 The receipt number of an adjustment is independent of stampings and redemptions, and used up only by one that succeeds', async () => {
    const { path, rewards } = await enrol(store, { rewards: [2] });
    const external_ref = newReceipt();
    expectRefused(await adjust(path, { stamps: -1, external_ref }), 'base', 'insufficient_stamps');
    expect((await adjust(path, { stamps: 1, external_ref })).status).toBe(200);
    expect((await store.stamp(path, { stamps: 1, external_ref })).body.stamps_count).toBe(2);
    const redeemed = await redeem(path, { reward_id: rewards[0]?.id, external_ref });
    expect(redeemed.body.redemption.stamps_remaining).toBe(0);
  });

  it('RECEIPT-07 Many simultaneous adjustments with the same `external_ref` count once, and all get the same response, even if the balance covers only one', async () => {
    const { path } = await enrol(store, { card: { initial_stamps: 3 } });
    const external_ref = newReceipt();
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => adjust(path, { stamps: -2, external_ref })),
    );
    for (const { status, body } of responses)
      expect([status, body]).toEqual([200, responses[0]?.body]);
    expect(await store.readBalance(path)).toBe(1);
  });

  it('RECEIPT-08 The history and the events show the receipt number of an adjustment', async () => {
    const { path } = await enrol(store);
    const external_ref = newReceipt();
    const added = await adjust(path, { stamps: 2, external_ref });
    const removed = await adjust(path, { stamps: -1, external_ref: `${external_ref}-2` });
    const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events?limit=2`);
    const listed = entries.map((entry) => [entry.id, entry.external_ref, entry.note]);
    expect(listed).toEqual([
      [removed.body.event_id, `${external_ref}-2`, REASON],
      [added.body.event_id, external_ref, REASON],
    ]);
    const events = await eventually(
      async () => {
        const { body } = await store.get<EnvelopeJson[]>(`${store.store}/events?limit=250`);
        return body.filter(({ id }) => listed.some(([entry]) => entry === id));
      },
      ({ length }) => length === 2,
    );
    expect(events.map(({ type, data }) => [type, data['external_ref']])).toEqual([
      ['stamp.earned', external_ref],
      ['stamp.removed', `${external_ref}-2`],
    ]);
  });
});

describe('filters', () => {
  /** A receipt with a stamping, a redemption and an adjustment, and others around it. */
  async function used(client = store) {
    const { path, rewards, customer } = await enrol(client, { rewards: [3] });
    const external_ref = newReceipt();
    await client.stamp(path, { stamps: 1, external_ref: newReceipt() });
    const stamped = await client.stamp(path, { stamps: 9, external_ref });
    const reward_id = rewards[0]?.id;
    const redeemed = await redeem(path, { reward_id, external_ref }, client);
    await redeem(path, { reward_id, external_ref: newReceipt() }, client);
    const adjusted = await adjust(path, { stamps: -1, external_ref }, client);
    await client.stamp(path, {});
    const ids = [stamped, redeemed, adjusted].map(({ body }) => body.event_id);
    return { path, customer, external_ref, ids, redemption: redeemed.body.redemption.id };
  }
  const listIds = async (path: string) =>
    (await store.get<{ id: string | number }[]>(path)).body.map(({ id }) => id);
  /** Waits for the feed, which lags a little behind. */
  const listOnceSent = (path: string, count: number) =>
    eventually(
      () => listIds(path),
      ({ length }) => length === count,
    );
  const at = (list: string, external_ref: string, more = '') =>
    `${list}?external_ref=${encodeURIComponent(external_ref)}${more}`;

  it('RECEIPT-09 `external_ref` filters both lists of the history, the feed and the redemptions: it finds exactly what has this receipt number', async () => {
    const { path, external_ref, ids, redemption } = await used();
    const own = await service.newStore();
    const elsewhere = await enrol(own);
    await own.stamp(elsewhere.path, { external_ref });
    const newest = ids.toReversed();
    expect(await listIds(at(`${store.store}/history`, external_ref))).toEqual(newest);
    expect(await listIds(at(`${path}/events`, external_ref))).toEqual(newest);
    expect(await listIds(at(`${store.store}/redemptions`, external_ref))).toEqual([redemption]);
    expect(await listOnceSent(at(`${store.store}/events`, external_ref), ids.length)).toEqual(ids);
  });

  it('RECEIPT-10 The filter `external_ref` can be combined with the others; of a number that nothing has the list is empty, and one longer than 255 is 422 `external_ref`', async () => {
    const { path, external_ref, ids, customer } = await used();
    const otherHolder = await enrol(store);
    const { store: root } = store;
    const history = (more: string) => at(`${root}/history`, external_ref, more);
    expect(await listIds(history('&type=reward.redeemed'))).toEqual([ids[1]]);
    expect(await listIds(history(`&customer_id=${otherHolder.customer.id}`))).toEqual([]);
    expect(await listIds(at(`${otherHolder.path}/events`, external_ref))).toEqual([]);
    const redemptions = at(`${root}/redemptions`, external_ref, `&customer_id=${customer.id}`);
    expect(await listIds(redemptions)).toHaveLength(1);
    const first = await store.get<HistoryEntryJson[]>(history('&limit=2'));
    expect(first.body.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    const next = /<[^>]*(\/api[^>]*)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    expect(await listIds(next)).toEqual([ids[0]]);
    expect(await listOnceSent(at(`${root}/events`, external_ref, '&limit=3'), 3)).toEqual(ids);
    expect(await listIds(at(`${root}/events`, external_ref, `&after=${ids[0]}`))).toEqual([
      ids[1],
      ids[2],
    ]);
    expect(await listIds(at(`${root}/events`, external_ref, '&type=stamp.removed'))).toEqual([
      ids[2],
    ]);
    for (const list of [
      `${root}/history`,
      `${path}/events`,
      `${root}/events`,
      `${root}/redemptions`,
    ]) {
      expect(await listIds(at(list, newReceipt()))).toEqual([]);
      expectRefused(await store.get(at(list, 'x'.repeat(256))), 'external_ref');
    }
  });

  it('RECEIPT-11 Invisible characters and white space around a receipt number do not count, in filters as in requests', async () => {
    const { path } = await enrol(store);
    const external_ref = newReceipt();
    const hidden = ` ${external_ref.slice(0, 3)}${ZERO_WIDTH}${external_ref.slice(3)}\t`;
    const first = await store.stamp(path, { external_ref: hidden });
    expect((await store.stamp(path, { external_ref })).body).toEqual(first.body);
    const ids = [first.body.event_id];
    for (const receiptNumber of [hidden, external_ref]) {
      expect(await listIds(at(`${store.store}/history`, receiptNumber))).toEqual(ids);
      expect(await listIds(at(`${path}/events`, receiptNumber))).toEqual(ids);
    }
    expect(await listOnceSent(at(`${store.store}/events`, hidden), ids.length)).toEqual(ids);
  });
});

describe('a receipt number after a reversal', () => {
  it('RECEIPT-12 After a reversal its receipt number may be used again on another customer card', async () => {
    const { path, rewards, card } = await enrol(store, { rewards: [3] });
    const otherHolder = await enrol(store, { card: { initial_stamps: 3 } });
    const external_ref = newReceipt();
    const stamped = await store.stamp(path, { stamps: 5, external_ref });
    const adjusted = await adjust(path, { stamps: 2, external_ref });
    const redeemed = await redeem(path, { reward_id: rewards[0]?.id, external_ref });
    const { body: own } = await store.post<{ id: number }>(`${store.store}/rewards`, {
      reward: { card_id: otherHolder.card.id, name: 'Cake', stamps_required: 3 },
    });
    expect(card.id).not.toBe(otherHolder.card.id);
    const again = () => [
      () => store.stamp(otherHolder.path, { stamps: 5, external_ref }),
      () => adjust(otherHolder.path, { stamps: 2, external_ref }),
      () => store.post(`${otherHolder.path}/redeem`, { reward_id: own.id, external_ref }),
    ];
    for (const repeat of again()) expectRefused(await repeat(), 'external_ref', 'taken');
    for (const { body } of [redeemed, adjusted, stamped]) {
      expect((await reverse(path, body.event_id)).status).toBe(200);
    }
    for (const repeat of again()) {
      const first = await repeat();
      expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null]);
      const second = await repeat();
      expect([second.status, second.body]).toEqual([200, first.body]);
      expect(second.headers.get('idempotent-replayed')).toBe('true');
    }
    expect([await store.readBalance(path), await store.readBalance(otherHolder.path)]).toEqual([
      0, 7,
    ]);
  });

  it('RECEIPT-13 After a reversal a repetition on the same card still returns the first result', async () => {
    const [one, two, three] = [await enrol(store), await enrol(store), await enrol(store)];
    const body = { stamps: 2, external_ref: newReceipt() };
    const first = await store.stamp(one.path, body);
    await reverse(one.path, first.body.event_id);
    const second = await store.stamp(two.path, body);
    for (const [path, result] of [
      [one.path, first],
      [two.path, second],
    ] as const) {
      const again = await store.stamp(path, body);
      expect([again.status, again.body]).toEqual([200, result.body]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      expectTaken(await store.stamp(path, { ...body, stamps: 1 }));
    }
    expectTaken(await store.stamp(three.path, body));
    const balances = [one, two, three].map(({ path }) => store.readBalance(path));
    expect(await Promise.all(balances)).toEqual([0, 2, 0]);
    const { body: existing } = await store.stamp(three.path, body);
    expect(existing).toMatchObject({ existing: { id: two.customerCard.id } });
  });

  it('RECEIPT-14 Of many simultaneous requests that use a receipt number again for different cards exactly one wins; the others are 422 `external_ref`, code `taken`', async () => {
    const { path } = await enrol(store);
    const body = { stamps: 2, external_ref: newReceipt() };
    const { event_id } = (await store.stamp(path, body)).body;
    await reverse(path, event_id);
    const others = await Promise.all(Array.from({ length: 8 }, () => enrol(store)));
    const responses = await Promise.all(
      others.map((otherHolder) => store.stamp(otherHolder.path, body)),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const response of responses) if (response.status !== 200) expectTaken(response);
    const balances = await Promise.all(
      others.map((otherHolder) => store.readBalance(otherHolder.path)),
    );
    expect(balances.reduce((sum, balance) => sum + balance, 0)).toBe(2);
  });

  it('RECEIPT-15 A receipt number is used at most ten times, each after a reversal; then it is 422 `external_ref`, code `taken`', async () => {
    const cards = [];
    for (let i = 0; i < 11; i++) cards.push(await enrol(store));
    const body = { stamps: 1, external_ref: newReceipt() };
    for (const { path } of cards.slice(0, 10)) {
      const { status, body: stamped } = await store.stamp(path, body);
      expect(status).toBe(200);
      await reverse(path, stamped.event_id);
    }
    expectTaken(await store.stamp(cards[10]?.path ?? '', body));
    const listed = await store.get<HistoryEntryJson[]>(
      `${store.store}/history?external_ref=${body.external_ref}`,
    );
    expect(listed.body).toHaveLength(10);
  });
});

describe('reversing a receipt', () => {
  const reverseReceipt = (external_ref: unknown, headers: Record<string, string> = {}) =>
    store.send<ReversedReceiptJson>(
      'POST',
      `${store.store}/receipts/reverse`,
      { external_ref, reason: REASON },
      headers,
    );
  /** Stamps a card and redeems from it with one receipt. */
  async function used(initial_stamps = 0) {
    const enrolled = await enrol(store, { rewards: [3], card: { initial_stamps } });
    const { path, rewards } = enrolled;
    const external_ref = newReceipt();
    const stamped = await store.stamp(path, { stamps: 5, external_ref });
    const redeemed = await redeem(path, { reward_id: rewards[0]?.id, external_ref });
    const ids = [stamped, redeemed].map(({ body }) => body.event_id);
    return { ...enrolled, external_ref, ids };
  }
  /** The changes of a card, oldest first. */
  const listChanges = async (path: string) =>
    (await store.get<HistoryEntryJson[]>(`${path}/events`)).body
      .map(({ type, stamps, balance: after }) => [type, stamps, after])
      .toReversed();

  it('RECEIPT-16 Reversing a receipt reverses every stamping and redemption with its number at once', async () => {
    const { path, customerCard, external_ref, ids } = await used();
    const { status, body } = await reverseReceipt(external_ref);
    expect([status, body.reversed]).toEqual([200, ids]);
    expect(Object.keys(body)).toEqual(['reversed', 'customer_card']);
    expect(Object.keys(body.customer_card)).toEqual(Object.keys(customerCard));
    expect(body.customer_card).toEqual((await store.get(path)).body);
    expect(body.customer_card.stamps_count).toBe(0);
    const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events`);
    const reversals = entries.filter(({ reverses }) => reverses !== null);
    expect(reversals.map(({ reverses, note }) => [reverses, note]).sort()).toEqual(
      ids.map((id) => [id, REASON]).sort(),
    );
  });

  it('RECEIPT-17 Reversing a receipt sends what reversing each of its events sends', async () => {
    const spent = await used();
    await reverseReceipt(spent.external_ref);
    // Only with what the redemption gives back does the card hold enough to take the stamps off.
    expect((await listChanges(spent.path)).slice(4)).toEqual([
      ['stamp.earned', 3, 5],
      ['reward.unlocked', null, 5],
      ['stamp.removed', -5, 0],
    ]);
    const covered = await used(4);
    await reverseReceipt(covered.external_ref);
    expect((await listChanges(covered.path)).slice(5)).toEqual([
      ['stamp.removed', -5, 1],
      ['stamp.earned', 3, 4],
    ]);
  });

  it('RECEIPT-18 Reversing a receipt again returns the same response with `Idempotent-Replayed: true`, and reverses nothing', async () => {
    const { path, external_ref } = await used();
    const first = await reverseReceipt(external_ref);
    await store.stamp(path, { stamps: 2 });
    const again = await reverseReceipt(`${external_ref}${ZERO_WIDTH} `);
    expect([again.status, again.body]).toEqual([200, first.body]);
    const replayed = [first, again].map(({ headers }) => headers.get('idempotent-replayed'));
    expect(replayed).toEqual([null, 'true']);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RECEIPT-19 What was reversed before stays as it is, and only the rest of a receipt is reversed', async () => {
    const { path, external_ref, ids } = await used(1);
    const [stamped, redeemed] = ids;
    await reverse(path, redeemed ?? null);
    const first = await reverseReceipt(external_ref);
    expect(first.body.reversed).toEqual([stamped]);
    expect((await reverseReceipt(external_ref)).body).toEqual(first.body);
    expect(await store.readBalance(path)).toBe(1);
    const single = await used();
    for (const id of single.ids.toReversed()) await reverse(single.path, id);
    const again = await reverseReceipt(single.external_ref);
    expect([again.status, again.body.reversed]).toEqual([200, [single.ids[0]]]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  it('RECEIPT-20 A receipt that was stamped on one card and redeemed on another is reversed on both; `customer_card` is the one that was stamped', async () => {
    const one = await enrol(store);
    const two = await enrol(store, { rewards: [3], card: { initial_stamps: 4 } });
    const external_ref = newReceipt();
    const redemption = { reward_id: two.rewards[0]?.id, external_ref };
    const redeemed = await redeem(two.path, redemption);
    const stamped = await store.stamp(one.path, { stamps: 2, external_ref });
    const first = await reverseReceipt(external_ref);
    expect(first.body).toMatchObject({
      reversed: [stamped.body.event_id, redeemed.body.event_id],
      customer_card: { id: one.customerCard.id, stamps_count: 0 },
    });
    expect([await store.readBalance(one.path), await store.readBalance(two.path)]).toEqual([0, 4]);
    expect((await reverseReceipt(external_ref)).body).toEqual(first.body);
  });

  it('RECEIPT-21 A receipt whose stamps are spent is 422 `base`, code `insufficient_stamps`, and nothing is reversed', async () => {
    const one = await enrol(store, { rewards: [3] });
    const two = await enrol(store, { rewards: [3], card: { initial_stamps: 4 } });
    const external_ref = newReceipt();
    await store.stamp(one.path, { stamps: 3, external_ref });
    await redeem(two.path, { reward_id: two.rewards[0]?.id, external_ref });
    const later = await redeem(one.path, { reward_id: one.rewards[0]?.id });
    expectRefused(await reverseReceipt(external_ref), 'base', 'insufficient_stamps');
    expect([await store.readBalance(one.path), await store.readBalance(two.path)]).toEqual([0, 1]);
    await reverse(one.path, later.body.event_id);
    expect((await reverseReceipt(external_ref)).body.reversed).toHaveLength(2);
    expect([await store.readBalance(one.path), await store.readBalance(two.path)]).toEqual([0, 4]);
  });

  it('RECEIPT-22 Reversing a number without a stamping or redemption in the store is 404', async () => {
    const foreign = await service.newStore();
    const elsewhere = await enrol(foreign);
    const external_ref = newReceipt();
    await foreign.stamp(elsewhere.path, { external_ref });
    expectFailure(await reverseReceipt(external_ref), 404, 'not_found');
    expectFailure(await reverseReceipt(newReceipt()), 404, 'not_found');
    const { path } = await enrol(store);
    await adjust(path, { external_ref });
    expectFailure(await reverseReceipt(external_ref), 404, 'not_found');
  });

  it('RECEIPT-23 `external_ref` that is missing, blank or longer than 255 is 422 `external_ref`; `reason` is checked as in `reverse`', async () => {
    const { external_ref, path } = await used();
    for (const invalid of [undefined, null, '', ' ', ZERO_WIDTH, 'x'.repeat(256), {}]) {
      expectRefused(await reverseReceipt(invalid), 'external_ref');
    }
    const url = `${store.store}/receipts/reverse`;
    for (const reason of [undefined, null, ' ', 'x'.repeat(501), 5]) {
      expectRefused(await store.post(url, { external_ref, reason }), 'reason');
    }
    expectRefused(await store.post(url), ['external_ref', 'reason']);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RECEIPT-24 An adjustment with the number of a reversed receipt stays', async () => {
    const { path, external_ref, ids } = await used();
    await adjust(path, { stamps: 2, external_ref });
    const { body } = await reverseReceipt(external_ref);
    expect([body.reversed, body.customer_card.stamps_count]).toEqual([ids, 2]);
  });

  it('RECEIPT-25 Of many simultaneous requests one reverses the receipt, and all get the same response', async () => {
    const { path, external_ref } = await used();
    const two = await enrol(store, { rewards: [3], card: { initial_stamps: 4 } });
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => reverseReceipt(external_ref)),
    );
    for (const { status, body } of responses)
      expect([status, body]).toEqual([200, responses[0]?.body]);
    const replayed = responses.filter(({ headers }) => headers.has('idempotent-replayed'));
    expect(replayed).toHaveLength(9);
    expect(await store.readBalance(path)).toBe(0);
    const both = newReceipt();
    await store.stamp(path, { stamps: 2, external_ref: both });
    await redeem(two.path, { reward_id: two.rewards[0]?.id, external_ref: both });
    const busy = await Promise.all([
      ...Array.from({ length: 5 }, () => reverseReceipt(both)),
      ...Array.from({ length: 5 }, () => store.stamp(two.path, {})),
    ]);
    expect(busy.map(({ status }) => status)).toEqual(busy.map(() => 200));
    expect([await store.readBalance(path), await store.readBalance(two.path)]).toEqual([0, 9]);
  });

  it('RECEIPT-26 If the number of a receipt was used again on another card, the last use is reversed', async () => {
    const one = await enrol(store);
    const two = await enrol(store);
    const body = { stamps: 2, external_ref: newReceipt() };
    const first = await store.stamp(one.path, body);
    await reverseReceipt(body.external_ref);
    const second = await store.stamp(two.path, body);
    expect(second.status).toBe(200);
    const { body: reversed } = await reverseReceipt(body.external_ref);
    expect(reversed).toMatchObject({
      reversed: [second.body.event_id],
      customer_card: { id: two.customerCard.id, stamps_count: 0 },
    });
    expect((await reverseReceipt(body.external_ref)).body).toEqual(reversed);
    expect((await store.stamp(one.path, body)).body).toEqual(first.body);
    expect([await store.readBalance(one.path), await store.readBalance(two.path)]).toEqual([0, 0]);
  });

  it('RECEIPT-27 A receipt on a card that was merged into another one is 422 `base`, code `customer_merged`, and one of an erased customer `customer_erased`', async () => {
    const holder = await enrol(store);
    const { customer: two, path: otherPath } = await enrol(store, { on: holder.card });
    const external_ref = newReceipt();
    await store.stamp(otherPath, { stamps: 2, external_ref });
    const change = (action: string) =>
      store.post(`${store.store}/customers/${holder.customer.id}/${action}`, {
        from_customer_id: two.id,
      });
    expect((await change('merge')).status).toBe(200);
    const merged = await reverseReceipt(external_ref);
    expectRefused(merged, 'base', 'customer_merged');
    expect(merged.body).toMatchObject({ resolution: expect.stringMatching(/Unmerge/) });
    expect((await change('unmerge')).status).toBe(200);
    expect((await reverseReceipt(external_ref)).body.customer_card.stamps_count).toBe(0);
    const later = newReceipt();
    await store.stamp(holder.path, { external_ref: later });
    await store.post(`${store.store}/customers/${holder.customer.id}/erase`);
    expectRefused(await reverseReceipt(later), 'base', 'customer_erased');
    expect(await store.readBalance(holder.path)).toBe(1);
  });

  it('RECEIPT-28 Reversing a receipt accepts an `Idempotency-Key`', async () => {
    const { path, external_ref } = await used();
    const key = { 'idempotency-key': external_ref };
    const first = await reverseReceipt(external_ref, key);
    const again = await reverseReceipt(external_ref, key);
    const byReceipt = await reverseReceipt(external_ref, {
      'idempotency-key': `${external_ref}-2`,
    });
    for (const { status, body, headers } of [again, byReceipt]) {
      expect([status, body]).toEqual([200, first.body]);
      expect(headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await store.readBalance(path)).toBe(0);
  });
});
