import { describe, expect, it } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { RemoveUser } from '#identity/identity.commands.js';
import { Authenticator } from '#platform/http/caller.js';
import { TokenUses } from '#identity/token-uses.service.js';
import { RevokeToken } from '#identity/token.commands.js';
import { UnauthorizedError } from '#platform/kernel/errors.js';
import { expectFailure, useService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { cli, Client, startService } from '../support/services/service.js';

/** In milliseconds: sooner than the cache would drop an entry by itself. */
const SOON = 30_000;

const service = useService();

async function findToken({ token }: Client): Promise<{ id: number; sha256: Buffer }> {
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

describe('API tokens', () => {
  it('stop working when their user is removed', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    await service.running.execute(new RemoveUser(cli, store.email));
    // The notification of a change reaches the api within moments.
    const after = await eventually(
      () => store.get(store.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 401, 'unauthorized');
  });

  it('of a removed user get 401, and never 404 for the missing store', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    // Not by a command, which would notify the api: the cached token works for some hundred milliseconds.
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

  it('are refused when their user is removed after authentication', async () => {
    const store = await service.newStore();
    const { accountId: otherAccountId } = await service.newStore();
    const tokens = service.running.app.get(Authenticator);
    const caller = await tokens.authenticate(store.token ?? '');
    if (!caller) throw new Error('the token is unknown');
    await service.running.execute(new RemoveUser(cli, store.email));
    await expect(tokens.findDenial(caller, otherAccountId, 'getAccount')).rejects.toBeInstanceOf(
      UnauthorizedError,
    );
  });

  it('are stored as hashes only', async () => {
    const store = await service.newStore();
    const { rows } = await service.running.database.query<{ everything: string }>(
      `select coalesce(string_agg(t::text, ' '), '') as everything from api_tokens t`,
    );
    expect(rows[0]?.everything).toContain('till');
    expect(rows[0]?.everything).not.toContain(store.token);
  });

  it('that are malformed cost no query, and count against the rate limit of the IP address', async () => {
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
      const response = await service.anonymous.as(text).get(store.store);
      expectFailure(response, 401, 'unauthorized');
      const remaining = Number(response.headers.get('ratelimit-remaining'));
      expect([text, remaining]).toEqual([text, (before ?? remaining + 1) - 1]);
      before = remaining;
    }
    expect(lookUps()).toBe(0);
    // The rate limit of the token is untouched.
    const limit = service.running.environment['RATE_LIMIT_PER_MINUTE'] ?? '100000';
    const first = await store.get(store.store);
    expect(first.headers.get('ratelimit-remaining')).toBe(String(Number(limit) - 1));
    expect(lookUps()).toBe(1);
  });

  it('are revoked, restored and restricted even when the notification is lost', async () => {
    const store = await service.newStore();
    const { query } = service.running.database;
    const { id, sha256 } = await findToken(store);
    expect((await store.get(store.store)).status).toBe(200);
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name like 'inkpad api % link %'`,
    );
    // Not by a command, which would notify the api.
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
    await query('update api_tokens set read_only = true where id = $1', [id]);
    await eventually(
      async () => (await store.post(`${store.store}/customers`, {})).status,
      (status) => status === 403,
      SOON,
    );
  });

  it('stop working when revoked even while the api cannot read the version of rights', async () => {
    const store = await service.newStore();
    const { id } = await findToken(store);
    const { query } = service.running.database;
    expect((await store.get(store.store)).status).toBe(200);
    const holder = new pg.Client({ connectionString: service.running.database.url });
    await holder.connect();
    try {
      await holder.query('begin');
      // The api cannot see whether something has changed, and gets no notification.
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
    const { id } = await findToken(store);
    const { query } = service.running.database;
    const uses = service.running.app.get(TokenUses);
    const findLastUse = async () => {
      await uses.write();
      const { rows } = await query<{ last_used_at: Date | null }>(
        'select last_used_at from api_tokens where id = $1',
        [id],
      );
      return rows[0]?.last_used_at ?? null;
    };
    const before = new Date();
    expect(await findLastUse()).toBeNull();
    await store.get(store.store);
    const first = await findLastUse();
    expect(first?.getTime()).toBeGreaterThanOrEqual(before.getTime());
    await store.get(store.store);
    expect(await findLastUse()).toEqual(first);
    // As if another process had written it two minutes ago.
    await query(`update api_tokens set last_used_at = now() - interval '2 minutes' where id = $1`, [
      id,
    ]);
    const again = await startService({}, { ...service.running.database, close: async () => {} });
    await new Client(again.baseUrl, store.accountId, store.token).get(store.store);
    await again.stop();
    expect((await findLastUse())?.getTime()).toBeGreaterThanOrEqual(before.getTime());
  });

  it('that were revoked are not looked up for every request', async () => {
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

/** Counts how often the api queries the database for a token from now on. */
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
