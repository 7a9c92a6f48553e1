import { describe, expect, it } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { RemoveUser } from '#identity/identity.commands.js';
import { Authenticator } from '#http/caller.js';
import { TokenUses } from '#identity/token-uses.service.js';
import { RevokeToken } from '#identity/token.commands.js';
import { UnauthorizedError } from '#kernel/errors.js';
import { expectFailure, useService } from './support/http/contract.js';
import { eventually } from './support/jest/eventually.js';
import { cli, Client, startService } from './support/services/service.js';

/** Sooner than what is cached would be dropped by itself. */
const SOON = 30_000;

const service = useService();

async function tokenOf({ token }: Client): Promise<{ id: number; sha256: Buffer }> {
  const { rows } = await service.running.database.query<{ id: number; sha256: Buffer }>(
    'select id, sha256 from api_tokens where sha256 = $1',
    [
      createHash('sha256')
        .update(token ?? '')
        .digest(),
    ],
  );
  if (!rows[0]) throw new Error('there is no such token');
  return rows[0];
}

describe('tokens', () => {
  it('stop working with their user', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    await service.running.execute(new RemoveUser(cli, store.email));
    // Word of a change reaches the api within moments.
    const after = await eventually(
      () => store.get(store.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 401, 'unauthorized');
  });

  it('report a removed user, not a missing store', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    // Not by a command, which would notify: what is cached goes on for some hundred milliseconds.
    await service.running.database.query(
      `with removed as (update users set removed_at = now() where email = $1 returning id)
       delete from memberships where user_id = (select id from removed)`,
      [store.email],
    );
    const statuses = new Set<number>();
    await eventually(
      async () => {
        const { status } = await store.get(store.store);
        statuses.add(status);
        return status;
      },
      (status) => status === 401,
      SOON,
    );
    statuses.delete(200);
    expect([...statuses]).toEqual([401]);
  });

  it('are refused when their user is removed after they were looked up', async () => {
    const store = await service.newStore();
    const { accountId: unasked } = await service.newStore();
    const tokens = service.running.app.get(Authenticator);
    const caller = await tokens.authenticate(store.token ?? '');
    if (!caller) throw new Error('the token is unknown');
    await service.running.execute(new RemoveUser(cli, store.email));
    await expect(
      (async () => tokens.findRefusal(caller, unasked, 'getAccount'))(),
    ).rejects.toBeInstanceOf(UnauthorizedError);
  });

  it('are kept as hashes only', async () => {
    const store = await service.newStore();
    const { rows } = await service.running.database.query<{ everything: string }>(
      `select coalesce(string_agg(t::text, ' '), '') as everything from api_tokens t`,
    );
    expect(rows[0]?.everything).toContain('till');
    expect(rows[0]?.everything).not.toContain(store.token);
  });

  it('that are malformed cost no query, and count for their address', async () => {
    const store = await service.newStore();
    const token = store.token ?? '';
    const lookUps = watchLookUps();
    const wrong = [
      'ink_nonsense',
      `ink_${randomBytes(32).toString('base64url')}`,
      `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`,
    ];
    let before: number | undefined;
    for (const text of wrong) {
      const refused = await service.anonymous.as(text).get(store.store);
      expectFailure(refused, 401, 'unauthorized');
      const left = Number(refused.headers.get('ratelimit-remaining'));
      expect([text, left]).toEqual([text, (before ?? left + 1) - 1]);
      before = left;
    }
    expect(lookUps()).toBe(0);
    // The limit of the token itself is as it was.
    const limit = service.running.environment['RATE_LIMIT_PER_MINUTE'] ?? '100000';
    const first = await store.get(store.store);
    expect(first.headers.get('ratelimit-remaining')).toBe(String(Number(limit) - 1));
    expect(lookUps()).toBe(1);
  });

  it('stop even when the notification is lost', async () => {
    const store = await service.newStore();
    const { query } = service.running.database;
    const { id, sha256 } = await tokenOf(store);
    expect((await store.get(store.store)).status).toBe(200);
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'inkpad listen inkpad_identity'`,
    );
    // Not by a command, which would notify.
    await query('update api_tokens set revoked_at = now() where id = $1', [id]);
    await eventually(
      async () => (await store.get(store.store)).status,
      (status) => status === 401,
      SOON,
    );
    await query('update api_tokens set revoked_at = null where sha256 = $1', [sha256]);
    await eventually(
      async () => (await store.get(store.store)).status,
      (status) => status === 200,
      SOON,
    );
    await query(`update memberships set role = 'staff' where account_id = $1`, [store.accountId]);
    await eventually(
      async () => (await store.get(`${store.store}/audit`)).status,
      (status) => status === 403,
      SOON,
    );
  });

  it('are queried again while changes cannot be watched', async () => {
    const store = await service.newStore();
    const { id } = await tokenOf(store);
    const { query } = service.running.database;
    expect((await store.get(store.store)).status).toBe(200);
    const holder = new pg.Client({ connectionString: service.running.database.url });
    await holder.connect();
    try {
      await holder.query('begin');
      // Nobody gets to see whether something has changed, and nothing says that it has.
      await holder.query('lock table rights_version in access exclusive mode');
      await query('alter table api_tokens disable trigger rights_of_token');
      await query('update api_tokens set revoked_at = now() where id = $1', [id]);
      await query('alter table api_tokens enable trigger rights_of_token');
      await eventually(
        async () => (await store.get(store.store)).status,
        (status) => status === 401,
        SOON,
      );
    } finally {
      await holder.end();
    }
  });

  it('show when they were last used, to the minute', async () => {
    const store = await service.newStore();
    const { id } = await tokenOf(store);
    const { query } = service.running.database;
    const uses = service.running.app.get(TokenUses);
    const lastUse = async () => {
      await uses.write();
      const { rows } = await query<{ last_used_at: Date | null }>(
        'select last_used_at from api_tokens where id = $1',
        [id],
      );
      return rows[0]?.last_used_at ?? null;
    };
    const before = new Date();
    expect(await lastUse()).toBeNull();
    await store.get(store.store);
    const first = await lastUse();
    expect(first?.getTime()).toBeGreaterThanOrEqual(before.getTime());
    await store.get(store.store);
    expect(await lastUse()).toEqual(first);
    // As if another process had written it two minutes ago.
    await query(`update api_tokens set last_used_at = now() - interval '2 minutes' where id = $1`, [
      id,
    ]);
    const again = await startService({}, { ...service.running.database, close: async () => {} });
    await new Client(again.baseUrl, store.accountId, store.token).get(store.store);
    await again.stop();
    expect((await lastUse())?.getTime()).toBeGreaterThanOrEqual(before.getTime());
  });

  it('that were revoked are looked up only once in a while', async () => {
    const store = await service.newStore();
    const { rows } = await service.running.database.query<{ id: number }>(
      'select id from api_tokens order by id desc limit 1',
    );
    await service.running.execute(new RevokeToken(cli, Number(rows[0]?.id)));
    await eventually(
      async () => (await store.get(store.store)).status,
      (status) => status === 401,
    );
    const lookUps = watchLookUps();
    for (let i = 0; i < 20; i++) expect((await store.get(store.store)).status).toBe(401);
    expect(lookUps()).toBeLessThan(20);
  });
});

/** How often the api has asked the database for a token since. */
function watchLookUps(): () => number {
  let lookUps = 0;
  const watched = new WeakSet<object>();
  service.running.app.get(pg.Pool).on('acquire', (client) => {
    if (watched.has(client)) return;
    watched.add(client);
    const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
    client.query = ((...parameters: unknown[]) => {
      if ((parameters[0] as { name?: string }).name === 'identity_find_token') lookUps++;
      return query(...parameters);
    }) as typeof client.query;
  });
  return () => lookUps;
}
