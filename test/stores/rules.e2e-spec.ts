import { describe, expect, it } from '@jest/globals';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import { AddMember } from '#identity/member.commands.js';
import { expectRefused, useSharedService, type ContractClient } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { cli } from '../support/services/service.js';
import { newPoster } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const FIELDS = [
  'address',
  'address_form',
  'cards_count',
  'confirms_counter_consents',
  'country',
  'created_at',
  'customers_count',
  'display_store_name',
  'email',
  'id',
  'locale',
  'locations_count',
  'logo_contains_name',
  'logo_url',
  'name',
  'personal',
  'phone',
  'posters_count',
  'store_name',
  'terms_text',
  'time_zone',
  'updated_at',
  'warnings',
  'website',
];

const show = async (client: ContractClient) => (await client.get<AccountJson>(client.store)).body;
const change = (client: ContractClient, account: object) =>
  client.patch<AccountJson>(client.store, { account });

async function join(client: ContractClient, accountId: number): Promise<void> {
  await service.running.execute(new AddMember(cli, accountId, client.email, 'owner'));
  await eventually(
    async () => (await client.get(`/api/v1/accounts/${accountId}`)).status,
    (status) => status === 200,
  );
}

describe('stores', () => {
  it("STORE-01 The list of stores has every one of the token's user and no other", async () => {
    const mine = await service.newStore();
    const second = await service.newStore();
    await service.newStore();
    await join(mine, second.accountId);
    const { body } = await mine.get<AccountJson[]>('/api/v1/accounts');
    expect(body.map(({ id }) => id)).toEqual([mine.accountId, second.accountId]);
  });

  it('STORE-02 The list of stores is in the order of ids', async () => {
    const older = await service.newStore();
    const mine = await service.newStore();
    const newer = await service.newStore();
    for (const { accountId } of [newer, older]) await join(mine, accountId);
    const { body } = await mine.get<AccountJson[]>('/api/v1/accounts');
    expect(body.map(({ id }) => id)).toEqual([older.accountId, mine.accountId, newer.accountId]);
  });

  it('STORE-03 A store has exactly the documented fields', async () => {
    const shop = await show(store);
    expect(Object.keys(shop).sort()).toEqual(FIELDS);
    expect(shop).toMatchObject({
      id: store.accountId,
      name: 'Corner Café',
      display_store_name: 'Corner Café',
      store_name: null,
      personal: false,
    });
  });

  it('STORE-04 The list and the single store show the same', async () => {
    const own = await service.newStore();
    const { card } = await enrol(own);
    const location = { name: 'Main street', address: 'Main Street 1' };
    await own.post(`${own.store}/locations`, { location });
    await own.post(`${own.store}/posters`, { poster: { card_id: card.id } });
    const { body } = await own.get<AccountJson[]>('/api/v1/accounts');
    expect(body).toEqual([await show(own)]);
    expect((await change(own, {})).body).toEqual(body[0]);
  });

  it('STORE-05 `personal` is true for the user whose own store it is, and false for every other member', async () => {
    const attributes = { name: 'Me', storeName: null, timeZone: 'UTC', locale: 'en' };
    const { id } = await service.running.execute(
      new CreateAccount(cli, { ...attributes, personal: true }),
    );
    const [mine, otherStore] = [await service.newStore(), await service.newStore()];
    await service.running.execute(new AddMember(cli, id, mine.email, 'owner', true));
    await join(mine, id);
    await join(otherStore, id);
    const path = `/api/v1/accounts/${id}`;
    const past = `as_of=${new Date().toISOString()}`;
    for (const [client, expected] of [
      [mine, true],
      [otherStore, false],
    ] as const) {
      const lists = ['/api/v1/accounts', `/api/v1/accounts?${past}`];
      const listed = lists.map(async (list) =>
        (await client.get<AccountJson[]>(list)).body.find((account) => account.id === id),
      );
      const requests = [path, `${path}?${past}`].map((listPath) =>
        client.get<AccountJson>(listPath),
      );
      const changed = client.patch<AccountJson>(path, { account: { locale: 'de' } });
      const responses = (await Promise.all([...requests, changed])).map(({ body }) => body);
      const all = [...(await Promise.all(listed)), ...responses];
      expect(all.map((store) => [store?.id, store?.personal])).toEqual(
        all.map(() => [id, expected]),
      );
    }
  });

  it('STORE-06 `cards_count` counts the card templates', async () => {
    const own = await service.newStore();
    expect((await show(own)).cards_count).toBe(0);
    for (let i = 0; i < 3; i++) await own.post(`${own.store}/cards`, { card: { name: 'Coffee' } });
    expect((await show(own)).cards_count).toBe(3);
  });

  it('STORE-07 `customers_count` counts the customers', async () => {
    const own = await service.newStore();
    expect((await show(own)).customers_count).toBe(0);
    await enrol(own);
    await enrol(own);
    expect((await show(own)).customers_count).toBe(2);
  });

  it('STORE-08 `locations_count` counts the locations that are not deleted', async () => {
    const own = await service.newStore();
    const path = `${own.store}/locations`;
    const location = { name: 'Main street', address: 'Main Street 1' };
    const { body } = await own.post<{ id: number }>(path, { location });
    await own.post(path, { location });
    expect((await show(own)).locations_count).toBe(2);
    await own.delete(`${path}/${body.id}`);
    expect((await show(own)).locations_count).toBe(1);
  });

  it('STORE-09 `posters_count` counts the posters that are not deleted', async () => {
    const own = await service.newStore();
    const { card } = await enrol(own);
    const path = `${own.store}/posters`;
    const { body } = await own.post<{ id: number }>(path, { poster: { card_id: card.id } });
    await own.post(path, { poster: { card_id: card.id } });
    expect((await show(own)).posters_count).toBe(2);
    await own.delete(`${path}/${body.id}`);
    expect((await show(own)).posters_count).toBe(1);
  });

  it('STORE-10 PATCH changes `name`', async () => {
    const own = await service.newStore();
    const { status, body } = await change(own, { name: ' Bakery ' });
    expect([status, body.name, body.display_store_name]).toEqual([200, 'Bakery', 'Bakery']);
    expect(await show(own)).toEqual(body);
  });

  it('STORE-11 A `name` that is blank, null or longer than 255 is 422 `name`', async () => {
    for (const name of ['', ' ', null, 'x'.repeat(256), 7]) {
      expectRefused(await change(store, { name }), 'name');
    }
    const own = await service.newStore();
    expect((await change(own, { name: 'x'.repeat(255) })).status).toBe(200);
  });

  it('STORE-12 PATCH changes `store_name`, and `display_store_name` follows', async () => {
    const own = await service.newStore();
    const { body } = await change(own, { store_name: 'The Corner' });
    expect(body).toMatchObject({
      name: 'Corner Café',
      store_name: 'The Corner',
      display_store_name: 'The Corner',
    });
    expect(await show(own)).toEqual(body);
  });

  it('STORE-13 A `store_name` that is null or blank becomes null, and `display_store_name` is `name` again', async () => {
    const own = await service.newStore();
    for (const store_name of [null, '', '  ']) {
      await change(own, { store_name: 'The Corner' });
      const { status, body } = await change(own, { store_name });
      expect([status, body.store_name, body.display_store_name]).toEqual([
        200,
        null,
        'Corner Café',
      ]);
    }
  });

  it('STORE-14 A `store_name` longer than 255 is 422 `store_name`', async () => {
    expectRefused(await change(store, { store_name: 'x'.repeat(256) }), 'store_name');
    const own = await service.newStore();
    expect((await change(own, { store_name: 'x'.repeat(255) })).status).toBe(200);
  });

  it('STORE-15 PATCH changes only the fields it names', async () => {
    const own = await service.newStore();
    await change(own, { store_name: 'The Corner', time_zone: 'Europe/Paris', locale: 'fr' });
    const before = await show(own);
    const { body } = await change(own, { name: 'Bakery' });
    expect({ ...body, updated_at: '' }).toEqual({ ...before, name: 'Bakery', updated_at: '' });
  });

  it('STORE-16 Read-only fields are ignored in a PATCH', async () => {
    const own = await service.newStore();
    const before = await show(own);
    const { status, body } = await change(own, {
      name: before.name,
      id: 1,
      personal: true,
      cards_count: 9,
      display_store_name: 'x',
      created_at: '2020-01-01T00:00:00Z',
    });
    expect([status, { ...body, updated_at: '' }]).toEqual([200, { ...before, updated_at: '' }]);
    expectRefused(await own.patch(own.store, { personal: true }), 'account');
  });

  it('STORE-17 `time_zone` defaults to UTC and accepts any IANA name', async () => {
    const own = await service.newStore();
    expect((await show(own)).time_zone).toBe('UTC');
    for (const time_zone of ['Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Asia/Kathmandu']) {
      const { status, body } = await change(own, { time_zone });
      expect([status, body.time_zone]).toEqual([200, time_zone]);
    }
  });

  it('STORE-18 Any other `time_zone` is 422 `time_zone`', async () => {
    for (const time_zone of ['Mars/Olympus', 'Berlin', '', 7, '+99:00']) {
      expectRefused(await change(store, { time_zone }), 'time_zone');
    }
  });

  it('STORE-19 `locale` defaults to `en` and accepts a language tag', async () => {
    const own = await service.newStore();
    expect((await show(own)).locale).toBe('en');
    for (const locale of ['de', 'pt-BR']) {
      const { status, body } = await change(own, { locale });
      expect([status, body.locale]).toEqual([200, locale]);
    }
  });

  it('STORE-20 Any other `locale` is 422 `locale`', async () => {
    for (const locale of ['', 'de_DE', 'no such language', 'x'.repeat(300), 7]) {
      expectRefused(await change(store, { locale }), 'locale');
    }
  });

  it('STORE-21 null for `time_zone` or `locale` is 422 on the field', async () => {
    expectRefused(await change(store, { time_zone: null }), 'time_zone');
    expectRefused(await change(store, { locale: null }), 'locale');
  });

  it('STORE-22 A change updates `updated_at`, not `created_at`', async () => {
    const own = await service.newStore();
    const before = await show(own);
    const { body } = await change(own, { name: 'Bakery' });
    expect(body.created_at).toBe(before.created_at);
    expect(body.updated_at > before.updated_at).toBe(true);
  });

  it('STORE-23 There is no operation that creates or deletes a store', async () => {
    const { status } = await store.post('/api/v1/accounts', { account: { name: 'New' } });
    expect([404, 405]).toContain(status);
    expect([404, 405]).toContain((await store.delete(store.store)).status);
    expect((await show(store)).id).toBe(store.accountId);
  });

  it('STORE-24 A PATCH that is refused changes nothing', async () => {
    const before = await show(store);
    expectRefused(await change(store, { name: 'Bakery', time_zone: 'x' }), 'time_zone');
    expect(await show(store)).toEqual(before);
  });

  it('STORE-25 A PATCH that sets fields to their current values changes nothing, `updated_at` included', async () => {
    const own = await service.newStore();
    const before = await show(own);
    await eventually(
      () => Date.now(),
      (now) => now > Date.parse(before.updated_at),
    );
    const { name, store_name, time_zone, locale, country } = before;
    for (const same of [
      {},
      { name, store_name, time_zone, locale, country },
      { name: ` ${name} ` },
    ]) {
      expect((await change(own, same)).body).toEqual(before);
    }
  });

  it('STORE-26 `time_zone` is stored in its usual spelling, and an alias as it was sent; offsets and abbreviations such as `BST` are 422 `time_zone`', async () => {
    const own = await service.newStore();
    for (const [input, storedValue] of [
      ['europe/berlin', 'Europe/Berlin'],
      ['Asia/Kolkata', 'Asia/Kolkata'],
      ['US/Eastern', 'US/Eastern'],
      ['Etc/UTC', 'Etc/UTC'],
    ]) {
      expect((await change(own, { time_zone: input })).body.time_zone).toBe(storedValue);
    }
    for (const time_zone of ['+01:00', '-0500', 'UTC+1', 'BST']) {
      expectRefused(await change(own, { time_zone }), 'time_zone');
    }
  });

  it('STORE-27 `locale` is stored in its canonical form', async () => {
    const own = await service.newStore();
    expect((await change(own, { locale: 'PT-br' })).body.locale).toBe('pt-BR');
    expect((await change(own, { locale: 'zh-hant-tw' })).body.locale).toBe('zh-Hant-TW');
  });

  it('STORE-28 `country` accepts a country code of ISO 3166-1 alpha-2 in any case. null or a blank string clears it', async () => {
    const own = await service.newStore();
    for (const [country, storedCountry] of [
      ['DE', 'DE'],
      [' us ', 'US'],
      [null, null],
      ['aq', 'AQ'],
      [' ', null],
    ]) {
      const { status, body } = await change(own, { country });
      expect([status, body.country]).toEqual([200, storedCountry]);
      expect((await show(own)).country).toBe(storedCountry);
    }
  });

  it('STORE-39 Without a `country` the `warnings` of a store have the code `country_missing`: nobody whose number was typed without its country code is found by the number with it', async () => {
    const own = await service.newStore();
    const missing = [
      { code: 'country_missing', message: expect.stringContaining('Set the country') },
    ];
    expect((await show(own)).warnings).toEqual(missing);
    expect((await change(own, { country: 'DE' })).body.warnings).toEqual([]);
    expect((await change(own, { country: null })).body.warnings).toEqual(missing);
  });

  it('STORE-29 Any other `country` is 422 `country`', async () => {
    for (const country of ['XX', 'UK', 'EU', 'DEU', 'Germany', '49', 'x'.repeat(300), 7, ['DE']]) {
      expectRefused(await change(store, { country }), 'country');
    }
  });

  it('STORE-30 A new store has the `country` that its `locale` names (`AT` of `de-AT`), else null', async () => {
    for (const [locale, country] of [
      ['pt-BR', 'BR'],
      ['de', null],
      ['es-419', null],
    ] as const) {
      const attributes = { name: 'New', storeName: null, personal: false, timeZone: 'UTC', locale };
      const createdStore = await service.running.execute(new CreateAccount(cli, attributes));
      expect(createdStore.country).toBe(country);
    }
    const own = await service.newStore();
    await change(own, { locale: 'de-AT' });
    expect((await show(own)).country).toBeNull();
  });

  it('STORE-36 `address_form` decides how passes, cards, signup pages, posters, e-mails and SMS address customers', async () => {
    const own = await service.newStore();
    const poster = await newPoster(own);
    const join = new URL(poster.signup_url).pathname;
    const { page } = await enrol(own, { rewards: [['Espresso', 5]] });
    const readPage = async (path: string) => (await fetch(service.running.baseUrl + path)).text();
    for (const [locale, address_form, expected] of [
      [
        'es',
        'informal',
        ['Muestra este código en caja', /Lleva «.*» en tu teléfono/, 'Escanea y consigue tu'],
      ],
      [
        'es',
        'formal',
        ['Muestre este código en caja', /Lleve «.*» en su teléfono/, 'Escanee y consiga su'],
      ],
      [
        'fr-CA',
        'informal',
        [
          'Présente ce code à la caisse',
          /Reçois «\u202f.*\u202f» sur ton téléphone/,
          'Scanne pour obtenir ta',
        ],
      ],
    ] as const) {
      const { body } = await change(own, { locale, address_form });
      expect(body.address_form).toBe(address_form);
      const [onCard, onSignup, onPoster] = expected;
      expect(await readPage(page)).toContain(onCard);
      expect(await readPage(join)).toMatch(onSignup);
      expect(await readPage(join.replace('/join/', '/posters/'))).toContain(onPoster);
    }
  });

  it('STORE-37 `address_form` null, the default, or blank is what is usual in the language: informal in German, formal in French and Spanish', async () => {
    const own = await service.newStore();
    expect((await show(own)).address_form).toBeNull();
    await change(own, { address_form: 'formal' });
    expect((await change(own, { address_form: '' })).body.address_form).toBeNull();
  });

  it('STORE-38 Any other `address_form` is 422 `address_form`', async () => {
    for (const address_form of ['du', 'Formal', 7, ['formal']]) {
      expectRefused(await change(store, { address_form }), 'address_form');
    }
  });
});
