import { beforeAll, describe, expect, it } from '@jest/globals';
import type { HistoryEntryJson } from '#history/history-entry.dto.js';
import type { ListedRedemptionJson } from '#history/redemption.dto.js';
import type { ChangedCustomerCardJson, RedemptionJson } from '#stamping/customer-card.dto.js';
import { useSharedService, type ContractClient } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
let store: ContractClient;

beforeAll(async () => {
  store = await service.newStore();
});

const REASON = 'Wrong card';
const EVENT_ID = /^evt_/;

let receipts = 0;
const newReceipt = () => `receipts-${++receipts}`;

const stamp = (path: string, body: object, client = store) =>
  client.post<ChangedCustomerCardJson>(`${path}/stamp`, { stamps: 1, ...body });
const redeem = (path: string, body: object, client = store) =>
  client.post<RedemptionJson>(`${path}/redeem`, body);
const adjust = (path: string, body: object, client = store) =>
  client.post<ChangedCustomerCardJson>(`${path}/adjust`, { stamps: 1, reason: REASON, ...body });
const reverse = (path: string, eventId: string | null) =>
  store.post<ChangedCustomerCardJson>(`${path}/events/${eventId}/reverse`, { reason: REASON });
const byCode = ({ code }: { code: string }) => `${store.store}/customer_cards/by_code/${code}`;

describe('event_id', () => {
  it('RECEIPT-01 The responses of stamp, redeem, adjust and reverse have `event_id`, the id of the event that they wrote, by id and by code', async () => {
    const { path, customerCard, rewards } = await enrol(store, { rewards: [3] });
    const reward_id = rewards[0]?.id;
    const scanned = byCode(customerCard);
    const stamped = [await stamp(path, { stamps: 5 }), await stamp(scanned, { stamps: 5 })];
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
    const first = [await stamp(path, stamping), await redeem(path, redemption)];
    for (const at of [path, byCode(customerCard)]) {
      const again = [await stamp(at, stamping), await redeem(at, redemption)];
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
      await stamp(`${path}`, {}),
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
