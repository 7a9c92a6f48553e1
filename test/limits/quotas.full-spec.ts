import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import type { QuotaChanges } from '#configuration/store-quotas.js';
import type { ImportJson, ImportRowJson } from '#loyalty/imports/import.dto.js';
import { Browser } from '../support/browser/browser.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { changeQuotas, createGuest, NEW_STORE, uploadGuests } from '../support/fixtures/quotas.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { cli, startService, type Service } from '../support/services/service.js';

const PUBLIC_URL = 'https://cards.example';
const PASSWORD = 'correct horse';

const service = useService({
  PUBLIC_URL,
  STORE_QUOTAS: 'import_rows_per_day=400',
  MAX_STORES_PER_OWNER: '2',
  TRUST_PROXY_HOPS: '1',
});
const stopping = new AbortController();
/** Another process of the same service. */
let otherService: Service;

beforeAll(async () => {
  const { database, environment } = service.running;
  otherService = await startService(environment, { ...database, close: async () => undefined });
  const dispatch = newImportDispatch(service.running).run(stopping.signal);
  service.running.onStop(() => {
    stopping.abort();
    return dispatch;
  });
});
afterAll(() => otherService.stop());

const setQuotas = (store: ContractClient, changes: QuotaChanges) =>
  changeQuotas(service.running, store, changes);

describe('quotas of customers', () => {
  it("QUOTA-01 One more customer than the store's quota is 422 `base` with the code `quota_exceeded`, however many are created at once", async () => {
    const store = await service.newStore();
    for (let i = 0; i < 3; i++) expect((await createGuest(store)).status).toBe(201);
    await setQuotas(store, { customers: 20 });
    const there = Object.assign(store.as(store.token), { baseUrl: otherService.baseUrl });
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, i) => createGuest(i % 2 === 0 ? store : there)),
    );
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(17);
    for (const response of responses.filter(({ status }) => status !== 201)) {
      expectRefused(response, 'base', 'quota_exceeded');
    }
  });

  it('QUOTA-02 Merged and erased customers do not count towards a quota: within ten seconds of an erasure there is room for another', async () => {
    const store = await service.newStore();
    await setQuotas(store, { customers: 2 });
    const created = [await createGuest(store), await createGuest(store)];
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
    const path = `${store.store}/customers/${created[0]?.body.id}`;
    expect((await store.post(`${path}/erase`)).status).toBeLessThan(300);
    await eventually(
      () => createGuest(store),
      ({ status }) => status === 201,
    );
    await eventually(
      () => createGuest(store),
      ({ status }) => status === 422,
    );
  });

  it('QUOTA-03 Without a quota a store may have any number of customers', async () => {
    const store = await service.newStore();
    await setQuotas(store, { customers: 1 });
    await createGuest(store);
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
    await setQuotas(store, { customers: null });
    for (let i = 0; i < 5; i++) expect((await createGuest(store)).status).toBe(201);
    // Customers created meanwhile count.
    await setQuotas(store, { customers: 7 });
    expect((await createGuest(store)).status).toBe(201);
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
  });

  it('QUOTA-04 A store that has used up its quota of customers but for a tenth takes no signups: its posters say that they are closed', async () => {
    const store = await service.newStore();
    const poster = await newPoster(store);
    const open = () => SignupForm.open(service.running.baseUrl, PUBLIC_URL, poster);
    const form = await open();
    expect(form.page.status).toBe(200);
    await setQuotas(store, { customers: 3 });
    const signUp = (i: number) =>
      form.send(
        { first_name: 'Ada', email: `ada-${i}@guest.example` },
        { 'x-forwarded-for': `192.0.${i}.1` },
      );
    const statuses = await Promise.all([1, 2, 3, 4].map(signUp)).then((all) =>
      all.map(({ status }) => status).sort(),
    );
    expect(statuses).toEqual([303, 303, 410, 410]);
    expect((await open()).page.status).toBe(410);
    expect((await createGuest(store)).status).toBe(201);
    expectFailure(await createGuest(store), 422, 'quota_exceeded');
    const full = await service.newStore();
    const otherForm = await SignupForm.open(
      service.running.baseUrl,
      PUBLIC_URL,
      await newPoster(full),
    );
    await setQuotas(full, { customers: 0 });
    expect((await otherForm.send({ first_name: 'Ada', email: 'ada@guest.example' })).status).toBe(
      410,
    );
  });

  it('QUOTA-10 From one network, an IPv4 /24 or IPv6 /48, a tenth of the quota can sign up in 24 hours: one more form is 429 with `Retry-After`', async () => {
    const store = await service.newStore();
    const poster = await newPoster(store);
    const form = await SignupForm.open(service.running.baseUrl, PUBLIC_URL, poster);
    await setQuotas(store, { customers: 20 });
    const signUp = async (address: string, email: string) => {
      const sent = await form.send({ first_name: 'Ada', email }, { 'x-forwarded-for': address });
      return [sent.status, sent.headers.has('retry-after')];
    };
    expect(await signUp('198.51.100.1', 'a@guest.example')).toEqual([303, false]);
    // A form of a customer counts as well: the count would tell that they are one.
    expect(await signUp('198.51.100.2', 'a@guest.example')).toEqual([303, false]);
    expect(await signUp('198.51.100.3', 'b@guest.example')).toEqual([429, true]);
    expect(await signUp('198.51.101.1', 'b@guest.example')).toEqual([303, false]);
    expect(await signUp('2001:db8:1:2::1', 'c@guest.example')).toEqual([303, false]);
    expect(await signUp('2001:db8:1:3::1', 'd@guest.example')).toEqual([303, false]);
    expect(await signUp('2001:db8:1:4::1', 'e@guest.example')).toEqual([429, true]);
    expect((await createGuest(store)).status).toBe(201);
  });

  it('QUOTA-12 An owner who has as many stores as `MAX_STORES_PER_OWNER` says cannot create another one: 403', async () => {
    const store = await service.newStore();
    const owner = await Browser.signedIn(service.running, store.email);
    expect((await owner.get('/app')).text).toContain('/app/new-store');
    expect((await owner.submit('/app/new-store', '/app/new-store', NEW_STORE)).status).toBe(303);
    const home = await owner.get('/app');
    expect([home.status, home.text.includes('/app/new-store')]).toEqual([200, false]);
    const page = await owner.get('/app/new-store');
    expect([page.status, page.text]).toEqual([403, expect.stringContaining('Ask whoever runs')]);
    expect((await owner.submit('/app/account', '/app/new-store', NEW_STORE)).status).toBe(403);
  });

  it('QUOTA-05 Rows of an import beyond the quota fail with the message under `base`; the others are imported', async () => {
    const store = await service.newStore();
    await setQuotas(store, { customers: 5 });
    const { body } = await uploadGuests(store, 8);
    const path = `${store.store}/imports/${body.id}`;
    const done = await eventually(
      async () => (await store.get<ImportJson>(path)).body,
      ({ state }) => state === 'done',
    );
    expect(done).toMatchObject({ created: 5, failed: 3 });
    const failed = await store.get<ImportRowJson[]>(`${path}/rows?status=failed`);
    for (const { errors } of failed.body) {
      expect(errors).toEqual({
        base: ['The number of customers of this store has reached its limit'],
      });
    }
  });
});

describe('other quotas', () => {
  it('QUOTA-06 A file with more rows than the store may still import in 24 hours is 422 `base` with the code `quota_exceeded`', async () => {
    const store = await service.newStore();
    expect((await uploadGuests(store, 250)).status).toBe(202);
    const both = await Promise.all([uploadGuests(store, 150), uploadGuests(store, 150)]);
    expect(both.map(({ status }) => status).sort()).toEqual([202, 422]);
    const refused = await uploadGuests(store, 1);
    expectRefused(refused, 'base', 'quota_exceeded');
    expect(refused.text).toContain('may import 0 more today, of 400 in 24 hours');
    await setQuotas(store, { import_rows_per_day: 401 });
    expect((await uploadGuests(store, 1)).status).toBe(202);
  });

  it("QUOTA-07 A store's own quota replaces the usual limit of cards, locations, posters and webhook subscriptions", async () => {
    const store = await service.newStore();
    const { body: card } = await store.post<{ id: number }>(`${store.store}/cards`, {
      card: { name: 'Coffee' },
    });
    await setQuotas(store, { cards: 2, locations: 1, posters: 1, webhook_subscriptions: 26 });
    const create = {
      cards: { card: { name: 'Tea' } },
      locations: { location: { name: 'Shop', address: '1 Main Street' } },
      posters: { poster: { card_id: card.id, title: 'Join' } },
    };
    for (const [list, body] of Object.entries(create)) {
      expect((await store.post(`${store.store}/${list}`, body)).status).toBe(201);
      const refused = await store.post<Failure>(`${store.store}/${list}`, body);
      expectRefused(refused, 'base', 'limit_reached');
      expect(refused.body.error_codes).toEqual({ base: [`too_many_${list}`] });
    }
    const hook = { events: ['*'], target_url: 'https://1.1.1.1/hook' };
    const path = `${store.store}/webhook_subscriptions`;
    for (let i = 0; i < 26; i++) expect((await store.post(path, hook)).status).toBe(201);
    const refused = await store.post<Failure>(path, hook);
    expectRefused(refused, 'base', 'limit_reached');
    expect(refused.body.error_codes).toEqual({ base: ['too_many_subscriptions'] });
  });

  it('QUOTA-08 A quota below what exists deletes nothing, and everything but creating more works as before', async () => {
    const store = await service.newStore();
    const { body } = await createGuest(store);
    await createGuest(store);
    await setQuotas(store, { customers: 1 });
    const path = `${store.store}/customers/${body.id}`;
    expect((await store.get(path)).status).toBe(200);
    expect((await store.patch(path, { customer: { first_name: 'B' } })).status).toBe(200);
    expectRefused(await createGuest(store), 'base', 'quota_exceeded');
    expectFailure(await store.get(`${store.store}/customers/999999999`), 404, 'not_found');
  });

  it('QUOTA-09 An owner sees quotas and usage on the settings page of the store; a manager does not', async () => {
    const store = await service.newStore();
    await createGuest(store);
    await setQuotas(store, { customers: 5_000, posters: 0 });
    const manager = `manager-${store.accountId}@shop.example`;
    await service.running.execute(new CreateUser(cli, manager, 'Manager', PASSWORD));
    await service.running.execute(new AddMember(cli, store.accountId, manager, 'manager'));
    const openAs = async (email: string) => {
      const browser = new Browser(service.running);
      await browser.signIn(email, PASSWORD);
      return (await browser.get(`/app/stores/${store.accountId}/settings`)).text;
    };
    const page = await openAs(store.email);
    expect(page).toMatch(/<td>Customers<\/td><td[^>]*>1<\/td><td[^>]*>5,000<\/td>/);
    expect(page).toMatch(/<td>Posters<\/td><td[^>]*>0 \(used up\)<\/td><td[^>]*>0<\/td>/);
    expect(page).toMatch(/<td>Imported rows in 24 hours<\/td><td[^>]*>0<\/td><td[^>]*>400<\/td>/);
    expect(await openAs(manager)).not.toContain('Quotas');
  });
});
