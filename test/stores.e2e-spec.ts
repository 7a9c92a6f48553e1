import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CommandBus } from '@nestjs/cqrs';
import type { AccountJson } from '#accounts/account.dto.js';
import type { CardJson } from '#cards/card.dto.js';
import type { LocationJson } from '#locations/location.dto.js';
import type { PosterJson } from '#posters/poster.dto.js';
import {
  AddMember,
  CreateToken,
  LimitToken,
  RemoveMember,
  RemoveUser,
  RevokeToken,
} from '#identity/identity.commands.js';
import { eventually } from './support/eventually.js';
import { cli, Client, startService, type Service } from './support/service.js';
import { enrol } from './support/story.js';

let service: Service;
let bus: CommandBus;

beforeAll(async () => {
  service = await startService();
  bus = service.app.get(CommandBus);
});
afterAll(() => service.stop());

/** Word of a change reaches the api within moments. */
const statusOf = (client: Client, wanted: number) =>
  eventually(
    async () => (await client.get(client.store)).status,
    (status) => status === wanted,
  );

describe('stores', () => {
  it('show eleven fields and ours, with true counts', async () => {
    const store = await service.newStore({ timeZone: 'Europe/Berlin' });
    await enrol(store);
    const shown = await store.get(store.store);
    expect(shown.body).toEqual({
      id: store.accountId,
      name: 'Corner Café',
      store_name: null,
      display_store_name: 'Corner Café',
      personal: false,
      locations_count: 0,
      cards_count: 1,
      customers_count: 1,
      posters_count: 0,
      time_zone: 'Europe/Berlin',
      locale: 'en',
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await store.get('/api/v1/accounts')).body).toEqual([shown.body]);
  });

  it('are listed by id, as far as the token reaches', async () => {
    const mine = await service.newStore();
    const other = await service.newStore();
    await bus.execute(new AddMember(cli, other.accountId, mine.email));
    const { body } = await mine.get<{ id: number }[]>('/api/v1/accounts');
    expect(body.map((account) => account.id)).toEqual([mine.accountId, other.accountId]);
    expect((await mine.get(other.store)).status).toBe(200);
    expect((await other.get(mine.store)).status).toBe(404);
  });

  it('that a token cannot reach look as if they did not exist', async () => {
    const mine = await service.newStore();
    const other = await service.newStore();
    const { path, card, customer } = await enrol(other, { rewards: [1] });
    for (const hidden of [
      other.store,
      `${other.store}/cards/${card.id}`,
      `${other.store}/customers/${customer.id}`,
      path,
      '/api/v1/accounts/987654321',
    ]) {
      const { status, body } = await mine.get<{ error: string }>(hidden);
      expect([status, body.error]).toEqual([404, 'Store not found']);
    }
    for (const misplaced of [
      `${mine.store}/cards/${card.id}`,
      `${mine.store}/customers/${customer.id}`,
      path.replace(other.store, mine.store),
    ]) {
      expect((await mine.get(misplaced)).status).toBe(404);
    }
    const enrolElsewhere = await mine.post(`${mine.store}/customers`, {
      customer: { first_name: 'Eve', email: 'eve@example.com' },
      card_id: card.id,
    });
    expect(enrolElsewhere.status).toBe(404);
  });
});

describe('a store', () => {
  const change = (store: Client, body: object) =>
    store.send<AccountJson & { errors: object }>('PATCH', store.store, body);
  const typesOf = async (store: Client) =>
    (await service.history())
      .filter(({ stream }) => stream === `account-${store.accountId}`)
      .map(({ type }) => type);

  it('changes its names, time zone and language, with or without the wrapper', async () => {
    const store = await service.newStore();
    const { body: before } = await store.get<AccountJson>(store.store);
    const named = await change(store, {
      account: { name: ' Bakery ', store_name: 'The Corner', time_zone: 'europe/berlin' },
    });
    expect([named.status, named.body]).toEqual([
      200,
      {
        ...before,
        name: 'Bakery',
        store_name: 'The Corner',
        display_store_name: 'The Corner',
        time_zone: 'Europe/Berlin',
        updated_at: expect.any(String),
      },
    ]);
    const bare = await change(store, { locale: 'pt-br', store_name: ' ' });
    expect(bare.body).toMatchObject({
      locale: 'pt-BR',
      store_name: null,
      display_store_name: 'Bakery',
    });
    expect((await store.get(store.store)).body).toEqual(bare.body);
    expect((await store.get('/api/v1/accounts')).body).toEqual([bare.body]);
  });

  it('records nothing when nothing changes', async () => {
    const store = await service.newStore();
    const { body: before } = await store.get<AccountJson>(store.store);
    const { name, store_name, time_zone, locale } = before;
    for (const account of [{}, { name, store_name, time_zone, locale }, { personal: true }]) {
      expect((await change(store, { account })).body).toEqual(before);
    }
    expect(await typesOf(store)).toEqual(['AccountCreated']);
    await change(store, { account: { name: 'Bakery' } });
    expect(await typesOf(store)).toEqual(['AccountCreated', 'AccountUpdated']);
  });

  it('tells every fault at once and changes nothing then', async () => {
    const store = await service.newStore();
    const { body: before } = await store.get<AccountJson>(store.store);
    const refused = await change(store, {
      account: { name: null, store_name: 'x'.repeat(256), time_zone: '+01:00', locale: 'de_DE' },
    });
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([
      422,
      ['name', 'store_name', 'time_zone', 'locale'],
    ]);
    const empty = await change(store, { personal: true });
    expect([empty.status, Object.keys(empty.body.errors)]).toEqual([422, ['account']]);
    expect((await store.get(store.store)).body).toEqual(before);
  });

  it('is changed by nobody else', async () => {
    const mine = await service.newStore();
    const other = await service.newStore();
    const refused = await mine.send('PATCH', other.store, { account: { name: 'Mine' } });
    expect(refused.status).toBe(404);
    expect((await other.get(other.store)).body).toMatchObject({ name: 'Corner Café' });
  });

  it('keeps every one of many changes at the same time', async () => {
    const store = await service.newStore();
    const changes = [
      { name: 'Bakery' },
      { store_name: 'The Corner' },
      { time_zone: 'Asia/Kolkata' },
      { locale: 'fr' },
    ];
    const answers = await Promise.all(changes.map((account) => change(store, { account })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await store.get(store.store)).body).toMatchObject(Object.assign({}, ...changes));
  });

  it('counts locations and posters until they are deleted', async () => {
    const store = await service.newStore();
    const made = async <T>(noun: string, body: object) =>
      (await store.post<T>(`${store.store}/${noun}s`, { [noun]: body })).body;
    const card = await made<CardJson>('card', { name: 'Coffee' });
    const place = { name: 'Old Town', address: 'Marktplatz 1' };
    const location = await made<LocationJson>('location', place);
    await made('location', place);
    const poster = await made<PosterJson>('poster', { card_id: card.id });
    await made('poster', { card_id: card.id });
    const counts = async () => {
      const { body } = await store.get<AccountJson>(store.store);
      const listed = await store.get<AccountJson[]>('/api/v1/accounts');
      expect(listed.body).toEqual([body]);
      expect((await change(store, { account: {} })).body).toEqual(body);
      return [body.cards_count, body.locations_count, body.posters_count];
    };
    expect(await counts()).toEqual([1, 2, 2]);
    await store.send('DELETE', `${store.store}/locations/${location.id}`);
    await store.send('DELETE', `${store.store}/posters/${poster.id}`);
    expect(await counts()).toEqual([1, 1, 1]);
  });
});

describe('tokens', () => {
  it('stop working when they are revoked', async () => {
    const store = await service.newStore();
    const { tokenId, token } = await bus.execute(new CreateToken(cli, store.email, 'second'));
    const second = new Client(service.baseUrl, store.accountId, token);
    expect((await second.get(second.store)).status).toBe(200);
    await bus.execute(new RevokeToken(cli, tokenId));
    await statusOf(second, 401);
    expect((await store.get(store.store)).status).toBe(200);
  });

  it('stop working with their user', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    await bus.execute(new RemoveUser(cli, store.email));
    await statusOf(store, 401);
  });

  it('lose a store with the membership and win it back', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    await bus.execute(new RemoveMember(cli, store.accountId, store.email));
    await statusOf(store, 404);
    await bus.execute(new AddMember(cli, store.accountId, store.email));
    await statusOf(store, 200);
  });

  it('may have a limit of their own, and it shows', async () => {
    const store = await service.newStore();
    const { tokenId, token } = await bus.execute(new CreateToken(cli, store.email, 'busy till'));
    await bus.execute(new LimitToken(cli, tokenId, 7));
    const busy = new Client(service.baseUrl, store.accountId, token);
    const { headers } = await busy.get(busy.store);
    expect(headers.get('ratelimit-limit')).toBe('7');
    expect(headers.get('ratelimit-policy')).toBe('7;w=60');
  });

  it('are kept as hashes only, and what is done to them is on record', async () => {
    const store = await service.newStore();
    const { rows } = await service.database.query<{ everything: string }>(
      `select coalesce(string_agg(t::text, ' '), '') as everything from api_tokens t`,
    );
    expect(rows[0]?.everything).not.toContain(store.token);
    const audit = await service.database.query<{ type: string }>(
      'select type from audit_log order by id desc limit 3',
    );
    expect(audit.rows.map((row) => row.type)).toEqual([
      'token.created',
      'member.added',
      'user.created',
    ]);
  });
});
