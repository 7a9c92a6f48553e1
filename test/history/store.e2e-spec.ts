import { describe, expect, it } from '@jest/globals';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { userInfo } from 'node:os';
import { RemoveUser } from '#identity/identity.commands.js';
import { CreateToken, LimitToken, RevokeToken } from '#identity/token.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { createTestEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { cli } from '../support/services/service.js';
import { useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const findEvents = async (stream: string): Promise<StoredEvent[]> =>
  (await service.running.history()).filter((event) => event.stream === stream);
const findTypes = async (stream: string) => (await findEvents(stream)).map(({ type }) => type);

const queryAudit = async (query: string, ...values: unknown[]) =>
  (await service.running.database.query<object>(query, values)).rows;

describe('the history', () => {
  it('records actor, channel and request id of a stamp', async () => {
    const { path } = await enrol(store);
    const request = { 'x-request-id': 'till-7.42' };
    await store.send('POST', `${path}/stamp`, { stamps: 1, source: 'pos' }, request);
    const events = (await service.running.history()).filter(
      ({ type, meta }) => type === 'StampsEarned' && meta.requestId === 'till-7.42',
    );
    expect(events).toMatchObject([
      { meta: { actor: { type: 'token' }, channel: 'pos', accountId: store.accountId } },
    ]);
  });

  it('records welcome stamps, and the rewards that they unlock, when a card is issued', async () => {
    const { card } = await enrol(store, { card: { initial_stamps: 3 }, rewards: [2, 5] });
    const { customer } = await enrol(store);
    const cards = `${store.store}/customers/${customer.id}/customer_cards`;
    const { body } = await store.post<CustomerCardDetailJson>(cards, { card_id: card.id });
    expect(await findTypes(`customer_card-${body.id}`)).toEqual([
      'CustomerCardIssued',
      'StampsEarned',
      'RewardUnlocked',
    ]);
  });

  it('keeps the location of stamps and redemptions after it was deleted', async () => {
    const { path, rewards, customerCard } = await enrol(store, { rewards: [1] });
    const location = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
    const { id } = (await store.post<LocationJson>(`${store.store}/locations`, { location })).body;
    await store.post(`${path}/stamp`, { stamps: 2, location_id: id });
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id, location_id: String(id) });
    await store.delete(`${store.store}/locations/${id}`);
    const events = await findEvents(`customer_card-${customerCard.id}`);
    expect(events.map(({ type, data }) => [type, data['locationId']])).toEqual([
      ['CustomerCardIssued', undefined],
      ['StampsEarned', id],
      ['RewardUnlocked', undefined],
      ['RewardRedeemed', id],
    ]);
  });
});

describe('an update without a change', () => {
  it('of a card adds no event', async () => {
    const { card } = await enrol(store, { card: { header_text: 'Hi' } });
    const change = (changes: object) =>
      store.patch<CardJson>(`${store.store}/cards/${card.id}`, { card: changes });
    const { body: current } = await change({ name: 'Tea', header_text: null });
    for (const same of [{}, { name: 'Tea' }, { name: ' Tea ', header_text: '', id: 1 }]) {
      expect((await change(same)).body).toEqual(current);
    }
    expect(await findTypes(`card-${card.id}`)).toEqual(['CardCreated', 'CardUpdated']);
  });

  it('of a customer adds no event', async () => {
    const { customer } = await enrol(store);
    const { id, email } = customer;
    const change = (changes: object) =>
      store.patch<CustomerJson>(`${store.store}/customers/${id}`, { customer: changes });
    const reference = { source: 'same', external_id: String(id), metadata: { a: 1 } };
    const { body: before } = await change({ external_references: [reference] });
    const events = (await service.running.history()).length;
    for (const same of [
      {},
      { first_name: 'Anna', email, last_name: null, metadata: {} },
      { external_references: [{ ...reference, external_id: id }] },
    ]) {
      expect((await change(same)).body).toEqual(before);
    }
    expect(await service.running.history()).toHaveLength(events);
  });

  it('of a store adds no event', async () => {
    const own = await service.newStore();
    const change = (account: object) => own.patch<AccountJson>(own.store, { account });
    const { body: before } = await own.get<AccountJson>(own.store);
    const { name, store_name, time_zone, locale } = before;
    for (const same of [{}, { name, store_name, time_zone, locale }, { personal: true }]) {
      expect((await change(same)).body).toEqual(before);
    }
    const stream = `account-${own.accountId}`;
    expect(await findTypes(stream)).toEqual(['AccountCreated']);
    await change({ name: 'Bakery' });
    expect(await findTypes(stream)).toEqual(['AccountCreated', 'AccountUpdated']);
  });
});

describe('personal data', () => {
  it('is in no stored event in clear text', async () => {
    const own = await service.newStore();
    const { customer, path } = await enrol(own);
    await own.post(`${own.store}/customers`, {
      customer: { first_name: 'Zacharias', email: 'very.private@example.com' },
    });
    await own.patch(`${own.store}/customers/${customer.id}`, {
      customer: { last_name: 'Geheimnis', metadata: { hobby: 'geheimnis' } },
    });
    await own.stamp(path, { note: 'likes oat milk' });
    const history = (await service.running.history()).filter(
      ({ meta }) => meta.accountId === own.accountId,
    );
    expect(new Set(history.map(({ type }) => type))).toEqual(
      new Set([
        'AccountCreated',
        'CardCreated',
        'CustomerCreated',
        'CustomerCardIssued',
        'CustomerUpdated',
        'StampsEarned',
      ]),
    );
    const text = JSON.stringify(history.map(({ type, data, meta }) => ({ type, data, meta })));
    expect(text).not.toMatch(/anna|zacharias|very\.private|geheimnis|oat milk/i);
    const update = history.find(({ type }) => type === 'CustomerUpdated');
    expect(update?.data).toEqual({ customerId: customer.id, personal: expect.any(String) });
  });
});

describe('the audit log', () => {
  it('records the creation of a user, a member and a token', async () => {
    await service.newStore();
    expect(await queryAudit('select type from audit_log order by id desc limit 3')).toEqual([
      { type: 'token.created' },
      { type: 'member.added' },
      { type: 'user.created' },
    ]);
  });

  it("records changes of a user and their token in each of the user's stores", async () => {
    const first = await service.newStore();
    const otherStore = await service.newStore();
    await service.running.execute(new AddMember(cli, otherStore.accountId, first.email, 'owner'));
    const { tokenId } = await service.running.execute(new CreateToken(cli, first.email, 'second'));
    await service.running.execute(new LimitToken(cli, tokenId, 60));
    await service.running.execute(new RevokeToken(cli, tokenId));
    await service.running.execute(new RemoveUser(cli, first.email));
    await service.running.execute(new CreateToken(cli, otherStore.email, 'not theirs'));
    for (const { accountId } of [first, otherStore]) {
      const entries = await queryAudit(
        `select type, (subject ->> 'token_id')::int as token from audit_log
         where account_id = $1 and (subject ->> 'token_id' = $2 or type = 'user.removed')
         order by id`,
        accountId,
        String(tokenId),
      );
      expect(entries).toEqual([
        { type: 'token.created', token: tokenId },
        { type: 'token.limited', token: tokenId },
        { type: 'token.revoked', token: tokenId },
        { type: 'user.removed', token: null },
      ]);
    }
    expect(
      await queryAudit(
        `select account_id from audit_log where subject ->> 'name' = 'not theirs' order by id`,
      ),
    ).toEqual([{ account_id: otherStore.accountId }]);
  });

  it('names the operating-system user of a command line, as does the history', async () => {
    const { environment, database } = service.running;
    const program = startProgram(
      'dist/apps/cli/cli.js',
      createTestEnvironment(database.url, environment),
      ['store:create', '--name', 'By hand', '--user', store.email],
    );
    expect(await program.exitCode).toBe(0);
    const actor = { type: 'system', id: 0, name: userInfo().username };
    const { account_id } = JSON.parse(/^\{[^]*/m.exec(program.output())?.[0] ?? '') as {
      account_id: number;
    };
    expect(
      await queryAudit(
        'select type, actor, channel from audit_log where account_id = $1',
        account_id,
      ),
    ).toEqual([{ type: 'member.added', actor, channel: 'cli' }]);
    expect(await findEvents(`account-${account_id}`)).toMatchObject([
      { type: 'AccountCreated', meta: { actor, channel: 'cli' } },
    ]);
  });

  it('records the creation and deletion of a webhook subscription once each', async () => {
    const hook = { event: '*', target_url: 'https://receiver.example/hooks' };
    const hooks = `${store.store}/webhook_subscriptions`;
    const { body } = await store.post<{ id: number }>(hooks, hook);
    await store.delete(`${hooks}/${body.id}`);
    await store.delete(`${hooks}/${body.id}`);
    const entries = await queryAudit(
      `select type, actor ->> 'type' as actor, channel from audit_log
       where (subject ->> 'webhook_subscription_id')::bigint = $1 order by id`,
      body.id,
    );
    expect(entries).toEqual([
      { type: 'webhook_subscription.created', actor: 'token', channel: 'api' },
      { type: 'webhook_subscription.deleted', actor: 'token', channel: 'api' },
    ]);
  });
});
