import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import type { QuotaChanges } from '#configuration/store-quotas.js';
import { Quotas } from '#loyalty/accounts/quotas.service.js';
import { SignupHolds } from '#web/signup/signup-holds.service.js';
import { Browser } from '../support/browser/browser.js';
import { expectRefused, useService, type ContractClient } from '../support/http/contract.js';
import { changeQuotas, createGuest, NEW_STORE, uploadGuests } from '../support/fixtures/quotas.js';
import { eventually } from '../support/jest/eventually.js';
import { cli } from '../support/services/service.js';

const PASSWORD = 'correct horse';

const service = useService({
  PUBLIC_URL: 'https://cards.example',
  STORE_QUOTAS: 'import_rows_per_day=400',
});

const setQuotas = (store: ContractClient, changes: QuotaChanges) =>
  changeQuotas(service.running, store, changes);

/** Creates another store of an owner in the console. */
async function createInConsole(
  store: ContractClient,
  { email, token }: Owner = store,
): Promise<ContractClient> {
  const owner = await Browser.signedIn(service.running, email);
  const created = await owner.submit('/app/new-store', '/app/new-store', NEW_STORE);
  expect(created.status).toBe(303);
  const accountId = Number(created.location?.split('/').at(-1));
  return Object.assign(store.as(token), { accountId });
}

/** Gives a store another owner, who has no store yet. */
async function addOwner({ accountId }: ContractClient): Promise<Owner> {
  const email = `owner-${accountId}@shop.example`;
  await service.running.execute(new CreateUser(cli, email, 'Owner', PASSWORD));
  await service.running.execute(new AddMember(cli, accountId, email, 'owner'));
  const { token } = await service.running.execute(new CreateToken(cli, email, 'till'));
  return { email, token };
}

type Owner = { email: string; token: string | null };

const listQuotas = ({ accountId }: ContractClient) =>
  service.running.app.get(Quotas, { strict: false }).list(accountId);

describe('quotas of stores from the console', () => {
  it("QUOTA-11 A store that its owner creates in the console begins with the smallest own quota of cards, locations, posters, pictures and webhooks that the owner's stores have", async () => {
    const store = await service.newStore();
    await setQuotas(store, { customers: 1, cards: 5, webhook_subscriptions: 3 });
    const second = await createInConsole(store);
    const own = (await listQuotas(second)).filter(({ isOwn }) => isOwn);
    expect(own.map(({ name, max }) => [name, max])).toEqual([
      ['cards', 5],
      ['webhook_subscriptions', 3],
    ]);
  });

  it("QUOTA-13 A store that its owner creates in the console shares the quotas of customers, imported rows, SMS and e-mails with the owner's first store", async () => {
    const store = await service.newStore();
    const second = await createInConsole(store);
    const third = await createInConsole(second, await addOwner(second));
    const stores = [store, second, third];
    await setQuotas(store, { customers: 12, sms_per_day: 7 });
    expect((await createGuest(store)).status).toBe(201);
    const created = await Promise.all(
      Array.from({ length: 24 }, (_, i) => createGuest(stores[i % 3] ?? store)),
    );
    expect(created.filter(({ status }) => status === 201)).toHaveLength(11);
    for (const client of stores) expectRefused(await createGuest(client), 'base', 'quota_exceeded');

    const uploads = await Promise.all(stores.map((client) => uploadGuests(client, 200)));
    expect(uploads.map(({ status }) => status).sort()).toEqual([202, 202, 422]);
    for (const client of stores) {
      expectRefused(await uploadGuests(client, 1), 'base', 'quota_exceeded');
      const quotas = new Map((await listQuotas(client)).map((quota) => [quota.name, quota]));
      expect(quotas.get('customers')).toMatchObject({ used: 12, max: 12, isShared: true });
      expect(quotas.get('import_rows_per_day')).toMatchObject({ used: 400, max: 400 });
      expect(quotas.get('sms_per_day')).toMatchObject({ used: 0, max: 7, isShared: true });
      expect(quotas.get('cards')).toMatchObject({ isShared: false });
    }
    await setQuotas(store, { signup_mails_per_day: 2 });
    const holds = service.running.app.get(SignupHolds, { strict: false });
    const heldChannels: string[][] = [];
    for (const [i, { accountId }] of stores.entries()) {
      const visit = { accountId, causationId: randomUUID(), ip: `192.0.${i}.1` };
      heldChannels.push(await holds.hold(visit, { email: 'ada@guest.example', phone: null }));
    }
    expect(heldChannels).toEqual([[], [], ['email', 'sms']]);
    const owner = await Browser.signedIn(service.running, store.email);
    const page = await owner.get(`/app/stores/${second.accountId}/settings`);
    expect(page.text).toContain('count together with your other stores');
  });

  it('QUOTA-14 A quota that the operator sets for a store with shared quotas is its own', async () => {
    const store = await service.newStore();
    const second = await createInConsole(store);
    await setQuotas(store, { customers: 2 });
    for (const client of [store, second]) expect((await createGuest(client)).status).toBe(201);
    expectRefused(await createGuest(second), 'base', 'quota_exceeded');
    await setQuotas(second, { customers: 3 });
    for (let i = 0; i < 2; i++) expect((await createGuest(second)).status).toBe(201);
    expectRefused(await createGuest(second), 'base', 'quota_exceeded');
    await eventually(
      () => createGuest(store),
      ({ status }) => status === 201,
    );
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
    const used = async (client: ContractClient) =>
      (await listQuotas(client)).find(({ name }) => name === 'customers');
    expect(await used(second)).toMatchObject({ used: 3, max: 3, isOwn: true, isShared: false });
    expect(await used(store)).toMatchObject({ used: 2, max: 2, isShared: false });
    await setQuotas(second, { customers: null });
    expect(await used(second)).toMatchObject({ used: 5, max: 2, isOwn: false, isShared: true });
    await setQuotas(store, { customers: 6 });
    expect((await createGuest(second)).status).toBe(201);
    for (const client of [store, second]) {
      expectRefused(await createGuest(client), 'base', 'quota_exceeded');
    }
  });

  it('QUOTA-15 Stores that the operator creates share no quota', async () => {
    const store = await service.newStore();
    const otherStore = await service.newStore();
    await service.running.execute(new AddMember(cli, otherStore.accountId, store.email, 'owner'));
    await setQuotas(store, { customers: 1 });
    expect((await createGuest(store)).status).toBe(201);
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
    for (let i = 0; i < 2; i++) expect((await createGuest(otherStore)).status).toBe(201);
    expect((await listQuotas(otherStore)).filter(({ isShared }) => isShared)).toEqual([]);
  });
});
