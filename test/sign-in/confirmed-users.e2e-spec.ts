import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { AddressUpkeep } from '#identity/address-upkeep.service.js';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { AcceptInvitation, InviteUser } from '#identity/invitation.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { UpdateUser } from '#identity/user.commands.js';
import { createId } from '#platform/kernel/randomness.js';
import { Browser } from '../support/browser/browser.js';
import { cli, startService, type LocalService } from '../support/services/service.js';

const PASSWORD = 'correct horse';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

async function createUser(isConfirmed: boolean) {
  const email = `${createId()}@shop.example`;
  const user = new CreateUser(cli, email, 'Grace', PASSWORD, false, isConfirmed);
  return { email, id: (await service.execute(user)).userId };
}

async function isConfirmed(id: number): Promise<boolean> {
  const { rows } = await service.database.query<{ at: Date | null }>(
    'select email_confirmed_at as at from users where id = $1',
    [id],
  );
  return rows[0]?.at != null;
}

it('an operator vouches for the address of a new user, and its tokens stay', async () => {
  for (const vouched of [false, true]) {
    const { id, email } = await createUser(vouched);
    expect(await isConfirmed(id)).toBe(vouched);
    const { endsWhenConfirmed } = await service.execute(new CreateToken(cli, email, 'till'));
    expect(endsWhenConfirmed).toBe(!vouched);
  }
});

it('an operator vouches for the address that a user has, or gets, once', async () => {
  const { id, email } = await createUser(false);
  const other = `other-${email}`;
  for (const [to, vouched, confirmed] of [
    [email, false, false],
    [email, true, true],
    [email, false, true],
    [other, false, false],
    [email, true, true],
  ] as const) {
    await service.execute(new UpdateUser(cli, id, { email: to }, vouched));
    expect(await isConfirmed(id)).toBe(confirmed);
  }
  const { rows } = await service.database.query(
    `select subject ->> 'by' as by from audit_log
     where type = 'user.address_confirmed' and subject ->> 'user_id' = $1`,
    [id],
  );
  expect(rows).toEqual([{ by: 'operator' }, { by: 'operator' }]);
});

it('the pages of API tokens say that a token ends when the address is confirmed, and only then', async () => {
  const store = await service.newStore();
  const owner = await Browser.signedIn(service, store.email);
  const tokens = `/app/stores/${store.accountId}/tokens`;
  const form = { name: 'till', lifetime: '', role: '', reach: 'all', current_password: PASSWORD };
  const warning = 'all your tokens stop working';
  for (const isEnding of [true, false]) {
    if (!isEnding) {
      const email = { email: store.email };
      await service.execute(new UpdateUser(cli, store.email, email, true));
    }
    expect((await owner.get(tokens)).text.includes(warning)).toBe(isEnding);
    const created = await owner.submit(tokens, tokens, form);
    expect(created.text).toContain('ink_');
    expect(created.text.includes(warning)).toBe(isEnding);
  }
});

it('a new address by an operator ends the open links to another one', async () => {
  const { id, email } = await createUser(true);
  await service.database.query(
    `insert into address_changes (sha256, user_id, email, created_at, expires_at)
     values (sha256($2::text::bytea), $1, 'former@shop.example', now(), now() + interval '1 hour')`,
    [id, email],
  );
  await service.execute(new UpdateUser(cli, id, { email: `new-${email}` }));
  const { rows } = await service.database.query(
    'select used_at is not null as ended from address_changes where user_id = $1',
    [id],
  );
  expect(rows).toEqual([{ ended: true }]);
});

it('tokens that have expired or were revoked do not count towards the limit', async () => {
  const { id, email } = await createUser(true);
  await service.database.query(
    `insert into api_tokens (user_id, name, sha256, created_at, expires_at, revoked_at)
     select $1, 'job', sha256((n || $2)::bytea), now() - interval '2 days',
       case when n > 100 then now() - interval '1 day' end, case when n <= 100 then now() end
     from generate_series(1, 300) n`,
    [id, email],
  );
  const created = await service.execute(new CreateToken(cli, email, 'till'));
  expect(created.token).toMatch(/^ink_/);
});

it('nothing that a user signed in with outlives their address', async () => {
  const store = await service.newStore();
  const { id, email } = await createUser(true);
  await service.execute(new AddMember(cli, store.accountId, email, 'staff'));
  await service.database.query(
    `insert into counter_pins (user_id, pin_hash, created_at) values (${id}, 'hash', now());
     insert into ended_sessions (session_id, user_id, created_at, ended_at) values (-${id}, ${id}, now(), now());
     insert into address_changes (sha256, user_id, email, created_at, expires_at)
     values (sha256('a'), ${id}, 'a@shop.example', now(), now() + interval '1 hour')`,
  );
  await Browser.signedIn(service, email);
  await service.execute(new RemoveUser(cli, email));
  await service.database.query(
    `update users set removed_at = now() - interval '999 days' where id = $1`,
    [id],
  );
  const get = <T>(type: abstract new (...args: never[]) => T) =>
    service.app.get<T>(type, { strict: false });
  await new AddressUpkeep(get(Pool), get(Config)).deleteOld(new AbortController().signal);
  const { rows: tables } = await service.database.query<{ name: string }>(
    `select c.table_name as name from information_schema.columns c
     join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public' and c.column_name = 'user_id' and t.table_type = 'BASE TABLE' order by 1`,
  );
  const counts: string[] = [];
  for (const { name } of tables) {
    const { rowCount } = await service.database.query(`select from ${name} where user_id = $1`, [
      id,
    ]);
    if (rowCount !== 0) counts.push(name);
  }
  expect(counts).toEqual([]);
});

/** @returns the id of a new store's owner, with the store */
async function createOwner() {
  const store = await service.newStore();
  const { rows } = await service.database.query<{ id: number }>(
    'select id from users where email = $1',
    [store.email],
  );
  return { accountId: store.accountId, ownerId: rows[0]?.id ?? 0 };
}

it('whoever was added meanwhile keeps that role, and the log says no other', async () => {
  const { accountId, ownerId } = await createOwner();
  const { id, email } = await createUser(true);
  const invitation = new InviteUser(cli, ownerId, accountId, email, 'owner', null);
  const { secret } = await service.execute(invitation);
  await service.execute(new AddMember(cli, accountId, email, 'staff'));
  await service.execute(new AcceptInvitation(cli, secret ?? '', { userId: id }));
  const { rows } = await service.database.query(
    `select m.role, (select array_agg(subject ->> 'role') from audit_log
       where type = 'member.added' and (subject ->> 'user_id')::bigint = $1) as logged
     from memberships m where m.user_id = $1::bigint and m.account_id = $2`,
    [id, accountId],
  );
  expect(rows).toEqual([{ role: 'staff', logged: ['staff'] }]);
});

it('a store has at most 50 open invitations, also when several are sent at once', async () => {
  const { accountId, ownerId } = await createOwner();
  const results = await Promise.allSettled(
    Array.from({ length: 56 }, (_, i) =>
      service.execute(
        new InviteUser(cli, ownerId, accountId, `guest${i}@shop.example`, 'staff', null),
      ),
    ),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(50);
});
