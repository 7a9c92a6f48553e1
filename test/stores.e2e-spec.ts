import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CommandBus } from '@nestjs/cqrs';
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
