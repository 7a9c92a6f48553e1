import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken, LimitToken, RevokeToken } from '#identity/token.commands.js';
import { expectRefused, useSharedService, type ContractClient } from '../support/http/contract.js';
import { Browser } from '../support/browser/browser.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { cli } from '../support/services/service.js';

const service = useSharedService();
const store = service.useStore();
let subscription: number;

beforeAll(async () => {
  const { tokenId } = await service.running.execute(
    new CreateToken(cli, store.email, 'second till'),
  );
  await service.running.execute(new RevokeToken(cli, tokenId));
  const { body } = await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, {
    events: ['*'],
    target_url: 'https://example.com/hook',
  });
  subscription = body.id;
});

const audit = async (query = '', client = store) =>
  (await client.get<AuditEntryJson[]>(`${client.store}/audit${query}`)).body;
const types = (entries: AuditEntryJson[]) => entries.map(({ type }) => type);

describe('the audit log', () => {
  it("AUDIT-01 The audit log has every change of the store's members, their tokens and its webhook subscriptions, newest first", async () => {
    expect(types(await audit())).toEqual([
      'webhook_subscription.created',
      'token.revoked',
      'token.created',
      'token.created',
      'member.added',
    ]);
  });

  it('AUDIT-02 An entry of the audit log has the fields of the history, null where they do not apply, and `subject`; never a secret', async () => {
    const [created, , , first] = await audit();
    expect(created).toMatchObject({
      channel: 'api',
      actor: { type: 'token', name: 'till' },
      subject: { webhook_subscription_id: subscription },
    });
    expect(first).toMatchObject({ channel: 'cli', actor: { type: 'system', id: 0, name: null } });
    const { body: history } = await eventually(
      () => store.get<object[]>(`${store.store}/history`),
      ({ body }) => body.length > 0,
    );
    const [event] = history;
    expect(Object.keys(created ?? {})).toEqual([
      ...Object.keys(event ?? {}),
      'subject',
      'ip_address',
    ]);
    expect(JSON.stringify(await audit())).not.toMatch(/whsec_|ink_/);
  });

  it('AUDIT-03 `type`, `actor`, `from` (inclusive) and `to` (exclusive) filter the audit log, alone and together', async () => {
    const all = await audit();
    const [{ actor, recorded_at: at } = { actor: { id: 0 }, recorded_at: '' }] = all;
    expect(types(await audit('?type=token.revoked'))).toEqual(['token.revoked']);
    expect(await audit('?type=token.painted')).toEqual([]);
    expect(await audit(`?actor=token:${actor.id}`)).toEqual(all.slice(0, 1));
    expect(await audit('?actor=system:0')).toEqual(all.slice(1));
    expect(await audit(`?from=${at}`)).toEqual(all.filter((entry) => entry.recorded_at >= at));
    expect(await audit(`?to=${at}`)).toEqual(all.filter((entry) => entry.recorded_at < at));
    expect(await audit(`?type=token.created&actor=system:0&from=2020-01-01&to=${at}`)).toEqual(
      all.slice(2, 4),
    );
    expectRefused(await store.get(`${store.store}/audit?actor=Kim&from=x`), ['actor', 'from']);
  });

  it('AUDIT-04 Pages of the audit log are those of the history: a hundred entries, `limit`, `cursor`, `Link`', async () => {
    const all = await audit();
    const { body, headers } = await store.get<AuditEntryJson[]>(`${store.store}/audit?limit=2`);
    expect(body).toEqual(all.slice(0, 2));
    const [, next = ''] =
      /<https:[/][/]cards[.]example([^>]*)>/.exec(headers.get('link') ?? '') ?? [];
    expect((await store.get(next)).body).toEqual(all.slice(2, 4));
  });

  it('AUDIT-05 The audit log has nothing of another store', async () => {
    const otherStore = await service.newStore();
    expect(types(await audit('', otherStore))).toEqual(['token.created', 'member.added']);
  });

  it('AUDIT-06 The command line shows the same audit log', async () => {
    const { database, environment } = service.running;
    const program = startProgram(
      'dist/apps/cli/cli.js',
      createTestEnvironment(database.url, environment),
      ['audit:list', '--account', String(store.accountId), '--type', 'token.created'],
    );
    expect(await program.exitCode).toBe(0);
    expect(JSON.parse(program.output())).toEqual({ entries: await audit('?type=token.created') });
  });

  describe('of one store', () => {
    let own: ContractClient;
    let path: string;
    let secret: string;

    const entries = async () =>
      (await audit('', own)).filter(({ type }) => type !== 'member.added');
    const newest = async () => (await entries())[0];

    beforeAll(async () => {
      own = await service.newStore();
      const { body } = await own.post<{ id: number; secret: string }>(
        `${own.store}/webhook_subscriptions`,
        { events: ['*'], target_url: 'https://example.com/hook?key=hidden' },
      );
      path = `${own.store}/webhook_subscriptions/${body.id}`;
      secret = body.secret;
    });

    it('AUDIT-07 `subject.changes` names each changed field, with its value before (`from`) and after (`to`)', async () => {
      await own.patch(path, { target_url: 'https://example.org/hook', description: 'Till' });
      expect(await newest()).toMatchObject({
        type: 'webhook_subscription.updated',
        subject: {
          changes: {
            target_url: { from: 'https://example.com/…', to: 'https://example.org/…' },
            description: { from: null, to: 'Till' },
          },
        },
      });
      await own.patch(path, { enabled: false, events: ['stamp.earned'] });
      expect(await newest()).toMatchObject({
        type: 'webhook_subscription.disabled',
        subject: {
          changes: {
            enabled: { from: true, to: false },
            events: { from: ['*'], to: ['stamp.earned'] },
          },
        },
      });
      const before = await entries();
      await own.patch(path, { description: 'Till' });
      expect(await entries()).toEqual(before);
    });

    it('AUDIT-08 Of a `target_url` the audit log has only the host, because the rest may be a secret; in its place stands `/…`', async () => {
      await own.patch(path, { target_url: 'https://example.org/hidden?key=hidden' });
      expect(await newest()).toMatchObject({
        subject: {
          changes: {
            target_url: { from: 'https://example.org/…', to: 'https://example.org/…' },
          },
        },
      });
      expect(JSON.stringify(await entries())).not.toMatch(/hidden/);
    });

    it('AUDIT-09 `ip_address` is where the request came from: null where there was none, and after 90 days, unless the operator has set another time', async () => {
      const [latest] = await entries();
      const [first] = await audit('?type=member.added', own);
      expect([latest?.ip_address, first?.ip_address]).toEqual(['127.0.0.1', null]);
      await expect(
        service.running.database.query('update audit_log set ip_address = null'),
      ).rejects.toThrow();
    });

    it('AUDIT-10 The audit log also has tests of a subscription, reads of its secret and exports of a customer', async () => {
      const { body } = await own.post<{ id: number }>(`${own.store}/customers`, {
        customer: { first_name: 'Kim', email: 'kim@x.example' },
      });
      expect((await own.get(path)).status).toBe(200);
      expect((await own.post(`${path}/test`)).status).toBe(200);
      expect((await own.get(`${own.store}/customers/${body.id}/export`)).status).toBe(200);
      const [exported, tested, read] = await entries();
      expect([exported, tested, read]).toMatchObject([
        { type: 'customer.exported', subject: { customer_id: body.id } },
        {
          type: 'webhook_subscription.tested',
          subject: {
            event_id: expect.stringMatching(/^evt_/),
            target_url: 'https://example.org/…',
          },
        },
        { type: 'webhook_subscription.secret_read' },
      ]);
      expect(JSON.stringify(await entries())).not.toContain(secret);
    });

    it('AUDIT-11 Of a read or export that the same token repeats within an hour from the same network, the 1st, 10th, 100th … is an entry', async () => {
      await Promise.all(Array.from({ length: 10 }, () => own.get(path)));
      const read = (await entries()).filter(
        ({ type }) => type === 'webhook_subscription.secret_read',
      );
      expect(read.map(({ subject }) => (subject as { times: number }).times)).toEqual([10, 1]);
    });

    it('AUDIT-12 A failed sign-in of a member is an entry, counted like a read for each user and network; it has nothing that was typed', async () => {
      const stranger = new Browser(service.running);
      await stranger.signIn(own.email, 'guessed wrong');
      await stranger.signIn('nobody@guess.example', 'guessed wrong');
      expect(await newest()).toMatchObject({
        type: 'user.sign_in_failed',
        actor: { type: 'system' },
        ip_address: '127.0.0.1',
        subject: { user_id: expect.any(Number), method: 'password', times: 1 },
      });
      const { rows } = await service.running.database.query<{ entry: string }>(
        'select row_to_json(l)::text as entry from audit_log l',
      );
      const all = rows.map(({ entry }) => entry).join();
      expect(all).not.toMatch(/guess/);
      expect(all).toMatch(/"account_id":null,"type":"user.sign_in_failed"/);
    });

    it('AUDIT-14 What changes nothing is no entry, such as revoking a token that is revoked already', async () => {
      const { tokenId } = await service.running.execute(new CreateToken(cli, own.email, 'till'));
      await service.running.execute(new LimitToken(cli, tokenId, 7));
      await service.running.execute(new RevokeToken(cli, tokenId));
      const before = await audit('', own);
      expect(types(before.slice(0, 2))).toEqual(['token.revoked', 'token.limited']);
      await service.running.execute(new LimitToken(cli, tokenId, 7));
      await service.running.execute(new RevokeToken(cli, tokenId));
      await service.running.execute(new AddMember(cli, own.accountId, own.email, 'owner'));
      expect(await audit('', own)).toEqual(before);
    });
  });
});
