import { beforeAll, describe, expect, it } from '@jest/globals';
import type { StatisticsJson } from '#loyalty/statistics/statistics.dto.js';
import type { CustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { StampCustomerCard } from '#loyalty/stamping/customer-card.commands.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
} from '../support/http/contract.js';
import { cli } from '../support/services/service.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();

type Query = Record<string, string | number>;
const url = (at: ContractClient, query: Query = {}) =>
  `${at.store}/statistics?${new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  )}`;

async function get(at: ContractClient, query: Query = {}): Promise<StatisticsJson> {
  const { status, body } = await at.get<StatisticsJson>(url(at, query));
  expect([status, body]).toEqual([200, expect.anything()]);
  return body;
}

/** The sums over all intervals. */
async function sums(at: ContractClient, query: Query = {}) {
  const { series } = await get(at, query);
  const sum = (name: Exclude<keyof (typeof series)[number], 'start'>) =>
    series.reduce((total, interval) => total + interval[name], 0);
  return {
    stamps: sum('stamps'),
    redemptions: sum('redemptions'),
    new: sum('new_customers'),
    active: sum('active_customers'),
    returning: sum('returning_customers'),
  };
}

/** Waits until everything so far is counted. */
async function expectSums(
  at: ContractClient,
  expected: Partial<Awaited<ReturnType<typeof sums>>>,
  query: Query = {},
): Promise<void> {
  await eventually(
    () => sums(at, query),
    (counts) => Object.entries(expected).every(([name, n]) => Reflect.get(counts, name) === n),
  );
}

async function newLocation(at: ContractClient): Promise<number> {
  const { body } = await at.post<LocationJson>(`${at.store}/locations`, {
    location: { name: 'Main street', address: 'Main Street 1, Springfield' },
  });
  return body.id;
}

async function stamp(at: ContractClient, path: string, body: object): Promise<string> {
  expect((await at.post(`${path}/stamp`, body)).status).toBe(200);
  const { body: events } = await at.get<HistoryEntryJson[]>(`${path}/events?type=stamp.earned`);
  return events[0]?.id ?? '';
}

/** Stamps a card as a person does who is signed in. */
async function stampAs(
  at: ContractClient,
  userId: number,
  { customer, customerCard }: Awaited<ReturnType<typeof enrol>>,
  stamps: number,
  locationId: number | null = null,
): Promise<void> {
  const actor = { type: 'user', id: userId };
  const context = { accountId: at.accountId, actor, channel: 'owner', requestId: 'statistics' };
  await service.running.execute(
    new StampCustomerCard(
      context,
      { customerId: customer.id, id: customerCard.id },
      {
        stamps,
        source: 'pos',
        locationId,
        staffRef: null,
        externalRef: null,
        silent: false,
        personal: null,
        occurredAt: undefined,
      },
    ),
  );
}

async function newUser(name: string): Promise<number> {
  const email = `${name}${Math.random()}@example.com`;
  const command = new CreateUser(cli, email, name, 'correct horse');
  return (await service.running.execute(command)).userId;
}

describe('statistics', () => {
  let store: ContractClient;
  beforeAll(async () => {
    store = await service.newStore();
  });

  it('STAT-01 `series` has an element for each day, week or month from `from` to `to`, those without anything included', async () => {
    const days = await get(store, { from: '2026-02-27', to: '2026-03-02' });
    expect(days.series).toEqual(
      ['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'].map((start) => ({
        start,
        stamps: 0,
        redemptions: 0,
        new_customers: 0,
        active_customers: 0,
        returning_customers: 0,
      })),
    );
    const weeks = await get(store, { from: '2026-02-27', to: '2026-03-02', interval: 'week' });
    expect(weeks.series.map(({ start }) => start)).toEqual(['2026-02-23', '2026-03-02']);
    expect([weeks.from, weeks.to, weeks.interval]).toEqual(['2026-02-23', '2026-03-08', 'week']);
    const months = await get(store, { from: '2026-02-27', to: '2026-03-02', interval: 'month' });
    expect([months.from, months.to, months.series.length]).toEqual(['2026-02-01', '2026-03-31', 2]);
    expect((await get(store)).series).toHaveLength(31);
  });

  it('STAT-02 `stamps` are those of stampings: welcome stamps, adjustments and what a merge moves are not counted', async () => {
    const own = await service.newStore();
    const holder = await enrol(own, { card: { initial_stamps: 2 }, rewards: [3] });
    const { customer: otherCustomer, path: otherPath } = await enrol(own, { on: holder.card });
    await stamp(own, holder.path, { stamps: 4 });
    await stamp(own, otherPath, { stamps: 1, source: 'pos' });
    await own.post(`${holder.path}/adjust`, { stamps: 5, reason: 'carried over' });
    await own.post(`${holder.path}/redeem`, { reward_id: holder.rewards[0]?.id });
    const merge = { from_customer_id: otherCustomer.id };
    expect(
      (await own.post(`${own.store}/customers/${holder.customer.id}/merge`, merge)).status,
    ).toBe(200);
    await expectSums(own, { stamps: 5, redemptions: 1, new: 2, active: 2 });
  });

  it('STAT-03 What was undone is not counted: it is taken off the day on which it happened', async () => {
    const own = await service.newStore();
    const { path, rewards } = await enrol(own, { rewards: [1] });
    const undone = await stamp(own, path, { stamps: 4 });
    await stamp(own, path, { stamps: 2 });
    await own.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    await expectSums(own, { stamps: 6, redemptions: 1 });
    const { body: redeemed } = await own.get<HistoryEntryJson[]>(
      `${path}/events?type=reward.redeemed`,
    );
    for (const id of [redeemed[0]?.id, undone]) {
      const reversal = await own.post(`${path}/events/${id}/reverse`, { reason: 'wrong card' });
      expect([reversal.status, reversal.text]).toEqual([200, expect.anything()]);
    }
    await expectSums(own, { stamps: 2, redemptions: 0, active: 1 });
  });

  it('STAT-04 `new_customers` joined the store; with `card_id` they got the card, and with `location_id` they were there for the first time', async () => {
    const own = await service.newStore();
    const location_id = await newLocation(own);
    const [one, two] = [await enrol(own), await enrol(own)];
    await own.post(`${own.store}/customers`, {
      customer: { first_name: 'Kim', email: 'kim@example.com' },
    });
    await stamp(own, one.path, { stamps: 1, location_id });
    await stamp(own, one.path, { stamps: 1, location_id });
    await stamp(own, two.path, { stamps: 1 });
    await expectSums(own, { new: 3, stamps: 3 });
    await expectSums(own, { new: 1 }, { card_id: one.card.id });
    await expectSums(own, { new: 1 }, { location_id });
  });

  it('STAT-05 `active_customers` were stamped or redeemed a reward in the interval, each counted once; `returning_customers` had been before it', async () => {
    const own = await service.newStore();
    const { path } = await enrol(own);
    for (let i = 0; i < 3; i++) await stamp(own, path, { stamps: 1 });
    await enrol(own);
    await expectSums(own, { stamps: 3 });
    for (const interval of ['day', 'week', 'month']) {
      await expectSums(own, { active: 1, returning: 0 }, { interval });
    }
  });

  it('STAT-06 `card_id` and `location_id` narrow `series` and `by_hour`, alone and together; `totals` go by `card_id` alone', async () => {
    const own = await service.newStore();
    const location_id = await newLocation(own);
    const [one, two] = [await enrol(own), await enrol(own)];
    await stamp(own, one.path, { stamps: 1, location_id });
    await stamp(own, one.path, { stamps: 2 });
    await stamp(own, two.path, { stamps: 4, location_id });
    await expectSums(own, { stamps: 7 });
    const card_id = one.card.id;
    await expectSums(own, { stamps: 3, active: 1 }, { card_id });
    await expectSums(own, { stamps: 5, active: 2 }, { location_id });
    await expectSums(own, { stamps: 1 }, { card_id, location_id });
    const { by_hour, totals } = await get(own, { card_id, location_id });
    expect(by_hour.flat().reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(totals.outstanding_stamps).toBe(3);
  });

  it('STAT-07 `totals` are what there is now: the stamps on all customer cards, and the rewards that are unlocked on them', async () => {
    const own = await service.newStore();
    const { path, rewards } = await enrol(own, { rewards: [2, 3, 9] });
    await stamp(own, path, { stamps: 5 });
    expect((await get(own, { from: '2020-01-01', to: '2020-01-02' })).totals).toEqual({
      outstanding_stamps: 5,
      unlocked_rewards: 2,
    });
    await own.post(`${path}/redeem`, { reward_id: rewards[1]?.id });
    expect((await get(own)).totals).toEqual({ outstanding_stamps: 2, unlocked_rewards: 1 });
    await own.post(`${path.replace(/[/]customer_cards.*/, '')}/erase`);
    expect((await get(own)).totals).toEqual({ outstanding_stamps: 2, unlocked_rewards: 1 });
  });

  it('STAT-08 `by_hour` has seven lists, Monday first, of 24 numbers: the visits in each hour', async () => {
    const own = await service.newStore({ timeZone: 'Asia/Kathmandu' });
    const { path } = await enrol(own);
    const { path: otherPath } = await enrol(own);
    const before = new Date();
    await stamp(own, path, { stamps: 3 });
    await stamp(own, otherPath, { stamps: 1 });
    const after = new Date();
    await expectSums(own, { stamps: 4 });
    const { by_hour } = await get(own);
    expect(by_hour.map((hours) => hours.length)).toEqual(Array.from({ length: 7 }, () => 24));
    const cells = [before, after].map((time) => {
      const local = new Date(time.getTime() + 345 * 60_000);
      return by_hour[(local.getUTCDay() + 6) % 7]?.[local.getUTCHours()] ?? 0;
    });
    expect([cells, by_hour.flat().reduce((sum, count) => sum + count, 0)]).toEqual([
      expect.arrayContaining([expect.any(Number)]),
      2,
    ]);
    expect(Math.max(...cells)).toBeGreaterThan(0);
  });

  it('STAT-14 A visit is a customer, a card and a day', async () => {
    // Noon, so that no day ends meanwhile.
    const hours = 12 - new Date().getUTCHours();
    const own = await service.newStore({
      timeZone: `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`,
    });
    const location_id = await newLocation(own);
    const one = await enrol(own, { rewards: [2] });
    const other = await enrol(own);
    await stamp(own, one.path, { stamps: 1, location_id });
    for (let i = 0; i < 5; i++) await stamp(own, one.path, { stamps: 1 });
    await own.post(`${one.path}/redeem`, { reward_id: one.rewards[0]?.id });
    const { body: second } = await own.post<CustomerCardJson>(
      `${own.store}/customers/${one.customer.id}/customer_cards`,
      { card_id: other.card.id },
    );
    await stamp(own, `${own.store}/customers/${one.customer.id}/customer_cards/${second.id}`, {
      stamps: 1,
    });
    await expectSums(own, { stamps: 7, redemptions: 1 });
    const visits = async (query: Query) => {
      const { breakdown, by_hour } = await get(own, { ...query, breakdown: 'card' });
      const sum = by_hour.flat().reduce((all, count) => all + count, 0);
      return [sum, breakdown?.map(({ visits: count }) => count)];
    };
    expect(await visits({})).toEqual([2, [1, 1]]);
    expect(await visits({ location_id })).toEqual([1, [1]]);
    const { breakdown } = await get(own, { breakdown: 'location' });
    expect(breakdown).toMatchObject([{ id: location_id, visits: 1, stamps: 1 }]);
  });

  it('STAT-09 Days and hours are those of the time zone that the store has now, for everything that happened before too', async () => {
    const own = await service.newStore({ timeZone: 'Pacific/Kiritimati' });
    const { path } = await enrol(own);
    await stamp(own, path, { stamps: 1 });
    await expectSums(own, { stamps: 1 });
    const dayOf = async () => {
      const { series } = await get(own);
      return series.find(({ stamps }) => stamps > 0)?.start;
    };
    const day = await dayOf();
    const account = { time_zone: 'Pacific/Pago_Pago' };
    expect((await own.patch(own.store, { account })).status).toBe(200);
    const dayBefore = new Date(Date.parse(day ?? '') - 24 * 60 * 60_000).toISOString().slice(0, 10);
    await eventually(dayOf, (start) => start === dayBefore || start === toDayBefore(dayBefore));
    expect((await get(own)).time_zone).toBe('Pacific/Pago_Pago');
  });

  it('STAT-10 More than 366 days, 262 weeks or 120 months are 422 `from`, and a `to` before `from` is 422 `to`', async () => {
    const tooLong = [
      ['day', '2025-01-01', '2026-01-02'],
      ['week', '2020-01-01', '2026-01-01'],
      ['month', '2010-01-01', '2026-01-01'],
    ] as const;
    for (const [interval, from, to] of tooLong) {
      expectRefused(await store.get(url(store, { interval, from, to })), ['from']);
    }
    expectRefused(await store.get(url(store, { from: '2026-01-02', to: '2026-01-01' })), ['to']);
    expectRefused(await store.get(url(store, { interval: 'year', card_id: 'x' })), [
      'interval',
      'card_id',
    ]);
    expect((await get(store, { from: '2025-01-01', to: '2026-01-01' })).series).toHaveLength(366);
  });

  it('STAT-11 Owners and managers may read statistics, and nothing of another store is counted', async () => {
    const [own, otherStore] = [await service.newStore(), await service.newStore()];
    const { card, path } = await enrol(own);
    await stamp(own, path, { stamps: 3 });
    await expectSums(own, { stamps: 3 });
    for (const query of [{}, { card_id: card.id }]) {
      expect(await sums(otherStore, query)).toMatchObject({ stamps: 0, new: 0 });
      expect((await get(otherStore, query)).totals.outstanding_stamps).toBe(0);
    }
    expectFailure(await otherStore.get(url(own)), 404, 'not_found');
    const email = `statistics${own.accountId}@example.com`;
    await service.running.execute(new CreateUser(cli, email, 'Kim', 'correct horse'));
    await service.running.execute(new AddMember(cli, own.accountId, email, 'staff'));
    const { token } = await service.running.execute(new CreateToken(cli, email, 'till'));
    expectFailure(await own.as(token).get(url(own)), 403, 'forbidden');
  });

  it('STAT-12 `user_id` narrows `series` and `by_hour` to what that user did when signed in, alone and together with `card_id` and `location_id`', async () => {
    const own = await service.newStore();
    const location_id = await newLocation(own);
    const [one, two] = [await enrol(own), await enrol(own)];
    const [mira, jonas] = [await newUser('mira'), await newUser('jonas')];
    await stampAs(own, mira, one, 1, location_id);
    await stampAs(own, mira, two, 2);
    await stampAs(own, jonas, one, 4);
    await stamp(own, one.path, { stamps: 8 });
    await expectSums(own, { stamps: 15 });
    await expectSums(own, { stamps: 3, active: 2, new: 2 }, { user_id: mira });
    await expectSums(own, { stamps: 2 }, { user_id: mira, card_id: two.card.id });
    await expectSums(own, { stamps: 1 }, { user_id: mira, location_id });
    await expectSums(own, { stamps: 4, active: 1 }, { user_id: jonas });
    const { by_hour } = await get(own, { user_id: mira });
    expect(by_hour.flat().reduce((sum, count) => sum + count, 0)).toBe(2);
    expectRefused(await own.get(url(own, { user_id: 'x' })), ['user_id']);
  });

  it('STAT-13 With `breakdown` (`card`, `location` or `user`) the field of that name lists what happened by card, location or user', async () => {
    const own = await service.newStore();
    const location_id = await newLocation(own);
    const [one, two] = [await enrol(own), await enrol(own, { rewards: [1] })];
    const mira = await newUser('mira');
    await stamp(own, one.path, { stamps: 1, location_id });
    await stampAs(own, mira, two, 5);
    await own.post(`${two.path}/redeem`, { reward_id: two.rewards[0]?.id });
    await expectSums(own, { stamps: 6, redemptions: 1 });
    const group = (id: number, counts: object) => ({
      id,
      visits: 1,
      stamps: 1,
      redemptions: 0,
      new_customers: 1,
      ...counts,
    });
    expect((await get(own)).breakdown).toBeNull();
    expect((await get(own, { breakdown: 'card' })).breakdown).toEqual([
      group(two.card.id, { stamps: 5, redemptions: 1 }),
      group(one.card.id, {}),
    ]);
    const byLocation = await get(own, { breakdown: 'location' });
    expect(byLocation.breakdown).toEqual([group(location_id, {})]);
    const byUser = await get(own, { breakdown: 'user' });
    expect(byUser.breakdown).toEqual([group(mira, { stamps: 5 })]);
    const ofCard = await get(own, { breakdown: 'card', card_id: one.card.id });
    expect(ofCard.breakdown).toEqual([group(one.card.id, {})]);
    expectRefused(await own.get(url(own, { breakdown: 'day' })), ['breakdown']);
  });
});

function toDayBefore(day: string): string {
  return new Date(Date.parse(day) - 24 * 60 * 60_000).toISOString().slice(0, 10);
}
