import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { runAtTime } from '../support/services/clock.js';
import type { ApiResponse } from '../support/services/service.js';
import { sentSoFar, useSentEvents } from '../support/services/sent-events.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

const PAST = '2020-01-01T00:00:00Z';
const MINUTE = 60_000;

const changeCard = (id: number, card: object) =>
  store.patch<CardJson>(`${store.store}/cards/${id}`, { card });
const fromNow = (ms: number) => new Date(Date.now() + ms).toISOString();
const expectLimited = (response: ApiResponse) =>
  expectRefused(response, 'base', 'stamp_limit_reached');

describe('stamping', () => {
  it('STAMP-01 A stamping adds the stamps and returns 200 with the card in the detail shape, and `event_id`', async () => {
    const { path, customerCard } = await enrol(store, { card: { stamps_required: 5 } });
    const { status, body } = await store.stamp(path, { stamps: 2 });
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual([...Object.keys(customerCard), 'event_id'].sort());
    expect(body).toMatchObject({ id: customerCard.id, stamps_count: 2, stamps_remaining: 3 });
    expect((await store.stamp(path, { stamps: 3 })).body.stamps_count).toBe(5);
  });

  it('STAMP-02 Every later read agrees with the response to a stamping', async () => {
    const { path, customer } = await enrol(store, { rewards: [2] });
    for (let i = 1; i <= 10; i++) {
      const { body } = await store.stamp(path, {});
      expect(body).toMatchObject((await store.get<CustomerCardDetailJson>(path)).body);
      const list = await store.get<{ stamps_count: number }[]>(
        path.slice(0, path.lastIndexOf('/')),
      );
      expect(list.body[0]?.stamps_count).toBe(i);
      const owner = await store.get<{ stamp_count: number }>(
        `${store.store}/customers/${customer.id}`,
      );
      expect(owner.body.stamp_count).toBe(i);
    }
  });

  it('STAMP-03 A stamping without `stamps` is 422 `stamps`', async () => {
    const { path } = await enrol(store);
    expectRefused(await store.post(`${path}/stamp`, {}), 'stamps');
    expectRefused(await store.post(`${path}/stamp`), 'stamps');
    expectRefused(await store.stamp(path, { stamps: null }), 'stamps');
  });

  it('STAMP-04 `stamps` accepts 1 and 100', async () => {
    const { path } = await enrol(store);
    expect((await store.stamp(path, { stamps: 1 })).body.stamps_count).toBe(1);
    expect((await store.stamp(path, { stamps: 100 })).body.stamps_count).toBe(101);
  });

  it('STAMP-05 `stamps` below 1, above 100 or not an integer is 422 `stamps`', async () => {
    const { path } = await enrol(store);
    for (const stamps of [0, -1, 101, 1.5, 'many', [1], {}, true, 1e20]) {
      expectRefused(await store.stamp(path, { stamps }), 'stamps');
    }
    expect(await store.readBalance(path)).toBe(0);
  });

  it('STAMP-06 A stamping on an expired card is 422 `base` with the code `card_expired`', async () => {
    const { path, card } = await enrol(store);
    await changeCard(card.id, { expires_at: PAST });
    expectRefused(await store.stamp(path, {}), 'base', 'card_expired');
    expect(await store.readBalance(path)).toBe(0);
  });

  it('STAMP-07 Stamping still works on customer cards of an archived card', async () => {
    const { path, card } = await enrol(store);
    await store.post(`${store.store}/cards/${card.id}/archive`);
    expect((await store.stamp(path, {})).body.stamps_count).toBe(1);
  });

  it('STAMP-08 Stamps added at the same time all count', async () => {
    const { path } = await enrol(store);
    const responses = await Promise.all(Array.from({ length: 50 }, () => store.stamp(path, {})));
    const balances = responses.map(({ body }) => body.stamps_count).sort((a, b) => a - b);
    expect(balances).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    expect(await store.readBalance(path)).toBe(50);
  });

  it('STAMP-09 `skip_notifications` still adds the stamps', async () => {
    const { path } = await enrol(store);
    for (const [i, skip_notifications] of [true, false, '1', 0, null].entries()) {
      const { status, body } = await store.stamp(path, { skip_notifications });
      expect([status, body.stamps_count]).toEqual([200, i + 1]);
    }
  });

  it('STAMP-10 `skip_notifications` that is not a boolean is 422 `skip_notifications`', async () => {
    const { path } = await enrol(store);
    for (const skip_notifications of ['later', 2, []]) {
      expectRefused(await store.stamp(path, { skip_notifications }), 'skip_notifications');
    }
  });

  it('STAMP-11 `location_id` accepts a location of the store', async () => {
    const { path } = await enrol(store);
    const location = { name: 'Main street', address: 'Main Street 1' };
    const { status, body } = await store.post<{ id: number }>(`${store.store}/locations`, {
      location,
    });
    expect(status).toBe(201);
    expect((await store.stamp(path, { location_id: body.id })).status).toBe(200);
    expect((await store.stamp(path, { location_id: null })).status).toBe(200);
  });

  it('STAMP-12 An unknown `location_id`, or one of another store, is 422 `location_id`', async () => {
    const { path } = await enrol(store);
    const otherStore = await service.newStore();
    const location = { name: 'Main street', address: 'Main Street 1' };
    const { status, body } = await otherStore.post<{ id: number }>(
      `${otherStore.store}/locations`,
      {
        location,
      },
    );
    expect(status).toBe(201);
    for (const location_id of [999_999_999, body.id, 0, 'x']) {
      expectRefused(await store.stamp(path, { location_id }), 'location_id');
    }
    expect(await store.readBalance(path)).toBe(0);
  });

  it('STAMP-13 `staff_ref` longer than 255 is 422 `staff_ref`', async () => {
    const { path } = await enrol(store);
    expect((await store.stamp(path, { staff_ref: 'x'.repeat(255) })).status).toBe(200);
    expectRefused(await store.stamp(path, { staff_ref: 'x'.repeat(256) }), 'staff_ref');
    expectRefused(await store.stamp(path, { staff_ref: 'a\0b' }), 'staff_ref');
  });

  it('STAMP-14 `external_ref` longer than 255 is 422 `external_ref`', async () => {
    const { path } = await enrol(store);
    const receipt = path.padEnd(255, 'x');
    expect((await store.stamp(path, { external_ref: receipt })).status).toBe(200);
    expectRefused(await store.stamp(path, { external_ref: `${receipt}x` }), 'external_ref');
  });

  it('STAMP-15 `note` longer than 500 is 422 `note`', async () => {
    const { path } = await enrol(store);
    expect((await store.stamp(path, { note: '🎂'.repeat(500) })).status).toBe(200);
    expectRefused(await store.stamp(path, { note: 'x'.repeat(501) }), 'note');
    expectRefused(await store.stamp(path, { note: { $gt: '' } }), 'note');
  });
});

describe('stamping with a receipt number', () => {
  it('STAMP-16 Repeating an `external_ref` with the same card and count returns the first result with `Idempotent-Replayed: true`, and adds nothing', async () => {
    const { path } = await enrol(store, { rewards: [2] });
    const body = { stamps: 2, external_ref: `once ${path}` };
    const first = await store.stamp(path, body);
    await store.stamp(path, { stamps: 5 });
    const again = await store.stamp(path, body);
    expect([again.status, again.body]).toEqual([200, first.body]);
    const replayed = [first, again].map(({ headers }) => headers.get('idempotent-replayed'));
    expect(replayed).toEqual([null, 'true']);
    expect(await store.readBalance(path)).toBe(7);
    const dry = await store.post(`${path}/stamp?dry_run=true`, body);
    expect([dry.body, dry.headers.get('idempotent-replayed')]).toEqual([first.body, 'true']);
    // A new key is no repetition, the receipt is; then it is both.
    const key = { 'idempotency-key': `once ${path}` };
    for (const sent of ['by receipt', 'by receipt and key']) {
      const keyed = await store.send('POST', `${path}/stamp`, body, key);
      expect([sent, keyed.body, keyed.headers.get('idempotent-replayed')]).toEqual([
        sent,
        first.body,
        'true',
      ]);
    }
    const refused = await store.stamp(path, { stamps: 3, external_ref: body.external_ref });
    expect(refused.headers.get('idempotent-replayed')).toBeNull();
    const otherResponse = await store.stamp(path, {
      stamps: 2,
      external_ref: `${body.external_ref} other`,
    });
    expect(otherResponse.headers.get('idempotent-replayed')).toBeNull();
  });

  it('STAMP-17 A used `external_ref` with another count is 422 `external_ref`, code `taken`', async () => {
    const { path } = await enrol(store);
    const external_ref = `count ${path}`;
    await store.stamp(path, { stamps: 2, external_ref });
    expectRefused(await store.stamp(path, { stamps: 3, external_ref }), 'external_ref', 'taken');
    expect(await store.readBalance(path)).toBe(2);
  });

  it('STAMP-18 A used `external_ref` on another card of the store is 422 `external_ref`, code `taken`, until the stamping is reversed (RECEIPT-12)', async () => {
    const [one, two] = [await enrol(store), await enrol(store)];
    const external_ref = `card ${one.path}`;
    await store.stamp(one.path, { external_ref });
    expectRefused(await store.stamp(two.path, { external_ref }), 'external_ref', 'taken');
    expect(await store.readBalance(two.path)).toBe(0);
  });

  it('STAMP-19 A repeated `external_ref` is detected before any other rule is checked, such as limits and expiry', async () => {
    const { path, card } = await enrol(store, { card: { max_stamps_per_day: 1 } });
    const locations = `${store.store}/locations`;
    const location = { name: 'Main street', address: 'Main Street 1' };
    const { id } = (await store.post<{ id: number }>(locations, { location })).body;
    const body = { external_ref: `rules ${path}`, location_id: id };
    const first = await store.stamp(path, body);
    expectLimited(await store.stamp(path, {}));
    await store.delete(`${locations}/${id}`);
    const again = await store.stamp(path, body);
    expect([again.status, again.body]).toEqual([200, first.body]);
    await changeCard(card.id, { expires_at: PAST });
    expect((await store.stamp(path, body)).status).toBe(200);
    expectRefused(await store.stamp(path, { ...body, stamps: 2 }), 'external_ref', 'taken');
  });

  it('STAMP-20 An `external_ref` is used up only by a stamping that succeeds', async () => {
    const { path, card } = await enrol(store, { card: { max_stamps_per_request: 1 } });
    const body = { stamps: 2, external_ref: `refused ${path}` };
    expectLimited(await store.stamp(path, body));
    await changeCard(card.id, { max_stamps_per_request: null });
    expect((await store.stamp(path, body)).body.stamps_count).toBe(2);
  });

  it('STAMP-21 An `external_ref` is independent for each operation', async () => {
    const { path, rewards } = await enrol(store, { rewards: [1] });
    const external_ref = `both ${path}`;
    await store.stamp(path, { external_ref });
    const redeem = { reward_id: rewards[0]?.id, external_ref };
    expect((await store.post(`${path}/redeem`, redeem)).status).toBe(200);
  });

  it('STAMP-22 An `external_ref` is independent in each store', async () => {
    const otherStore = await service.newStore();
    const [here, there] = [await enrol(store), await enrol(otherStore)];
    const external_ref = `stores ${here.path}`;
    await store.stamp(here.path, { external_ref });
    const { body } = await otherStore.stamp(there.path, { stamps: 3, external_ref });
    expect(body.stamps_count).toBe(3);
  });

  it('STAMP-23 Many simultaneous requests with the same `external_ref` count once, and all get the same response', async () => {
    const { path } = await enrol(store);
    const body = { external_ref: `race ${path}` };
    const responses = await Promise.all(Array.from({ length: 20 }, () => store.stamp(path, body)));
    for (const response of responses) {
      expect([response.status, response.body]).toEqual([200, responses[0]?.body]);
    }
    expect(await store.readBalance(path)).toBe(1);
  });
});

describe('when and where from', () => {
  it('STAMP-24 `occurred_at` may be up to 5 minutes ahead; more is 422 `occurred_at`', async () => {
    const { path } = await enrol(store);
    expect((await store.stamp(path, { occurred_at: fromNow(4 * MINUTE) })).status).toBe(200);
    expectRefused(await store.stamp(path, { occurred_at: fromNow(6 * MINUTE) }), 'occurred_at');
  });

  it('STAMP-25 `occurred_at` may be up to 5 minutes before the card was issued; more is 422 `occurred_at`', async () => {
    const { path, customerCard } = await enrol(store);
    const { issued_at } = customerCard;
    const before = (ms: number) => new Date(Date.parse(issued_at) - ms).toISOString();
    for (const ms of [0, 1, 1_000, 5 * MINUTE]) {
      expect((await store.stamp(path, { occurred_at: before(ms) })).status).toBe(200);
      const { body } = await store.get<HistoryEntryJson[]>(`${path}/events?limit=1`);
      expect(body[0]?.occurred_at).toBe(issued_at);
    }
    for (const ms of [5 * MINUTE + 1, 24 * 60 * MINUTE]) {
      expectRefused(await store.stamp(path, { occurred_at: before(ms) }), 'occurred_at');
    }
  });

  it('STAMP-26 `occurred_at` that is not a time is 422 `occurred_at`', async () => {
    const { path } = await enrol(store);
    for (const occurred_at of ['yesterday', 7, {}, '2026-02-30T00:00:00Z']) {
      expectRefused(await store.stamp(path, { occurred_at }), 'occurred_at');
    }
  });

  it('STAMP-27 Any other `source` is 422 `source`', async () => {
    const { path } = await enrol(store);
    for (const source of ['api', 'pos', null]) {
      expect((await store.stamp(path, { source })).status).toBe(200);
    }
    for (const source of ['app_scan', 'adjustment', 'API', 7]) {
      expectRefused(await store.stamp(path, { source }), 'source');
    }
  });
});

describe('limits of a card', () => {
  it('STAMP-28 More than `max_stamps_per_request` is 422 `base` with the code `stamp_limit_reached`', async () => {
    const { path } = await enrol(store, { card: { max_stamps_per_request: 2 } });
    expectLimited(await store.stamp(path, { stamps: 3 }));
    expect((await store.stamp(path, { stamps: 2 })).body.stamps_count).toBe(2);
  });

  it('STAMP-29 More than `max_stamps_per_day` on one day is 422 `base` with the code `stamp_limit_reached`', async () => {
    const { path } = await enrol(store, { card: { max_stamps_per_day: 3 } });
    await store.stamp(path, { stamps: 2 });
    expectLimited(await store.stamp(path, { stamps: 2 }));
    expect((await store.stamp(path, { stamps: 1 })).body.stamps_count).toBe(3);
    expectLimited(await store.stamp(path, { stamps: 1 }));
  });

  it("STAMP-30 The days of `max_stamps_per_day` are those of the store's time zone", async () => {
    // Midnight of 2 March is at 10:00 UTC on 1 March in Kiritimati, and at 05:00 UTC on 2 March in New York.
    for (const [timeZone, evening, night] of [
      ['Pacific/Kiritimati', '2040-03-01T09:58:00Z', '2040-03-01T10:01:00Z'],
      ['America/New_York', '2040-03-02T04:58:00Z', '2040-03-02T05:01:00Z'],
      ['UTC', '2040-03-01T23:58:00Z', '2040-03-02T00:01:00Z'],
    ] as const) {
      const own = await service.newStore({ timeZone });
      const once = (path: string) => own.stamp(path);
      const path = await runAtTime(evening, async () => {
        const enrolled = await enrol(own, { card: { max_stamps_per_day: 1 } });
        expect((await once(enrolled.path)).status).toBe(200);
        expectRefused(await once(enrolled.path), 'base', 'stamp_limit_reached');
        return enrolled.path;
      });
      await runAtTime(night, async () => {
        expect([timeZone, (await once(path)).status]).toEqual([timeZone, 200]);
        expectRefused(await once(path), 'base', 'stamp_limit_reached');
      });
    }
    const own = await service.newStore({ timeZone: 'Europe/Berlin' });
    const { path } = await runAtTime('2040-03-01T23:58:00Z', async () => {
      const enrolled = await enrol(own, { card: { max_stamps_per_day: 1 } });
      expect((await own.stamp(enrolled.path)).status).toBe(200);
      return enrolled;
    });
    await runAtTime('2040-03-02T00:01:00Z', async () => {
      const sameDay = await own.stamp(path);
      expectRefused(sameDay, 'base', 'stamp_limit_reached');
    });
  });

  it('STAMP-31 A stamping sooner than `min_seconds_between_stamps` is 422 `base` with the code `stamp_limit_reached`', async () => {
    const { path } = await enrol(store, { card: { min_seconds_between_stamps: 3600 } });
    await store.stamp(path, {});
    expectLimited(await store.stamp(path, {}));
    const { path: otherPath } = await enrol(store, { card: { min_seconds_between_stamps: 60 } });
    await store.stamp(otherPath, {});
    expect((await store.stamp(otherPath, { occurred_at: fromNow(2 * MINUTE) })).status).toBe(200);
  });

  it('STAMP-32 The stamping limits use `occurred_at` if it is given', async () => {
    const { path } = await enrol(store, { card: { min_seconds_between_stamps: 120 } });
    await store.stamp(path, { occurred_at: fromNow(4 * MINUTE) });
    expectLimited(await store.stamp(path, { occurred_at: fromNow(3 * MINUTE) }));
    expect((await store.stamp(path, {})).status).toBe(200);
    expectLimited(await store.stamp(path, {}));
    // There is room between two stampings of a till that was offline.
    const { path: latePath } = await enrol(store, { card: { min_seconds_between_stamps: 30 } });
    await store.stamp(latePath, {});
    await store.stamp(latePath, { occurred_at: fromNow(4 * MINUTE) });
    expect((await store.stamp(latePath, { occurred_at: fromNow(2 * MINUTE) })).status).toBe(200);
    expectLimited(await store.stamp(latePath, { occurred_at: fromNow(2 * MINUTE) }));
  });

  it('STAMP-33 Welcome stamps do not count towards the stamping limits', async () => {
    const { path } = await enrol(store, {
      card: { initial_stamps: 5, max_stamps_per_day: 2, min_seconds_between_stamps: 3600 },
    });
    expect((await store.stamp(path, { stamps: 2 })).body.stamps_count).toBe(7);
  });

  it('STAMP-34 An unknown customer card is 404', async () => {
    const { path } = await enrol(store);
    const stranger = await service.newStore();
    expectFailure(await store.stamp(`${path}999`, {}), 404, 'not_found');
    expectFailure(await stranger.stamp(path), 404, 'not_found');
    const misplaced = path.replace(store.store, stranger.store);
    expectFailure(await stranger.stamp(misplaced), 404, 'not_found');
    expect(await store.readBalance(path)).toBe(0);
  });
});

describe('a dry run', () => {
  const tried = (path: string, body: object, dry = 'true') =>
    store.post<CustomerCardDetailJson>(`${path}/stamp?dry_run=${dry}`, { stamps: 1, ...body });

  it('STAMP-38 With `dry_run=true` in the query the response to a stamping is the same, with the header `X-Dry-Run: true`, and nothing is stored or sent', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path } = await enrol(own, { rewards: [2] });
    const before = (await service.running.history()).length;
    const currentCard = await own.get(path);
    const dry = await own.post<CustomerCardDetailJson>(`${path}/stamp?dry_run=true`, { stamps: 3 });
    expect([dry.status, dry.headers.get('x-dry-run'), dry.body.stamps_count]).toEqual([
      200,
      'true',
      3,
    ]);
    expect((await own.get(path)).body).toEqual(currentCard.body);
    expect((await service.running.history()).length).toBe(before);
    const real = await own.stamp(path, 3);
    expect(real.headers.get('x-dry-run')).toBeNull();
    const { updated_at } = real.body;
    expect({ ...dry.body, updated_at }).toEqual({ ...real.body, event_id: null });
    const sentTypes = (await sentSoFar(own, path, receiver)).map(({ type }) => type);
    expect(sentTypes.filter((type) => type === 'stamp.earned')).toHaveLength(1);
  });

  it('STAMP-39 A dry run is refused in the same cases as the stamping itself', async () => {
    const { path, card } = await enrol(store, { card: { max_stamps_per_request: 2 } });
    expectRefused(await tried(path, { stamps: 0 }), 'stamps');
    expectLimited(await tried(path, { stamps: 3 }));
    await changeCard(card.id, { expires_at: PAST });
    expectRefused(await tried(path, {}), 'base', 'card_expired');
    expectFailure(await tried(`${path}999`, {}), 404, 'not_found');
  });

  it('STAMP-40 A dry run does not use up an `external_ref`', async () => {
    const { path } = await enrol(store);
    const external_ref = `dry ${path}`;
    expect((await tried(path, { external_ref })).status).toBe(200);
    expect((await store.stamp(path, { stamps: 2, external_ref })).body.stamps_count).toBe(2);
    const repeated = await tried(path, { stamps: 2, external_ref });
    expect([repeated.status, repeated.body.stamps_count]).toEqual([200, 2]);
  });

  it('STAMP-41 `dry_run` that is not a boolean is 422 `dry_run`, and adds nothing', async () => {
    const { path } = await enrol(store);
    for (const dry of ['yes', 'on', '2']) expectRefused(await tried(path, {}, dry), 'dry_run');
    expect(await store.readBalance(path)).toBe(0);
    expect((await tried(path, {}, '1')).headers.get('x-dry-run')).toBe('true');
    expect(await store.readBalance(path)).toBe(0);
    for (const dry of ['false', '0']) expect((await tried(path, {}, dry)).status).toBe(200);
    expect(await store.readBalance(path)).toBe(2);
  });
});

describe('a stamping', () => {
  it('STAMP-35 A stamping sends `stamp.earned` once per call', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, customerCard } = await enrol(own);
    await own.post(`${path}/stamp`, { stamps: 3, source: 'pos' });
    await own.post(`${path}/stamp`, { stamps: 2, skip_notifications: true });
    await own.stamp(path, 0);
    const earned = (await sentSoFar(own, path, receiver)).filter(
      ({ type }) => type === 'stamp.earned',
    );
    expect(
      earned.map(({ data }) => [data['stamps'], data['stamps_count'], data['source']]),
    ).toEqual([
      [3, 3, 'pos'],
      [2, 5, 'api'],
    ]);
    expect(earned[0]?.data['customer_card_id']).toBe(customerCard.id);
  });

  it('STAMP-36 A stamping sends `reward.unlocked` after `stamp.earned`, for each active reward that comes within reach', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [2, 3, 4, 9] });
    const [, three] = rewards;
    const reward = { active: false };
    await own.patch(`${own.store}/rewards/${three?.id}`, { reward });
    await own.stamp(path);
    await own.stamp(path, 4);
    const sentEvents = (await sentSoFar(own, path, receiver))
      .filter(({ type }) => type === 'stamp.earned' || type === 'reward.unlocked')
      .map(({ type, data }) =>
        type === 'stamp.earned'
          ? data['stamps']
          : (data['reward'] as { stamps_required: number }).stamps_required,
      );
    expect(sentEvents).toEqual([1, 4, 2, 4]);
  });

  it('STAMP-37 A reward stays unlocked until a redemption takes the balance below it; only after that is it sent again when crossed', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [2, 5] });
    const redeem = () => own.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    const stampThat = (stamps: number) => own.stamp(path, stamps);
    await stampThat(6);
    await stampThat(1);
    expect((await redeem()).status).toBe(200);
    await stampThat(1);
    for (let i = 0; i < 3; i++) expect((await redeem()).status).toBe(200);
    await stampThat(3);
    await stampThat(3);
    expect(await unlockedSoFar(own, path, receiver)).toEqual([
      [2, 6],
      [5, 6],
      [2, 3],
      [5, 6],
    ]);
  });

  it('STAMP-42 Which rewards a redemption locks again depends on what they take on the card at that moment', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [2, 5] });
    await own.stamp(path, 5);
    const lowered = { reward: { stamps_required: 3 } };
    expect((await own.patch(`${own.store}/rewards/${rewards[1]?.id}`, lowered)).status).toBe(200);
    expect((await own.post(`${path}/redeem`, { reward_id: rewards[0]?.id })).status).toBe(200);
    await own.stamp(path);
    expect(await unlockedSoFar(own, path, receiver)).toEqual([
      [2, 5],
      [5, 5],
    ]);
  });

  it('STAMP-43 Changing the threshold of a reward sends nothing: a lowered one is announced with the next stamping, a raised one does not lock what was unlocked', async () => {
    const own = await service.newStore();
    const receiver = await sent.subscribe(own);
    const { path, rewards } = await enrol(own, { rewards: [2, 9] });
    await own.stamp(path, 4);
    const change = (place: number, stamps_required: number) =>
      own.patch(`${own.store}/rewards/${rewards[place]?.id}`, { reward: { stamps_required } });
    expect((await change(1, 3)).status).toBe(200);
    expect((await change(0, 5)).status).toBe(200);
    await own.stamp(path, 2);
    expect(await unlockedSoFar(own, path, receiver)).toEqual([
      [2, 4],
      [3, 6],
    ]);
  });
});

/** Threshold and balance of each reward.unlocked. */
async function unlockedSoFar(...where: Parameters<typeof sentSoFar>): Promise<unknown[]> {
  return (await sentSoFar(...where))
    .filter(({ type }) => type === 'reward.unlocked')
    .map(({ data }) => [
      (data['reward'] as { stamps_required: number }).stamps_required,
      data['stamps_count'],
    ]);
}
