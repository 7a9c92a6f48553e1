import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AuditEntryJson } from '#history/audit-entry.dto.js';
import { CreateToken, RevokeToken } from '#identity/token.commands.js';
import { expectRefused, useSharedService, type ContractClient } from '../support/contract.js';
import { testEnvironment } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startProgram } from '../support/program.js';
import { cli } from '../support/service.js';

const service = useSharedService();
let store: ContractClient;
let subscription: number;

beforeAll(async () => {
  store = await service.newStore();
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
  it('AUDIT-01 has what was done to users, tokens and subscriptions, newest first', async () => {
    expect(types(await audit())).toEqual([
      'webhook_subscription.created',
      'token.revoked',
      'token.created',
      'token.created',
      'member.added',
    ]);
  });

  it('AUDIT-02 has entries in the shape of the history, with the ids of what was changed', async () => {
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
    expect(Object.keys(created ?? {})).toEqual([...Object.keys(event ?? {}), 'subject']);
    expect(JSON.stringify(await audit())).not.toMatch(/whsec_|ink_/);
  });

  it('AUDIT-03 is filtered by type, actor and time, alone and together', async () => {
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

  it('AUDIT-04 is paged like the history', async () => {
    const all = await audit();
    const { body, headers } = await store.get<AuditEntryJson[]>(`${store.store}/audit?limit=2`);
    expect(body).toEqual(all.slice(0, 2));
    const [, next = ''] =
      /<https:[/][/]cards[.]example([^>]*)>/.exec(headers.get('link') ?? '') ?? [];
    expect((await store.get(next)).body).toEqual(all.slice(2, 4));
  });

  it('AUDIT-05 is of one store', async () => {
    const other = await service.newStore();
    expect(types(await audit('', other))).toEqual(['token.created', 'member.added']);
  });

  it('AUDIT-06 is the same on the command line', async () => {
    const { database, environment } = service.running;
    const program = startProgram(
      'dist/scripts/cli.js',
      testEnvironment(database.url, environment),
      ['audit:list', '--account', String(store.accountId), '--type', 'token.created'],
    );
    expect(await program.exitCode).toBe(0);
    expect(JSON.parse(program.output())).toEqual({ entries: await audit('?type=token.created') });
  });
});
