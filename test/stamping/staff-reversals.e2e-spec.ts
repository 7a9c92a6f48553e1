import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import type { Role } from '#identity/roles.js';
import { CreateToken } from '#identity/token.commands.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ReversedReceiptJson } from '#loyalty/stamping/receipt-reversal.dto.js';
import { StampCustomerCard } from '#loyalty/stamping/customer-card.commands.js';
import { NO_DETAILS } from '#loyalty/stamping/customer-card.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { runAtTime } from '../support/services/clock.js';
import { cli, type ApiResponse } from '../support/services/service.js';

const TEN_MINUTES = 10 * 60_000;

const service = useService();
const store = service.useStore();
let staff: Member;
let colleague: Member;
let manager: Member;

type Member = { userId: number; email: string; client: ContractClient };
type Enrolled = Awaited<ReturnType<typeof enrol>>;

beforeAll(async () => {
  [staff, colleague, manager] = [
    await memberWith('staff'),
    await memberWith('staff'),
    await memberWith('manager'),
  ];
});

async function memberWith(role: Role): Promise<Member> {
  const email = `${randomUUID()}@member.example`;
  const { execute } = service.running;
  const { userId } = await execute(new CreateUser(cli, email, role, 'correct horse'));
  await execute(new AddMember(cli, store.accountId, email, role));
  return { userId, email, client: await clientOf(email) };
}

async function clientOf(email: string): Promise<ContractClient> {
  const { token } = await service.running.execute(new CreateToken(cli, email, 'till'));
  return store.as(token);
}

const reverse = (
  { path }: Enrolled,
  id: string | undefined,
  { client }: { client: ContractClient },
) => client.post<Failure>(`${path}/events/${id}/reverse`, { reason: 'Slipped' });

/** Finds the newest event that can be reversed, which may have unlocked a reward. */
async function findNewest({ path }: Enrolled): Promise<HistoryEntryJson> {
  const { body } = await store.get<HistoryEntryJson[]>(`${path}/events?limit=2`);
  const newest = body.find(({ type }) => type !== 'reward.unlocked');
  if (!newest) throw new Error('the card has no event');
  return newest;
}

/** @returns the event */
async function stamp(
  card: Enrolled,
  { client }: { client: ContractClient },
  more: object = {},
): Promise<HistoryEntryJson> {
  const { status, text } = await client.stamp(card.path, { ...more });
  if (status !== 200) throw new Error(text);
  return findNewest(card);
}

/** Stamps one card and redeems from another with one receipt. */
async function use(stamper: { client: ContractClient }, redeemer: { client: ContractClient }) {
  const cards = [
    await enrol(store),
    await enrol(store, { rewards: [3], card: { initial_stamps: 3 } }),
  ] as const;
  const [stamped, redeemed] = cards;
  const external_ref = randomUUID();
  const { id } = await stamp(stamped, stamper, { external_ref });
  const reward_id = redeemed.rewards[0]?.id;
  await redeemer.client.post(`${redeemed.path}/redeem`, { reward_id, external_ref });
  return { cards, external_ref, ids: [id, (await findNewest(redeemed)).id] };
}

const reverseReceipt = (
  { external_ref }: { external_ref: string },
  { client }: { client: ContractClient },
  key?: string,
) =>
  client.send<ReversedReceiptJson & Failure>(
    'POST',
    `${client.store}/receipts/reverse`,
    { external_ref, reason: 'Slipped' },
    key === undefined ? {} : { 'idempotency-key': `${key}-${external_ref}` },
  );

const balances = ({ cards }: { cards: readonly Enrolled[] }) =>
  Promise.all(
    cards.map(async ({ path }) => {
      const { body } = await store.get<{ stamps_count: number }>(path);
      return body.stamps_count;
    }),
  );

const after = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString();

function expectNotTheirs(response: ApiResponse<Failure>): void {
  expectFailure(response, 403, 'forbidden');
  const { error, resolution } = response.body;
  expect([error, resolution]).toEqual([
    'Staff may only reverse what they did themselves, within 10 minutes',
    'Have a manager or an owner of the account reverse it.',
  ]);
}

describe('reversals by staff', () => {
  it('ROLE-15 Staff may reverse what they did themselves, with any of their tokens, within ten minutes', async () => {
    const card = await enrol(store, { rewards: [1] });
    const secondTill = { client: await clientOf(staff.email) };
    for (const reverser of [staff, secondTill]) {
      const { id } = await stamp(card, staff);
      expect((await reverse(card, id, reverser)).status).toBe(200);
    }
    await stamp(card, staff);
    await staff.client.post(`${card.path}/redeem`, { reward_id: card.rewards[0]?.id });
    expect((await reverse(card, (await findNewest(card)).id, secondTill)).status).toBe(200);

    const { customer, customerCard } = card;
    await service.running.execute(
      new StampCustomerCard(
        {
          accountId: store.accountId,
          actor: { type: 'user', id: staff.userId },
          channel: 'staff',
          requestId: 'page',
        },
        { customerId: customer.id, id: customerCard.id },
        {
          ...NO_DETAILS,
          personal: null,
          silent: false,
          source: 'api',
          occurredAt: undefined,
          stamps: 1,
        },
      ),
    );
    const onPage = await findNewest(card);
    expectNotTheirs(await reverse(card, onPage.id, colleague));
    expect((await reverse(card, onPage.id, staff)).status).toBe(200);

    const last = await stamp(card, staff);
    const first = await stamp(card, staff);
    const later = (ms: number, event: HistoryEntryJson) =>
      runAtTime(after(event.recorded_at, ms), () => reverse(card, event.id, staff));
    expectNotTheirs(await later(TEN_MINUTES + 1, last));
    expect((await later(TEN_MINUTES - 60_000, first)).status).toBe(200);
    expectNotTheirs(await later(TEN_MINUTES * 100, last));
  });

  it('ROLE-16 The ten minutes for a reversal by staff begin when the event was recorded, whatever its `occurred_at` is', async () => {
    const card = await enrol(store);
    const { issued_at: issuedAt } = card.customerCard;
    const late = after(issuedAt, 3 * 3_600_000);
    const { event, early } = await runAtTime(late, async () => ({
      early: await stamp(card, staff, { occurred_at: after(issuedAt, 1_000) }),
      event: await stamp(card, staff, { occurred_at: after(late, 4 * 60_000) }),
    }));
    expect(Date.parse(early.occurred_at)).toBeLessThan(Date.parse(early.recorded_at) - TEN_MINUTES);
    const reverseAt = (ms: number, { id, recorded_at }: HistoryEntryJson) =>
      runAtTime(after(recorded_at, ms), () => reverse(card, id, staff));
    expectNotTheirs(await reverseAt(TEN_MINUTES + 1, event));
    expect((await reverseAt(TEN_MINUTES - 60_000, early)).status).toBe(200);
  });

  it('ROLE-17 Reversing what somebody else did is 403 to staff at once, also when a manager or another member of staff did it', async () => {
    const card = await enrol(store);
    for (const otherMember of [colleague, manager, { client: store }]) {
      const { id } = await stamp(card, otherMember);
      expectNotTheirs(await reverse(card, id, staff));
    }
    await manager.client.post(`${card.path}/adjust`, { stamps: 2, reason: 'Forgotten' });
    expectNotTheirs(await reverse(card, (await findNewest(card)).id, staff));
    expect(await store.readBalance(card.path)).toBe(5);
  });

  it('ROLE-18 Owners and managers may reverse everything, whoever did it and whenever', async () => {
    const card = await enrol(store);
    for (const reverser of [manager, { client: store }]) {
      const { id, recorded_at } = await stamp(card, staff);
      const response = await runAtTime(after(recorded_at, TEN_MINUTES * 100), () =>
        reverse(card, id, reverser),
      );
      expect(response.status).toBe(200);
    }
  });

  it('ROLE-19 Staff cannot reverse a reversal, like everybody else: 422 `base`, or 403 if it is not theirs', async () => {
    const card = await enrol(store);
    const own = await stamp(card, staff);
    expect((await reverse(card, own.id, staff)).status).toBe(200);
    const reversal = await findNewest(card);
    expectRefused(await reverse(card, reversal.id, staff), 'base');
    expectRefused(await reverse(card, own.id, staff), 'base');
    expectNotTheirs(await reverse(card, reversal.id, colleague));
    expectNotTheirs(await reverse(card, own.id, colleague));
    expectRefused(await reverse(card, reversal.id, manager), 'base');
  });

  it('ROLE-20 When staff reverse an event, a missing one is 404 and an invalid `reason` is 422, before their right is checked', async () => {
    const card = await enrol(store);
    const { id } = await stamp(card, manager);
    const otherHolder = await enrol(store);
    expectFailure(await reverse(otherHolder, id, staff), 404, 'not_found');
    const noReason = await staff.client.post(`${card.path}/events/${id}/reverse`, {});
    expectRefused(noReason, 'reason');
    expectNotTheirs(await reverse(card, id, staff));
  });

  it('RECEIPT-29 Staff may reverse a receipt if they did all of it that is still to be reversed, within the last ten minutes (ROLE-15)', async () => {
    const secondTill = { client: await clientOf(staff.email) };
    const own = await use(staff, staff);
    expectNotTheirs(await reverseReceipt(own, colleague));
    const { status, body } = await reverseReceipt(own, secondTill);
    expect([status, body.reversed]).toEqual([200, own.ids]);
    expect(await balances(own)).toEqual([0, 3]);

    for (const makers of [[colleague, staff] as const, [staff, manager] as const]) {
      const mixed = await use(...makers);
      expectNotTheirs(await reverseReceipt(mixed, staff));
      expectNotTheirs(await reverseReceipt(mixed, staff, 'idempotency-key'));
      expect(await balances(mixed)).toEqual([1, 0]);
      // What somebody with the right has reversed already is not in the way.
      const others = makers.findIndex((maker) => maker !== staff);
      const card = mixed.cards[others];
      if (!card) throw new Error('there is no such card');
      expect((await reverse(card, mixed.ids[others], manager)).status).toBe(200);
      expect((await reverseReceipt(mixed, staff)).status).toBe(200);
      expect(await balances(mixed)).toEqual([0, 3]);
    }

    const old = await use(staff, staff);
    const { recorded_at: recordedAt } = await findNewest(old.cards[0]);
    const later = (ms: number) =>
      runAtTime(after(recordedAt, ms), () => reverseReceipt(old, staff));
    expectNotTheirs(await later(TEN_MINUTES * 100));
    expect(await balances(old)).toEqual([1, 0]);
    expect((await later(TEN_MINUTES - 60_000)).status).toBe(200);
    const managed = await use(staff, colleague);
    expect((await reverseReceipt(managed, manager)).status).toBe(200);
  });

  it('RECEIPT-30 Repeating the reversal of a receipt reverses nothing, so all staff get the first response, whoever reversed it and whenever', async () => {
    const receipt = await use(staff, staff);
    const first = await reverseReceipt(receipt, staff);
    for (const reverser of [staff, colleague]) {
      const again = await runAtTime(after(new Date().toISOString(), TEN_MINUTES * 100), () =>
        reverseReceipt(receipt, reverser),
      );
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await balances(receipt)).toEqual([0, 3]);
  });
});
