import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { WalletJson } from '#outbound/passes/wallet-state.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectFailure, useService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { PassFollower } from '../support/services/pass-dispatcher.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

let store: ContractClient;
let follower: PassFollower;
// Stopped before the service, whose connections it uses.
afterAll(() => follower.stop());
const service = useService();

beforeAll(async () => {
  store = await service.newStore();
  follower = new PassFollower(service.running);
});

const wallet = async (path: string) => (await store.get<WalletJson>(`${path}/wallet`)).body;
const NOWHERE = {
  state: 'not_installed',
  installed_at: null,
  removed_at: null,
  last_synced_at: null,
  last_error: null,
};

/** A customer who has put the card on a phone with Apple Wallet. */
async function installed() {
  const enrolled = await enrol(store);
  const { uuid, id } = enrolled.customerCard;
  await follower.waitUntilCaughtUp();
  await follower.open(uuid);
  await follower.passes.markInstalled(id, store.accountId, 'apple');
  await follower.passes.markSynced(id, store.accountId, 'apple');
  return { ...enrolled, id };
}

describe('the wallet of a customer card', () => {
  it('WALLET-01 A card that nobody has installed is `not_installed` everywhere, with all times null', async () => {
    const { path, customerCard } = await enrol(store);
    expect(await wallet(path)).toEqual({
      customer_card_id: customerCard.id,
      apple: NOWHERE,
      google: NOWHERE,
      web: NOWHERE,
    });
  });

  it('WALLET-02 An installed card is shown as installed, with the time, and its customer card has `pass_installed` true in every response', async () => {
    const { path, id, customer } = await installed();
    const readPass = async () => {
      const [detail, list, stamped] = await Promise.all([
        store.get<CustomerCardDetailJson>(path),
        store.get<CustomerJson>(`${store.store}/customers/${customer.id}`),
        store.stamp(path, { skip_notifications: true }),
      ]);
      return [
        detail.body.pass_installed,
        list.body.customer_cards[0]?.pass_installed,
        stamped.body.pass_installed,
      ];
    };
    expect((await wallet(path)).apple.installed_at).toEqual(expect.any(String));
    expect((await wallet(path)).google).toEqual(NOWHERE);
    expect(await readPass()).toEqual([true, true, true]);
    await follower.passes.markInstalled(id, store.accountId, 'google');
    await follower.passes.markRemoved(id, 'apple');
    expect((await wallet(path)).apple).toMatchObject({
      state: 'removed',
      removed_at: expect.any(String),
    });
    expect(await readPass()).toEqual([true, true, true]);
    await follower.passes.markRemoved(id, 'google');
    expect(await readPass()).toEqual([false, false, false]);
    await follower.passes.markInstalled(id, store.accountId, 'apple');
    expect(await readPass()).toEqual([true, true, true]);
    expect((await wallet(path)).apple.removed_at).toBeNull();
  });

  it('WALLET-03 A change of what the pass shows makes the card `updating` until the device has got it; other changes do not', async () => {
    const { path, id, card } = await installed();
    const state = async () => (await wallet(path)).apple.state;
    expect(await state()).toBe('installed');
    const cardPath = `${store.store}/cards/${card.id}`;
    await store.patch(cardPath, { card: { max_stamps_per_day: 50 } });
    await store.stamp(path);
    await eventually(state, (now) => now === 'updating');
    await follower.waitUntilCaughtUp();
    await follower.passes.markSynced(id, store.accountId, 'apple');
    await store.patch(cardPath, { card: { max_stamps_per_day: 60 } });
    await follower.waitUntilCaughtUp();
    expect(await state()).toBe('installed');
    await store.patch(cardPath, { card: { name: 'Tea' } });
    await eventually(state, (now) => now === 'updating');
  });

  it('WALLET-04 An update that does not arrive makes the card `failing`, with the reason', async () => {
    const { path, id } = await installed();
    await follower.passes.markSynced(id, store.accountId, 'apple', 'no response within 10 s');
    expect((await wallet(path)).apple).toMatchObject({
      state: 'failing',
      last_error: 'no response within 10 s',
      last_synced_at: expect.any(String),
    });
    await follower.passes.markSynced(id, store.accountId, 'apple');
    expect((await wallet(path)).apple).toMatchObject({ state: 'installed', last_error: null });
  });

  it('WALLET-05 An unknown customer card, or one of another store, is 404', async () => {
    const { path, customer } = await installed();
    const otherStore = await service.newStore();
    const theirs = path.replace(store.store, otherStore.store);
    expectFailure(await otherStore.get(`${theirs}/wallet`), 404, 'not_found');
    const unknown = `${store.store}/customers/${customer.id}/customer_cards/999999999/wallet`;
    expectFailure(await store.get(unknown), 404, 'not_found');
  });

  it('WALLET-06 Of a card that was merged into another one, the state of the one that goes on is shown', async () => {
    const installedPass = await installed();
    const gone = await enrol(store);
    const { body } = await store.post<CustomerCardDetailJson>(
      `${store.store}/customers/${gone.customer.id}/customer_cards`,
      { card_id: installedPass.card.id },
    );
    const merged = await store.post(`${store.store}/customers/${installedPass.customer.id}/merge`, {
      from_customer_id: gone.customer.id,
    });
    expect(merged.status).toBe(200);
    const path = `${store.store}/customers/${gone.customer.id}/customer_cards/${body.id}`;
    expect(await wallet(path)).toMatchObject({
      customer_card_id: installedPass.id,
      apple: { installed_at: expect.any(String) },
    });
  });
});
