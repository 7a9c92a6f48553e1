import { describe, expect, it } from '@jest/globals';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { BatchResultsJson } from '#loyalty/stamping/batch.dto.js';
import type {
  CustomerCardDetailJson,
  RedemptionJson,
} from '#loyalty/stamping/customer-card.dto.js';
import { expectFailure, expectRefused, useSharedService } from '../support/http/contract.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const at = (code: string, of = store) => `${of.store}/customer_cards/by_code/${code}`;
const read = (path: string) => store.get<CustomerCardDetailJson>(path);
const redeem = (path: string, body: object, headers = {}) =>
  store.send<RedemptionJson>('POST', `${path}/redeem`, body, headers);

async function card(options: Parameters<typeof enrol>[1] = {}) {
  const enrolled = await enrol(store, options);
  return { ...enrolled, byCode: at(enrolled.customerCard.code) };
}

let people = 0;

/** Signs a customer up at a poster, and then somebody else with the same address, who gets a second card. */
async function signUpTwice() {
  const poster = await newPoster(store, {}, { initial_stamps: 3 });
  await store.post(`${store.store}/rewards`, {
    reward: { card_id: poster.card_id, name: 'Coffee', stamps_required: 2 },
  });
  const email = `second-card-${++people}@mail.example`;
  const signUp = async (first_name: string) => {
    const { baseUrl } = service.running;
    const form = await SignupForm.open(baseUrl, 'https://cards.example', poster);
    const address = `2001:db8:c0de:${people.toString(16)}::1`;
    const { location } = await form.send({ first_name, email }, { 'x-forwarded-for': address });
    const uuid = /[/]passes[/]([0-9a-f-]{36})/.exec(location)?.[1] ?? '';
    return { uuid, page: await openPage(uuid) };
  };
  const [own, second] = [await signUp('Anna'), await signUp('Mallory')];
  const { body } = await store.get<CustomerListJson>(
    `${store.store}/customers?email=${encodeURIComponent(email)}`,
  );
  const [customer] = body.customers;
  const [customerCard] = customer?.customer_cards ?? [];
  expect(customerCard?.uuid).toBe(own.uuid);
  return {
    path: `${store.store}/customers/${customer?.id}/customer_cards/${customerCard?.id}`,
    own,
    uuid: second.uuid,
    page: second.page,
    code: /<span class="code">(\w{8})</.exec(second.page.text)?.[1] ?? '',
  };
}

async function openPage(uuid: string) {
  const response = await fetch(`${service.running.baseUrl}/passes/${uuid}`, { redirect: 'manual' });
  return { location: response.headers.get('location'), text: await response.text() };
}

const confirm = (path: string, headers = {}) =>
  store.send<CustomerCardDetailJson>('POST', `${path}/confirm`, undefined, headers);

describe('a customer card by its code', () => {
  it('CODE-01 By its code a card is shown in the detail shape, as by its id', async () => {
    const { path, byCode } = await card({ rewards: [2], card: { initial_stamps: 3 } });
    const { status, body } = await read(byCode);
    expect([status, body]).toEqual([200, (await read(path)).body]);
  });

  it('CODE-02 The case of a code does not matter, nor spaces and dashes in it, nor the line end of a scanner', async () => {
    const { customerCard } = await card();
    const lower = at(customerCard.code.toLowerCase());
    expect((await read(lower)).body.id).toBe(customerCard.id);
    expect((await store.stamp(lower, { stamps: 1 })).body.stamps_count).toBe(1);
    const { code } = customerCard;
    for (const end of ['\r', '\n', '\r\n', '\t', ' ', '\u00a0']) {
      for (const spelt of [code + end, code.toLowerCase() + end, end + code]) {
        expect((await read(at(encodeURIComponent(spelt)))).body.id).toBe(customerCard.id);
      }
    }
    for (const gap of [' ', '-', '\u2013']) {
      const spelt = code.replace(/(.{4})/, `$1${gap}`);
      expect((await read(at(encodeURIComponent(spelt)))).body.id).toBe(customerCard.id);
    }
    const scanned = at(`${code.toLowerCase()}%0D`);
    expect((await store.stamp(scanned, { stamps: 1 })).body.stamps_count).toBe(2);
    expectRefused(await redeem(scanned, {}), 'reward_id');
  });

  it('CODE-03 A code that nobody has, or a card of another store, and anything that is no code are 404, whatever the body', async () => {
    const stranger = await enrol(await service.newStore());
    const { customerCard } = await card();
    const codes = ['22222222', stranger.customerCard.code, customerCard.uuid, '1', '%00', "'"];
    for (const code of codes) {
      expectFailure(await read(at(code)), 404, 'not_found');
      expectFailure(await store.stamp(at(code), { stamps: 'x' }), 404, 'not_found');
      expectFailure(await redeem(at(code), {}), 404, 'not_found');
    }
  });

  it('CODE-04 `stamp` by code takes the same body and returns the same response as by id', async () => {
    const { path, byCode } = await card();
    const { status, body } = await store.stamp(byCode, {
      stamps: 3,
      staff_ref: 'Ben',
      source: 'pos',
    });
    expect([status, body.stamps_count]).toEqual([200, 3]);
    expect(body).toMatchObject((await read(path)).body);
    const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events?limit=1`);
    expect(entries[0]).toMatchObject({ type: 'stamp.earned', channel: 'pos', staff_ref: 'Ben' });
    expectRefused(await store.stamp(byCode, { stamps: 101, location_id: 'x' }), [
      'stamps',
      'location_id',
    ]);
    expectRefused(await store.stamp(byCode, { stamps: 1, location_id: 999999 }), 'location_id');
    const dry = await store.stamp(`${byCode}`, { stamps: 101 });
    expectRefused(dry, 'stamps');
  });

  it('CODE-05 `redeem` by code takes the same body and returns the same response as by id', async () => {
    const { path, byCode, rewards } = await card({ rewards: [2] });
    const reward_id = rewards[0]?.id;
    expectRefused(await redeem(byCode, { reward_id }), 'base', 'insufficient_stamps');
    await store.stamp(byCode, { stamps: 3 });
    const { status, body } = await redeem(byCode, { reward_id });
    expect([status, body.success, body.redemption.stamps_remaining]).toEqual([200, true, 1]);
    expect((await read(path)).body.stamps_count).toBe(1);
    expectRefused(await redeem(byCode, {}), 'reward_id');
    expectFailure(await redeem(byCode, { reward_id: 999999 }), 404, 'not_found');
  });

  it('CODE-06 `stamp` and `redeem` by code have a dry run (`dry_run=true`)', async () => {
    const { byCode, rewards } = await card({ rewards: [1], card: { initial_stamps: 1 } });
    const stamped = await store.post<CustomerCardDetailJson>(`${byCode}/stamp?dry_run=true`, {
      stamps: 2,
    });
    const redeemed = await store.post<RedemptionJson>(`${byCode}/redeem?dry_run=1`, {
      reward_id: rewards[0]?.id,
    });
    expect([stamped, redeemed].map(({ headers }) => headers.get('x-dry-run'))).toEqual([
      'true',
      'true',
    ]);
    expect([stamped.body.stamps_count, redeemed.body.redemption.stamps_remaining]).toEqual([3, 0]);
    expect((await read(byCode)).body.stamps_count).toBe(1);
  });

  it('CODE-07 A receipt number (`external_ref`) is the same by code and by id: what was sent to the one and is sent again to the other gets its first result', async () => {
    const { path, byCode, rewards } = await card({ rewards: [1] });
    const first = await store.stamp(path, { stamps: 2, external_ref: 'code-1' });
    const again = await store.stamp(byCode, { stamps: 2, external_ref: 'code-1' });
    expect([again.status, again.body]).toEqual([200, first.body]);
    const replayed = [first, again].map(({ headers }) => headers.get('idempotent-replayed'));
    expect(replayed).toEqual([null, 'true']);
    expectRefused(
      await store.stamp(byCode, { stamps: 3, external_ref: 'code-1' }),
      'external_ref',
      'taken',
    );
    const redemption = { reward_id: rewards[0]?.id, external_ref: 'code-1' };
    const redeemed = await redeem(byCode, redemption);
    for (const at of [path, byCode]) {
      const redeemedAgain = await redeem(at, redemption);
      expect(redeemedAgain.body).toEqual(redeemed.body);
      expect(redeemedAgain.headers.get('idempotent-replayed')).toBe('true');
    }
    const otherHolder = await card();
    expectRefused(
      await store.stamp(otherHolder.byCode, { stamps: 2, external_ref: 'code-1' }),
      'external_ref',
      'taken',
    );
  });

  it('CODE-08 `stamp` and `redeem` by code accept an `Idempotency-Key`', async () => {
    const { byCode, rewards } = await card({ rewards: [1] });
    const key = { 'idempotency-key': `code-${rewards[0]?.id}` };
    const twice = [
      await store.stamp(byCode, { stamps: 2 }, key),
      await store.stamp(byCode, { stamps: 2 }, key),
    ];
    expect(twice.map(({ status }) => status)).toEqual([200, 200]);
    expect(twice[1]?.body).toEqual(twice[0]?.body);
    expect(twice[1]?.headers.get('idempotent-replayed')).toBe('true');
    const together = await Promise.all(
      Array.from({ length: 5 }, () => redeem(byCode, { reward_id: rewards[0]?.id }, key)),
    );
    expect(together.filter(({ status }) => status !== 409).map(({ status }) => status)).toContain(
      200,
    );
    expect((await read(byCode)).body.stamps_count).toBe(1);
  });

  it("CODE-09 The code of a merged customer's card leads to the card that goes on for it, receipt numbers included", async () => {
    const existing = await card({ rewards: [1] });
    const gone = await enrol(store);
    const { body: own } = await store.post<CustomerCardDetailJson>(
      `${store.store}/customers/${gone.customer.id}/customer_cards`,
      { card_id: existing.card.id },
    );
    await store.stamp(at(own.code), { stamps: 2, external_ref: 'merged-code' });
    await store.post(`${store.store}/customers/${existing.customer.id}/merge`, {
      from_customer_id: gone.customer.id,
    });
    expect((await read(at(own.code))).body).toEqual((await read(existing.path)).body);
    const stamped = await store.stamp(at(own.code), { stamps: 1 });
    expect(stamped.body).toMatchObject({ id: existing.customerCard.id, stamps_count: 3 });
    const redeemed = await redeem(at(own.code), { reward_id: existing.rewards[0]?.id });
    expect(redeemed.body.redemption.stamps_remaining).toBe(2);
    const again = await store.stamp(at(own.code), { stamps: 2, external_ref: 'merged-code' });
    expect([again.status, again.body.stamps_count]).toEqual([200, 2]);
    const moved = at(gone.customerCard.code);
    expect((await store.stamp(moved, { stamps: 1 })).body).toMatchObject({
      id: gone.customerCard.id,
      customer_id: existing.customer.id,
    });
  });

  it('CODE-10 The card of an erased customer is still shown, and stamp and redeem are 422 `base`, code `customer_erased`, as by id', async () => {
    const { byCode, path, customer } = await card();
    const key = { 'idempotency-key': `erased-${customer.id}` };
    const body = { stamps: 2, external_ref: `erased-${customer.id}`, note: 'oat milk' };
    const first = await store.stamp(byCode, body);
    expect((await store.stamp(byCode, body, key)).status).toBe(200);
    expect((await store.post(`${store.store}/customers/${customer.id}/erase`)).status).toBe(204);
    expect((await read(byCode)).body).toEqual((await read(path)).body);
    expectRefused(await store.stamp(byCode, { stamps: 1 }), 'base', 'customer_erased');
    expectRefused(await redeem(byCode, { reward_id: 1 }), 'base', 'customer_erased');
    expectRefused(await store.stamp(byCode, body, key), 'base', 'customer_erased');
    expect((await store.stamp(byCode, body)).body).toEqual(first.body);
  });

  it('CODE-11 The code of a second card shows the card of the customer, whose `code` differs, and stamps it', async () => {
    const { path, code } = await signUpTwice();
    const byCode = await read(at(code));
    expect([byCode.status, byCode.body]).toEqual([200, (await read(path)).body]);
    expect(byCode.body.code).not.toBe(code);
    const stamped = await store.stamp(at(code.toLowerCase()), {
      stamps: 2,
      external_ref: `second-${code}`,
    });
    expect([stamped.status, stamped.body.stamps_count]).toEqual([200, 5]);
    const { body } = await store.post<BatchResultsJson>(`${store.store}/batch`, {
      operations: [{ operation: 'stamp', code, stamps: 1, external_ref: `batch-${code}` }],
    });
    expect(body.results[0]).toMatchObject({ status: 200, body: { stamps_count: 6 } });
    expect((await read(path)).body.stamps_count).toBe(6);
    const stranger = await service.newStore();
    expectFailure(await stranger.get(at(code, stranger)), 404, 'not_found');
  });

  it('CODE-12 Redeeming by a second card is 422 `base`, code `card_unconfirmed`, until staff have confirmed it; in a batch too', async () => {
    const { path, code } = await signUpTwice();
    const [reward] = (await read(path)).body.available_rewards;
    const body = { reward_id: reward?.id };
    expectRefused(await redeem(at(code), body), 'base', 'card_unconfirmed');
    const batch = await store.post<BatchResultsJson>(`${store.store}/batch`, {
      operations: [{ operation: 'redeem', code, ...body, external_ref: `redeem-${code}` }],
    });
    expect(batch.body.results[0]).toMatchObject({
      status: 422,
      body: { code: 'card_unconfirmed' },
    });
    expect((await confirm(at(code))).status).toBe(200);
    const redeemed = await redeem(at(code), body);
    expect([redeemed.status, redeemed.body.redemption.stamps_remaining]).toEqual([200, 1]);
  });

  it('CODE-13 `confirm` returns the detail shape, and may be repeated', async () => {
    const { path, code } = await signUpTwice();
    const own = (await read(path)).body;
    const key = { 'idempotency-key': `confirm-${code}` };
    const responses = [
      await confirm(at(code), key),
      await confirm(at(code), key),
      await confirm(at(code)),
      await confirm(at(own.code)),
    ];
    for (const { status, body } of responses) expect([status, body]).toEqual([200, own]);
    expectFailure(await confirm(at('22222222')), 404, 'not_found');
    const { body: audit } = await store.get<AuditEntryJson[]>(`${store.store}/audit`);
    expect(audit.filter(({ type }) => type === 'decoy_card.confirmed')[0]?.subject).toEqual({
      customer_id: own.customer_id,
      customer_card_id: own.id,
    });
  });

  it('CODE-15 A second card that would be one more than the 1,000 cards of a person (MERGE-41) cannot be confirmed: 422 `base`, code `limit_reached`', async () => {
    const { path, code } = await signUpTwice();
    const { customer_id: customerId } = (await read(path)).body;
    const query = (text: string) => service.running.database.query(text, [code]);
    const insertCopies = (count: number, confirmedAt: string) =>
      query(
        `insert into decoy_cards (id, account_id, card_id, customer_id, uuid, sealed, state, confirmed_at)
         select nextval('decoy_cards_id'), account_id, card_id, customer_id, gen_random_uuid(), sealed,
           state || jsonb_build_object('code', 'ZZZZZZ' || (n % 10) || code), ${confirmedAt}
         from decoy_cards, generate_series(1, ${count}) n where code = $1`,
      );
    await insertCopies(999, 'now()');
    expectRefused(await confirm(at(code)), 'base', 'limit_reached');
    expect((await store.stamp(at(code), { stamps: 1 })).status).toBe(200);
    expectRefused(await redeem(at(code), { reward_id: 1 }), 'base', 'card_unconfirmed');
    await service.running.database.query(
      `delete from decoy_cards where id in (
         select id from decoy_cards where customer_id = $1 and confirmed_at is not null order by id limit 1)`,
      [customerId],
    );
    const { rows } = await service.running.database.query<{ code: string }>(
      `update decoy_cards set confirmed_at = null, state = state || '{"code": "ZZZZZZZZ"}'
       where id = (select max(id) from decoy_cards where customer_id = $1) returning code`,
      [customerId],
    );
    const another = rows[0]?.code ?? '';
    await insertCopies(1, 'now()');
    const both = await Promise.all([confirm(at(code)), confirm(at(another))]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
    for (const response of both)
      if (response.status === 422) expectRefused(response, 'base', 'limit_reached');
  });

  it('CODE-14 Once confirmed, the page and the links of a second card lead to the card of the customer', async () => {
    const { own, uuid, page, code } = await signUpTwice();
    expect([page.text.includes('Mallory'), page.text.includes(own.uuid)]).toEqual([true, false]);
    await confirm(at(code));
    expect((await openPage(uuid)).location).toBe(`https://cards.example/passes/${own.uuid}`);
    const manifest = await fetch(`${service.running.baseUrl}/passes/${uuid}/manifest.webmanifest`);
    expect(await manifest.text()).toContain(own.uuid);
  });
});
